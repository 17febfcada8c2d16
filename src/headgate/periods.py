"""Periods and their folders: which hour an event belongs to, and where that hour lies in the lake.

    event time ── Period.hour_of() ──▶ hour ── FolderTemplate.folder() ──▶ 2026-11-01/13/orders/data
                                         ◀──── FolderTemplate.match() ────

Moments are integers, milliseconds since 1970 in UTC. Periods of one kind tile time without gap or
overlap, and every one that exists can be written as a folder. Different hours, streams and shards
never share a folder, and only the spelling that folder() writes is read back.

Deliberately absent: a clock, a file system, and time zones (K9), so a day always has 24 hours.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from urllib.parse import quote, unquote

from headgate.errors import Invalid

Kind = Literal["hour", "day"]

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
LENGTH_MS: Final[Mapping[Kind, int]] = {"hour": HOUR_MS, "day": DAY_MS}

MILLISECOND: Final = timedelta(milliseconds=1)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
YEAR_1_MS: Final = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MILLISECOND
YEAR_10000_MS: Final = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // MILLISECOND + DAY_MS

PERIOD_TEXT: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T/]([0-9]{2}))?")


def aligned(moment_ms: int, duration_ms: int) -> int:
    """Start of the interval of this duration that holds the moment; also right before 1970."""
    if duration_ms <= 0:
        raise Invalid(f"a duration of {duration_ms} ms is not possible: give one above 0")
    return moment_ms - moment_ms % duration_ms


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """Half-open event-time interval `[start_ms, end_ms)`; a day sorts before its first hour.

    Raises Invalid outside the years 0001 to 9999, where a record has no folder, and for a start in
    the middle of a period.
    """

    start_ms: int
    kind: Kind

    def __post_init__(self) -> None:
        if self.kind not in LENGTH_MS:
            raise Invalid(f"{self.kind!r} is no kind of period: use 'hour' or 'day'")
        if not YEAR_1_MS <= self.start_ms < YEAR_10000_MS:
            raise Invalid(
                f"event time {self.start_ms} ms is outside the years 0001 to 9999 and has no "
                f"{self.kind}: check that event times are in milliseconds since 1970"
            )
        if self.start_ms % LENGTH_MS[self.kind]:
            raise Invalid(f"no {self.kind} starts at {self.start_ms} ms: use Period.{self.kind}_of")

    @classmethod
    def hour_of(cls, event_ms: int) -> "Period":
        return cls(aligned(event_ms, HOUR_MS), "hour")

    @classmethod
    def day_of(cls, event_ms: int) -> "Period":
        return cls(aligned(event_ms, DAY_MS), "day")

    @classmethod
    def parse(cls, text: str) -> "Period":
        """Reads `2026-11-01T13`, `2026-11-01/13` and `2026-11-01`. Raises Invalid."""
        matched = PERIOD_TEXT.fullmatch(text)
        if matched is None:
            raise Invalid(f"{text!r} is no period: write 2026-11-01T13 or 2026-11-01, in UTC")
        year, month, day, hour = matched.groups()
        try:
            start = datetime(int(year), int(month), int(day), int(hour or 0), tzinfo=UTC)
        except ValueError as error:
            raise Invalid(f"{text!r} is not in the calendar: {error}") from error
        return cls((start - EPOCH) // MILLISECOND, "day" if hour is None else "hour")

    def __str__(self) -> str:
        start = EPOCH + self.start_ms * MILLISECOND
        return start.isoformat()[: len("2026-11-01" if self.kind == "day" else "2026-11-01T13")]

    @property
    def end_ms(self) -> int:
        return self.start_ms + LENGTH_MS[self.kind]

    def contains(self, event_ms: int) -> bool:
        return self.start_ms <= event_ms < self.end_ms

    def next(self) -> "Period":
        return Period(self.end_ms, self.kind)

    def previous(self) -> "Period":
        return Period(self.start_ms - LENGTH_MS[self.kind], self.kind)

    def day(self) -> "Period":
        return Period.day_of(self.start_ms)

    def hours(self) -> tuple["Period", ...]:
        """The 24 hours of a day; an hour is its own only one."""
        return tuple(hours_between(self.start_ms, self.end_ms))


def hours_between(from_ms: int, until_ms: int) -> Iterator[Period]:
    """Every hour that shares a moment with `[from_ms, until_ms)`, in order; none if that is empty.

    Lazy: one wrong moment of 1970 must not make half a million hours before anybody looks. Raises
    Invalid at once, not in the middle, if some of them would be outside the calendar.
    """
    if from_ms >= until_ms:
        return iter(())
    first, last = Period.hour_of(from_ms), Period.hour_of(until_ms - 1)
    starts = range(first.start_ms, last.end_ms, HOUR_MS)
    return (Period(start_ms, "hour") for start_ms in starts)


DEFAULT_FOLDER: Final = "{yyyy}-{MM}-{dd}/{HH}/{stream}/data"
SEGMENT_BYTES_MAX: Final = 255  # of one folder name, on local disks and HDFS

DAY_SYMBOLS: Final = ("yyyy", "MM", "dd")
HOUR_SYMBOLS: Final = (*DAY_SYMBOLS, "HH")
REQUIRED_SYMBOLS: Final = (*HOUR_SYMBOLS, "stream")
SYMBOL_PATTERNS: Final = {
    "yyyy": "([0-9]{4})",
    "MM": "([0-9]{2})",
    "dd": "([0-9]{2})",
    "HH": "([0-9]{2})",
    "stream": "([A-Za-z0-9._~%-]+)",  # every character that escape_name() writes
    "shard": "([0-9]+)",
}
# Words people try, in lower case; the keys are what an unknown symbol is compared with.
SYMBOLS_MEANT: Final = {
    **{symbol.lower(): symbol for symbol in SYMBOL_PATTERNS},
    **{"year": "yyyy", "month": "MM", "day": "dd", "hour": "HH", "topic": "stream"},
}
SUB_HOUR_SYMBOLS: Final = ("mm", "ss", "SSS")
SYMBOL: Final = re.compile(r"\{([^{}]*)\}")
# Spark reads *?[]{} in a folder name as a pattern, Hadoop a colon as the end of a scheme.
REFUSED_CHARACTERS: Final = frozenset("\\*?[]{}:")


def escape_name(name: str) -> str:
    """One folder name for any text: without loss, plain ASCII, one spelling per name, never hidden.

    Raises Invalid for an empty name and for text that UTF-8 cannot hold.
    """
    try:
        text = quote(name, safe="")
    except UnicodeEncodeError as error:
        raise Invalid(f"the name {name!r} is not valid Unicode text: rename it") from error
    if not text:
        raise Invalid("an empty name has no folder: give the stream a name")
    # Readers of lakes skip what starts with these two; this also covers `.` and `..`.
    return f"%{ord(text[0]):02X}{text[1:]}" if text[0] in "._" else text


def life_name(stream: str, life: int) -> str:
    """A stream that began anew is another stream to everybody but the settings and its folders."""
    return stream if life == 1 else f"{stream}{life_mark(life)}"


def life_mark(life: int) -> str:
    return f"~{life}"


@dataclass(frozen=True, slots=True)
class Place:
    """What a folder stands for. Without stream: all of them; without shard: all of the stream's."""

    period: Period
    stream: str | None = None
    shard: int | None = None

    def symbols(self) -> dict[str, str]:
        found = dict(zip(HOUR_SYMBOLS, re.split("[-T]", str(self.period)), strict=False))
        if self.stream is not None:
            found["stream"] = escape_name(self.stream)
        if self.shard is not None:
            found["shard"] = str(self.shard)
        return found


