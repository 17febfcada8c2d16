"""Addresses: a file as Spark spells it, and back.

Spark reads a path as a pattern, and tells a file's place as a URL.
"""

import re
from urllib.parse import unquote

_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]+://")
_PATTERN_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\*?[]{}"})


def to_read(path: str) -> str:
    """Exactly this file or folder, whatever is in its name; of this machine, unless it says
    where."""
    return ("" if _URL.match(path) else "file:") + path.translate(_PATTERN_SIGNS)


def to_write(path: str) -> str:
    return "file:" + path


def read_below(root: str, path: str) -> str:
    """Exactly this file or folder of the lake whose URL this is."""
    return f"{root}/{path}".translate(_PATTERN_SIGNS)


def write_below(root: str, path: str) -> str:
    return f"{root}/{path}"


def path_below(root: str, url: str) -> str:
    """What Spark says of a file of this lake, as a path in it: `s3a://b/lake/a%20b` is `a b`."""
    return _plain(url).removeprefix(_plain_root(root)).lstrip("/")


def path_of(url: str) -> str:
    """`file:/a%20b` and `file:///a%20b` are both `/a b`; elsewhere it keeps its host."""
    if not url.startswith("file:"):
        return unquote(url)
    return "/" + unquote(url.removeprefix("file:").lstrip("/"))


def spellings_of(url: str) -> tuple[str, ...]:
    """All that Spark may say for the file that has this URL."""
    if not url.startswith("file:"):
        return (url,)
    rest = url.removeprefix("file:").lstrip("/")
    return (f"file:/{rest}", f"file:///{rest}")


def _plain(url: str) -> str:
    """Without scheme and host, which Spark may leave out or spell in other ways."""
    rest = url.partition(":")[2]
    return unquote("/" + rest[2:].partition("/")[2] if rest.startswith("//") else rest)


def _plain_root(root: str) -> str:
    """The root itself is no URL of Spark's: nothing in it is escaped."""
    return "/" + root.partition("://")[2].partition("/")[2].rstrip("/")
