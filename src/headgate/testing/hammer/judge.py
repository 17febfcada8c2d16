"""Judge: decides from diaries and documents whether no acknowledged write is lost or doubled.

Values in, values out: a planted bug can be shown to it without any process.
"""

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

COUNTER = "counter"
LIST = "list"

Line: TypeAlias = Mapping[str, str | int]
"""Of a diary: `intent`, `ack`, `refused` or `unknown` name a write, `on` and `at` its place."""


@dataclass(frozen=True, slots=True)
class Diary:
    """What one process wrote down. It names its writes `<process>-<n>`."""

    process: str
    was_killed: bool
    intents: Mapping[str, str]  # write -> COUNTER or LIST
    acks: Mapping[str, int]  # write -> the count, or the entry's number; in the order it was told
    refused: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    complaints: tuple[str, ...] = ()  # broken promises that it saw itself, or how it broke down

    def acked(self, target: str) -> dict[str, int]:
        return {write: at for write, at in self.acks.items() if self.intents.get(write) == target}

    def cut_off(self, target: str) -> set[str]:
        """Writes that may have happened although nobody heard the answer."""
        answered = self.acks.keys() | self.refused
        return {write for write, on in self.intents.items() if on == target} - answered


@dataclass(frozen=True, slots=True)
class Share:
    """What one process added to the counter."""

    count: int = 0
    last: str = ""  # write; it says whether one that was cut off has happened


@dataclass(frozen=True, slots=True)
class Counter:
    count: int
    by: Mapping[str, Share]  # process -> its share


@dataclass(frozen=True, slots=True)
class Entry:
    number: int
    write: str


@dataclass(frozen=True, slots=True)
class Verdict:
    problems: tuple[str, ...]
    increments: int  # acknowledged
    entries: int  # acknowledged
    unheard_increments: int  # cut off, and happened all the same
    unheard_entries: int
    vanished: int  # cut off, and did not happen

    @property
    def is_proved(self) -> bool:
        return not self.problems


def read_diary(process: str, was_killed: bool, lines: Sequence[Line]) -> Diary:
    def writes(kind: str) -> Iterator[tuple[str, Line]]:
        return ((str(line[kind]), line) for line in lines if kind in line)

    return Diary(
        process,
        was_killed,
        intents={write: str(line["on"]) for write, line in writes("intent")},
        acks={write: int(line["at"]) for write, line in writes("ack")},
        refused=frozenset(write for write, _ in writes("refused")),
        unknown=frozenset(write for write, _ in writes("unknown")),
        complaints=tuple(str(line["complaint"]) for line in lines if "complaint" in line),
    )


def judge(diaries: Sequence[Diary], counter: Counter, entries: Sequence[Entry]) -> Verdict:
    increments = sum(len(diary.acked(COUNTER)) for diary in diaries)
    acked_entries = sum(len(diary.acked(LIST)) for diary in diaries)
    problems = [
        *_diary_problems(diaries),
        *_counter_problems(diaries, counter),
        *_list_problems(diaries, entries),
    ]
    if not increments or not acked_entries:
        problems.append("too little was acknowledged to prove anything")
    cut_off = sum(len(diary.cut_off(COUNTER) | diary.cut_off(LIST)) for diary in diaries)
    unheard_increments = counter.count - increments
    unheard_entries = len(entries) - acked_entries
    return Verdict(
        tuple(problems),
        increments,
        acked_entries,
        unheard_increments,
        unheard_entries,
        cut_off - unheard_increments - unheard_entries,
    )


def _diary_problems(diaries: Sequence[Diary]) -> Iterator[str]:
    for diary in diaries:
        yield from diary.complaints  # whoever has one stopped in the middle of a write
        answered = diary.acks.keys() | diary.refused | diary.unknown
        for write in sorted(answered - diary.intents.keys()):
            yield f"invented: process {diary.process} was answered {write}, which it never tried"
        for target in (COUNTER, LIST):
            for (_, before), (write, at) in pairwise(diary.acked(target).items()):
                if at <= before:
                    yield f"lost or twice: write {write} was told {at:,} after {before:,}"
        unanswered = diary.cut_off(COUNTER) | diary.cut_off(LIST)
        may_be_cut_off = diary.was_killed or bool(diary.complaints or diary.unknown)
        if len(unanswered) > may_be_cut_off:  # one write at a time
            yield f"process {diary.process} left {len(unanswered)} writes without an answer"
        elif not unanswered <= {*list(diary.intents)[-1:]}:
            yield f"process {diary.process} went on after a write without an answer"


def _counter_problems(diaries: Sequence[Diary], counter: Counter) -> Iterator[str]:
    told = Tally(at for diary in diaries for at in diary.acked(COUNTER).values())
    for at in sorted(at for at, times in told.items() if times > 1):
        yield f"lost: {told[at]} increments were each told that they made the counter {at:,}"
    if told and max(told) > counter.count:
        yield f"lost: an increment was told {max(told):,}, and the counter is at {counter.count:,}"
    shares = sum(share.count for share in counter.by.values())
    if shares != counter.count:
        yield f"lost or twice: the counter is at {counter.count:,}, its shares add up to {shares:,}"
    for process in sorted(counter.by.keys() - {diary.process for diary in diaries}):
        yield f"invented: nobody started process {process}, and it has a share in the counter"
    for diary in diaries:
        yield from _share_problems(diary, counter.by.get(diary.process, Share()))


def _share_problems(diary: Diary, share: Share) -> Iterator[str]:
    made = list(diary.acked(COUNTER))
    if share.last in diary.cut_off(COUNTER):
        made.append(share.last)
    if share.count < len(made):
        yield (
            f"lost: {len(made) - share.count} of {len(made)} increments of process {diary.process}"
        )
    if share.count > len(made):
        yield (
            f"twice: process {diary.process} made {len(made)} increments, "
            f"and the counter has {share.count} of it"
        )
    last = made[-1] if made else ""
    if share.last != last:
        yield (
            f"lost or twice: the last increment of process {diary.process} is {last or 'none'}, "
            f"and the counter says {share.last or 'none'}"
        )


def _list_problems(diaries: Sequence[Diary], entries: Sequence[Entry]) -> Iterator[str]:
    found = {entry.number: entry.write for entry in entries}
    missing = set(range(1, max(found, default=0) + 1)) - found.keys()
    if missing:
        yield f"lost: the list has no entry {min(missing)}, and later ones are there"
    for write, times in Tally(entry.write for entry in entries).items():
        if times > 1:
            yield f"twice: write {write} is {times} times in the list"
    for diary in diaries:
        for write, number in diary.acked(LIST).items():
            if found.get(number) != write:
                yield f"lost: write {write} was told that it is entry {number} of the list"
    known = {write for diary in diaries for write in (*diary.acked(LIST), *diary.cut_off(LIST))}
    for write in sorted({*found.values()} - known):
        yield f"invented: write {write} is in the list; nobody tried it, or it was refused"
