"""Probe: asks a live store whether it keeps its promises, and answers in words.

Each question is asked through two handles of one store, as two nodes would, below a prefix of its
own that is removed afterwards. A finding is `ok`, `warn` (safe, but somebody should know) or `bad`
(a promise was broken). A store that cannot be reached gives no finding: its error goes up.

A probe can show that a promise is broken, never that it will always be kept. The contract suite and
`headgate demo` look longer and harder.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - a race needs two at once
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from itertools import islice
from statistics import median
from typing import ParamSpec, Protocol, TypeVar

from headgate.ambient import Ambient, Deadline
from headgate.errors import Conflict, Corrupt, HeadgateError, Invalid
from headgate.store import DocumentStore, JsonObject, Version
from headgate.store.codec import BODY_BYTES_MAX, encode
from headgate.store.names import key, parts
from headgate.store.pages import pages
from headgate.store.url import StoreUrl, parse

log = logging.getLogger(__name__)

RACERS = 4
RACES = 5
ROUND_TRIPS = 15
CLOCK_LOOKS = 5
PAGE = 3  # small, so that the names below need several pages
PAGES_MAX = 100
WAIT_MS = 10_000
WAIT_BAD_MS = 5_000
WAIT_HEAD_START_MS = 100  # lets the waiter fall asleep before the write that shall wake it
CLEAN_ROUNDS_MAX = 20

WAIT_WARN_MS = 2_000
ROUND_TRIP_WARN_MS = 500
CLOCK_WARN_MS = 1_000

# What goes wrong elsewhere: case folded, accents composed, UTF-16 order, `/` and `%` in a part,
# `a-b` sorted before `a/b` as text would be.
NAMES = (
    ("a",),
    ("a", "b"),
    ("a-b",),
    ("a/b",),
    ("A",),
    ("%2F",),
    ("z", "y", "x"),
    ("é",),
    ("e\u0301",),
    ("日本",),
    ("\uff5e",),
    ("😀",),
)

P = ParamSpec("P")
T = TypeVar("T")


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    verdict: Verdict
    words: str
    value: float | None = None  # what was measured, in `unit`
    unit: str = ""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    findings: tuple[Finding, ...]

    @property
    def is_safe(self) -> bool:
        return all(finding.verdict is not Verdict.BAD for finding in self.findings)

    @property
    def words(self) -> str:
        bad = [finding.name for finding in self.findings if finding.verdict is Verdict.BAD]
        if bad:
            return f"not safe: {', '.join(bad)}"
        has_warnings = any(finding.verdict is Verdict.WARN for finding in self.findings)
        return "safe, with warnings" if has_warnings else "safe to use"


class Remarks(Protocol):
    """What a backend knows about a place without writing to it: a network file system, say."""

    def __call__(self, url: StoreUrl) -> Sequence[str]: ...


REMARKS_GROUP = "headgate.store_remarks"


def remarks(url: str, known: Sequence[EntryPoint] | None = None) -> tuple[Finding, ...]:
    """Warnings of the URL's backend: the entry points of that scheme. Most have none."""
    parsed = parse(url)
    found = entry_points(group=REMARKS_GROUP) if known is None else known
    asked: list[Remarks] = [entry.load() for entry in found if entry.name == parsed.scheme]
    return tuple(Finding("remark", Verdict.WARN, words) for ask in asked for words in ask(parsed))


def probe(
    first: DocumentStore,
    second: DocumentStore,
    ambient: Ambient,
    asking: Callable[[str], object],
) -> ProbeReport:
    """Two handles of one store; `asking` hears each question's name before it is asked.

    Raises Unavailable, OutcomeUnknown, and Invalid if not even one document can be written.
    """
    prefix = f"doctor-{ambient.new_id()}"
    asked = _Probe(first, second, ambient, prefix)
    findings: list[Finding] = []
    try:
        first.create(key(prefix, "first"), _body("first"))
        for name, question in asked.questions():
            asking(name)
            findings.append(_answer(name, question))
    finally:
        asking("clean up")
        is_clean = _clean_up(first, prefix)
    if not is_clean:
        words = f"documents below {prefix} could not be removed; they do no harm"
        findings.append(Finding("clean up", Verdict.WARN, words))
    return ProbeReport(tuple(findings))


