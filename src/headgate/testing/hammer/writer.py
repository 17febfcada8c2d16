"""Writer: one process of the hammer. Increments and appends in turn, one at a time.

    python -m headgate.testing.hammer.writer URL NAMESPACE PROCESS DIARY PARENT

It ends when it gets SIGTERM, when its parent (a process id) is gone, or after LIFE_S_MAX.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from headgate.errors import Conflict, HeadgateError, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore, JsonObject, JsonValue, Version
from headgate.store.names import key
from headgate.store.registry import open_store
from headgate.testing.hammer.judge import COUNTER, LIST, Counter, Share

LIFE_S_MAX = 3_600.0
UNAVAILABLE_PAUSE_S = 0.1


class Pen(Protocol):
    def __call__(self, **line: str | int) -> None:
        """Adds a line to the diary; it is on disk when this returns."""


class Writer:
    def __init__(
        self, store: DocumentStore, process: str, pen: Pen, may_go_on: Callable[[], bool]
    ) -> None:
        self._store = store
        self._process = process
        self._pen = pen
        self._may_go_on = may_go_on
        self._writes = 0
        self._share = Share()  # of the counter
        self._number = 1  # of the list's entry to try next
        self._conflicts = 0
        self._doubts = 0
        self._is_in_doubt = False  # a try of the present write may have happened, or may still

    def run(self) -> None:
        """Raises whatever the writes cannot live with; the diary is then complete up to there."""
        while self._may_go_on():
            self._writes += 1
            write = f"{self._process}-{self._writes}"
            target = COUNTER if self._writes % 2 else LIST
            self._conflicts, self._doubts, self._is_in_doubt = 0, 0, False
            self._pen(intent=write, on=target)
            try:
                at = self._increment(write) if target == COUNTER else self._append(write)
            except TimeIsOver:
                answer: dict[str, str | int] = {
                    "unknown" if self._is_in_doubt else "refused": write
                }
            else:
                answer = {"ack": write, "on": target, "at": at}
            self._pen(**answer, conflicts=self._conflicts, doubts=self._doubts)

    def _increment(self, write: str) -> int:
        mine = Share(self._share.count + 1, write)  # once it has happened
        count, base = 0, Version("")  # of the last try
        while True:  # ends with the time
            with self._patience():
                found = self._store.get(COUNTER)
                if found is None:
                    raise BrokenPromise("lost: the counter is gone")
                counter = counter_from(found.body)
                share = counter.by.get(self._process, Share())
                if self._is_in_doubt and share == mine:
                    self._share = mine
                    return count
                if share != self._share:
                    raise BrokenPromise(
                        f"lost or twice: process {self._process} made {_words(self._share)}, "
                        f"and the counter has {_words(share)} of it"
                    )
                if found.version != base:
                    self._is_in_doubt = False  # that try's version has moved: it cannot happen
                count, base = counter.count + 1, found.version
                by = {**counter.by, self._process: mine}
                self._store.replace(COUNTER, counter_body(Counter(count, by)), base)
                self._share = mine
                return count

    def _append(self, write: str) -> int:
        while True:  # ends with the time
            with self._patience():
                place = entry_key(self._number)
                found = self._store.get(place)
                if found is None:
                    self._store.create(place, {"format": 1, "write": write})
                    return self._number
                if self._is_in_doubt and found.body["write"] == write:
                    return self._number
                self._is_in_doubt = False  # somebody else has that number: that try cannot happen
                self._number = self._first_free(self._number)

    def _first_free(self, taken: int) -> int:
        """In steps that double, then by halves: a newcomer has thousands of entries to pass."""
        step = 1
        while self._store.get(entry_key(taken + step)) is not None:
            taken, step = taken + step, step * 2
        free = taken + step
        while free - taken > 1:
            middle = (taken + free) // 2
            if self._store.get(entry_key(middle)) is None:
                free = middle
            else:
                taken = middle
        return free

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """Swallows what the next look can answer. Raises TimeIsOver instead of a next look."""
        if not self._may_go_on():
            raise TimeIsOver
        try:
            yield
        except Conflict:
            self._conflicts += 1
        except OutcomeUnknown:
            self._doubts += 1
            self._is_in_doubt = True
        except Unavailable:
            time.sleep(UNAVAILABLE_PAUSE_S)


class TimeIsOver(Exception):
    """Stop was asked for while a write had no answer yet."""


class BrokenPromise(Exception):
    """The store showed something that cannot be."""


def counter_body(counter: Counter) -> JsonObject:
    by: JsonObject = {
        process: {"share": share.count, "last": share.last} for process, share in counter.by.items()
    }
    return {"format": 1, "count": counter.count, "by": by}


def counter_from(body: JsonObject) -> Counter:
    """Raises BrokenPromise."""
    match body:
        case {"count": int(count), "by": dict(by)}:
            return Counter(count, {process: _share_from(share) for process, share in by.items()})
    raise BrokenPromise(f"invented: nobody wrote such a counter: {body}")


def _share_from(body: JsonValue) -> Share:
    match body:
        case {"share": int(count), "last": str(last)}:
            return Share(count, last)
    raise BrokenPromise(f"invented: nobody wrote such a share of the counter: {body}")


def _words(share: Share) -> str:
    return f"{share.count} increments" + (f", the last one {share.last}" if share.last else "")


def entry_key(number: int) -> str:
    return key(LIST, f"{number:08}")


def main(url: str, namespace: str, process: str, diary: str, parent: str) -> int:
    is_stopped = False

    def stop(_signal: int, _frame: object) -> None:
        nonlocal is_stopped
        is_stopped = True

    signal.signal(signal.SIGTERM, stop)
    end_s = time.monotonic() + LIFE_S_MAX
    file = os.open(Path(diary), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def pen(**line: str | int) -> None:
        os.write(file, json.dumps(line).encode("ascii") + b"\n")
        os.fsync(file)

    def may_go_on() -> bool:
        # The parent's id is given, not asked for: it may be gone before this process can ask.
        return not is_stopped and os.getppid() == int(parent) and time.monotonic() < end_s

    try:
        with closing(open_store(url, namespace)) as store:
            Writer(store, process, pen, may_go_on).run()
    except BrokenPromise as error:
        pen(complaint=str(error))
        return 1
    except HeadgateError as error:
        pen(complaint=f"process {process} gave up: {type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
