"""The document store: the one thing that all nodes share.

Small JSON documents under keys, each with a version that changes on every write. Every promise of
Headgate rests on `create` and `replace` being refused when somebody else was first.

Nodes, threads and processes use one store at the same time. A URL says which backend it is
(`registry`); every backend passes the same suite (`headgate.testing.StoreContract`), whose tests
carry the numbers below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol, TypeAlias

JsonValue: TypeAlias = (
    bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
)
JsonObject: TypeAlias = Mapping[str, JsonValue]
"""Read-only in types; as values, lists and dicts with text keys."""

Version = NewType("Version", str)
"""Opaque: equal or not equal, nothing else."""

Mark = NewType("Mark", str)
"""Opaque: a moment in the life of a prefix, for `wait`."""

TIMEOUT_MS = 10_000
"""How long a call may take if its caller does not say."""

PAGE_DOCUMENTS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Document:
    key: str
    body: JsonObject
    version: Version


@dataclass(frozen=True, slots=True)
class Damaged:
    """A document that is there and cannot be read."""

    key: str
    place: str  # file, znode or index entry: where a person looks
    reason: str


@dataclass(frozen=True, slots=True)
class Page:
    documents: tuple[Document, ...]
    damaged: tuple[Damaged, ...]
    next_after: str | None  # `after` of the next call; None: this was the last page


class DocumentStore(Protocol):
    """Small JSON documents, each with a version that changes on every write.

    S1  A reader sees a complete document or none.
    S2  create() takes effect only while there is no document of that key; replace() and delete()
        only while the given version is current. Of several at once, exactly one does.
    S3  get() and list() show every write that was acknowledged before they were called.
    S4  A version that was replaced or deleted never becomes current again, even if its key does. No
        other document ever has it.
    S5  A write whose outcome is not known raises OutcomeUnknown, never a guess. After Conflict,
        Unavailable and Invalid nothing of that call was written, and nothing will be.
    S6  list() gives every document below a prefix, with body and version, in the order of the keys'
        parts. A document that is there during the whole listing is in it, once.
    S7  Keys are any Unicode text, bodies any JSON object with a `format`; the limits are the same
        everywhere (`names`, `codec`), and what is beyond them is Invalid. What comes back is
        what was written.
    S8  wait() returns once something below the prefix was written after its mark was taken, or once
        its time is over. It blocks; now and then it may return too early. That nothing happened is
        no error, and without any time left it is a look.
    S9  A damaged document makes get() raise Corrupt and shows as damaged in list(). Both name the
        place. No other document is concerned.
    S10 Every call ends within its time limit, and a store that was out of reach is used again,
        without being opened anew, once it can be reached.
    S11 now_ms() is the clock that all who share this store can compare theirs with.
    S12 Namespaces do not see each other.

    All methods may be called from several threads. A closed store is not used again.
    """

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        """Raises Corrupt, Unavailable, Invalid (the key)."""

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        """Raises Conflict (it is there), Unavailable (nothing written), OutcomeUnknown, Invalid."""

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        """Raises Conflict (the version moved), Unavailable (nothing written), OutcomeUnknown,
        Invalid, Corrupt (what is there cannot be read)."""

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        """Raises Conflict (the version moved), Unavailable (nothing written), OutcomeUnknown,
        Corrupt (what is there cannot be read)."""

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        """Documents below `prefix` (whole parts; "" is everything), from behind the key `after`.

        A page may hold fewer than `limit` documents (1 to PAGE_DOCUMENTS_MAX) and still not be the
        last. Raises Unavailable,
        Invalid.
        """

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        """Blocks until something below `prefix` may have changed since that mark; a new mark.

        Take a mark (`since=None` answers at once), *then* look, then wait with that mark: what
        changes between the look and the wait is not missed. Raises Unavailable, Invalid.
        """

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        """Milliseconds since 1970 in UTC, by the store's own clock. Raises Unavailable."""

    def close(self) -> None:
        """Gives back connections. Closing twice is fine."""
