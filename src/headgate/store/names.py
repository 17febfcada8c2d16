"""Names: how keys are spelled, and how each backend may spell them without loss.

A key is parts joined by `/`. A part is any Unicode text; inside a key its `/` and `%` are written
`%2F` and `%25`, so that `key("a/b")` and `key("a", "b")` stay apart. There is one spelling for each
key: what could be spelled shorter is refused.

Keys are ordered by their parts, each compared by code points: `a`, `a/b`, `a-b`.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from headgate.errors import Invalid

PART_BYTES_MAX = 255
KEY_BYTES_MAX = 400  # with a namespace before it, this fits the 512 bytes of an OpenSearch id
NAMESPACE_BYTES_MAX = 64

Parts = tuple[str, ...]


def key(*names: str) -> str:
    """The key with these parts. Raises Invalid if a limit is exceeded."""
    text = "/".join(name.replace("%", "%25").replace("/", "%2F") for name in names)
    parts(text)
    return text


@lru_cache(maxsize=10_000)
def parts(text: str) -> Parts:
    """The parts of a key. Raises Invalid if it is none."""
    if not text:
        raise Invalid("a key needs at least one part; it was empty")
    _check_length("key", text, KEY_BYTES_MAX)
    return tuple(_part(text, spelled) for spelled in text.split("/"))


def prefix_parts(text: str) -> Parts:
    """The parts of a prefix, which may be empty. Raises Invalid."""
    return parts(text) if text else ()


def check_namespace(name: str) -> str:
    """The same name. Raises Invalid if it cannot be a namespace."""
    if not name or "/" in name:
        raise Invalid(f"namespace {name!r}: must not be empty or contain '/'; next: choose another")
    _check_length("namespace", name, NAMESPACE_BYTES_MAX)
    return name


def _part(text: str, spelled: str) -> str:
    if not spelled:
        raise Invalid(f"key {_short(text)}: has an empty part; leave out the superfluous '/'")
    part = spelled.replace("%2F", "/").replace("%25", "%")
    if part.replace("%", "%25").replace("/", "%2F") != spelled:
        raise Invalid(
            f"key {_short(text)}: inside a part, '%' is written %25 and '/' is written %2F; "
            "next: build it with names.key(…)"
        )
    _check_length("part of a key", part, PART_BYTES_MAX)
    return part


def _check_length(what: str, text: str, bytes_max: int) -> None:
    try:
        size_bytes = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise Invalid(f"{what} {_short(text)}: a lone surrogate is not Unicode text") from error
    if size_bytes > bytes_max:
        raise Invalid(
            f"{what} {_short(text)}: {size_bytes} bytes of UTF-8, at most {bytes_max} fit every "
            "store; next: use a shorter name, or a hash of the long one"
        )


def _short(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:57] + "...")


# How a part is written where only plain names are safe: file systems that fold case or normalise
# Unicode must not let two names meet, and nobody may climb out of a folder by a name.
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.=~")
_AS_IT_IS = re.compile(r"[a-z0-9_=~-][a-z0-9_.=~-]*")


def to_plain(part: str) -> str:
    """The part in lower-case ASCII letters, digits and `-_.=~%^`; never starts with a dot.

    `^x` is an upper-case letter, `%xx` any other byte. Never ends in `.json` or `+`, which backends
    may use for themselves.
    """
    if _AS_IT_IS.fullmatch(part) and not part.endswith(".json"):
        return part
    written = []
    for letter in part:
        if letter in _PLAIN:
            written.append(letter)
        elif "A" <= letter <= "Z":
            written.append("^" + letter.lower())
        else:
            written.append("".join(f"%{byte:02x}" for byte in letter.encode("utf-8")))
    text = "".join(written)
    if text.startswith("."):
        text = "%2e" + text[1:]
    return text.removesuffix(".json") + "%2ejson" if text.endswith(".json") else text


def from_plain(text: str) -> str | None:
    """The part that is written so; None if `to_plain` never writes this."""
    raw = bytearray()
    position = 0
    while position < len(text):
        letter = text[position]
        try:
            if letter == "%":
                raw.append(int(text[position + 1 : position + 3], 16))
                position += 3
            elif letter == "^":
                raw += text[position + 1].upper().encode("ascii")
                position += 2
            else:
                raw += letter.encode("ascii")
                position += 1
        except (ValueError, IndexError):
            return None
    try:
        part = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return part if part and to_plain(part) == text else None


def ordered(names: Sequence[str]) -> str:
    """Parts in one text that sorts like the parts do, where texts are sorted by code point."""
    return "\0\1".join(name.replace("\0", "\0\2") for name in names)
