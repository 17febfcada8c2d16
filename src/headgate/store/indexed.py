"""Indexed: how documents, versions and wake-ups are laid out in one index of a search cluster.

    INDEX/_doc/<namespace>/<key>
        namespace, order   where it belongs; `order` sorts as keys do (`names.ordered`)
        write              the trail: who wrote it, see below
        body               the document, not indexed
        gone               instead of order and body: a tombstone, and since when (ms)

The user needs every right on `INDEX*`, and `monitor` on the cluster (its clocks).

**Version.** `<generation>:<seq_no>.<primary_term>:<trail>`. The two numbers are the server's and
never repeat inside an index. One that was deleted and made anew would count from 0 again: so each
index gets a random generation, the alias `INDEX.<generation>`, and everything goes through that.
Where the alias is gone, all is refused: no write makes an index by accident, and no version from
before fits.

**Trail.** Each write leaves a token (`trail`), so that a conflict with ourselves is known as one.
The trail is in the version because whoever replaces a document has nothing else of it at hand.

**Tombstones.** If that node was only paused, it wakes up and repeats the write as well. Versions
stop it, but a create has none: it would bring back what was deleted since. So `delete` leaves a
tombstone that `create` replaces by its version. They are swept a day later.

**Reading.** A GET may be answered by a node that was paused or cut off and does not know yet that
it was replaced, even if one asks for the primary (which Elasticsearch refuses). So `get` is an
update that changes nothing: the primary answers once all its copies agree that it is the primary.
That writes nothing; it takes about one and a half times as long as a GET.

**Copies.** An answer says how many copies took part. If not all did, a copy may be on its way, or
the primary was replaced meanwhile (OpenSearch 2.19.6 then acknowledges what is lost: its pull
request 21456). So we look again: the replaced one is closed by then and cannot answer twice.
"""

import json
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from headgate.ambient import Ambient, Deadline
from headgate.errors import Conflict, Corrupt, HeadgateError, Invalid, OutcomeUnknown, Unavailable
from headgate.store import (
    PAGE_DOCUMENTS_MAX,
    TIMEOUT_MS,
    Damaged,
    Document,
    JsonObject,
    Mark,
    Page,
    Version,
)
from headgate.store import names as spelling
from headgate.store.codec import damaged, decode, encode
from headgate.store.names import ordered, parts, prefix_parts
from headgate.store.pages import check_limit
from headgate.store.trail import TRAIL, Entry, follow, judge

CREATE_TRIES = 5
BITE_DOCUMENTS_MIN, BITE_GROWTH = 25, 4  # a node builds an answer in its memory: start small
BITE_BYTES_MAX = 8_000_000
PAGE_BYTES_MAX = 32_000_000
LOOK_MS_MIN, LOOK_MS_MAX = 50, 2_000
LOOK_TIME_MS_MIN = 250  # a look takes a round trip, however little time is left
TOMBSTONE_MS = 86_400_000  # much longer than a paused machine is missed
SWEEP_EVERY, SWEEP_DOCUMENTS_MAX = 100, 500  # deletes between two sweeps; taken by one

_TRAIL = re.compile(TRAIL)
_VERSION = re.compile(rf"([^:]+):([0-9]+)\.([0-9]+):({TRAIL})")


@dataclass(frozen=True, slots=True)
class Answer:
    node: int  # who answered
    status: int
    body: Any
    size_bytes: int


