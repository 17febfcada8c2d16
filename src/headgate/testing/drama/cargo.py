"""Cargo: what the streams of the landfall are given, wave by wave, and so what the lake must hold.

incoming/<stream>/.late-1.json      being written until the end: so nobody can say before that
                                    everything has come, and watermarks go by the records alone
outbox/<stream>/<wave>/             where nobody looks; it is moved into the stream's folder as
                                    a whole: else some of a wave could be late by the rest
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from headgate.periods import HOUR_MS, Period
from headgate.testing.drama.headcount import Dropped
from headgate.testing.drama.orders import SPOILED, Wave, far_future, names_of, share, write

ORDERS, PAYMENTS = STREAMS = ("orders", "payments")
ORDERS_PART = 0.6  # of all records
FILES = 4  # of a wave and stream: each lane gets some
FIRST_WAVE_HOURS = 6.5  # ends in the middle of an hour: the second goes on there
LATE_HOURS = 4  # from the first on, in which late records belong
LATE_PART = 100  # one of so many comes late


def waves_of(stream: str, records: int, hours: Sequence[Period]) -> Mapping[str, Wave]:
    """`records`: of all streams."""
    begin_ms, end_ms = hours[0].start_ms, hours[-1].end_ms
    count = round(records * (ORDERS_PART if stream == ORDERS else 1 - ORDERS_PART))
    late = count - max(1, count // LATE_PART)
    split_ms = begin_ms + int(FIRST_WAVE_HOURS * HOUR_MS)
    split = int(late * share(begin_ms, split_ms, end_ms))
    bad, late_ms = (*SPOILED, *far_future(end_ms)), begin_ms + LATE_HOURS * HOUR_MS
    return {
        "first": Wave(stream, range(split), FILES, begin_ms, split_ms, bad),
        "second": Wave(stream, range(split, late), FILES, split_ms, end_ms),
        "late": Wave("late", range(late, count), 1, begin_ms, late_ms),
    }


class Cargo:
    def __init__(self, folder: Path, records: int, hours: Sequence[Period], seed: int) -> None:
        self._folder = folder
        self._seed = seed
        self._waves = {stream: waves_of(stream, records, hours) for stream in STREAMS}
        self.dropped: dict[str, Dropped] = {}

    def begin(self) -> None:
        """What is late is still being written."""
        for stream in STREAMS:
            self._incoming(stream).mkdir(parents=True)
            write(self._incoming(stream), self._waves[stream]["late"], self._seed, prefix=".")

    def load(self) -> None:
        """All the rest is written, and nothing is dropped."""
        for stream, waves in self._waves.items():
            hours = Counter[int]()
            for name in ("first", "second"):
                self._outbox(stream, name).mkdir(parents=True)
                hours += write(self._outbox(stream, name), waves[name], self._seed)
            late, bad = waves["late"].ids, waves["first"].spoiled
            self.dropped[stream] = Dropped(range(late.stop), hours, len(late), len(bad))

    def drop(self, name: str) -> Iterator[str]:
        """In words."""
        for stream, waves in self._waves.items():
            os.rename(self._outbox(stream, name), self._incoming(stream) / name)
            wave = waves[name]
            bad = f", and {len(wave.spoiled)} records that are no good" if wave.spoiled else ""
            yield f"{len(wave.ids):,} {stream} are dropped, in {wave.files} files{bad}"

    def drop_late(self) -> Iterator[str]:
        """In words."""
        for stream, waves in self._waves.items():
            (name,) = names_of(waves["late"])
            os.rename(self._incoming(stream) / f".{name}", self._incoming(stream) / name)
            late = len(waves["late"].ids)
            yield f"{late:,} late {stream} come, of hours that are ready"
        yield "nothing is being written any more, so the last hours can be closed"

    def rows_of(self, *names: str) -> int:
        """That lie in the lake once these waves have landed, dead letters among them."""
        waves = [self._waves[stream][name] for stream in STREAMS for name in names]
        return sum(len(wave.ids) + len(wave.spoiled) for wave in waves)

    def _incoming(self, stream: str) -> Path:
        return self._folder / "incoming" / stream

    def _outbox(self, stream: str, wave: str) -> Path:
        return self._folder / "outbox" / stream / wave
