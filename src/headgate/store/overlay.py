"""Overlay: a store whose writes stay in this process: for whoever asks what would be done.

What is written here is seen here, and by nobody else. Listing shows what is really there.
"""

from headgate.errors import Conflict
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


class OverlayStore:
    """`headgate.store.DocumentStore`. One thread."""

    def __init__(self, behind: DocumentStore) -> None:
        self._behind = behind
        self._own: dict[str, Document | None] = {}  # None: deleted
        self._writes = 0

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        if key in self._own:
            return self._own[key]
        return self._behind.get(key, timeout_ms=timeout_ms)

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        if self.get(key, timeout_ms=timeout_ms) is not None:
            raise Conflict(f"{key}: is there")
        return self._put(key, body)

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        self._check(key, version, timeout_ms)
        return self._put(key, body)

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._check(key, version, timeout_ms)
        self._own[key] = None

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        return self._behind.list(prefix, after=after, limit=limit, timeout_ms=timeout_ms)

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        return self._behind.wait(prefix, since, timeout_ms=timeout_ms)

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        return self._behind.now_ms(timeout_ms=timeout_ms)

    def close(self) -> None:
        """The store behind belongs to somebody else."""

    def _check(self, key: str, version: Version, timeout_ms: int) -> None:
        found = self.get(key, timeout_ms=timeout_ms)
        if found is None or found.version != version:
            raise Conflict(f"{key}: the version moved")

    def _put(self, key: str, body: JsonObject) -> Version:
        self._writes += 1
        version = Version(f"overlay-{self._writes}")
        self._own[key] = Document(key, body, version)
        return version