@dataclass(frozen=True, slots=True)
class Segment:
    """One folder name of a template: literals at the even places, symbols at the odd ones."""

    pieces: tuple[str, ...]

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.pieces[1::2]

    @property
    def literals(self) -> tuple[str, ...]:
        return self.pieces[::2]

    def render(self, symbols: Mapping[str, str], literal: Callable[[str], str] = str) -> str:
        return "".join(
            symbols[piece] if i % 2 else literal(piece) for i, piece in enumerate(self.pieces)
        )


@dataclass(frozen=True, slots=True)
class FolderTemplate:
    """Where an hour of a stream lies below its root. Made by `parse()`, which checks it."""

    text: str
    segments: tuple[Segment, ...] = field(compare=False, repr=False)
    patterns: tuple[re.Pattern[str], ...] = field(compare=False, repr=False)
    life: int = 1  # of its streams: `orders~2` has folders that say `orders`

    @classmethod
    def parse(cls, text: str) -> "FolderTemplate":
        """Raises Invalid, naming everything that is wrong with the text."""
        segments = tuple(Segment(tuple(SYMBOL.split(segment))) for segment in text.split("/"))
        reasons = "; ".join(dict.fromkeys(refusals(segments)))
        if reasons:
            raise Invalid(f"folder template {text!r}: {reasons}. The default is {DEFAULT_FOLDER}")
        patterns = (segment.render(SYMBOL_PATTERNS, re.escape) for segment in segments)
        return cls(text, segments, tuple(map(re.compile, patterns)))

    def __str__(self) -> str:
        return self.text

    def word_of(self, stream: str) -> str:
        """What `{stream}` says."""
        return stream if self.life == 1 else stream.removesuffix(life_mark(self.life))

    @property
    def has_shard(self) -> bool:
        return any("shard" in segment.symbols for segment in self.segments)

    @property
    def rolls_up(self) -> tuple[Kind, ...]:
        """The kinds of period with a folder over all streams; empty: flags are per stream only."""
        if self._depth(HOUR_SYMBOLS) is None:
            return ()
        return ("hour",) if self._depth(DAY_SYMBOLS) is None else ("hour", "day")

    def folder(self, hour: Period, *, stream: str, shard: int | None = None) -> str:
        """The data folder. A template without `{shard}` puts all shards into one.

        Raises Invalid for a day, a missing or negative shard, and a name too long for a folder.
        """
        require(hour, "hour")
        if self.has_shard and (shard is None or shard < 0):
            raise Invalid(f"folder template {self.text!r} needs a shard from 0 on, not {shard}")
        return self._render(Place(hour, stream, shard), len(self.segments))

    def stream_folder(self, hour: Period, stream: str) -> str | None:
        """The highest folder with nothing but this stream's hour; None if there is none."""
        require(hour, "hour")
        return self._folder_above(Place(hour, stream), REQUIRED_SYMBOLS)

    def hour_folder(self, hour: Period) -> str | None:
        """The folder for the flag over all streams; None if the hour has none (`rolls_up`)."""
        require(hour, "hour")
        return self._folder_above(Place(hour), HOUR_SYMBOLS)

    def day_folder(self, day: Period) -> str | None:
        """The folder for the flag over all hours; None if the day has none (`rolls_up`)."""
        require(day, "day")
        return self._folder_above(Place(day), DAY_SYMBOLS) if "day" in self.rolls_up else None

    def match(self, path: str) -> Place | None:
        """Which data folder this path below the root is; None if it is not one."""
        return self._read(path, len(self.segments))

    def match_file(self, path: str) -> tuple[Place, str] | None:
        """The data folder that a path lies in, and the rest of the path below it."""
        names, depth = path.split("/"), len(self.segments)
        place = self._read("/".join(names[:depth]), depth)
        rest = names[depth:]
        return (place, "/".join(rest)) if place and rest and is_plain(rest) else None

    def match_parent(self, path: str) -> Place | None:
        """What a folder above the data folders stands for; None if not for one hour or day."""
        depth = path.count("/") + 1
        return self._read(path, depth) if depth < len(self.segments) else None

    def _depth(self, symbols: Sequence[str]) -> int | None:
        """How many segments fix these symbols; None if something else comes before they do."""
        seen: set[str] = set()
        for depth, segment in enumerate(self.segments, start=1):
            seen.update(segment.symbols)
            if seen.issuperset(symbols):
                return depth if len(seen) == len(symbols) else None
        return None

    def _folder_above(self, place: Place, symbols: Sequence[str]) -> str | None:
        depth = self._depth(symbols)
        return None if depth is None else self._render(place, depth)

    def _render(self, place: Place, depth: int) -> str:
        if place.stream is not None and self.life > 1:
            place = replace(place, stream=self.word_of(place.stream))
        symbols = place.symbols()
        names = [segment.render(symbols) for segment in self.segments[:depth]]
        for name in names:
            if len(name.encode()) > SEGMENT_BYTES_MAX:
                raise Invalid(
                    f"the folder name {name[:40]}… is longer than {SEGMENT_BYTES_MAX} bytes, "
                    "which file systems refuse: use a shorter stream name"
                )
        return "/".join(names)

    def _read(self, path: str, depth: int) -> Place | None:
        names = path.split("/")
        if len(names) != depth:
            return None
        found: dict[str, str] = {}
        for segment, pattern, name in zip(self.segments, self.patterns, names, strict=False):
            matched = pattern.fullmatch(name)
            if matched is None:
                return None
            found.update(zip(segment.symbols, matched.groups(), strict=True))
        if not found.keys() >= set(DAY_SYMBOLS):
            return None
        period_text = "-".join(found[symbol] for symbol in DAY_SYMBOLS)
        if "HH" in found:
            period_text += f"T{found['HH']}"
        try:
            place = Place(
                Period.parse(period_text),
                life_name(unquote(found["stream"]), self.life) if "stream" in found else None,
                int(found["shard"]) if "shard" in found else None,
            )
            # Two spellings of one place would be two folders: only our own counts.
            return place if self._render(place, depth) == path else None
        except (Invalid, ValueError):  # month 13, a shard of 5,000 digits
            return None


