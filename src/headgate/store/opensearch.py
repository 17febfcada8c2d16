"""OpenSearch and Elasticsearch: one index of a search cluster, used as a table of documents.

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

**Trail.** When the node of the primary dies, the cluster repeats a write that it had handed there,
and what took effect the first time comes back to us as a conflict. So each write leaves a token,
`<writer>-<count>`. A writer makes one call at a time: it is enough to remember the last of each.

    <first creator's token>,<this write's token>[,<token>@<seq_no>.<primary_term>]…

Newest first, `WRITERS_MAX` at most. After a conflict the document is read, and `judge` says whether
our token is in it, cannot be, or whether so many wrote since that nobody can tell. The trail is in
the version because whoever replaces a document has nothing else of it at hand.

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

import base64
import json
import logging
import re
import ssl
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from opensearchpy import Urllib3HttpConnection
from opensearchpy.exceptions import ConnectionError as Broken
from urllib3 import Timeout
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

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
from headgate.store.url import StoreUrl

log = logging.getLogger(__name__)

PORT = 9200
CONNECTIONS_MAX = 32  # kept open to each node
CONNECT_MS_MAX = 2_000  # a machine that is gone does not even refuse; the next one may answer
SERVER_SHARE = 0.8  # of our time: the server gives up before we do, and can still say so
OPEN_TRIES = 3
CREATE_TRIES = 5
WRITERS_MAX = 6  # keeps a version under 250 characters
BITE_DOCUMENTS_MIN, BITE_GROWTH = 25, 4  # a node builds an answer in its memory: start small
BITE_BYTES_MAX = 8_000_000
PAGE_BYTES_MAX = 32_000_000
LOOK_MS_MIN, LOOK_MS_MAX = 50, 2_000
TOMBSTONE_MS = 86_400_000  # much longer than a paused machine is missed
SWEEP_EVERY, SWEEP_DOCUMENTS_MAX = 100, 500  # deletes between two sweeps; taken by one

_NOT_SENT = (NewConnectionError, ConnectTimeoutError)
_ANY_STATUS = range(300, 600)
_BLOCKS = {"/5/": "read_only", "/8/": "write", "/12/": "read_only_allow_delete"}
_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")
_TOKEN = r"[0-9a-f]+-[0-9a-f]+"  # noqa: S105 - names a write, opens nothing
_TRAIL = re.compile(rf"{_TOKEN},{_TOKEN}(,{_TOKEN}@\d+\.\d+)*")
_VERSION = re.compile(rf"([^:]+):(\d+)\.(\d+):({_TRAIL.pattern})")


class OpenSearchStore:
    def __init__(
        self,
        cluster: "_Cluster",
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
        base: _Entry | None = None
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
        self._refresh(deadline)
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
        if since is None:
            self._refresh(deadline)
            return self._mark(below, deadline)
        pause_ms = LOOK_MS_MIN
        while True:  # ends with the time
            try:
                mark = self._mark(below, deadline)
            except Unavailable:
                if deadline.is_over():
                    return since  # no time for an answer is no news
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
        # A full disk forbids even an update that changes nothing. As nobody writes, a GET will do.
        found = self._cluster.ask("GET", path, deadline, expected=(200, 404))
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

    def _entry(self, key: str, found: Any) -> "_Entry":
        """Who wrote what is stored. Raises Corrupt."""
        source = found.get("_source")
        trail = source.get("write") if isinstance(source, dict) else None
        if not isinstance(trail, str) or _TRAIL.fullmatch(trail) is None:
            raise damaged(self._place(self._id(key)), "it does not say who wrote it")
        return _Entry(found["_seq_no"], found["_primary_term"], trail, "gone" in source)

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

    def _refresh(self, deadline: Deadline) -> None:
        """After this, searches show all that was acknowledged before. Raises Unavailable."""
        pause_ms, looks = LOOK_MS_MIN, 0
        while True:  # ends with the time
            answer = self._cluster.ask("POST", f"{self._alias}/_refresh", deadline).body
            looks += 1
            # A copy that could not be refreshed would hide writes; the cluster will drop it.
            if not answer["_shards"]["failed"] and (_is_complete(answer) or looks > 1):
                return
            self._ambient.sleep_ms(min(pause_ms, deadline.left_ms()))
            pause_ms = min(2 * pause_ms, LOOK_MS_MAX)

    def _search(self, request: JsonObject, deadline: Deadline) -> "_Answer":
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
            base = _Entry(int(found[2]), int(found[3]), found[4])
            with self._token() as token:
                new, _ = self._write(key, raw, token, base, deadline)
            if new is not None:
                return new
        raise Conflict(f"{key}: this version is not current")

    def _write(
        self, key: str, raw: bytes | None, token: str, base: "_Entry | None", deadline: Deadline
    ) -> "tuple[Version | None, _Entry | None]":
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

    def _current(self, key: str, deadline: Deadline) -> "_Entry | None":
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
        before_ms = self._ambient.wall_ns() // 1_000_000 - TOMBSTONE_MS
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


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a version says, and whether it is a tombstone's."""

    seq_no: int
    primary_term: int
    trail: str
    is_gone: bool = False

    @property
    def at(self) -> str:
        return f"{self.seq_no}.{self.primary_term}"

    @property
    def condition(self) -> dict[str, str]:
        return {"if_seq_no": str(self.seq_no), "if_primary_term": str(self.primary_term)}

    @property
    def creator(self) -> str:
        return self.trail.partition(",")[0]

    @property
    def writes(self) -> Sequence[str]:
        """`<token>@<seq_no>.<primary_term>`, the last write of each writer, newest first."""
        _, newest, *older = self.trail.split(",")
        return [f"{newest}@{self.at}", *older]


