"""Addresses: a file of this machine as Spark spells it, and back.

Spark reads a path as a pattern, and tells a file's place as a URL.
"""

from urllib.parse import unquote

_PATTERN_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\*?[]{}"})


def to_read(path: str) -> str:
    """Exactly this file or folder, whatever is in its name."""
    return "file:" + path.translate(_PATTERN_SIGNS)


def to_write(path: str) -> str:
    return "file:" + path


def path_of(url: str) -> str:
    """`file:/a%20b` and `file:///a%20b` are both `/a b`."""
    return "/" + unquote(url.removeprefix("file:").lstrip("/"))


def spellings_of(url: str) -> tuple[str, ...]:
    """All that Spark may say for the file that has this URL."""
    rest = url.removeprefix("file:").lstrip("/")
    return (f"file:/{rest}", f"file:///{rest}")