def refusals(segments: Sequence[Segment]) -> Iterator[str]:
    """Why these segments are no template; nothing if they are one."""
    symbols = [symbol for segment in segments for symbol in segment.symbols]
    for symbol in dict.fromkeys(symbols):
        if symbol in SUB_HOUR_SYMBOLS:
            yield (
                f"{{{symbol}}} would make several folders for one hour, and flags are for whole "
                "hours: leave it out ({MM} is the month)"
            )
        elif symbol not in SYMBOL_PATTERNS:
            nearest = difflib.get_close_matches(symbol.lower(), SYMBOLS_MEANT, n=1, cutoff=0)[0]
            meant = SYMBOLS_MEANT[nearest]
            yield f"unknown symbol {{{symbol}}}, the nearest known one is {{{meant}}}"
    missing = [f"{{{symbol}}}" for symbol in REQUIRED_SYMBOLS if symbol not in symbols]
    if missing:
        yield f"{' '.join(missing)} missing: each hour of a stream needs a folder of its own"
    for symbol in ("stream", "shard"):
        if symbols.count(symbol) > 1:
            yield f"{{{symbol}}} may stand there only once"
    for segment in segments:
        if segment.pieces == ("",):
            yield "it must be relative, without empty parts: no slash at either end, no //"
        elif not "".join(segment.pieces).strip():
            yield "a folder name of only blanks cannot be seen"
        if segment.literals[0].startswith((".", "_")):
            yield f"readers skip folders that start with . or _: {segment.literals[0]!r}"
        literal = "".join(segment.literals)
        refused = [c for c in literal if c in REFUSED_CHARACTERS or not c.isprintable()]
        if refused:
            yield f"{' '.join(map(repr, refused))} cannot be in a folder name"
        if is_ambiguous(segment):
            yield (
                "{stream} and {shard} in one folder name cannot be told apart: put a character "
                "other than a digit between them, or better a /"
            )