class _Probe:
    def __init__(
        self, first: DocumentStore, second: DocumentStore, ambient: Ambient, prefix: str
    ) -> None:
        self._first = first
        self._second = second
        self._ambient = ambient
        self._prefix = prefix

    def questions(self) -> Iterator[tuple[str, Callable[[str], Finding]]]:
        yield "read your write", self._read_your_write
        yield "atomic create", self._atomic_create
        yield "atomic replace", self._atomic_replace
        yield "stale version", self._stale_version
        yield "version reuse", self._version_reuse
        yield "list", self._list
        yield "wait", self._wait
        yield "size limit", self._size_limit
        yield "round trip", self._round_trip
        yield "clock offset", self._clock_offset

    def _read_your_write(self, name: str) -> Finding:
        place = self._place("read")
        version = self._first.create(place, _body("one"))
        self._expect(place, _body("one"), version)
        version = self._first.replace(place, _body("two"), version)
        self._expect(place, _body("two"), version)
        self._first.delete(place, version)
        if self._second.get(place) is not None:
            raise _Broken("a deleted document could still be read through a second handle")
        return Finding(name, Verdict.OK, "what one handle writes, another reads at once")

    def _expect(self, place: str, body: JsonObject, version: Version) -> None:
        found = self._second.get(place)
        if found is None or (found.body, found.version) != (body, version):
            raise _Broken("an acknowledged write could not be read through a second handle")

    def _atomic_create(self, name: str) -> Finding:
        for number in range(RACES):
            self._race(self._place("create", str(number)), None)
        return Finding(name, Verdict.OK, f"{RACERS} at once, {RACES} times: one winner each time")

    def _atomic_replace(self, name: str) -> Finding:
        place = self._place("replace")
        version = self._first.create(place, _body("before"))
        for _ in range(RACES):
            version = self._race(place, version)
        return Finding(name, Verdict.OK, f"{RACERS} at once, {RACES} times: one winner each time")

    def _race(self, place: str, base: Version | None) -> Version:
        """Creates, or replaces that version, through both handles at once; the winner's version."""
        start = threading.Barrier(RACERS)

        def racer(number: int) -> Version | None:
            store = self._first if number % 2 else self._second
            start.wait()
            with suppress(Conflict):
                if base is None:
                    return store.create(place, _body(number))
                return store.replace(place, _body(number), base)
            return None

        results = _at_once([partial(racer, number) for number in range(RACERS)])
        winners = [number for number, version in enumerate(results) if version is not None]
        if len(winners) != 1:
            raise _Broken(f"{RACERS} wrote at once, and {len(winners)} were told that they did it")
        found = self._first.get(place)
        if found is None or (found.body, found.version) != (_body(winners[0]), results[winners[0]]):
            raise _Broken(f"{RACERS} wrote at once, and the document is not the winner's")
        return found.version

    def _stale_version(self, name: str) -> Finding:
        place = self._place("stale")
        stale = self._first.create(place, _body("one"))
        current = self._second.replace(place, _body("two"), stale)
        if not _is_refused(self._first.replace, place, _body("three"), stale):
            raise _Broken("replace with an old version was accepted: acknowledged writes get lost")
        if not _is_refused(self._first.delete, place, stale):
            raise _Broken("delete with an old version was accepted: acknowledged writes get lost")
        self._expect(place, _body("two"), current)
        return Finding(name, Verdict.OK, "replace and delete with an old version are refused")

    def _version_reuse(self, name: str) -> Finding:
        place = self._place("reuse")
        seen: list[Version] = []
        for _ in range(3):  # made, changed and deleted, with the same bodies each time
            seen.append(self._first.create(place, _body("one")))
            seen.append(self._first.replace(place, _body("two"), seen[-1]))
            self._first.delete(place, seen[-1])
        last = self._first.create(place, _body("one"))
        if len({*seen, last}) != len(seen) + 1:
            raise _Broken("a version came back after delete and create")
        for old in seen:
            if not _is_refused(self._second.replace, place, _body("late"), old):
                raise _Broken("a version from before a delete was accepted again")
        self._expect(place, _body("one"), last)
        return Finding(name, Verdict.OK, "no version came back after delete and create")

    def _list(self, name: str) -> Finding:
        bodies = {key(self._prefix, "list", *names): _body("/".join(names)) for names in NAMES}
        for place, body in bodies.items():
            self._first.create(place, body)
        expected = sorted(bodies, key=parts)
        listing = pages(self._second, self._place("list"), limit=PAGE)
        found = [entry for page in islice(listing, PAGES_MAX) for entry in page.documents]
        keys = [entry.key for entry in found]
        if sorted(keys) != sorted(expected):
            missing, extra = len({*expected} - {*keys}), len(keys) - len({*expected} & {*keys})
            raise _Broken(
                f"of {len(expected)} documents {missing} were missing, and {extra} were listed "
                "twice or should not be there"
            )
        if keys != expected:
            raise _Broken("the documents were not in the order of their keys' parts")
        if {entry.key: entry.body for entry in found} != bodies:
            raise _Broken("a listed body is not what was written")
        below = [entry.key for entry in self._first.list(self._place("list", "a")).documents]
        if below != [self._place("list", "a", "b")]:
            raise _Broken("a prefix gave documents of a neighbour that only begins like it")
        return Finding(
            name,
            Verdict.OK,
            f"{len(expected)} difficult names in pages of {PAGE}: all there, once, in order",
            len(expected),
            "documents",
        )

    def _wait(self, name: str) -> Finding:
        prefix, place = self._place("wait"), self._place("wait", "bell")
        version = self._first.create(place, _body("one"))

        mark = self._second.wait(prefix, None, timeout_ms=WAIT_MS)
        version = self._first.replace(place, _body("two"), version)
        started_ms = self._ambient.monotonic_ms()
        self._second.wait(prefix, mark, timeout_ms=WAIT_MS)
        if self._ambient.monotonic_ms() - started_ms > WAIT_BAD_MS:
            raise _Broken("a write between the mark and the wait did not end the wait")

        latency_ms = self._wake_up(prefix, place, version)
        verdict = Verdict.WARN if latency_ms > WAIT_WARN_MS else Verdict.OK
        words = f"a waiter wakes up {_words_ms(latency_ms)} after a write"
        if verdict is Verdict.WARN:
            words += "; safe, but work will start that much later"
        return Finding(name, verdict, words, latency_ms, "ms")

    def _wake_up(self, prefix: str, place: str, version: Version) -> int:
        """Milliseconds from an acknowledged write to the moment a blocked waiter saw it."""
        mark = self._second.wait(prefix, None, timeout_ms=WAIT_MS)

        def waiter() -> int:
            current, deadline = mark, Deadline(self._ambient, WAIT_MS)
            while not deadline.is_over():  # once, as a rule; a wait may return too early
                current = self._second.wait(prefix, current, timeout_ms=deadline.left_ms())
                woke_ms = self._ambient.monotonic_ms()
                found = self._second.get(place)
                if found is not None and found.version != version:
                    return woke_ms
            return self._ambient.monotonic_ms()

        def writer() -> int:
            self._ambient.sleep_ms(WAIT_HEAD_START_MS)
            self._first.replace(place, _body("wake up"), version)
            return self._ambient.monotonic_ms()

        woke_ms, written_ms = _at_once([waiter, writer])
        if woke_ms - written_ms > WAIT_BAD_MS:
            raise _Broken(f"a write did not wake a waiter within {WAIT_BAD_MS:,} ms")
        return max(0, woke_ms - written_ms)  # it may wake before the writer hears of its success

    def _size_limit(self, name: str) -> Finding:
        place = self._place("large")
        empty_bytes = len(encode(place, _body("")))
        largest = _body("x" * (BODY_BYTES_MAX - empty_bytes))
        version = self._first.create(place, largest)
        self._expect(place, largest, version)
        try:
            self._first.replace(place, _body("x" * (BODY_BYTES_MAX - empty_bytes + 1)), version)
        except Invalid:
            words = f"{BODY_BYTES_MAX:,} bytes come back as written, one more is refused"
            return Finding(name, Verdict.OK, words, BODY_BYTES_MAX, "bytes")
        raise _Broken(f"a body over {BODY_BYTES_MAX:,} bytes was accepted")

    def _round_trip(self, name: str) -> Finding:
        place = self._place("trip")
        version = self._first.create(place, _body(0))
        get_ms, replace_ms = [], []
        for number in range(ROUND_TRIPS):
            started_ms = self._ambient.monotonic_ms()
            self._first.get(place)
            between_ms = self._ambient.monotonic_ms()
            version = self._first.replace(place, _body(number), version)
            get_ms.append(between_ms - started_ms)
            replace_ms.append(self._ambient.monotonic_ms() - between_ms)
        slow_ms = median(replace_ms)
        verdict = Verdict.WARN if slow_ms > ROUND_TRIP_WARN_MS else Verdict.OK
        words = f"get {_words_ms(median(get_ms))}, replace {_words_ms(slow_ms)}"
        if verdict is Verdict.WARN:
            words += "; safe, but everything that coordinates will be slow"
        return Finding(name, verdict, f"{words} (median of {ROUND_TRIPS})", slow_ms, "ms")

    def _clock_offset(self, name: str) -> Finding:
        looks: list[tuple[float, float]] = []
        for _ in range(CLOCK_LOOKS):
            before_ns = self._ambient.wall_ns()
            store_ms = self._first.now_ms()
            after_ns = self._ambient.wall_ns()
            uncertainty_ms = abs(after_ns - before_ns) / 2_000_000 + 1  # now_ms() is cut to 1 ms
            looks.append((uncertainty_ms, store_ms - (before_ns + after_ns) / 2_000_000))
        uncertainty_ms, offset_ms = min(looks)  # the quickest answer says most
        verdict = Verdict.WARN if abs(offset_ms) - uncertainty_ms > CLOCK_WARN_MS else Verdict.OK
        side = "ahead of" if offset_ms > 0 else "behind"
        words = (
            f"the store's clock is {abs(offset_ms):,.0f} ms {side} this machine's "
            f"(± {uncertainty_ms:,.0f} ms)"
        )
        if verdict is Verdict.WARN:
            words += "; next: set both clocks by NTP (timedatectl status)"
        return Finding(name, verdict, words, round(offset_ms, 1), "ms")

    def _place(self, *names: str) -> str:
        return key(self._prefix, *names)


