"""OpenSearch and Elasticsearch: one index of a search cluster, used as a table of documents.

    INDEX/_doc/<namespace>/<key>
        namespace, order   where it belongs; `order` sorts as keys do (`names.ordered`)
        write              the trail: who wrote it, see below
        body               the document, not indexed

The user needs every right on `INDEX*`, and `monitor` on the cluster (primary terms, node clocks).

**Version.** `<generation>:<seq_no>.<primary_term>:<trail>`. The first two numbers are the server's and
never repeat inside an index. One that was deleted and made anew would count from 0 again, so an index
gets a random generation, the alias `INDEX.<generation>`, and nothing is ever written but through it.
Where the alias is gone, every write is refused: the index is not made anew by accident, and a version
from before never fits.

**Trail.** When the node of the primary dies, the cluster repeats a write that it had handed there, and
what took effect the first time then comes back to us as a conflict. So each write leaves a token,
`<writer>-<count>`; a writer makes one call at a time, hence it is enough to remember the *last* token
of each:

    <creator's token>,<this write's token>[,<token>@<seq_no>.<primary_term>]…

newest first, the last `WRITERS_MAX` writers. After a conflict the document is read, and `judge` says
whether our token is in it, cannot be, or whether so many wrote since that nobody can tell. The trail is
in the version because whoever replaces a document has nothing else of it at hand.

**Reading.** A plain GET, even from the primary, may be answered by a node that was cut off or paused
and does not know yet that it was replaced. So `get` is an update that changes nothing: the primary
answers it only once all its copies agreed that it still is the primary. It writes nothing, costs about
a tenth more than a GET, and works where Elasticsearch no longer lets anyone ask for the primary.
"""

import base64
import json
import logging
import re
import ssl
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
WRITERS_MAX = 6  # keeps a version under 250 characters
BITE_DOCUMENTS_MIN, BITE_GROWTH = 25, 4  # a search answers from the node's memory: start small
BITE_BYTES_MAX = 8_000_000
PAGE_BYTES_MAX = 32_000_000
LOOK_MS_MIN, LOOK_MS_MAX = 50, 2_000

_NOT_SENT = (NewConnectionError, ConnectTimeoutError)
_ANY_STATUS = range(300, 600)
_BLOCKS = {5: "read_only", 8: "write", 12: "read_only_allow_delete"}  # each is lifted alone
_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")
_TOKEN = r"[0-9a-f]+-[0-9a-f]+"  # noqa: S105 - names a write, opens nothing
_TRAIL = re.compile(rf"{_TOKEN},{_TOKEN}(,{_TOKEN}@\d+\.\d+)*")
_VERSION = re.compile(rf"([^:]+):(\d+)\.(\d+):({_TRAIL.pattern})")


class _Connection(Urllib3HttpConnection):
    """The client's connection to one node, less what it tells the world on its own."""

    # It logs each failure with a traceback. All of them become errors of ours, which say more; and
    # this way nobody's logging is touched, not even for another use of the client in this process.
    def log_request_fail(self, *_: Any, **__: Any) -> None:
        pass

    # A server's deprecation notes would become Python warnings, and those errors where warnings
    # are: then a write that was done would look as if it was not.
    def _raise_warnings(self, warning_headers: Any) -> None:
        pass


class _Unverified(HTTPSConnection):
    """`verify=false` is said once, when the store is opened; urllib3 would say it every time."""

    def connect(self) -> None:
        super().connect()
        self.is_verified = True


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: Any
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Base:
    """What a version says."""

    seq_no: int
    primary_term: int
    trail: str

    @property
    def creator(self) -> str:
        return self.trail.partition(",")[0]


