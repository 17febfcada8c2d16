"""Orders: records to land, as a shop would write them: orders and payments, most of them on time.

Everything about them is decided by a seed, and how many there are of each hour is told by whoever
dropped them: what the lake must hold is known before anything lands.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import cos, pi
from pathlib import Path
from random import Random

from headgate.periods import DAY_MS, HOUR_MS

TOWNS = ("Lisbon", "Tromsø", "São Paulo", "台北", "Cork", "Łódź")
SPOILED = ("{ this is no JSON", '{"id": -1}', '{"id": -2, "at": "yesterday"}')
"""Records that cannot be landed: they must be among the dead letters."""

AHEAD_MS = (10 * DAY_MS, 70 * 365 * DAY_MS)  # so far ahead of their arrival are the far-future ones
MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Wave:
    """Records with these ids, in files of about the same size; event times in [from_ms, until_ms).

    The last record of each file is of the last moment: whoever has read it is as far as that.
    """

    name: str  # of its files
    ids: range
    files: int
    from_ms: int
    until_ms: int
    spoiled: tuple[str, ...] = ()  # in the first file, too


def far_future(now_ms: int) -> tuple[str, ...]:
    """Records that say they happened long after they came."""
    return tuple(
        json.dumps({"id": -10 - number, "at": now_ms + ahead_ms})
        for number, ahead_ms in enumerate(AHEAD_MS)
    )


def busy(at_ms: int) -> float:
    """How much happens at that moment: little in the small hours, most in the afternoon."""
    return 1.3 + cos(2 * pi * (at_ms % DAY_MS / DAY_MS - 0.66))


def share(from_ms: int, until_ms: int, end_ms: int) -> float:
    """How much of what happens by the end has happened until then."""
    first, every = (
        sum(map(busy, range(from_ms, to_ms, MINUTE_MS))) for to_ms in (until_ms, end_ms)
    )
    return first / every


def drop(folder: Path, wave: Wave, seed: int) -> Counter[int]:
    """Writes each file under an unfinished name, then renames it, as a careful program would. How
    many records there are of each hour, by its start."""
    hours = write(folder, wave, seed, prefix=".")
    for name in names_of(wave):
        os.rename(folder / f".{name}", folder / name)
    return hours


def write(folder: Path, wave: Wave, seed: int, prefix: str = "") -> Counter[int]:
    """The same, and no file gets another name: for whoever moves them all at once."""
    random, hours = Random(f"{seed} {wave.name}"), Counter[int]()
    per_file = -(-len(wave.ids) // wave.files)
    for number, name in enumerate(names_of(wave)):
        lines = list(_lines(wave.ids[number * per_file :][:per_file], wave, random, hours))
        if number == 0:
            lines[10:10] = wave.spoiled
        (folder / f"{prefix}{name}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return hours


def names_of(wave: Wave) -> list[str]:
    return [f"{wave.name}-{number}.json" for number in range(1, wave.files + 1)]


def _lines(ids: Sequence[int], wave: Wave, random: Random, hours: Counter[int]) -> Iterator[str]:
    minutes = range(wave.from_ms, wave.until_ms, MINUTE_MS)
    moments = random.choices(minutes, cum_weights=list(accumulate(map(busy, minutes))), k=len(ids))
    for place, (one, minute_ms) in enumerate(zip(ids, moments, strict=True)):
        at_ms = minute_ms + random.randrange(MINUTE_MS)
        is_last = place == len(ids) - 1
        at_ms = wave.until_ms - 1 if is_last else min(at_ms, wave.until_ms - 1)
        hours[at_ms - at_ms % HOUR_MS] += 1
        yield json.dumps(
            {
                "id": one,
                "at": at_ms,
                "town": TOWNS[one % len(TOWNS)],
                "cents": random.randrange(100_000),
            },
            ensure_ascii=False,
        )
