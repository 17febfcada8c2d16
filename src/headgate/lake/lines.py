"""Lines: whole ones, added at the end of a file by several at once.

They take turns, so that each can see whether the last line is whole (its writer may have died) and
can take back what did not fit.
"""

import os
from collections.abc import Sequence

from headgate.ambient import Ambient
from headgate.errors import Invalid
from headgate.lake.refusals import explained, refusal, unsure
from headgate.lake.turns import one_at_a_time


def raw_of(lines: Sequence[str]) -> bytes:
    """As they are stored, each with its end. Raises Invalid."""
    if any("\n" in line for line in lines):
        raise Invalid("a line holds the end of a line; next: write it as JSON")
    try:
        return "".join(f"{line}\n" for line in lines).encode("utf-8")
    except UnicodeEncodeError as error:
        raise Invalid(
            f"a line is not valid Unicode text ({error}); next: write it as JSON"
        ) from error


def append_lines(handle: int, raw: bytes, place: str, ambient: Ambient) -> None:
    """Raises Unavailable (nothing was done), OutcomeUnknown."""
    with explained(place), one_at_a_time(handle, place, ambient):
        _append(handle, raw, place)


def _append(handle: int, raw: bytes, place: str) -> None:
    size_bytes = os.fstat(handle).st_size
    if size_bytes and os.pread(handle, 1, size_bytes - 1) != b"\n":
        raw = b"\n" + raw  # a torn line is its own: nothing is added to it
    try:
        write_all(handle, raw)
    except OSError as error:
        with unsure(place, "part of a line may be there. Next: try again; readers skip it"):
            os.ftruncate(handle, size_bytes)
        raise refusal(error, place) from error
    with unsure(place, "a power cut may undo it. Next: write it again under the same id"):
        os.fsync(handle)


def write_all(handle: int, raw: bytes) -> None:
    """One write, unless the disk takes less at once. Raises OSError."""
    view = memoryview(raw)
    while view:
        view = view[os.write(handle, view) :]
