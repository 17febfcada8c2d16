"""Rules: which texts can be a name, a path, an event time. Pure; each raises Invalid.

A rule is here if it is about one value. What concerns several of them is in `crossings`, and what
is only strange in `remarks`.
"""

import os
import re
import unicodedata
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from headgate.engine.packages import is_path
from headgate.errors import Invalid
from headgate.lake.opening import check_proved
from headgate.periods import Period
from headgate.store import names
from headgate.store import url as store_url

STREAM_NAME_MAX: Final = 64
LAKE_SCHEMES: Final = ("hdfs", "s3")  # beside folders of this machine

# What a terminal or a log would obey instead of showing it.
_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_STEP = re.compile(r"\.([^\W\d][\w-]*)|\['([^'\\]+)'\]")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")  # Kafka's own rule
_FIELDS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_MODE = re.compile(r"(?:0o)?0?([0-7]{3})")
# Anything else would have to be escaped in one place, and must not be in another.
_BUCKET = re.compile(
    r"[A-Za-z0-9]+://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:/[\w.=+-]+)*/?)", re.ASCII
)
_HDFS = re.compile(r"hdfs://([A-Za-z0-9._-]+(?::\d{1,5})?)((?:/[\w.=+-]+)+/?)", re.ASCII | re.I)
_ENDPOINT = re.compile(r"https?://[A-Za-z0-9.\[\]:_-]+/?")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
# As Spark's to_timestamp takes them; it refuses all other letters.
_PATTERN_LETTERS = frozenset("GyDMLdQqEFahKkHmsSVzOXx")


def shown_text(text: str) -> str:
    """The same text, if all of it can be shown."""
    if any(unicodedata.category(one) in _UNSEEN or one in _BIDI for one in text):
        raise Invalid("has a control character in it: leave it out")
    return text


def stream_name(text: str) -> str:
    if not 1 <= len(text) <= STREAM_NAME_MAX:
        raise Invalid(f"a name has 1 to {STREAM_NAME_MAX} characters, this one {len(text):,}")
    names.key(shown_text(text))  # a part of keys
    return text


def condition(text: str) -> str:
    """Of Spark's SQL, as far as it can be judged without Spark: it stands alone."""
    ends, closing = list[str](), {"(": ")", "[": "]"}
    letters = iter(text)
    for letter in letters:
        if letter in ("'", '"', "`"):
            for inner in letters:
                if inner == "\\" and letter != "`":
                    next(letters, "")
                elif inner == letter:
                    break
            else:
                raise Invalid(f"a {letter} is not closed")
        elif letter in closing:
            ends.append(closing[letter])
        elif letter in (")", "]") and (not ends or ends.pop() != letter):
            raise Invalid(f"a {letter} is not opened")
        elif letter == ";":
            raise Invalid("is one condition, without a ;")
    if ends:
        raise Invalid(f"a {ends[-1]} is missing")
    if "--" in text or "/*" in text:
        raise Invalid("has a comment (-- or /*), which would hide what follows: leave it out")
    return text


def absolute(text: str, folder: str) -> str:
    """A path on this machine: relative to the folder of the settings, `~` is somebody's home."""
    scheme = _SCHEME.match(text)
    if scheme and scheme[1] != "file":
        raise Invalid(f"only folders of this machine can be used so far, not {scheme[1]}:")
    path = text.removeprefix("file:")
    if path.startswith("//") and not path.startswith("///"):
        raise Invalid("names a host after file:; write file:/path or file:///path")
    path = re.sub("^/+", "/", os.path.expanduser(shown_text(path)))
    if not path.strip():
        raise Invalid("is empty: write a path, like ./lake")
    return os.path.normpath(os.path.join(folder, path))


def package(text: str, folder: str) -> str:
    """Maven coordinates, or the path of a jar or of a folder of jars, made absolute."""
    return absolute(text, folder) if is_path(text) else text


def lake_root(text: str, folder: str) -> str:
    """A path on this machine, the URL of a folder on HDFS, or that of a bucket with or without a
    folder in it."""
    scheme = _SCHEME.match(text)
    if scheme is not None:
        check_proved(scheme[1])
    if scheme is None or scheme[1].lower() not in LAKE_SCHEMES:
        return absolute(text, folder)
    if scheme[1].lower() == "hdfs":
        return _hdfs_root(text)
    found = _BUCKET.fullmatch(shown_text(text))
    if found is None:
        raise Invalid(
            f"is no place in a bucket: write {scheme[1].lower()}://BUCKET/FOLDER, with names of "
            "letters, digits and - _ . = +, and nobody's keys"
        )
    return f"{scheme[1].lower()}://{found[1]}{(found[2] or '').rstrip('/')}"


def _hdfs_root(text: str) -> str:
    found = _HDFS.fullmatch(shown_text(text))
    if found is None or not {".", ".."}.isdisjoint(found[2].split("/")):
        raise Invalid(
            "is no folder on HDFS: write hdfs://HOST:PORT/FOLDER, or hdfs://NAMESERVICE/FOLDER, "
            "with names of letters, digits and - _ . = +"
        )
    return f"hdfs://{found[1]}{found[2].rstrip('/')}"