def follow(base: _Entry, token: str) -> str:
    """The trail of a write on top of `base`."""
    others = [write for write in base.writes if not write.startswith(_writer(token))]
    return ",".join((base.creator, token, *others[: WRITERS_MAX - 1]))


def judge(trail: str, base: _Entry | None, current: _Entry) -> str | None:
    """Where the write with that trail is, `<seq_no>.<primary_term>`; None: it never was.

    `base` is what it was to replace (None: it was to be the first), `current` what is there.
    Raises OutcomeUnknown.
    """
    token, writes = trail.split(",")[1], current.writes
    for write in writes:
        if write.startswith(f"{token}@"):
            return write.partition("@")[2]
        if write.startswith(_writer(token)):
            return None  # ours would be this writer's last
    if base is None:
        is_all = current.creator != token
    else:
        # Whoever wrote after the oldest of these is among them.
        oldest_seq_no = int(writes[-1].partition("@")[2].partition(".")[0])
        is_all = len(writes) < WRITERS_MAX or base.seq_no >= oldest_seq_no
    if is_all:
        return None
    raise OutcomeUnknown(
        f"{len(writes)} others wrote to this document since; nobody can tell whether this write "
        "came before theirs. Next: read it again, then decide"
    )


def _writer(token: str) -> str:
    return token.partition("-")[0] + "-"


def _is_complete(answer: Any) -> bool:
    """Did every copy take part? What failed does not say, and may as well not."""
    shards = answer.get("_shards", {"total": 1, "successful": 0})
    return bool(shards["successful"] == shards["total"])


# Talking to the cluster


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: Any
    size_bytes: int


