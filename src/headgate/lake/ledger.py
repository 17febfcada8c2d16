"""Ledger: lines that are only ever added: every decision, and every act of a person.

    _headgate/ledger/<date>/<node>.jsonl      one JSON object a line; wall time, UTC

A line is noted *before* the effect that it tells of, wherever that is possible: a crash in between
leaves a line about something that was begun, never something that nobody wrote down. Whoever begins
it again notes it again under the same id, and readers drop the double. Secrets are never in here.
"""

import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Final

from headgate.ambient import Ambient
from headgate.errors import Invalid, OutcomeUnknown
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import OURS, join, name_of
from headgate.periods import Period, escape_name
from headgate.references import is_reference
from headgate.store import JsonObject, JsonValue

LEDGER: Final = f"{OURS}/ledger"
SYSTEM: Final = "system"
FORMAT: Final = 1
LINE_BYTES_MAX: Final = 100_000
WORDS_MAX: Final = 4_000  # of a sentence; an error's text may be any length
FILE_NAME_MAX: Final = 200
NOTE_TRIES: Final = 3
SECRETS: Final = ("password", "secret", "api_key", "credential", "private_key")


@dataclass(frozen=True, slots=True)
class Line:
    id: str  # the same in every double
    at_ms: int  # wall time
    node: str
    who: str  # `system`, or a person's name
    what: str  # a dotted word: `commit.begun`
    subject: str  # what it is about: a stream, a shard, a table
    words: str  # a sentence for a person
    details: JsonObject = field(default_factory=dict)


class Ledger:
    """Notes of one node."""

    def __init__(self, lake: Lake, node: str, ambient: Ambient) -> None:
        self._lake = lake
        self._node = node
        self._ambient = ambient

    def note(
        self,
        what: str,
        subject: str,
        words: str,
        *,
        who: str = SYSTEM,
        details: JsonObject | None = None,
        id: str = "",
    ) -> Line:
        """`id` is for what may be begun again: the same for every try. Raises Invalid, Unavailable
        (it is not noted), OutcomeUnknown (it may be; again under the same id is harmless)."""
        line = Line(
            id or self._ambient.new_id(),
            self._ambient.wall_ns() // 1_000_000,
            self._node,
            who,
            what,
            subject,
            words if len(words) <= WORDS_MAX else f"{words[:WORDS_MAX]}…",
            details or {},
        )
        text = encoded(line)
        for _ in range(NOTE_TRIES - 1):
            try:
                self._lake.append(path_of(line), [text])
            except OutcomeUnknown:
                continue  # a double is harmless
            return line
        self._lake.append(path_of(line), [text])
        return line


@dataclass(frozen=True, slots=True)
class Reading:
    """Lines by time, each id once; `damaged` is filled while they are read.

    Doubles are dropped if they are at most a day apart: in memory are the lines of one day, and the
    ids of the day before.
    """

    lake: Lake
    since_ms: int
    until_ms: int
    damaged: Counter[str] = field(default_factory=Counter)
    """How many lines of which file could not be read: torn by a crash, or spoiled."""

    def __iter__(self) -> Iterator[Line]:
        self.damaged.clear()
        earlier: set[str] = set()
        for day in self._days():
            ids: set[str] = set()
            for line in heapq.merge(*self._files_of(day), key=attrgetter("at_ms")):
                if line.id not in ids and line.id not in earlier:
                    ids.add(line.id)
                    yield line
            earlier = ids

    def _days(self) -> Iterator[str]:
        if self.since_ms >= self.until_ms:
            return
        first, last = str(Period.day_of(self.since_ms)), str(Period.day_of(self.until_ms - 1))
        for entry in entries_of(self.lake, LEDGER):
            if entry.is_folder and first <= name_of(entry.path) <= last:
                yield entry.path

    def _files_of(self, day: str) -> list[list[Line]]:
        found = entries_of(self.lake, day)
        return [self._lines_of(entry.path) for entry in found if entry.path.endswith(".jsonl")]

    def _lines_of(self, path: str) -> list[Line]:
        lines = []
        for raw in (self.lake.read(path) or b"").split(b"\n"):
            line = decoded(raw)
            if line is None:
                self.damaged[path] += bool(raw)  # nothing at all is no line
            elif self.since_ms <= line.at_ms < self.until_ms:
                lines.append(line)
        return sorted(lines, key=attrgetter("at_ms"))  # a clock may have been set back


def read_ledger(lake: Lake, since_ms: int, until_ms: int) -> Reading:
    """What all nodes noted in [since, until). Reading raises Unavailable, Invalid."""
    return Reading(lake, since_ms, until_ms)


def path_of(line: Line) -> str:
    name = escape_name(line.node)
    if len(name) > FILE_NAME_MAX:  # the line itself has the whole name
        digest = hashlib.sha256(name.encode("ascii")).hexdigest()[:16]
        name = f"{name[:FILE_NAME_MAX]}~{digest}"
    return join(LEDGER, str(Period.day_of(line.at_ms)), f"{name}.jsonl")


def encoded(line: Line) -> str:
    """Plain ASCII: whatever a name holds, a line is one line. Raises Invalid."""
    _refuse_secrets(line.details)
    try:
        text = json.dumps({"format": FORMAT, **asdict(line)}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Invalid(f"{line.what}: its details cannot be written as JSON: {error}") from error
    if len(text) > LINE_BYTES_MAX:
        raise Invalid(
            f"{line.what}: a line of {len(text):,} bytes, at most {LINE_BYTES_MAX:,} are a line; "
            "next: keep large things in a file, and its path here"
        )
    return text


def decoded(raw: bytes) -> Line | None:
    """None: it is no line, or one of a later format."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
        return None
    try:
        line = Line(**body)
    except TypeError:
        return None
    texts = (line.id, line.node, line.who, line.what, line.subject, line.words)
    is_right = type(line.at_ms) is int and isinstance(line.details, dict)
    return line if is_right and all(isinstance(text, str) for text in texts) else None


def _refuse_secrets(value: JsonValue) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            is_bare = isinstance(inner, str) and not is_reference(inner)
            if is_bare and any(word in str(name).lower() for word in SECRETS):
                raise Invalid(
                    f"the ledger is no place for {name!r}, which looks like a secret; next: leave "
                    "it out, or note its reference, ${env:NAME}"
                )
            _refuse_secrets(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            _refuse_secrets(inner)
