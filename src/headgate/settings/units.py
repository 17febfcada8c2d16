"""Units: durations like `1h30m` and sizes like `128MB`, as people write them and as numbers.

A number without a unit is refused: nobody can tell seconds from minutes by looking at it.
"""

import re
from typing import Final

from headgate.errors import Invalid

DURATIONS_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
SIZES_BYTES: Final = {
    **{"TB": 10**12, "GB": 10**9, "MB": 10**6, "kB": 10**3},
    **{"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "B": 1},
}
DURATION_PATTERN: Final = r"(?=.)(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?"
SIZE_PATTERN: Final = r"\d+ ?([kKMGT]?B|[KMGT]iB)"
LETTERS_MAX: Final = 40

_DURATION = re.compile(DURATION_PATTERN, re.ASCII)
_SIZE = re.compile(SIZE_PATTERN, re.ASCII)


def duration_ms(text: str) -> int:
    """Milliseconds. Raises Invalid."""
    if _DURATION.fullmatch(text) is None or len(text) > LETTERS_MAX:
        raise Invalid(
            f"{text[:40]!r} is no duration: write whole numbers with a unit, the largest first: "
            "500ms, 30s, 5m, 1h30m, 2d"
        )
    pieces = re.findall(r"(\d+)([a-z]+)", text)
    return sum(int(number) * DURATIONS_MS[unit] for number, unit in pieces)


def size_bytes(text: str) -> int:
    """Raises Invalid."""
    if _SIZE.fullmatch(text) is None or len(text) > LETTERS_MAX:
        raise Invalid(
            f"{text[:40]!r} is no size: write a whole number with a unit: 500B, 64kB, 128MB, 1GB, "
            "or in powers of two 64KiB, 128MiB, 1GiB"
        )
    number, unit = re.findall(r"(\d+) ?(\w+)", text)[0]
    return int(number) * SIZES_BYTES[unit.replace("KB", "kB")]


def duration_text(duration: int) -> str:
    """What `duration_ms` reads back."""
    text, left_ms = "", duration
    for unit, unit_ms in DURATIONS_MS.items():
        number, left_ms = divmod(left_ms, unit_ms)
        text += f"{number}{unit}" if number else ""
    return text or "0s"


def size_text(size: int) -> str:
    """What `size_bytes` reads back: in the unit that needs the fewest digits."""
    fitting = [unit for unit, unit_bytes in SIZES_BYTES.items() if size % unit_bytes == 0]
    unit = min(fitting, key=lambda one: len(str(size // SIZES_BYTES[one]))) if size else "B"
    return f"{size // SIZES_BYTES[unit]}{unit}"
