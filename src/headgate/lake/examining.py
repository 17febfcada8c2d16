"""Examining: asks the real place of a lake whether it keeps its promises, and answers in words.

Each question is asked through two handles of one lake, as two nodes would, below a folder of its
own in staging that is removed afterwards. Nothing that was landed is touched. A lake that cannot be
reached, or takes nothing, gives no finding: its error goes up.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - a race needs several at once
from contextlib import suppress
from functools import partial
from statistics import median
from typing import Final, TypeVar

from headgate.ambient import Ambient
from headgate.errors import Conflict, Corrupt, HeadgateError, Invalid, Unavailable
from headgate.lake import Lake
from headgate.lake.paths import STAGING
from headgate.store.probe import Finding, ProbeReport, Verdict

RACERS: Final = 4
RACES: Final = 5
PUBLISHES: Final = 15
CLOCK_LOOKS: Final = 5
CLOCK_WARN_MS: Final = 1_000
PUBLISH_WARN_MS: Final = 1_000
NAMES: Final = ("a b", "a-b", "é", "日本", "100%", "#x")

T = TypeVar("T")
Clock = Callable[[], float]
"""Wall time in milliseconds, by the clock of the place itself. Raises Unavailable."""


class _Broken(Exception):
    """A promise was broken; the message says which."""


def examine(
    first: Lake, second: Lake, clock: Clock, ambient: Ambient, asking: Callable[[str], object]
) -> ProbeReport:
    """`asking` hears each question's name before it is asked. Raises Unavailable, OutcomeUnknown,
    Invalid if not even one file can be written."""
    folder = f"{STAGING}/doctor-{ambient.new_id()}"
    asked = _Examination(first, second, clock, ambient, folder)
    findings: list[Finding] = []
    try:
        first.stage(f"{folder}/first", b"first")
        for name, question in asked.questions():
            asking(name)
            findings.append(_answer(name, question))
    finally:
        asking("clean up")
        is_clean = _is_removed(first, folder)
    if not is_clean:
        words = f"files below {folder} could not be removed; the sweeper leaves them, too"
        findings.append(Finding("clean up", Verdict.WARN, words))
    return ProbeReport(tuple(findings))


class _Examination:
    def __init__(
        self, first: Lake, second: Lake, clock: Clock, ambient: Ambient, folder: str
    ) -> None:
        self._first = first
        self._second = second
        self._clock = clock
        self._ambient = ambient
        self._folder = folder

    def questions(self) -> Iterator[tuple[str, Callable[[str], Finding]]]:
        yield "read your write", self._read_your_write
        yield "list your write", self._list_your_write
        yield "create if absent", self._create_if_absent
        yield "overwrite refusal", self._overwrite_refusal
        yield "consumed", self._consumed
        yield "name used again", self._used_again
        yield "exact removal", self._exact_removal
        yield "append", self._append
        yield "checksum", self._checksum
        yield "publish", self._publish
        yield "clock offset", self._clock_offset

    def _read_your_write(self, name: str) -> Finding:
        path = self._at("read")
        for content in (b"one", b"two"):
            facts = self._first.stage(path, content)
            if self._second.read(path) != content or self._second.facts(path) != facts:
                raise _Broken("an acknowledged write could not be read through a second handle")
        self._first.remove(path, facts)
        if self._second.facts(path) is not None:
            raise _Broken("a removed file could still be seen through a second handle")
        return Finding(name, Verdict.OK, "what one handle writes, another reads at once")

    def _list_your_write(self, name: str) -> Finding:
        for one in NAMES:
            self._first.stage(self._at("list", one), b"x")
        self._first.stage(self._at("list", "folder", "f"), b"x")
        found = [entry.path for entry in self._second.list(self._at("list")).entries]
        if found != [self._at("list", one) for one in sorted([*NAMES, "folder"])]:
            raise _Broken("a listing does not show what was written, once and in order")
        words = f"{len(NAMES)} difficult names and a folder: all there, once, in order"
        return Finding(name, Verdict.OK, words)

    def _create_if_absent(self, name: str) -> Finding:
        for race in range(RACES):
            start = threading.Barrier(RACERS)

            def racer(number: int, race: int = race, start: threading.Barrier = start) -> bool:
                lake = self._first if number % 2 else self._second
                staged = self._at("race", f"{race}-{number}")
                lake.stage(staged, b"%d" % number)
                start.wait()
                with suppress(Conflict):
                    lake.publish(staged, self._at("won", str(race)))
                    return True
                return False

            won = _at_once([partial(racer, number) for number in range(RACERS)])
            there = self._first.read(self._at("won", str(race)))
            if won.count(True) != 1 or there != b"%d" % won.index(True):
                raise _Broken(
                    f"{RACERS} files were published under one name at once, and {won.count(True)} "
                    "were told that they are there: one file takes the place of another"
                )
        return Finding(name, Verdict.OK, f"{RACERS} at once, {RACES} times: one winner each time")

    def _overwrite_refusal(self, name: str) -> Finding:
        target = self._at("taken")
        self._first.stage(target, b"first")
        self._second.stage(self._at("second"), b"second")
        with suppress(Conflict):
            self._second.publish(self._at("second"), target)
            raise _Broken("a file was published where another was: that one is lost")
        if self._first.read(target) != b"first":
            raise _Broken("a publish was refused, and replaced what was there all the same")
        return Finding(name, Verdict.OK, "nothing is published onto something")

    def _consumed(self, name: str) -> Finding:
        staged, target = self._at("once"), self._at("once-published")
        facts = self._first.stage(staged, b"once")
        self._first.publish(staged, target)
        if self._second.facts(staged) is not None or self._second.facts(target) != facts:
            raise _Broken("what was published is still staged, or is not what was staged")
        self._first.remove(target, facts)
        with suppress(Unavailable):
            self._second.publish(staged, target)
            raise _Broken("who came late could publish again what was rightly removed")
        return Finding(name, Verdict.OK, "a publish consumes what was staged: nothing comes back")

    def _used_again(self, name: str) -> Finding:
        staged, target = self._at("again"), self._at("again-published")
        for generation in (b"one", b"two"):
            facts = self._first.stage(staged, generation)
            try:
                self._first.publish(staged, target)
            except (Conflict, Unavailable) as error:
                raise _Broken(
                    "a name whose file was removed cannot be used again, and a withdrawn flag "
                    f"needs its name: switch off the versions of this bucket ({error})"
                ) from error
            self._second.remove(target, facts)
        return Finding(name, Verdict.OK, "a name whose file was removed can be used again")

    def _exact_removal(self, name: str) -> Finding:
        path = self._at("exact")
        old = self._first.stage(path, b"old")
        self._second.stage(path, b"new")
        with suppress(Conflict):
            self._first.remove(path, old)
            raise _Broken("another file than the one to be removed is gone")
        return Finding(name, Verdict.OK, "only exactly the file that was meant is removed")

    def _append(self, name: str) -> Finding:
        path = self._at("lines")

        def add(number: int) -> None:
            lake = self._first if number % 2 else self._second
            for line in range(RACES):
                lake.append(path, [f"{number} {line}"])

        _at_once([partial(add, number) for number in range(RACERS)])
        lines = (self._first.read(path) or b"").decode().split("\n")[:-1]
        wanted = sorted(f"{number} {line}" for number in range(RACERS) for line in range(RACES))
        if sorted(lines) != wanted:
            raise _Broken("lines that several added at once were lost, doubled or mixed")
        return Finding(name, Verdict.OK, f"{len(lines)} lines by {RACERS} at once: all there, once")

    def _checksum(self, name: str) -> Finding:
        facts = self._first.stage(self._at("sum"), b"content")
        kind = facts.checksum.partition(":")[0]
        if kind == "etag":
            words = (
                "the server keeps no checksum of its own, and its ETag must do: not where objects "
                "are encrypted with keys of your own, nor for files written in parts"
            )
            return Finding(name, Verdict.WARN, words)
        return Finding(name, Verdict.OK, f"{kind}, as the place itself computes it")

    def _publish(self, name: str) -> Finding:
        took_ms = []
        for number in range(PUBLISHES):
            staged = self._at("speed", str(number))
            self._first.stage(staged, b"x" * 1_000)
            started_ms = self._ambient.monotonic_ms()
            self._first.publish(staged, self._at("sped", str(number)))
            took_ms.append(self._ambient.monotonic_ms() - started_ms)
        each_ms = median(took_ms)
        shown = "less than 1 ms" if each_ms < 1 else f"{each_ms:,.0f} ms"
        words = f"one file after the other {shown} each (median of {PUBLISHES})"
        if each_ms > PUBLISH_WARN_MS:
            return Finding(
                name, Verdict.WARN, f"{words}; safe, but commits take long", each_ms, "ms"
            )
        return Finding(name, Verdict.OK, words, each_ms, "ms")

    def _clock_offset(self, name: str) -> Finding:
        looks: list[tuple[float, float]] = []
        for _ in range(CLOCK_LOOKS):
            before_ns = self._ambient.wall_ns()
            there_ms = self._clock()
            after_ns = self._ambient.wall_ns()
            looks.append((abs(after_ns - before_ns), there_ms - (before_ns + after_ns) / 2_000_000))
        _, offset_ms = min(looks)  # the quickest answer says most
        side = "ahead of" if offset_ms > 0 else "behind"
        words = f"the clock there is {abs(offset_ms):,.0f} ms {side} this machine's (± 1,000 ms)"
        if abs(offset_ms) > CLOCK_WARN_MS + 1_000:
            words += "; next: set both clocks by NTP (timedatectl status)"
            return Finding(name, Verdict.WARN, words, round(offset_ms, 1), "ms")
        return Finding(name, Verdict.OK, words, round(offset_ms, 1), "ms")

    def _at(self, *names: str) -> str:
        return "/".join((self._folder, *names))


def _answer(name: str, question: Callable[[str], Finding]) -> Finding:
    try:
        return question(name)
    except _Broken as broken:
        return Finding(name, Verdict.BAD, str(broken))
    except (Conflict, Corrupt, Invalid) as error:
        return Finding(name, Verdict.BAD, f"refused what must be accepted: {error}")


def _at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Their results, in order. Every thread has ended when this returns or raises."""
    with ThreadPoolExecutor(max_workers=len(calls)) as pool:
        futures = [pool.submit(call) for call in calls]
    return [future.result() for future in futures]


def _is_removed(lake: Lake, folder: str) -> bool:
    try:
        lake.remove_folder(folder)
    except HeadgateError:  # what led here matters more
        return False
    return True
