"""OpenSearch: the connection to a cluster, and what becomes of a request. One door to its client.

It serves Elasticsearch, too: only plain requests are used that both understand. One node is asked
until it fails, then the next. A write is sent once: only a node that refused the connection hands
it on; with the client's own retries it would come back as a conflict with itself.

    refused, or no time left before it was sent    Unavailable: nothing was done
    sent, and no answer                            a read: the next node; a write: OutcomeUnknown
    5xx                                            as no answer: the primary may have died after it
    429, a block on the index                      Unavailable, with what lifts it
    401, 403, an untrusted certificate             Invalid
"""

import base64
import json
import logging
import re
import ssl
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from opensearchpy import Urllib3HttpConnection
from opensearchpy.exceptions import ConnectionError as Broken
from urllib3 import Timeout
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from headgate.ambient import Ambient, Deadline
from headgate.errors import HeadgateError, Invalid, OutcomeUnknown, Unavailable
from headgate.store import TIMEOUT_MS
from headgate.store.indexed import Answer, OpenSearchStore
from headgate.store.url import StoreUrl

log = logging.getLogger(__name__)

PORT = 9200
CONNECTIONS_MAX = 32  # kept open to each node
CONNECT_MS_MAX = 2_000  # a machine that is gone does not even refuse; the next one may answer
SERVER_SHARE = 0.8  # of our time: the server gives up before we do, and can still say so
OPEN_TRIES = 3

_NOT_SENT = (NewConnectionError, ConnectTimeoutError)
_ANY_STATUS = range(300, 600)
_BLOCKS = {"/5/": "read_only", "/8/": "write", "/12/": "read_only_allow_delete"}
_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")


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
    ) -> Answer:
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
                    # For each part of an answer: one that trickles in may take longer in all.
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
            answer = Answer(turn, status, _loaded(text), len(text))
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
        if status == 429 and not is_write:
            return Unavailable(f"{told}. Nothing was done: the cluster has too much to do")
        if 400 <= status < 500 and status not in (408, 429):
            return Invalid(told)
        # 429 and 503, too: the primary may have died after it took the write; what answers is then
        # the cluster's own repetition of it, refused or waited for in vain.
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
    generation = re.compile(rf"{re.escape(index)}\.[0-9a-f]{{12}}")
    for _ in range(OPEN_TRIES):
        found = cluster.ask("GET", index, deadline, expected=(200, 404))
        if found.status == 200:
            aliases = [alias for entry in found.body.values() for alias in entry["aliases"]]
            ours = [alias for alias in aliases if generation.fullmatch(alias)]
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