def endpoint(text: str) -> str:
    if text and not _ENDPOINT.fullmatch(text):
        raise Invalid(f"{text[:60]!r} is no endpoint: write http://HOST:PORT or https://HOST")
    return text.rstrip("/")


def is_inside(path: str, folder: str) -> bool:
    """Whether it is the folder or something below it; by name."""
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def absolute_store(text: str, folder: str) -> str:
    """A store URL; the path of a `file:` one made absolute."""
    url = store_url.parse(shown_text(text))
    if url.scheme == "file" and url.path.startswith("//") and not url.path.startswith("///"):
        raise Invalid("names a host; write file:./state or file:///srv/state")
    if url.scheme != "file" or url.path.startswith(("/", "~")):
        return text.strip()
    below, question, options = text.strip().removeprefix("file:").partition("?")
    # The folder is written as in a URL; what was typed is one already.
    above = folder.replace("%", "%25").replace("?", "%3F")
    return f"file:{os.path.normpath(os.path.join(above, below))}{question}{options}"


def json_path(text: str) -> str:
    """Names only: an index or a wildcard would make it a question which of them is meant."""
    steps = _STEP.findall(text, 1)
    if not steps or "$" + "".join(found[0] for found in _STEP.finditer(text, 1)) != text:
        raise Invalid(
            f"{text[:60]!r} is no path that can be used: write $.name, $.outer.inner or "
            "$.outer['any name'], without [0], * or .."
        )
    return text


def regex(text: str) -> str:
    if "(?P" in text:
        raise Invalid(f"{text[:60]!r}: Spark knows no (?P…): write a plain group, (…)")
    try:
        groups = re.compile(text).groups
    except (re.error, RecursionError, OverflowError) as error:
        raise Invalid(f"{text[:60]!r} is no regular expression: {error}") from error
    if groups != 1:
        raise Invalid(
            f"{text[:60]!r} has {groups} groups, and exactly one says the event time: write it "
            "as (…), and others as (?:…)"
        )
    return text


def time_pattern(text: str) -> str:
    """A pattern as Spark takes it; "" is ISO 8601."""
    if text in ("", "iso"):
        return ""
    outside = re.sub(r"'[^']*'", "", text)
    letters = {one for one in outside if one.isascii() and one.isalpha()}
    if "'" in outside:
        raise Invalid(f"{text[:60]!r}: a ' has no second one; plain letters are written 'T'")
    if unknown := sorted(letters - _PATTERN_LETTERS):
        raise Invalid(
            f"{text[:60]!r}: {', '.join(unknown)} means nothing in a pattern; plain letters are "
            "written in quotes, like 'T'; an example: yyyy-MM-dd'T'HH:mm:ss"
        )
    if "y" not in letters:
        raise Invalid(f"{text[:60]!r} has no year: write one like yyyy-MM-dd HH:mm:ss")
    return text


def mode(text: str, needed: int) -> int:
    found = _MODE.fullmatch(text)
    if found is None:
        raise Invalid(f'{text[:20]!r} is no mode: write three digits as for chmod, like "640"')
    if int(found[1], 8) & needed != needed:
        raise Invalid(f'"{text}" would lock out Headgate itself: the first digit needs {needed:o}')
    return int(found[1], 8)


def hour_ms(text: str) -> int:
    period = Period.parse(text)
    if period.kind != "hour":
        raise Invalid(f"{text!r} is a day: write its hour, like {text}T00")
    return period.start_ms


def avro_field(text: str) -> str:
    """A name, or several with dots for what is inside of another."""
    if not _FIELDS.fullmatch(text):
        raise Invalid(f"{text[:60]!r} is no field of an Avro record: write at, or meta.at")
    return text


def web_address(text: str) -> str:
    """A URL without a user: that has a key of its own."""
    found = urlsplit(text)
    if found.scheme not in ("http", "https") or not found.hostname:
        raise Invalid(f"{text[:60]!r} is no address like http://localhost:8081 or https://…")
    if "@" in found.netloc:
        raise Invalid("has a user in it: write `user` and `password` beside `url`")
    if found.query or found.fragment:
        raise Invalid("ends with ? or #: write only where the registry is")
    return text


def pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise Invalid(f"is no regular expression: {error}") from error
    return text


def topic_name(text: str) -> str:
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise Invalid(f"{text!r} is no name of a topic: letters, digits, dot, dash, underscore")
    return text


def start_ms(text: str) -> int | None:
    """Of a wall time, like 2026-11-01T00:00Z; None of the words. Raises Invalid."""
    if text in ("beginning", "end"):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(
            f"{text!r} is neither beginning nor end, nor a time like 2026-11-01T00:00Z"
        ) from error
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return int(found.timestamp() * 1000)
