"""Causes: the one line that matters in a page of Java's stack trace, and the file it is about."""

import re
from shlex import quote

from headgate.engine.addresses import path_of

CAUSE_MAX = 400  # characters

_NO_ROOM = ("No space left on device", "Disk quota exceeded", "ENOSPC")
_OF_SETTINGS = ("INVALID_DATETIME_PATTERN", "INVALID_PARAMETER_VALUE")
_OF_FILES = ("PATH_ALREADY_EXISTS", "PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")
_CLASS = re.compile(r"^(?:[a-z_][\w$]*\.)+([A-Z][\w$]*)(?::\s*|$)")
_FRAME = re.compile(r"^\s*(?:at |\.\.\. \d+ more)")
_CAUSED = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
_FILE = re.compile(r"\[FAILED_READ_FILE[\w.]*\] \D*? reading file (?P<url>file:\S+)\.(?:\s|$)")
_CUT_OFF = ("Unexpected end of input stream", "Unexpected end of ZLIB input stream")
_DAMAGED = (
    *_CUT_OFF, "not in gzip format", "incorrect header check", "incorrect data check",
    "invalid block type", "is not a Parquet file", "corrupted", "corrupt",
)  # fmt: skip
_TASK = re.compile(r"Lost task .*?: (?P<what>.+)")


def short_cause(talk: str) -> str:
    """The root of it, on one line; if it is about an input file, which one, and what to do."""
    root = _root(talk)
    found = _FILE.search(talk)
    if found is None:
        return root
    path = path_of(found["url"])
    if "/_headgate/staging/" in path or not any(words in root for words in _DAMAGED):
        return f"{path} cannot be read ({root})"  # and is not to blame for that
    what = "is cut off" if any(words in root for words in _CUT_OFF) else "cannot be read"
    # It has its number: what replaces it gets another one, and nothing was read under this one.
    return (
        f"{path} {what} ({root}); either way its own number stays as a gap on record; first: put a "
        f"whole one into its place, which is read as a new file, or go without it: rm {quote(path)}"
    )


def _root(talk: str) -> str:
    """Without class names of packages."""
    causes = _CAUSED.findall(talk)
    line = causes[-1] if causes else _first(talk)
    lost = _TASK.search(line)
    if lost is not None:
        line = lost["what"]
    line = _CLASS.sub(lambda found: f"{found[1]}: " if found.end() < len(line) else found[1], line)
    return line if len(line) <= CAUSE_MAX else line[: CAUSE_MAX - 1] + "…"


def has_no_room(talk: str) -> bool:
    return any(words in talk for words in _NO_ROOM)


def is_about_settings(talk: str, *, is_analysis: bool) -> bool:
    """Whether an expression is refused as such, whatever the records are. Spark analyses before it
    reads, and complains of files in the same way."""
    if is_analysis:
        return not any(words in talk for words in _OF_FILES)
    return any(words in talk for words in _OF_SETTINGS)


def _first(talk: str) -> str:
    for line in talk.splitlines():
        stripped = line.strip()
        if stripped and not _FRAME.match(line) and not stripped.startswith("An error occurred"):
            return stripped.removeprefix(": ")
    return "no reason was given"
