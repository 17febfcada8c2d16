"""Moments: wall times, event times and sizes, as people read and write them. UTC."""

from headgate.errors import Invalid
from headgate.periods import EPOCH, MILLISECOND, Period
from headgate.settings.units import duration_ms

_SIZES = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


def shown_moment(moment_ms: int | None, absent: str = "-") -> str:
    """`2026-11-01T13:05:00Z`"""
    if moment_ms is None:
        return absent
    try:
        moment = EPOCH + moment_ms * MILLISECOND
    except OverflowError:
        return f"{moment_ms} ms"
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def shown_bytes(size_bytes: int) -> str:
    """`1.2 MB`"""
    for unit, unit_bytes in _SIZES:
        if size_bytes >= unit_bytes:
            return f"{size_bytes / unit_bytes:,.1f} {unit}"
    return f"{size_bytes} B"


def many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def moment_of(text: str, now_ms: int) -> int:
    """`1h30m` is so long ago; else a date, an hour or a second in UTC. Raises Invalid."""
    if text[:1].isdigit() and text[-1:].isalpha() and not text.endswith(("Z", "z")):
        return now_ms - duration_ms(text)
    day, letter, rest = text.strip().rstrip("Zz").partition("T")
    numbers = rest.split(":") if letter else ["00"]
    try:
        hour = Period.parse(f"{day}T{numbers[0]}")
        small = [int(number) for number in numbers[1:]]
        if len(small) > 2 or any(not 0 <= number < 60 for number in small):
            raise ValueError
    except (Invalid, ValueError) as error:
        raise Invalid(
            f"{text!r} is no moment: write so long ago (30m, 2h, 7d), a date (2026-11-01) or a "
            "time in UTC (2026-11-01T13:05)"
        ) from error
    minutes, seconds = [*small, 0, 0][:2]
    return hour.start_ms + minutes * 60_000 + seconds * 1_000