class _Broken(Exception):
    """A promise was broken; the message says which."""


def _body(note: str | int) -> JsonObject:
    return {"format": 1, "note": note}


def _answer(name: str, question: Callable[[str], Finding]) -> Finding:
    try:
        return question(name)
    except _Broken as broken:
        return Finding(name, Verdict.BAD, str(broken))
    except (Conflict, Corrupt, Invalid) as error:
        return Finding(name, Verdict.BAD, f"refused what must be accepted: {error}")


def _is_refused(write: Callable[P, object], *args: P.args, **options: P.kwargs) -> bool:
    try:
        write(*args, **options)
    except Conflict:
        return True
    return False


def _at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Their results, in order. Every thread has ended when this returns or raises."""
    with ThreadPoolExecutor(max_workers=len(calls)) as pool:
        futures = [pool.submit(call) for call in calls]
    return [future.result() for future in futures]


def _words_ms(duration_ms: float) -> str:
    return "less than 1 ms" if duration_ms < 1 else f"{duration_ms:,.0f} ms"


def _clean_up(store: DocumentStore, prefix: str) -> bool:
    """Deletes what is below the prefix; whether nothing is left."""
    try:
        for _ in range(CLEAN_ROUNDS_MAX):
            page = store.list(prefix)
            if not page.documents:
                return not page.damaged
            for document in page.documents:
                _is_refused(store.delete, document.key, document.version)
    except HeadgateError as error:  # the error that led here, or the verdict, matters more
        log.warning("probe.left_behind", extra={"prefix": prefix, "reason": str(error)})
    return False