class _Cluster:
    """The nodes of one URL. One of them is asked until it fails, then the next."""

    def __init__(self, nodes: Sequence["_Connection"], name: str, index: str) -> None:
        self.name = name
        self.index = index
        self._nodes = nodes
        self._turn = 0
        self._is_closed = False

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
    ) -> _Answer:
        """One request; `may_wait`: the server is told when to stop waiting for a primary.

        A write is sent at most once: only a node that refused the connection hands it on to the
        next. Raises Unavailable, Invalid; OutcomeUnknown if it is a write.
        """
        if self._is_closed:
            raise Unavailable(f"{self.name}: this store was closed; next: open it again")
        reason = "no time was left"
        for tries_left in reversed(range(len(self._nodes))):
            left_ms = deadline.left_ms()
            # Half the time for a node that may be paused: a read can still be answered by others.
            limit_ms = left_ms // 2 if tries_left and not is_write else left_ms
            if limit_ms == 0:
                break
            connect_ms = min(left_ms / 2, CONNECT_MS_MAX)
            patience = {"timeout": f"{int(limit_ms * SERVER_SHARE)}ms"} if may_wait else {}
            turn = self._turn
            try:
                status, _, text = self._nodes[turn].perform_request(
                    method,
                    f"/{path}",
                    {**(params or {}), **patience},
                    body,
                    # urllib3's own: a number would be a limit for each part of an answer
                    Timeout(connect=connect_ms / 1000, total=limit_ms / 1000),  # type: ignore[arg-type]
                    _ANY_STATUS,
                )
            except Broken as error:
                self._pass_on(turn)
                if _is_untrusted(error.info):
                    raise Invalid(
                        f"{self.name}: the server's certificate is not trusted: {error.error}. "
                        "Next: ca=PATH of the authority that signed it"
                    ) from error
                if is_write and not isinstance(error.info, _NOT_SENT):
                    raise self._unknown(path, f"no answer: {error.error}") from error
                reason = str(error.error)
                continue
            answer = _Answer(status, _loaded(text), len(text))
            if status in expected and isinstance(answer.body, dict):
                return answer
            if status == 503:
                self._pass_on(turn)  # a node that lost its cluster says so; the next may not
            if status != 503 or is_write:
                raise self.refusal(path, status, answer.body, is_write=is_write)
            reason = text[:300]
        raise Unavailable(
            f"{self.name}: nothing was done, nobody answered in time: {reason}. "
            f"Next: curl {self._address}/_cluster/health?pretty, and add tls=true if it speaks TLS"
        )

    def refusal(self, path: str, status: int, answer: Any, *, is_write: bool) -> HeadgateError:
        """What a status means that nobody expected."""
        error = answer.get("error") if isinstance(answer, dict) else None
        kind, reason = "", str(error or answer)[:300]
        if isinstance(error, dict):
            kind, reason = str(error.get("type")), str(error.get("reason"))[:300]
        told = f"{self.name}: {path}: {status} {kind}: {reason}"
        if kind == "index_not_found_exception":
            return Unavailable(
                f"{self.name}: the index is gone, or another was made in its place; its documents "
                "are lost to this process, which makes no new one. Next: restore it from a "
                "snapshot; or, to start from nothing, restart every node"
            )
        if kind == "cluster_block_exception" and status < 500:
            blocks = [block for number, block in _BLOCKS.items() if number in reason]
            setting = json.dumps({f"index.blocks.{blocks[0] if blocks else 'write'}": None})
            return Unavailable(
                f"{told}. Nothing was written. Next: see that the disks have room, then "
                f"curl -X PUT {self._address}/{self.index}/_settings "
                f"-H 'content-type: application/json' -d '{setting}'"
            )
        if status in (401, 403):
            return Invalid(
                f"{told}. Next: give user=NAME&password=${{env:NAME}} or api_key=${{env:NAME}}, "
                f"with every right on {self.index}* and monitor on the cluster"
            )
        if status == 429:
            return Unavailable(f"{told}. Nothing was done: the cluster has too much to do")
        if 400 <= status < 500 and status != 408:
            return Invalid(told)
        # Also 503: the primary may have died after it took the write, and the cluster then waited
        # in vain for another one to repeat it.
        return self._unknown(path, told) if is_write else Unavailable(f"{told}. Nothing was done")

    def close(self) -> None:
        self._is_closed = True
        for node in self._nodes:
            node.close()

    def _pass_on(self, turn: int) -> None:
        if self._turn == turn:  # else another thread did
            self._turn = (turn + 1) % len(self._nodes)

    @property
    def _address(self) -> str:
        return str(self._nodes[self._turn].host)

    def _unknown(self, path: str, reason: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{self.name}: {path}: {reason}. The write may be done, or still be done. "
            "Next: read it again, then decide"
        )


class _Connection(Urllib3HttpConnection):
    """The client's connection to one node, less what it tells the world on its own."""

    # It logs each failure with a traceback. All of them become errors of ours, which say more; and
    # this way nobody's logging is touched, nor another use of the client in this process.
    def log_request_fail(self, *_: Any, **__: Any) -> None:
        pass

    # A server's deprecation notes would become Python warnings, and errors where warnings are: a
    # write that was done would look as if it was not.
    def _raise_warnings(self, warning_headers: Any) -> None:
        pass


class _Unverified(HTTPSConnection):
    """`verify=false` is said once, when the store is opened; urllib3 would say it every time."""

    def connect(self) -> None:
        super().connect()
        self.is_verified = True


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text  # a proxy's page, say


def _is_untrusted(error: Any) -> bool:
    causes = getattr(error, "args", ())
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes)


# Opening


