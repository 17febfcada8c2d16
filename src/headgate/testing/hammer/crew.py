"""Crew: starts the hammer's processes, kills some, replaces them, and brings the proof home.

All processes are stopped and reaped when `hammer` returns or raises; if this process itself is
killed, they notice and end.
"""

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Literal, TypeAlias

from headgate.errors import Conflict, Invalid
from headgate.store import DocumentStore
from headgate.store.names import parts
from headgate.store.pages import pages
from headgate.store.registry import open_store
from headgate.store.url import parse
from headgate.testing.hammer import writer
from headgate.testing.hammer.judge import (
    COUNTER,
    LIST,
    Counter,
    Diary,
    Entry,
    Line,
    Verdict,
    judge,
    read_diary,
)

TICK_S = 0.1
KILL_PAUSE_S_MIN, KILL_PAUSE_S_MAX = 0.3, 1.0
EMPTY_SEAT_S = 0.3  # long enough to be seen
START_S_MAX = 60.0
STOP_S_MAX = 30.0
CLEAN_TRIES_MAX = 5

State: TypeAlias = Literal["starting", "writing", "killed", "ended"]


@dataclass(frozen=True, slots=True)
class Plan:
    url: str
    namespace: str
    diaries: Path  # an empty folder
    processes: int
    seconds: float  # from the moment when all are writing
    seed: int  # of the choice and the pace of kills


@dataclass(frozen=True, slots=True)
class Seat:
    """Numbers are over all processes that sat here."""

    number: int
    pid: int
    state: State
    increments: int
    entries: int
    conflicts: int
    doubts: int
    kills: int


@dataclass(frozen=True, slots=True)
class Picture:
    elapsed_s: float  # since all were writing
    per_second: float  # acknowledged writes, since then
    seats: tuple[Seat, ...]
    news: tuple[str, ...] = ()  # the seats say it all

    @property
    def acknowledged(self) -> int:
        return sum(seat.increments + seat.entries for seat in self.seats)

    @property
    def conflicts(self) -> int:
        return sum(seat.conflicts for seat in self.seats)

    @property
    def doubts(self) -> int:
        return sum(seat.doubts for seat in self.seats)

    @property
    def kills(self) -> int:
        return sum(seat.kills for seat in self.seats)


@dataclass(frozen=True, slots=True)
class Outcome:
    verdict: Verdict
    counter: Counter
    picture: Picture


def hammer(plan: Plan, show: Callable[[Picture], None]) -> Outcome:
    """Raises Invalid, Conflict (the namespace has a counter already), and what the store raises."""
    if parse(plan.url).scheme == "memory":
        raise Invalid("memory: lives in one process, others do not see it; next: try file:./state")
    with closing(open_store(plan.url, plan.namespace)) as store:
        store.create(COUNTER, writer.counter_body(Counter(0, {})))
        crew = _Crew(plan)
        try:
            crew.work(show)
        finally:
            crew.kill_all()
        counter, entries = read_back(store)
    return Outcome(judge(crew.diaries(), counter, entries), counter, crew.picture())


def clean_up(store: DocumentStore) -> None:
    """Removes what the hammer wrote: the entries of the list, and the counter.

    Raises what the store raises; Conflict if somebody keeps writing.
    """
    for page in pages(store, LIST):
        for document in page.documents:
            with suppress(Conflict):  # somebody else removed it: nobody replaces an entry
                store.delete(document.key, document.version)
    for _ in range(CLEAN_TRIES_MAX):
        counter = store.get(COUNTER)
        if counter is None:
            return
        with suppress(Conflict):  # the last request of a killed process came late
            store.delete(COUNTER, counter.version)
            return
    raise Conflict(f"{COUNTER}: is being written all the time; next: see who else uses this store")


def read_back(store: DocumentStore) -> tuple[Counter, list[Entry]]:
    found = store.get(COUNTER)
    counter = Counter(0, {}) if found is None else writer.counter_from(found.body)
    entries = [
        Entry(int(parts(document.key)[-1]), str(document.body["write"]))
        for page in pages(store, LIST)
        for document in page.documents
    ]
    return counter, entries