class Cluster(Protocol):
    """Who is asked; `opensearch` has the real one."""

    name: str
    index: str

    def ask(
        self,
        method: str,
        path: str,
        deadline: Deadline,
        *,
        expected: Collection[int] = (200,),
        body: bytes | None = None,
        is_write: bool = False,
        may_wait: bool = False,
        params: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request; `may_wait`: the server is told when to stop waiting for a primary.

        A write is sent at most once: only a node that refused the connection hands it on to the
        next. Raises Unavailable, Invalid; OutcomeUnknown if it is a write.
        """

    def refusal(self, path: str, status: int, answer: Any, *, is_write: bool) -> HeadgateError:
        """What a status means that nobody expected."""

    def close(self) -> None: ...


class OpenSearchStore:
    def __init__(
        self,
        cluster: Cluster,
        alias: str,
        preference: str,
        namespace: str,
        ambient: Ambient,
    ) -> None:
        self._cluster = cluster
        self._alias = alias
        self._generation = alias.rpartition(".")[2]
        self._preference = preference
        self._namespace = namespace
        self._ambient = ambient
        self._idle_writers: deque[tuple[str, int]] = deque()
        self._deletes = 0

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        parts(key)
        found = self._read(key, self._deadline(timeout_ms))
        return None if found is None else self._document(key, found)

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        parts(key)
        raw, deadline = encode(key, body), self._deadline(timeout_ms)
        base: Entry | None = None
        with self._token() as token:
            for _ in range(CREATE_TRIES):  # the next one: somebody made and deleted it meanwhile
                version, base = self._write(key, raw, token, base, deadline)
                if version is not None:
                    return version
                if base is not None and not base.is_gone:
                    raise Conflict(f"{key}: is there already")
        raise Unavailable(f"{key}: gave up after {CREATE_TRIES} tries, nothing was written")

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        parts(key)
        return self._follow(key, encode(key, body), version, self._deadline(timeout_ms))

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        parts(key)
        deadline = self._deadline(timeout_ms)
        self._follow(key, None, version, deadline)
        self._deletes += 1
        if self._deletes % SWEEP_EVERY == 1:
            with suppress(Unavailable, Invalid):  # the next one will do
                self._sweep(deadline)

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        check_limit(limit)
        below, deadline = self._below(prefix), self._deadline(timeout_ms)
        start, last = self._order(after), after
        node = self._refresh(deadline)
        documents: list[Document] = []
        spoiled: list[Damaged] = []
        left, bite, size_bytes = limit, BITE_DOCUMENTS_MIN, 0
        while left and size_bytes < PAGE_BYTES_MAX:
            asked = min(left, bite)
            request: JsonObject = {
                "query": below,
                "size": asked,
                "sort": ["order"],
                "search_after": [start],
                "track_total_hits": False,
            }
            answer = self._search(request, deadline)
            if answer.node != node:
                # Another one, which may not know yet that it was left behind: it must prove it.
                node = self._refresh(deadline)
                continue
            hits = answer.body["hits"]["hits"]
            for hit in hits:
                found = self._listed(hit)
                start, last = hit["sort"][0], found.key
                if isinstance(found, Document):
                    documents.append(found)
                else:
                    spoiled.append(found)
            if len(hits) < asked:
                return Page(tuple(documents), tuple(spoiled), None)
            left -= asked
            size_bytes += answer.size_bytes
            fitting = BITE_BYTES_MAX * asked // answer.size_bytes
            bite = max(BITE_DOCUMENTS_MIN, min(fitting, BITE_GROWTH * bite))
        return Page(tuple(documents), tuple(spoiled), last)

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        """Looks, less and less often: the server wakes nobody.

        A look is one small search. It does not make the index refresh, which all nodes together
        would do too often; the index does so by itself, once a second. So a write is noticed after
        a second at most, and the pause between two looks.
        """
        below, deadline = self._below(prefix), self._deadline(timeout_ms)
        first_look = self._deadline(max(timeout_ms, LOOK_TIME_MS_MIN))
        if since is None:
            self._refresh(first_look)
            return self._mark(below, first_look)
        pause_ms = LOOK_MS_MIN
        while True:  # ends with the time
            try:
                mark = self._mark(below, self._deadline(max(deadline.left_ms(), LOOK_TIME_MS_MIN)))
            except Unavailable:
                if deadline.is_over():
                    return since  # no answer in time is no news
                raise
            if mark != since or deadline.is_over():
                return mark
            self._ambient.sleep_ms(min(pause_ms, deadline.left_ms()))
            pause_ms = min(2 * pause_ms, LOOK_MS_MAX)

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        """The clock of the node that answers: those of a cluster may differ a little."""
        answer = self._cluster.ask(
            "GET",
            "_nodes/_local/stats/http",
            self._deadline(timeout_ms),
            params={"filter_path": "nodes.*.timestamp"},
        )
        return max(int(node["timestamp"]) for node in answer.body["nodes"].values())

    def close(self) -> None:
        self._cluster.close()

    # Where things are

    def _deadline(self, timeout_ms: int) -> Deadline:
        return Deadline(self._ambient, timeout_ms)

    def _id(self, key: str) -> str:
        return f"{self._namespace}/{key}"

    def _path(self, api: str, key: str) -> str:
        return f"{self._alias}/{api}/{quote(self._id(key), safe='')}"

    def _place(self, identity: str) -> str:
        return f"{self._cluster.name}/_doc/{identity}"

    def _order(self, key: str) -> str:
        return ordered((self._namespace, *prefix_parts(key)))

    def _below(self, prefix: str) -> JsonObject:
        """Finds all documents below a prefix: a part's end is 0 1, a 0 inside of it 0 2."""
        order = self._order(prefix)
        return {"range": {"order": {"gt": f"{order}\0\1", "lt": f"{order}\0\2"}}}

    # Reading

    def _read(self, key: str, deadline: Deadline) -> Any:
        """The document as it is stored, None if it is not there. Raises Unavailable, Invalid."""
        for _ in range(2):  # see "Copies"
            item = self._update_nothing(key, deadline)
            if _is_complete(item):
                break
        kind, path = item.get("error", {}).get("type"), self._path("_doc", key)
        if item["status"] == 200:
            return item["get"]
        if kind == "document_missing_exception":
            return None
        if kind != "cluster_block_exception" or item["status"] >= 500:
            raise self._cluster.refusal(path, item["status"], item, is_write=False)
        # A full disk forbids even an update that changes nothing. A refresh is a proof, too.
        node = self._refresh(deadline)
        found = self._cluster.ask("GET", path, deadline, expected=(200, 404))
        if found.node != node:
            raise Unavailable(f"{path}: the nodes changed while it was read; next: try again")
        if found.status == 404 and "error" in found.body:
            raise self._cluster.refusal(path, 404, found.body, is_write=False)
        return found.body if found.status == 200 else None

    def _update_nothing(self, key: str, deadline: Deadline) -> Any:
        action = json.dumps({"update": {"_id": self._id(key)}})
        answer = self._cluster.ask(
            "POST",
            f"{self._alias}/_bulk",
            deadline,
            body=f'{action}\n{{"doc":{{}},"_source":true}}\n'.encode("ascii"),
            may_wait=True,
            params={"require_alias": "true"},
        )
        return answer.body["items"][0]["update"]

    def _entry(self, key: str, found: Any) -> Entry:
        """Who wrote what is stored. Raises Corrupt."""
        source = found.get("_source")
        trail = source.get("write") if isinstance(source, dict) else None
        if not isinstance(trail, str) or _TRAIL.fullmatch(trail) is None:
            raise damaged(self._place(self._id(key)), "it does not say who wrote it")
        return Entry(found["_seq_no"], found["_primary_term"], trail, "gone" in source)

    def _document(self, key: str, found: Any) -> Document | None:
        """None for a tombstone. Raises Corrupt."""
        entry, source, place = self._entry(key, found), found["_source"], self._place(self._id(key))
        if entry.is_gone:
            return None
        if (source.get("namespace"), source.get("order")) != (self._namespace, self._order(key)):
            raise damaged(place, "its namespace and order are not those of its id")
        body = decode(json.dumps(source.get("body")).encode("ascii"), place)
        return Document(key, body, self._version(entry.at, entry.trail))

    def _listed(self, hit: Any) -> Document | Damaged:
        identity, order = hit["_id"], hit["sort"][0].split("\0\1")
        key = identity.removeprefix(f"{self._namespace}/")
        try:
            key = spelling.key(*(part.replace("\0\2", "\0") for part in order[1:]))
            if identity != self._id(key):
                raise damaged(self._place(identity), f"its order is that of {key}")
            document = self._document(key, hit)
            if document is None:
                raise damaged(self._place(identity), "it is a tombstone with an order")
            return document
        except (Corrupt, Invalid) as error:
            return Damaged(key, self._place(identity), str(error))

    def _refresh(self, deadline: Deadline) -> int:
        """After this, searches of the node that it names show all that was acknowledged before.

        Raises Unavailable.
        """
        pause_ms, looks = LOOK_MS_MIN, 0
        while True:  # ends with the time
            answer = self._cluster.ask("POST", f"{self._alias}/_refresh", deadline)
            looks += 1
            # A copy that could not be refreshed would hide writes; the cluster will drop it.
            has_failed = bool(answer.body["_shards"]["failed"])
            if not has_failed and (_is_complete(answer.body) or looks > 1):
                return answer.node
            self._ambient.sleep_ms(min(pause_ms, deadline.left_ms()))
            pause_ms = min(2 * pause_ms, LOOK_MS_MAX)

    def _search(self, request: JsonObject, deadline: Deadline) -> "Answer":
        return self._cluster.ask(
            "POST",
            f"{self._alias}/_search",
            deadline,
            body=json.dumps({"seq_no_primary_term": True, **request}).encode("ascii"),
            params={"preference": self._preference, "allow_partial_search_results": "false"},
        )

    def _mark(self, below: JsonObject, deadline: Deadline) -> Mark:
        """How many there are and which was written last: each write changes one or the other."""
        request: JsonObject = {
            "query": below,
            "size": 1,
            "sort": [{"_seq_no": "desc"}],
            "_source": False,
            "track_total_hits": True,
        }
        hits = self._search(request, deadline).body["hits"]
        last = [f"{hit['_seq_no']}.{hit['_primary_term']}" for hit in hits["hits"]]
        return Mark(f"{hits['total']['value']}:{''.join(last)}")

    # Writing

    @contextmanager
    def _token(self) -> Iterator[str]:
        """The token of one write. Its writer is nobody else's until the call is over."""
        try:
            writer, count = self._idle_writers.pop()
        except IndexError:
            writer, count = self._ambient.new_id()[:8], 0
        try:
            yield f"{writer}-{count:x}"
        finally:
            self._idle_writers.append((writer, count + 1))

    def _follow(self, key: str, raw: bytes | None, version: Version, deadline: Deadline) -> Version:
        """Raises Conflict, Unavailable, OutcomeUnknown."""
        found = _VERSION.fullmatch(version)
        if found is not None and found[1] == self._generation:
            base = Entry(int(found[2]), int(found[3]), found[4])
            with self._token() as token:
                new, _ = self._write(key, raw, token, base, deadline)
            if new is not None:
                return new
        raise Conflict(f"{key}: this version is not current")

    def _write(
        self, key: str, raw: bytes | None, token: str, base: Entry | None, deadline: Deadline
    ) -> "tuple[Version | None, Entry | None]":
        """Puts a body or a tombstone on top of `base`: its version, or None and what is there."""
        trail = f"{token},{token}" if base is None else follow(base, token)
        head: dict[str, Any] = {"namespace": self._namespace, "write": trail}
        if raw is None:
            head["gone"] = self._ambient.wall_ns() // 1_000_000
            content = json.dumps(head).encode("ascii")
        else:
            head["order"] = self._order(key)
            content = json.dumps(head).encode("ascii")[:-1] + b',"body":' + raw + b"}"
        answer = self._cluster.ask(
            "PUT",
            self._path("_create" if base is None else "_doc", key),
            deadline,
            expected=(200, 201, 409),
            body=content,
            is_write=True,
            may_wait=True,
            params={"require_alias": "true", **({} if base is None else base.condition)},
        )
        if answer.status != 409 and _is_complete(answer.body):
            at = f"{answer.body['_seq_no']}.{answer.body['_primary_term']}"
            return self._version(at, trail), None
        current = self._current(key, deadline)
        place = None if current is None else judge(trail, base, current)
        if place is not None:
            return self._version(place, trail), None
        if answer.status != 409:
            raise OutcomeUnknown(
                f"{key}: the cluster said that this write was done, and it is not there: the "
                "primary was replaced meanwhile. Next: read it again, then decide"
            )
        return None, current

    def _current(self, key: str, deadline: Deadline) -> Entry | None:
        """What is there after a write of ours that may be part of it. Raises OutcomeUnknown."""
        try:
            found = self._read(key, deadline)
            return None if found is None else self._entry(key, found)
        except Corrupt as error:  # not ours, then: what we write can be read
            raise Conflict(f"{key}: what is there is damaged: {error}") from error
        except (Unavailable, Invalid) as error:
            raise OutcomeUnknown(
                f"{key}: whether this write took effect could not be read: {error}. "
                "Next: read it again, then decide"
            ) from error

    def _sweep(self, deadline: Deadline) -> None:
        """Removes old tombstones, each by its version. A wrong clock only removes them too soon."""
        before_ms = self.now_ms(timeout_ms=deadline.left_ms()) - TOMBSTONE_MS
        ours, old = {"term": {"namespace": self._namespace}}, {"range": {"gone": {"lt": before_ms}}}
        request: JsonObject = {
            "query": {"bool": {"filter": [ours, old]}},
            "size": SWEEP_DOCUMENTS_MAX,
            "_source": False,
        }
        hits = self._search(request, deadline).body["hits"]["hits"]
        lines = [
            json.dumps(
                {
                    "delete": {
                        "_id": hit["_id"],
                        "if_seq_no": hit["_seq_no"],
                        "if_primary_term": hit["_primary_term"],
                    }
                }
            )
            for hit in hits
        ]
        if lines:
            body = "".join(f"{line}\n" for line in lines).encode("ascii")
            self._cluster.ask("POST", f"{self._alias}/_bulk", deadline, body=body, may_wait=True)

    def _version(self, at: str, trail: str) -> Version:
        return Version(f"{self._generation}:{at}:{trail}")


def _is_complete(answer: Any) -> bool:
    """Did every copy take part? What failed does not say, and may as well not."""
    shards = answer.get("_shards", {"total": 1, "successful": 0})
    return bool(shards["successful"] == shards["total"])