def open_url(url: StoreUrl, namespace: str, ambient: Ambient) -> OpenSearchStore:
    """Makes the index if it is not there. Raises Invalid, Unavailable."""
    url.check_options("tls", "ca", "verify", "user", "password", "api_key", "replicas")
    index = url.path.strip("/") or "headgate"
    if _INDEX.fullmatch(index) is None:
        raise Invalid(f"{url.shown}: {index!r} is no index; next: use a-z, 0-9 and any of . _ -")
    if not url.hosts:
        raise Invalid(f"{url.shown}: names no host; next: es://HOST[:{PORT}]/{index}")
    cluster = _Cluster(_nodes(url, ambient), f"es://{','.join(url.hosts)}/{index}", index)
    deadline = Deadline(ambient, TIMEOUT_MS)
    try:
        version = cluster.ask("GET", "", deadline).body.get("version")
        if not isinstance(version, dict):
            raise Invalid(
                f"{cluster.name}: is no OpenSearch or Elasticsearch; next: check the port"
            )
        alias = _opened_index(cluster, index, url.number("replicas", 2), ambient, deadline)
    except HeadgateError:
        cluster.close()
        raise
    # Elasticsearch lets nobody ask for the primary: there it is always the same copy, so that the
    # marks of `wait` do not go back and forth.
    is_opensearch = version.get("distribution") == "opensearch"
    preference = "_primary" if is_opensearch else ambient.new_id()
    return OpenSearchStore(cluster, alias, preference, namespace, ambient)


def _nodes(url: StoreUrl, ambient: Ambient) -> list[_Connection]:
    """A connection to each host, starting with any: so the nodes share the load."""
    user, password, api_key = url.options.get("user"), url.secret("password"), url.secret("api_key")
    headers: dict[str, str] = {}
    if api_key is not None:
        headers["authorization"] = f"ApiKey {api_key}"
    elif user is not None and password is not None:
        basic = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        headers["authorization"] = f"Basic {basic}"
    elif user is not None or password is not None:
        raise Invalid(f"{url.shown}: user and password go together; next: give both or neither")
    context = _tls(url) if url.truth("tls", "ca" in url.options) else None
    hosts = [_address(host) for host in url.hosts]
    is_local = all(name in ("localhost", "127.0.0.1", "::1") for name, _ in hosts)
    if headers and context is None and not is_local:
        log.warning("store.password_in_clear", extra={"store": url.shown, "next": "tls=true"})
    nodes = []
    for name, port in hosts:
        node = _Connection(
            host=name,
            port=port,
            use_ssl=context is not None,
            ssl_context=context,
            headers=headers,
            pool_maxsize=CONNECTIONS_MAX,
        )
        if context is not None and context.verify_mode == ssl.CERT_NONE:
            node.pool.ConnectionCls = _Unverified
        nodes.append(node)
    first = int(ambient.random() * len(nodes))
    return nodes[first:] + nodes[:first]


def _address(host: str) -> tuple[str, int]:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        name, port = host, str(PORT)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise Invalid(f"es://{host}: {port!r} is no port; next: write HOST:{PORT}")
    return name.strip("[]"), int(port)


def _tls(url: StoreUrl) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=url.options.get("ca"))
    except OSError as error:
        raise Invalid(f"{url.shown}: ca={url.options.get('ca')}: {error}") from error
    if not url.truth("verify", True):
        log.warning("store.certificate_not_verified", extra={"store": url.shown, "next": "ca=PATH"})
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _opened_index(
    cluster: _Cluster, index: str, replicas: int, ambient: Ambient, deadline: Deadline
) -> str:
    """The alias of the index's generation. Of several who make it at once, one does."""
    settings = {
        "number_of_shards": 1,  # one order of all writes
        "auto_expand_replicas": f"0-{replicas}",
        "refresh_interval": "1s",  # `wait` relies on it
        "translog.durability": "request",  # acknowledged means on disk, whatever a template says
    }
    properties = {
        "namespace": {"type": "keyword"},
        "order": {"type": "keyword"},
        "write": {"type": "keyword", "index": False, "doc_values": False},
        "body": {"type": "object", "enabled": False},
        "gone": {"type": "long"},
    }
    request = {
        "settings": {"index": settings},
        "mappings": {"dynamic": "strict", "properties": properties},
        "aliases": {f"{index}.{ambient.new_id()[:12]}": {}},
    }
    body = json.dumps(request).encode("ascii")
    for _ in range(OPEN_TRIES):
        found = cluster.ask("GET", index, deadline, expected=(200, 404))
        if found.status == 200:
            aliases = [alias for entry in found.body.values() for alias in entry["aliases"]]
            ours = [alias for alias in aliases if alias.startswith(f"{index}.")]
            if len(ours) == 1:
                return str(ours[0])
            raise Invalid(
                f"{cluster.name}: this index was not made by Headgate (its aliases: {aliases}); "
                "next: choose another index"
            )
        made = cluster.ask("PUT", index, deadline, expected=(200, 400), body=body, may_wait=True)
        if made.status == 400 and "resource_already_exists" not in json.dumps(made.body):
            raise cluster.refusal(index, made.status, made.body, is_write=False)
    raise Unavailable(f"{cluster.name}: somebody deletes the index as often as it is made")
