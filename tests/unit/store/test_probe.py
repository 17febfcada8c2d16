"""A probe must trust a healthy store, and find each kind of broken promise."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict, Invalid, Unavailable
from headgate.store import (
    PAGE_DOCUMENTS_MAX,
    TIMEOUT_MS,
    Document,
    DocumentStore,
    JsonObject,
    Mark,
    Page,
    Version,
)
from headgate.store.memory import MemoryStore, Shelf
from headgate.store.probe import Finding, ProbeReport, Verdict, probe, remarks
from headgate.store.url import StoreUrl
from headgate.testing.planted import ForwardingStore


class ManualAmbient(SystemAmbient):
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self._moving = threading.Lock()
        self._now_ms = 1_000_000.0

    def wall_ns(self) -> int:
        return int(self._now_ms * 1_000_000)

    def monotonic_ms(self) -> int:
        return int(self._now_ms)

    def sleep_ms(self, duration_ms: float) -> None:
        with self._moving:
            self._now_ms += duration_ms


Break = Callable[[DocumentStore], DocumentStore]


def report_on(broken: Break, ambient: ManualAmbient | None = None) -> ProbeReport:
    """Both handles are broken alike, and nothing may be left behind."""
    ambient = ambient or ManualAmbient()
    behind = MemoryStore(Shelf(ambient), "default", ambient)
    store = broken(behind)
    report = probe(store, store, ambient, str)
    assert behind.list().documents == ()
    return report


def verdicts(report: ProbeReport) -> dict[str, Verdict]:
    return {finding.name: finding.verdict for finding in report.findings}


class CreateOverwrites(ForwardingStore):
    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        while True:
            found = self.behind.get(key)
            try:
                if found is None:
                    return super().create(key, body, timeout_ms=timeout_ms)
                return super().replace(key, body, found.version, timeout_ms=timeout_ms)
            except Conflict:
                continue


class ReplaceIgnoresTheVersion(ForwardingStore):
    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        while True:
            found = self.behind.get(key)
            assert found is not None
            try:
                return super().replace(key, body, found.version, timeout_ms=timeout_ms)
            except Conflict:
                continue


class DeleteIgnoresTheVersion(ForwardingStore):
    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        found = self.behind.get(key)
        assert found is not None
        super().delete(key, found.version, timeout_ms=timeout_ms)


class LosesTheFirstReplace(ForwardingStore):
    def __init__(self, behind: DocumentStore) -> None:
        super().__init__(behind)
        self._is_lost = False

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        if not self._is_lost:
            self._is_lost = True
            return Version("never written")
        return super().replace(key, body, version, timeout_ms=timeout_ms)


class ReadsAnOldCopy(ForwardingStore):
    def __init__(self, behind: DocumentStore) -> None:
        super().__init__(behind)
        self._copies: dict[str, Document] = {}

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        found = super().get(key, timeout_ms=timeout_ms)
        return found and self._copies.setdefault(key, found)


class CountsVersionsFromOne(ForwardingStore):
    """Each create starts again at version 1, as a plain counter in a document would."""

    def __init__(self, behind: DocumentStore) -> None:
        super().__init__(behind)
        self._writing = threading.Lock()
        self._counts: dict[str, int] = {}

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        found = super().get(key, timeout_ms=timeout_ms)
        return found and replace(found, version=self._version(key))

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        with self._writing:
            super().create(key, body, timeout_ms=timeout_ms)
            self._counts[key] = 1
            return self._version(key)

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        with self._writing:
            super().replace(key, body, self._real(key, version), timeout_ms=timeout_ms)
            self._counts[key] += 1
            return self._version(key)

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        with self._writing:
            super().delete(key, self._real(key, version), timeout_ms=timeout_ms)

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        page = super().list(prefix, after=after, limit=limit, timeout_ms=timeout_ms)
        documents = (replace(found, version=self._version(found.key)) for found in page.documents)
        return replace(page, documents=tuple(documents))

    def _version(self, key: str) -> Version:
        return Version(str(self._counts[key]))

    def _real(self, key: str, version: Version) -> Version:
        found = self.behind.get(key)
        if found is None or version != self._version(key):
            raise Conflict(key)
        return found.version


class ListsThroughAFilter(ForwardingStore):
    """What a page shows, changed; cleaning up, which asks for long pages, sees the truth."""

    def __init__(
        self,
        behind: DocumentStore,
        change: Callable[[tuple[Document, ...]], Sequence[Document]],
    ) -> None:
        super().__init__(behind)
        self._change = change

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        page = super().list(prefix, after=after, limit=limit, timeout_ms=timeout_ms)
        if limit == PAGE_DOCUMENTS_MAX:
            return page
        return replace(page, documents=tuple(self._change(page.documents)))


class WaitsInVain(ForwardingStore):
    def __init__(self, behind: DocumentStore, ambient: ManualAmbient) -> None:
        super().__init__(behind)
        self._ambient = ambient

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        if since is not None:
            self._ambient.sleep_ms(timeout_ms)
        return super().wait(prefix, None, timeout_ms=0)


class RefusesLargeBodies(ForwardingStore):
    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        if len(str(body)) > 500_000:
            raise Invalid(f"{key}: request entity too large")
        return super().create(key, body, timeout_ms=timeout_ms)


class SwallowsTooLargeBodies(ForwardingStore):
    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        try:
            return super().replace(key, body, version, timeout_ms=timeout_ms)
        except Invalid:
            return version


class GoesAwayInTheMiddle(ForwardingStore):
    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        raise Unavailable("nobody answers")


def test_a_healthy_store_is_safe_to_use() -> None:
    asked: list[str] = []
    ambient = ManualAmbient()
    store = MemoryStore(Shelf(ambient), "default", ambient)

    report = probe(store, store, ambient, asked.append)

    assert report.is_safe
    assert report.words == "safe to use"
    assert {finding.verdict for finding in report.findings} == {Verdict.OK}
    assert [*verdicts(report), "clean up"] == asked
    assert store.list().documents == ()


@pytest.mark.parametrize(
    ("broken", "found_by"),
    [
        (CreateOverwrites, "atomic create"),
        (ReplaceIgnoresTheVersion, "atomic replace"),
        (ReplaceIgnoresTheVersion, "stale version"),
        (DeleteIgnoresTheVersion, "stale version"),
        (LosesTheFirstReplace, "read your write"),
        (ReadsAnOldCopy, "read your write"),
        (CountsVersionsFromOne, "version reuse"),
        (lambda store: ListsThroughAFilter(store, lambda page: page[::-1]), "list"),
        (lambda store: ListsThroughAFilter(store, lambda page: page[1:]), "list"),
        (lambda store: ListsThroughAFilter(store, lambda page: page + page[:1]), "list"),
        (RefusesLargeBodies, "size limit"),
        (SwallowsTooLargeBodies, "size limit"),
    ],
)
def test_planted_a_broken_promise_makes_the_store_not_safe(broken: Break, found_by: str) -> None:
    report = report_on(broken)

    assert not report.is_safe
    assert report.words.startswith("not safe: ")
    assert found_by in report.words
    assert verdicts(report)[found_by] is Verdict.BAD


def test_planted_a_wait_that_misses_writes_makes_the_store_not_safe() -> None:
    ambient = ManualAmbient()

    report = report_on(lambda store: WaitsInVain(store, ambient), ambient)

    assert report.words == "not safe: wait"


@pytest.mark.parametrize("offset_ms", [-5_000, 5_000])
def test_a_clock_that_is_off_is_a_warning(offset_ms: int) -> None:
    class OtherClock(ForwardingStore):
        def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
            return super().now_ms(timeout_ms=timeout_ms) + offset_ms

    report = report_on(OtherClock)

    assert report.is_safe
    assert report.words == "safe, with warnings"
    (finding,) = [finding for finding in report.findings if finding.name == "clock offset"]
    assert (finding.verdict, finding.value, finding.unit) == (Verdict.WARN, offset_ms, "ms")


def test_a_slow_answer_makes_the_offset_of_the_clock_less_certain_but_no_warning() -> None:
    ambient = ManualAmbient()

    class SlowClock(ForwardingStore):
        def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
            ambient.sleep_ms(4_000)  # the way there; the way back takes no time
            return super().now_ms(timeout_ms=timeout_ms)

    report = report_on(SlowClock, ambient)

    (finding,) = [finding for finding in report.findings if finding.name == "clock offset"]
    assert (finding.verdict, finding.value) == (Verdict.OK, 2_000)
    assert "± 2,001 ms" in finding.words


def test_a_slow_store_is_a_warning_with_its_median() -> None:
    ambient = ManualAmbient()

    class Slow(ForwardingStore):
        def replace(
            self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
        ) -> Version:
            ambient.sleep_ms(700)
            return super().replace(key, body, version, timeout_ms=timeout_ms)

    report = report_on(Slow, ambient)

    (finding,) = [finding for finding in report.findings if finding.name == "round trip"]
    assert (finding.verdict, finding.value, finding.unit) == (Verdict.WARN, 700, "ms")
    assert report.is_safe


def test_a_store_that_goes_away_gives_no_verdict_and_what_was_written_is_removed() -> None:
    ambient = ManualAmbient()
    behind = MemoryStore(Shelf(ambient), "default", ambient)
    store = GoesAwayInTheMiddle(behind)

    with pytest.raises(Unavailable, match="nobody answers"):
        probe(store, store, ambient, str)

    assert behind.list().documents == ()


def test_documents_that_cannot_be_removed_are_a_warning() -> None:
    class KeepsEverythingAtTheEnd(ForwardingStore):
        def list(
            self,
            prefix: str = "",
            *,
            after: str = "",
            limit: int = PAGE_DOCUMENTS_MAX,
            timeout_ms: int = TIMEOUT_MS,
        ) -> Page:
            if limit == PAGE_DOCUMENTS_MAX and "/" not in prefix:
                raise Unavailable("gone")
            return super().list(prefix, after=after, limit=limit, timeout_ms=timeout_ms)

    ambient = ManualAmbient()
    store = KeepsEverythingAtTheEnd(MemoryStore(Shelf(ambient), "default", ambient))

    report = probe(store, store, ambient, str)

    assert report.words == "safe, with warnings"
    assert verdicts(report)["clean up"] is Verdict.WARN


def says_hello(url: StoreUrl) -> Sequence[str]:
    return [f"hello from {url.path}"]


def test_a_backend_may_add_remarks_by_an_entry_point() -> None:
    entry = EntryPoint("memory", f"{__name__}:says_hello", "headgate.store_remarks")
    other = EntryPoint("file", "no.such.module:nothing", "headgate.store_remarks")

    found = remarks("memory:here", [entry, other])

    assert found == (Finding("remark", Verdict.WARN, "hello from here"),)
