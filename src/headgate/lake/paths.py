"""Paths: text below the root of a lake, plain names joined by `/`.

A path never begins or ends with `/`, has no empty name, no `.` and no `..`: it has one spelling,
and by itself it cannot leave the root. The root is the empty text, as a folder only.
"""

import re
from typing import Final

from headgate.errors import Invalid
from headgate.lake import LIST_MAX, FileFacts

NAME_BYTES_MAX: Final = 255  # where local disks and HDFS end
PATH_BYTES_MAX: Final = 1_024  # where object stores end

OURS: Final = "_headgate"
STAGING: Final = f"{OURS}/staging"
LATE: Final = "_late"  # above the folders of hours: records that came late
REMOVING: Final = f"{STAGING}/_removing"  # no stream has such a folder: names are escaped
"""Where a file lies between losing its name and being gone. Its name there says what was to be
removed: what lies there and is just that is nobody's."""

_REMOVED: Final = re.compile(rf"{REMOVING}/[^./]+\.(\d+)\.([^./]+)")


def check_file(path: str) -> str:
    """The same path. Raises Invalid."""
    if _is_plain(path):
        return path
    if not path:
        raise Invalid("a path is empty: the root itself is no file; next: name a file below it")
    names = path.split("/")
    for name in names:
        if name in ("", ".", ".."):
            raise _refusal(path, "it has an empty name, '.' or '..', and could leave the lake")
        # What one system takes for a separator or the end, another takes for a letter.
        if "\0" in name or "\\" in name:
            raise _refusal(path, "a name has a backslash or a NUL")
    try:
        sizes = [len(name.encode("utf-8")) for name in names]
    except UnicodeEncodeError:
        raise _refusal(path, "it is not valid Unicode text") from None
    if max(sizes) > NAME_BYTES_MAX:
        raise _refusal(path, f"a name has {max(sizes)} bytes, at most {NAME_BYTES_MAX} fit")
    if sum(sizes) + len(sizes) - 1 > PATH_BYTES_MAX:
        raise _refusal(path, f"it has more than {PATH_BYTES_MAX} bytes")
    return path


def _is_plain(path: str) -> bool:
    """As most are, and soon told: a commit asks for tens of thousands. False: look closely."""
    return (
        path.isascii()
        and 0 < len(path) <= NAME_BYTES_MAX
        and path[0] not in "./"
        and path[-1] != "/"
        and "/." not in path
        and "//" not in path
        and "\\" not in path
        and "\0" not in path
    )


def check_folder(path: str) -> str:
    """The same path; the root is one, too. Raises Invalid."""
    return path and check_file(path)


def check_private(path: str) -> str:
    """The same path, of a folder that nobody but us looks into. Raises Invalid."""
    check_file(path)
    if not path.startswith(STAGING + "/"):
        raise Invalid(
            f"{path!r} is not below {STAGING}: whole folders are removed only there; next: remove "
            "its files one by one, each with its facts"
        )
    return path


def check_page(limit: int) -> int:
    """How many names of a folder may be asked for at once. Raises Invalid."""
    if not 1 <= limit <= LIST_MAX:
        raise Invalid(f"a page of {limit} entries: give a limit from 1 to {LIST_MAX:,}")
    return limit


def join(*parts: str) -> str:
    """Paths and names put together; the empty ones, which are the root, leave no trace."""
    return "/".join(filter(None, parts))


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


def removing_path(new_id: str, facts: FileFacts) -> str:
    """Where exactly this file lies while it is being removed. HDFS has no colon in a name."""
    return f"{REMOVING}/{new_id}.{facts.size_bytes}.{facts.checksum.replace(':', '=', 1)}"


def removed_facts(path: str) -> FileFacts | None:
    """What was to be removed there; None: nobody said so."""
    found = _REMOVED.fullmatch(path)
    if found is None:
        return None
    checksum = found[2] if ":" in found[2] else found[2].replace("=", ":", 1)
    return FileFacts(int(found[1]), checksum)


def _refusal(path: str, reason: str) -> Invalid:
    shown = path if len(path) <= 200 else f"{path[:200]}…"
    return Invalid(f"{shown!r} is no path in a lake: {reason}; next: rename it")