class _Process:
    """One running writer, and what its diary says so far."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.name = name
        self.was_killed = False
        self.conflicts = 0
        self.doubts = 0
        self.told_yes = {COUNTER: 0, LIST: 0}
        self._errors = plan.diaries / f"{name}.stderr"
        diary = plan.diaries / f"{name}.diary"
        diary.touch()
        self._file: IO[bytes] = diary.open("rb")
        self._lines: list[Line] = []
        self._rest = b""  # of a line that is still being written
        command = [sys.executable, "-P", "-m", writer.__name__]
        with self._errors.open("wb") as errors:
            self._popen = subprocess.Popen(
                [*command, plan.url, plan.namespace, name, str(diary), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for the crew, which then ends its processes
            )
        self.pid = self._popen.pid

    @property
    def state(self) -> State:
        if self.was_killed:
            return "killed"
        if self._popen.poll() is not None:
            return "ended"
        return "writing" if self._lines else "starting"

    def kill(self) -> None:
        if self._popen.poll() is None:
            self.was_killed = True
            self._popen.kill()
        self._popen.wait()

    def ask_to_stop(self) -> None:
        self._popen.send_signal(signal.SIGTERM)  # does nothing once it has ended

    def await_end(self, until_s: float) -> None:
        try:
            self._popen.wait(max(0.0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()

    def read(self) -> None:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in map(json.loads, lines):
            self._lines.append(line)
            self.conflicts += line.get("conflicts", 0)
            self.doubts += line.get("doubts", 0)
            if "ack" in line:
                self.told_yes[line["on"]] += 1

    def diary(self) -> Diary:
        """When it has ended."""
        diary = read_diary(self.name, self.was_killed, self._lines)
        is_calm = self.was_killed or self._popen.returncode in (0, -signal.SIGTERM)
        if is_calm or diary.complaints:
            return diary
        words = f"process {self.name} broke down; next: cat {shlex.quote(str(self._errors))}"
        return replace(diary, complaints=(words,))

    def close(self) -> None:
        self._file.close()


class _Crew:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._chance = random.Random(plan.seed)
        self._seats: list[list[_Process]] = [[] for _ in range(plan.processes)]
        self._free_since_s: dict[int, float] = {}  # seat -> when its process was killed
        self._elapsed_s = 0.0
        self._told_yes_before = 0
        self._per_second = 0.0

    def work(self, show: Callable[[Picture], None]) -> None:
        for seat in range(self._plan.processes):
            self._sit_down(seat)
        end_s = time.monotonic() + START_S_MAX
        while not self._all("writing") and not self._some("ended") and time.monotonic() < end_s:
            self._look(show)
        start_s = time.monotonic()
        self._told_yes_before = self._told_yes()
        next_kill_s = start_s + self._pause_s()
        while self._elapsed_s < self._plan.seconds and not self._some("ended"):
            if time.monotonic() >= next_kill_s and self._kill_somebody():
                next_kill_s += self._pause_s()
            self._fill_seats()
            self._look(show)
            self._elapsed_s = time.monotonic() - start_s
            self._per_second = (self._told_yes() - self._told_yes_before) / self._elapsed_s
        self._stop()
        self._look(show)

    def kill_all(self) -> None:
        for process in self._everybody():
            process.kill()
            process.read()
            process.close()

    def diaries(self) -> list[Diary]:
        return [process.diary() for process in self._everybody()]

    def picture(self) -> Picture:
        return Picture(
            self._elapsed_s,
            self._per_second,
            tuple(
                Seat(
                    number=number,
                    pid=processes[-1].pid,
                    state=processes[-1].state,
                    increments=sum(process.told_yes[COUNTER] for process in processes),
                    entries=sum(process.told_yes[LIST] for process in processes),
                    conflicts=sum(process.conflicts for process in processes),
                    doubts=sum(process.doubts for process in processes),
                    kills=sum(process.was_killed for process in processes),
                )
                for number, processes in enumerate(self._seats, start=1)
            ),
        )

    def _sit_down(self, seat: int) -> None:
        processes = self._seats[seat]
        processes.append(_Process(self._plan, f"{seat + 1}.{len(processes) + 1}"))

    def _kill_somebody(self) -> bool:
        """Of those who write: whoever is still starting has nothing to lose."""
        writing = [seat for seat, all_ in enumerate(self._seats) if all_[-1].state == "writing"]
        if not writing:
            return False
        victim = self._chance.choice(writing)
        self._seats[victim][-1].kill()
        self._free_since_s[victim] = time.monotonic()
        return True

    def _fill_seats(self) -> None:
        for seat, since_s in list(self._free_since_s.items()):
            if time.monotonic() - since_s >= EMPTY_SEAT_S:
                del self._free_since_s[seat]
                self._sit_down(seat)

    def _stop(self) -> None:
        until_s = time.monotonic() + STOP_S_MAX
        sitting = [processes[-1] for processes in self._seats]
        for process in sitting:
            process.ask_to_stop()
        for process in sitting:
            process.await_end(until_s)

    def _look(self, show: Callable[[Picture], None]) -> None:
        for processes in self._seats:
            processes[-1].read()
        show(self.picture())
        time.sleep(TICK_S)

    def _pause_s(self) -> float:
        return self._chance.uniform(KILL_PAUSE_S_MIN, KILL_PAUSE_S_MAX)

    def _all(self, state: State) -> bool:
        return all(processes[-1].state == state for processes in self._seats)

    def _some(self, state: State) -> bool:
        return any(processes[-1].state == state for processes in self._seats)

    def _told_yes(self) -> int:
        return sum(sum(process.told_yes.values()) for process in self._everybody())

    def _everybody(self) -> Iterator[_Process]:
        for processes in self._seats:
            yield from processes