class _Cluster:
    """The nodes of one URL. One of them is asked until it fails, then the next."""

    def __init__(self, nodes: Sequence[_Connection], name: str, index: str) -> None:
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
            patience = {"timeout": f"{int(limit_ms * SERVER_SHARE)}ms"} if may_wait else {}
            turn = self._turn
            try:
                status, _, text = self._nodes[turn].perform_request(
                    method,
                    f"/{path}",
                    {**(params or {}), **patience},
                    body,
                    Timeout(  # type: ignore[arg-type]  # handed on to urllib3 as it is
                        connect=min(left_ms / 2, CONNECT_MS_MAX) / 1000, total=limit_ms / 1000
                    ),
                    _ANY_STATUS,
                )
            except Broken as error:
                self._pass_on(turn)
                if _is_untrusted(error.info):
                    raise self._untrusted(error) from error
                if is_write and not isinstance(error.info, _NOT_SENT):
                    raise self._unknown(path, f"no answer: {error.error}") from error
                reason = str(error.error)
                continue
            answer = _Answer(status, _loaded(text), len(text))
            if status in expected and isinstance(answer.body, dict):
                return answer
            if status != 503:
                raise self.refusal(path, status, answer.body, is_write=is_write)
            self._pass_on(turn)  # a node that lost its cluster says so, the next one may not
            if is_write:
                raise self.refusal(path, status, answer.body, is_write=True)
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
                f"{self.name}: the index is gone, or was made anew, and all documents with it. It is "
                f"not made again while this process runs. Next: restore {self.index} from a snapshot; "
                "to start from nothing, restart every node"
            )
        if kind == "cluster_block_exception" and status < 500:
            blocks = [block for number, block in _BLOCKS.items() if f"/{number}/" in reason]
            setting = f"index.blocks.{blocks[0] if blocks else 'write'}"
            return Unavailable(
                f"{told}. Nothing was written. Next: see that the disks have room, then curl -X PUT "
                f"{self._address}/{self.index}/_settings -H 'content-type: application/json' "
                f"-d '{{\"{setting}\": null}}'"
            )
        if status in (401, 403):
            return Invalid(
                f"{told}. Next: give user=NAME&password=${{env:NAME}} or api_key=${{env:NAME}}, with "
                f"every right on {self.index}* and monitor on the cluster"
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

    def _untrusted(self, error: Broken) -> Invalid:
        return Invalid(
            f"{self.name}: the server's certificate is not trusted: {error.error}. "
            "Next: ca=PATH of the authority that signed it"
        )


class OpenSearchStore:
    def __init__(
        self, cluster: _Cluster, alias: str, copy: str, namespace: str, ambient: Ambient
    ) -> None:
        self._cluster = cluster
        self._alias = alias
        self._copy = copy  # which copy of the index searches ask for
        self._generation = alias.rpartition(".")[2]
        self._namespace = namespace
        self._ambient = ambient
        self._term_seen = 0
        self._idle_writers: deque[tuple[str, int]] = deque()

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        parts(key)
        found = self._read(key, Deadline(self._ambient, timeout_ms))
        return None if found is None else self._document(key, found)

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        parts(key)
        raw, deadline = encode(key, body), Deadline(self._ambient, timeout_ms)
        with self._token() as token:
            return self._put("_create", key, raw, f"{token},{token}", None, deadline)

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        parts(key)
        raw, deadline = encode(key, body), Deadline(self._ambient, timeout_ms)
        base = self._base(key, version)
        with self._token() as token:
            return self._put("_doc", key, raw, follow(base, token), base, deadline)

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        parts(key)
        base, deadline = self._base(key, version), Deadline(self._ambient, timeout_ms)
        term = self._known_term(deadline)
        answer = self._cluster.ask(
            "DELETE",
            self._path("_doc", key),
            deadline,
            expected=(200, 409),
            is_write=True,
            may_wait=True,
            params=_only_at(base),
        )
        if answer.status == 409:
            self._judge(key, None, base, term, deadline)

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        check_limit(limit)
        below = self._order(prefix)
        start, last = (self._order(after), after) if after else (below, after)
        deadline = Deadline(self._ambient, timeout_ms)
        self._refresh(deadline)
        documents: list[Document] = []
        spoiled: list[Damaged] = []
        left, bite, size_bytes = limit, BITE_DOCUMENTS_MIN, 0
        while left and size_bytes < PAGE_BYTES_MAX:
            asked = min(left, bite)
            answer = self._search(
                below,
                deadline,
                size=asked,
                sort=["order"],
                search_after=[start],
                seq_no_primary_term=True,
                track_total_hits=False,
            )
            hits = answer.body["hits"]["hits"]
            for hit in hits:
                found = self._listed(hit)
                (documents if isinstance(found, Document) else spoiled).append(found)  # type: ignore[arg-type]  # as asked
                start, last = hit["sort"][0], found.key
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
        below = self._order(prefix)
        deadline = Deadline(self._ambient, timeout_ms)
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
        deadline = Deadline(self._ambient, timeout_ms)
        path = "_nodes/_local/stats/http"
        answer = self._cluster.ask(
            "GET", path, deadline, params={"filter_path": "nodes.*.timestamp"}
        ).body
        return max(int(node["timestamp"]) for node in answer["nodes"].values())

    def close(self) -> None:
        self._cluster.close()

    # Where things are

    def _id(self, key: str) -> str:
        return f"{self._namespace}/{key}"

    def _path(self, api: str, key: str) -> str:
        return f"{self._alias}/{api}/{quote(self._id(key), safe='')}"

    def _place(self, identity: str) -> str:
        return f"{self._cluster.name}/_doc/{identity}"

    def _order(self, key_or_prefix: str) -> str:
        return ordered((self._namespace, *prefix_parts(key_or_prefix)))

    # Reading

    def _read(self, key: str, deadline: Deadline) -> Any:
        """The document as it is stored, None if it is not there. Raises Unavailable, Invalid."""
        action = {"update": {"_id": self._id(key)}}
        lines = [json.dumps(action), '{"doc":{},"_source":true}', ""]
        answer = self._cluster.ask(
            "POST",
            f"{self._alias}/_bulk",
            deadline,
            body="\n".join(lines).encode("ascii"),
            may_wait=True,
            params={"require_alias": "true"},
        )
        item = answer.body["items"][0]["update"]
        status, kind = item["status"], item.get("error", {}).get("type")
        if status == 200:
            return item["get"]
        if status == 404 and kind == "document_missing_exception":
            return None
        if kind == "cluster_block_exception" and status < 500:
            # A full disk forbids even an update without change. Nobody can write now: a GET will do.
            path = self._path("_doc", key)
            found = self._cluster.ask("GET", path, deadline, expected=(200, 404)).body
            if found.get("found") is not None:
                return found if found["found"] else None
        raise self._cluster.refusal(self._path("_doc", key), status, item, is_write=False)

    def _document(self, key: str, found: Any) -> Document:
        """Raises Corrupt."""
        place, source = self._place(self._id(key)), found.get("_source")
        if not isinstance(source, dict):
            raise damaged(place, "it has no content")
        if (source.get("namespace"), source.get("order")) != (self._namespace, self._order(key)):
            raise damaged(place, "its namespace and order are not those of its id")
        trail = source.get("write")
        if not isinstance(trail, str) or _TRAIL.fullmatch(trail) is None:
            raise damaged(place, "it does not say who wrote it")
        body = decode(json.dumps(source.get("body")).encode("ascii"), place)
        return Document(key, body, self._version(found["_seq_no"], found["_primary_term"], trail))

    def _listed(self, hit: Any) -> Document | Damaged:
        identity, order = hit["_id"], hit["sort"][0].split("\0\1")
        key = identity.removeprefix(f"{self._namespace}/")
        try:
            key = spelling.key(*(part.replace("\0\2", "\0") for part in order[1:]))
            if identity != self._id(key):
                raise damaged(self._place(identity), f"its order is that of {key}")
            return self._document(key, hit)
        except (Corrupt, Invalid) as error:
            return Damaged(key, self._place(identity), str(error))

    def _refresh(self, deadline: Deadline) -> None:
        """After this every search shows all that was acknowledged before. Raises Unavailable."""
        pause_ms = LOOK_MS_MIN
        while True:  # ends with the time
            answer = self._cluster.ask("POST", f"{self._alias}/_refresh", deadline).body
            failed = answer["_shards"]["failed"]
            # A copy that could not be refreshed would hide writes. Or it refused, because the one
            # that asked is no longer the primary. Either way the cluster is about to notice.
            if not failed:
                return
            self._ambient.sleep_ms(min(pause_ms, deadline.left_ms()))
            pause_ms = min(2 * pause_ms, LOOK_MS_MAX)

    def _search(self, below: str, deadline: Deadline, **request: Any) -> _Answer:
        """Everything below an order: parts are joined by 0 1, and a 0 inside one is followed by 2."""
        query = {"range": {"order": {"gt": f"{below}\0\1", "lt": f"{below}\0\2"}}}
        return self._cluster.ask(
            "POST",
            f"{self._alias}/_search",
            deadline,
            body=json.dumps({"query": query, **request}).encode("ascii"),
            params={"preference": self._copy, "allow_partial_search_results": "false"},
        )

    def _mark(self, below: str, deadline: Deadline) -> Mark:
        """How many there are and which was written last: each write changes one or the other."""
        answer = self._search(
            below,
            deadline,
            size=1,
            sort=[{"_seq_no": "desc"}],
            _source=False,
            seq_no_primary_term=True,
            track_total_hits=True,
        )
        hits = answer.body["hits"]
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

    def _put(
        self, api: str, key: str, raw: bytes, trail: str, base: _Base | None, deadline: Deadline
    ) -> Version:
        term = self._known_term(deadline)
        head = {"namespace": self._namespace, "order": self._order(key), "write": trail}
        answer = self._cluster.ask(
            "PUT",
            self._path(api, key),
            deadline,
            expected=(200, 201, 409),
            body=json.dumps(head).encode("ascii")[:-1] + b',"body":' + raw + b"}",
            is_write=True,
            may_wait=True,
            params={"require_alias": "true", **_only_at(base)},
        )
        if answer.status == 409:
            return self._judge(key, trail, base, term, deadline)
        try:
            seq_no, primary_term = int(answer.body["_seq_no"]), int(answer.body["_primary_term"])
        except (TypeError, KeyError) as error:
            raise OutcomeUnknown(f"{key}: the answer to this write makes no sense") from error
        self._term_seen = max(self._term_seen, primary_term)
        return self._version(seq_no, primary_term, trail)

    def _judge(
        self, key: str, trail: str | None, base: _Base | None, term: int, deadline: Deadline
    ) -> Version:
        """After a conflict: the version of our write, if it took effect all the same.

        `trail` is None for a delete, `term` the primary term known before. Raises Conflict,
        OutcomeUnknown.
        """
        try:
            found = self._read(key, deadline)
            document = None if found is None else self._document(key, found)
            current = None if document is None else self._base(key, document.version)
            if current is None or (base is not None and current.creator != base.creator):
                # Deleted since: whether our write came before that can no longer be seen. It can
                # only if the cluster repeated it, and it does so for a new primary.
                if self._primary_term(deadline) != term:
                    raise OutcomeUnknown(
                        f"{key}: the document was deleted, and the cluster changed its primary; "
                        "nobody can tell whether this write came first. Next: read it again"
                    )
            elif trail is not None:
                place = judge(trail, base, current)
                if place is not None:
                    return Version(f"{self._generation}:{place}:{trail}")
        except Corrupt:
            pass  # not written by us, then: what we write can be read
        except (Unavailable, Invalid) as error:
            raise OutcomeUnknown(
                f"{key}: refused as a conflict, but whether with another write or with this one "
                "repeated could not be read. Next: read it again, then decide"
            ) from error
        raise Conflict(f"{key}: is there already" if base is None else _moved(key))

    def _base(self, key: str, version: Version) -> _Base:
        """Raises Conflict if that cannot be the version of anything that is there."""
        found = _VERSION.fullmatch(version)
        if found is None or found[1] != self._generation:
            raise Conflict(_moved(key))
        return _Base(int(found[2]), int(found[3]), found[4])

    def _version(self, seq_no: int, primary_term: int, trail: str) -> Version:
        return Version(f"{self._generation}:{seq_no}.{primary_term}:{trail}")

    def _known_term(self, deadline: Deadline) -> int:
        if self._term_seen == 0:
            self._primary_term(deadline)
        return self._term_seen

    def _primary_term(self, deadline: Deadline) -> int:
        """How often the index changed its primary, as the node that we ask knows it."""
        answer = self._cluster.ask(
            "GET",
            f"_cluster/state/metadata/{self._alias}",
            deadline,
            params={"local": "true", "filter_path": "metadata.indices.*.primary_terms"},
        ).body
        found = [index["primary_terms"]["0"] for index in answer["metadata"]["indices"].values()]
        self._term_seen = max(self._term_seen, *found)
        return self._term_seen


def follow(base: _Base, token: str) -> str:
    """The trail of a write on top of `base`."""
    creator, newest, *older = base.trail.split(",")
    known = [f"{newest}@{base.seq_no}.{base.primary_term}", *older]
    others = [entry for entry in known if not entry.startswith(_writer(token))]
    return ",".join((creator, token, *others[: WRITERS_MAX - 1]))


def judge(trail: str, base: _Base | None, current: _Base) -> str | None:
    """Where the write with that trail is, `<seq_no>.<primary_term>`; None: it was never done.

    `base` is what it was to replace, `current` what is there. Raises OutcomeUnknown.
    """
    creator, newest, *older = current.trail.split(",")
    token = trail.split(",")[1]
    known = [f"{newest}@{current.seq_no}.{current.primary_term}", *older]
    last_of = {entry.partition("@")[0]: entry.partition("@")[2] for entry in known}
    if token in last_of:
        return last_of[token]
    if any(other.startswith(_writer(token)) for other in last_of):
        return None  # ours would be that writer's last
    if base is None:
        is_complete = creator != token
    else:
        # All writers whose last write came after the oldest known one are known.
        oldest_seq_no = int(known[-1].partition("@")[2].partition(".")[0])
        is_complete = len(known) < WRITERS_MAX or base.seq_no >= oldest_seq_no
    if is_complete:
        return None
    raise OutcomeUnknown(
        f"{len(known)} others wrote to this document since; nobody can tell whether this write came "
        "before theirs. Next: read it again, then decide"
    )


def open_url(url: StoreUrl, namespace: str, ambient: Ambient) -> OpenSearchStore:
    """Makes the index if it is not there. Raises Invalid, Unavailable."""
    url.check_options("tls", "ca", "verify", "user", "password", "api_key", "replicas")
    index = url.path.strip("/") or "headgate"
    if _INDEX.fullmatch(index) is None:
        raise Invalid(f"{url.shown}: {index!r} is no index; next: use a-z, 0-9 and any of . _ -")
    if not url.hosts:
        raise Invalid(f"{url.shown}: names no host; next: es://HOST[:{PORT}]/{index}")
    name = f"es://{','.join(url.hosts)}/{index}"
    cluster = _Cluster(_nodes(url, ambient), name, index)
    deadline = Deadline(ambient, TIMEOUT_MS)
    try:
        hello = cluster.ask("GET", "", deadline).body
        if not isinstance(hello.get("version"), dict):
            raise Invalid(f"{name}: is neither OpenSearch nor Elasticsearch; next: check the port")
        alias = _opened_index(cluster, index, url.number("replicas", 2), ambient, deadline)
    except HeadgateError:
        cluster.close()
        raise
    # Elasticsearch no longer lets anyone ask for the primary: there, always for the same copy, so
    # that the marks of `wait` do not go back and forth.
    is_opensearch = hello["version"].get("distribution") == "opensearch"
    copy = "_primary" if is_opensearch else ambient.new_id()
    return OpenSearchStore(cluster, alias, copy, namespace, ambient)


def _nodes(url: StoreUrl, ambient: Ambient) -> list[_Connection]:
    """A connection to each host, starting with any: nodes share the load."""
    headers: dict[str, str] = {}
    user, password, api_key = url.options.get("user"), url.secret("password"), url.secret("api_key")
    if api_key is not None:
        headers["authorization"] = f"ApiKey {api_key}"
    elif user is not None and password is not None:
        basic = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        headers["authorization"] = f"Basic {basic}"
    elif user is not None or password is not None:
        raise Invalid(f"{url.shown}: user and password go together; next: give both or neither")
    is_tls = url.truth("tls", "ca" in url.options)
    context = _tls(url) if is_tls else None
    is_local = all(_address(host)[0] in ("localhost", "127.0.0.1", "::1") for host in url.hosts)
    if headers and not is_tls and not is_local:
        log.warning("store.password_in_clear", extra={"store": url.shown, "next": "tls=true"})
    nodes = []
    for host in url.hosts:
        address, port = _address(host)
        node = _Connection(
            host=address,
            port=port,
            use_ssl=is_tls,
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
    }
    request = {
        "settings": {"index": settings},
        "mappings": {"dynamic": "strict", "properties": properties},
        "aliases": {f"{index}.{ambient.new_id()[:12]}": {}},
    }
    for _ in range(OPEN_TRIES):
        found = cluster.ask("GET", index, deadline, expected=(200, 404))
        if found.status == 200:
            aliases = [alias for entry in found.body.values() for alias in entry["aliases"]]
            if len(aliases) == 1 and aliases[0].startswith(f"{index}."):
                return str(aliases[0])
            raise Invalid(
                f"{cluster.name}: this index was not made by Headgate (its aliases: {aliases}); "
                "next: choose another index"
            )
        body = json.dumps(request).encode("ascii")
        made = cluster.ask("PUT", index, deadline, expected=(200, 400), body=body, may_wait=True)
        if made.status == 400 and "resource_already_exists" not in json.dumps(made.body):
            raise cluster.refusal(index, made.status, made.body, is_write=False)
    raise Unavailable(f"{cluster.name}: somebody deletes the index as often as it is made")


def _only_at(base: _Base | None) -> dict[str, str]:
    if base is None:
        return {}
    return {"if_seq_no": str(base.seq_no), "if_primary_term": str(base.primary_term)}


def _writer(token: str) -> str:
    return token.partition("-")[0] + "-"


def _moved(key: str) -> str:
    return f"{key}: this version is not current"


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text  # a proxy's page, say


def _is_untrusted(error: Any) -> bool:
    return any(
        isinstance(cause, ssl.SSLCertVerificationError) for cause in getattr(error, "args", ())
    )
