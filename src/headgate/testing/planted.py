"""Planted bugs: stores that break one promise each. A suite that misses them proves nothing.

Each is a switch over a healthy store and breaks it rarely enough to look like real life.
"""

from random import Random

from headgate.errors import Conflict, OutcomeUnknown, Unavailable
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


class ForwardingStore:
    """Does what the store behind it does. What follows changes one method each."""

    def __init__(self, behind: DocumentStore, seed: int = 0) -> None:
        self.behind = behind
        self.random = Random(seed)

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        return self.behind.get(key, timeout_ms=timeout_ms)

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        return self.behind.create(key, body, timeout_ms=timeout_ms)

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        return self.behind.replace(key, body, version, timeout_ms=timeout_ms)

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self.behind.delete(key, version, timeout_ms=timeout_ms)

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        return self.behind.list(prefix, after=after, limit=limit, timeout_ms=timeout_ms)

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        return self.behind.wait(prefix, since, timeout_ms=timeout_ms)

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        return self.behind.now_ms(timeout_ms=timeout_ms)

    def close(self) -> None:
        self.behind.close()


class LosesReplies(ForwardingStore):
    """No bug: some writes happen or do not happen, and their answer says, rightly, unknown."""

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        self._lose_request(key)
        version = super().create(key, body, timeout_ms=timeout_ms)
        self._lose_reply(key)
        return version

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        self._lose_request(key)
        new = super().replace(key, body, version, timeout_ms=timeout_ms)
        self._lose_reply(key)
        return new

    def _lose_request(self, key: str) -> None:
        if self.random.random() < 0.05:
            raise OutcomeUnknown(f"{key}: lost before it happened")

    def _lose_reply(self, key: str) -> None:
        if self.random.random() < 0.05:
            raise OutcomeUnknown(f"{key}: lost after it happened")


class IgnoresTheVersion(ForwardingStore):
    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        current = self.behind.get(key)
        if current is not None and self.random.random() < 0.2:
            version = current.version
        return super().replace(key, body, version, timeout_ms=timeout_ms)


class AnswersConflictAsSuccess(ForwardingStore):
    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        try:
            return super().replace(key, body, version, timeout_ms=timeout_ms)
        except Conflict:
            if self.random.random() < 0.8:
                raise
            return Version(f"made up {self.random.random()}")


class AnswersLostReplyAsFailure(ForwardingStore):
    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        new = super().replace(key, body, version, timeout_ms=timeout_ms)
        if self.random.random() < 0.05:
            raise Unavailable(f"{key}: nothing was written")  # a lie
        return new


class ReadsFromAStaleReplica(ForwardingStore):
    def __init__(self, behind: DocumentStore, seed: int = 0) -> None:
        super().__init__(behind, seed)
        self._replica: dict[str, Document | None] = {}

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        if key in self._replica and self.random.random() < 0.2:
            return self._replica[key]
        self._replica[key] = found = super().get(key, timeout_ms=timeout_ms)
        return found
