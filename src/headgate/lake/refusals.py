"""Refusals: what it means for the lake when a file system says no.

Every one names the place, the reason, and what to do next; `nothing` was done, unless it says so.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from shlex import quote

from headgate.errors import Corrupt, HeadgateError, Invalid, OutcomeUnknown, Unavailable

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM})


def refusal(error: OSError, place: str) -> HeadgateError:
    """Nothing was done."""
    said = error.strerror or str(error)
    folder = quote(os.path.dirname(place))
    if error.errno in _FULL:
        return Unavailable(
            f"{place}: there is not enough room ({said}), and nothing was done; "
            f"next: df -h {folder}; df -i {folder}"
        )
    if error.errno == errno.EROFS:
        return Unavailable(
            f"{place}: the file system is read-only, and nothing was done; next: "
            f"findmnt -T {folder}"
        )
    if error.errno in _FORBIDDEN:
        return Unavailable(
            f"{place}: not allowed ({said}), and nothing was done; next: see which folder refuses, "
            f"and give this user the right: namei -l {quote(place)}"
        )
    if error.errno == errno.ELOOP:
        return Invalid(
            f"{place}: a link is on the way, and might lead out of the lake; nothing was done. "
            f"Next: put the thing itself in its place: namei -l {quote(place)}"
        )
    if error.errno == errno.EXDEV:
        return Invalid(
            f"{place}: the staging folder is on another file system, from where nothing can be "
            f"moved here; nothing was done. Next: have the whole lake on one: findmnt -T {folder}"
        )
    if error.errno == errno.ENAMETOOLONG:
        return Invalid(
            f"{place}: is too long for this disk; next: a shorter root, or shorter names"
        )
    return Unavailable(
        f"{place}: {said}, and nothing was done; next: try again, or namei -l {quote(place)}"
    )


class explained(AbstractContextManager[None]):  # noqa: N801 - reads as a verb, and is on hot paths
    """Nothing was done if this fails."""

    __slots__ = ("_place",)

    def __init__(self, place: str) -> None:
        self._place = place

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise refusal(error, self._place) from error


@contextmanager
def unsure(place: str, meaning: str) -> Iterator[None]:
    """It may have been done if this fails: `meaning` says what, and what to do next."""
    try:
        yield
    except OSError as error:
        said = error.strerror or str(error)
        raise OutcomeUnknown(f"{place}: the disk did not confirm it ({said}); {meaning}") from error


def no_file(place: str) -> Corrupt:
    return Corrupt(
        f"{place}: is something else than a file, and nothing here would make such a thing; "
        f"next: see what it is, and move it out of the lake: ls -ld {quote(place)}"
    )


def no_folder(place: str) -> Corrupt:
    return Corrupt(
        f"{place}: is something else than a folder, and nothing here would make such a thing; "
        f"next: see what it is, and move it out of the lake: ls -ld {quote(place)}"
    )


def missing(place: str) -> Unavailable:
    return Unavailable(
        f"{place}: is not there, and nothing was done; next: see what is: "
        f"ls -la {quote(os.path.dirname(place))}"
    )