def is_ambiguous(segment: Segment) -> bool:
    """Whether stream and shard can run into each other.

    All else has a fixed width and a shard is digits only, so one other literal character between
    the two is enough, even one that stream names may contain.
    """
    if not {"stream", "shard"} <= set(segment.symbols):
        return False
    first, second = sorted((segment.symbols.index("stream"), segment.symbols.index("shard")))
    return not "".join(segment.literals[first + 1 : second + 1]).strip("0123456789")


def require(period: Period, kind: Kind) -> None:
    if period.kind != kind:
        raise Invalid(f"{period} is a {period.kind}: this folder is for a {kind}")


def is_plain(names: Sequence[str]) -> bool:
    return not any(name in ("", ".", "..") for name in names)


ADDRESS: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?)?(/.*)?", re.DOTALL)


def relative_to(root: str, path: str) -> str | None:
    """The path below the root, fit for `match()`; None if it is not below it.

    `/logs`, `file:/logs` and `file:///logs` are one place (K13); another scheme, host or bucket is
    another. Both are taken as a file system spells them: nothing is percent-decoded, no `..` is
    followed. Raises Invalid for a root that is not absolute.
    """
    base, place = address(root), address(path)
    if base is None:
        raise Invalid(f"{root!r} is no plain absolute root: write /logs, file:/logs, s3://b/logs")
    if place is None or place[:2] != base[:2] or place[2][: len(base[2])] != base[2]:
        return None
    return "/".join(place[2][len(base[2]) :])


def address(text: str) -> tuple[str, str, list[str]] | None:
    """Scheme, host and folder names; None if relative or with empty, `.` or `..` names."""
    matched = ADDRESS.fullmatch(text)
    scheme, host, path = matched.groups() if matched else (None, None, None)
    if not host and not path:
        return None
    names = (path or "").removesuffix("/").split("/")[1:]
    return ((scheme or "file").lower(), host or "", names) if is_plain(names) else None
