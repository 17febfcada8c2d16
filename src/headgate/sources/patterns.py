"""Patterns: which files of a folder belong to a stream.

`*` is any text and `?` any letter, both without `/`; `[abc]` and `[!abc]` are one letter of these
or none of these; `**/` is any number of folders, `/**` everything below. A pattern without `/` is
for the name of the file, in whatever folder; one with `/` is for the whole path. Upper and lower
case differ.

A name that starts with `.` or `_`, in any part of the path, or that ends in `.tmp` or `._COPYING_`,
is unfinished: it is never read.
"""

import re
from collections.abc import Sequence

from headgate.errors import Invalid

_UNFINISHED = re.compile(r"(?:^|/)[._]|\.tmp$|\._COPYING_$")
_PIECE = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)


class Patterns:
    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        """Raises Invalid."""
        self._include = [_expression(pattern) for pattern in include]
        self._exclude = [_expression(pattern) for pattern in exclude]

    def is_included(self, path: str) -> bool:
        included = not self._include or any(one.fullmatch(path) for one in self._include)
        return included and not self.is_excluded(path)

    def is_excluded(self, path: str) -> bool:
        return any(one.fullmatch(path) for one in self._exclude)


def is_unfinished(path: str) -> bool:
    return _UNFINISHED.search(path) is not None


def _expression(pattern: str) -> re.Pattern[str]:
    if not pattern or pattern.startswith("/") or pattern.endswith("/"):
        raise Invalid(
            f"pattern {pattern!r}: it is for the path below the folder, and so neither empty nor "
            "with a slash at its start or end; next: write it like 2026-*/**/*.json"
        )
    pieces = [_translated(piece) for piece in _PIECE.findall(pattern)]
    text = "".join(pieces) if "/" in pattern else "(?:.*/)?" + "".join(pieces)
    try:
        return re.compile(text, re.DOTALL)
    except re.error as error:
        raise Invalid(
            f"pattern {pattern!r}: {error}; next: write it like 2026-*/**/*.json"
        ) from error


def _translated(piece: str) -> str:
    if piece == "**/":
        return "(?:.*/)?"
    if piece in ("/**", "**"):
        return "/.*" if piece == "/**" else ".*"
    if piece == "*":
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if len(piece) > 1:
        is_none_of = piece[1] == "!"
        letters = piece[2 if is_none_of else 1 : -1]
        letters = re.sub(r"([\\\[\]^&~|])", r"\\\1", letters)
        return f"[^/{letters}]" if is_none_of else f"[{letters}]"
    return re.escape(piece)
