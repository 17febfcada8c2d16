"""ZooKeeper: the connection to an ensemble, and what becomes of a request. The door to kazoo.

    closed ── start ──▶ waiting ── a server answers ──▶ connected
      ▲                   ▲                               │
      └── close           └── the connection breaks ──────┘

kazoo reconnects by itself, without end; if the session expired meanwhile, it starts a new one. That
makes no difference to documents. Bound to a session are watches, and a lost connection counts as a
ring of every one of them; and the znodes of members, which end with it, as they should. A call
waits for a connection no longer than its time:

    not connected in time                       Unavailable: nothing was sent
    sent or queued, and no answer               a read: Unavailable; a write: OutcomeUnknown
    refused by the server                       Refusal, or None where that is no surprise

When a connection breaks, kazoo fails all that was sent or queued; it sends nothing twice. That a
server is silent, it notices only while nobody asks: it takes a request for a ping, and does not
wait for the answer. So we break a connection that left us without any answer for too long.

A current read (S3) follows an empty transaction, in one round trip: the server cannot answer before
a majority agreed, and then it has caught up with all they acknowledged. ZooKeeper's own `sync` asks
no majority: a leader that was paused and woke up answered it, and with it old state, in most tries.
"""

import logging
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    WriterNotClosedException,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import CREATOR_ALL_ACL

from headgate.ambient import Ambient, Deadline
from headgate.errors import Invalid, OutcomeUnknown, Unavailable
from headgate.store.names import to_plain
from headgate.store.url import StoreUrl
from headgate.store.znodes import Read, Refusal, Ring, Write, Znode, ZooKeeperStore

OPEN_MS = 10_000
SESSION_MS = 30_000  # as long as the term of a node's session: a shorter one would cut it short
RECONNECT_S_MAX = 1.0  # kazoo's longest pause between two tries to connect; its default is a minute

# Requests under way at once. For each, kazoo puts a byte into a socket to wake its thread; Linux
# holds 278 of them, and the next one blocks its caller, without a limit, until they are taken out.
PIPELINE_MAX = 100
QUEUED_MAX = 100
FEW = 4  # that many from each thread are no danger

_REFUSALS = (BadVersionError, NoNodeError, NodeExistsError, NotEmptyError)
_TROUBLE = (KazooException, KazooTimeoutError, RuntimeError)  # RuntimeError: unknown to kazoo
_CHROOT_PART = re.compile(r"(?!\.{1,2}$)[^/\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]+")
_ENDS = (KeeperState.CLOSED, KeeperState.AUTH_FAILED)
_EVENTS = {
    KazooState.CONNECTED: (logging.INFO, "store.connected"),
    KazooState.SUSPENDED: (logging.WARNING, "store.suspended"),
    KazooState.LOST: (logging.WARNING, "store.lost"),
}

_log = logging.getLogger(__name__)
_kazoo_log = _log.getChild("kazoo")
_kazoo_log.setLevel(logging.ERROR)  # it would log bodies and, at DEBUG, the password


class Connection:
    """To one ensemble, for all threads of a store."""

    def __init__(self, client: Any, ambient: Ambient) -> None:
        self._client = client
        self._ambient = ambient
        self._asked_ms: int | None = None  # since when nothing that was asked was answered
        self._hosts = ",".join(f"{host}:{port}" for host, port in client.hosts)
        self._crowd = threading.Lock()  # held by whoever has many requests under way
        self._changing = threading.Lock()
        self._live = threading.Event()
        self._is_closed = False
        self._has_ended = False  # kazoo's thread, at what it did not foresee
        self._session_ms = 0
        self._note_session_ms()
        self._ring: Ring = lambda _: None

    def start(self, ring: Ring) -> None:
        self._ring = ring
        self._client.add_listener(self._on_state)
        self._live = self._client.start_async()

    def close(self) -> None:
        with self._changing:
            if self._is_closed:
                return
            self._is_closed = True
        self._ring(None)
        with suppress(WriterNotClosedException):
            self._client.stop()
            self._client.close()

    def read(
        self,
        deadline: Deadline,
        reads: Sequence[Read],
        *,
        is_current: bool = False,
        is_watched: bool = False,
    ) -> Sequence[Znode | None]:
        watch = self._on_watch if is_watched else None
        found: list[Znode | None] = []
        for start in range(0, len(reads), PIPELINE_MAX):
            chunk = reads[start : start + PIPELINE_MAX]
            with self._room(len(chunk), deadline):
                proof = self._agree() if is_current else None
                asked = [self._ask(what, path, watch) for what, path in chunk]
                if proof is not None:
                    self._answer(proof, deadline)
                answers = [self._answer(one, deadline) for one in asked]
            found += [_znode(what, one) for (what, _), one in zip(chunk, answers, strict=True)]
        return found

    def write(self, deadline: Deadline, writes: Sequence[Write]) -> Sequence[int] | Refusal:
        transaction = self._client.transaction()
        for verb, *arguments in writes:
            getattr(transaction, verb)(*arguments)
        self._connect(deadline)
        try:
            results = self._wait(transaction.commit_async(), deadline)
        except AuthFailedError as error:
            raise self._no_right() from error
        except _TROUBLE as error:
            raise _no_answer(writes[0][1], error) from error
        for index, result in enumerate(results):
            if isinstance(result, NoAuthError):
                raise self._no_right() from result
            if isinstance(result, _REFUSALS):
                is_missing, is_full = (isinstance(result, x) for x in (NoNodeError, NotEmptyError))
                return Refusal(index, is_missing, is_full)
            if isinstance(result, Exception) and not isinstance(result, RolledBackError):
                raise Unavailable(
                    f"{self._hosts}: refused a write ({type(result).__name__}); nothing was written"
                ) from result
        return [getattr(result, "version", 0) for result in results]

    def make(self, deadline: Deadline, paths: Sequence[str]) -> None:
        # Looked first: in a folder of others, making even what is there is refused for its rights.
        there = self.read(deadline, [("stat", path) for path in paths])
        for path, znode in zip(paths, there, strict=True):
            if znode is None:
                with self._room(1, deadline):
                    self._answer(self._client.create_async(path), deadline)

    def remove(self, deadline: Deadline, path: str) -> None:
        with self._room(1, deadline):
            self._answer(self._client.delete_async(path), deadline)

    def touch(self, deadline: Deadline, path: str) -> Znode | None:
        with self._room(1, deadline):
            return _znode("stat", self._answer(self._client.set_async(path, b""), deadline))

    def make_ephemeral(self, deadline: Deadline, prefix: str, data: bytes) -> str | None:
        self._connect(deadline)
        asked = self._client.create_async(prefix, data, ephemeral=True, sequence=True)
        try:
            path: str = self._wait(asked, deadline)
        except NoNodeError:
            return None
        except (NoAuthError, AuthFailedError) as error:
            raise self._no_right() from error
        except _TROUBLE as error:
            raise _no_answer(prefix, error) from error
        return path

    def session(self, deadline: Deadline) -> tuple[int, int]:
        self._connect(deadline)
        known = self._client.client_id
        if known is None or not self._session_ms:
            raise self._out_of_reach()
        return known[0], self._session_ms

    def _note_session_ms(self) -> None:
        """kazoo forgets at once what the ensemble agreed to; it lies between its limits."""
        connection = self._client._connection  # noqa: SLF001 - nothing public tells
        connect = connection._connect  # noqa: SLF001

        def note(*address: Any) -> Any:
            read_ms, connect_ms = connect(*address)
            self._session_ms = round(read_ms * 3 / 2)  # before the first request is sent
            self._asked_ms = None
            return read_ms, connect_ms

        connection._connect = note  # noqa: SLF001

    def _connect(self, deadline: Deadline) -> None:
        if self._has_ended:
            with self._changing:
                if self._has_ended and not self._is_closed:
                    self._has_ended = False
                    self._client.start_async()
        if self._is_closed:
            raise Unavailable(f"{self._hosts}: this store was closed; next: open it again")
        if not self._live.wait(deadline.left_ms() / 1000) or deadline.is_over():
            raise self._out_of_reach()
        # Calls that ran out of time leave theirs in kazoo's queue, while a server takes nothing.
        if len(self._client._queue) > QUEUED_MAX:  # noqa: SLF001 - nothing public tells
            raise self._out_of_reach()

    @contextmanager
    def _room(self, count: int, deadline: Deadline) -> Iterator[None]:
        """Connected, and not too many requests under way. Raises Unavailable."""
        self._connect(deadline)
        if count <= FEW:
            yield
        elif self._crowd.acquire(timeout=deadline.left_ms() / 1000):
            try:
                self._connect(deadline)
                yield
            finally:
                self._crowd.release()
        else:
            raise self._out_of_reach()

    def _agree(self) -> Any:
        transaction = self._client.transaction()
        transaction.check("/", -1)  # even if it is refused, a majority agreed on that
        return transaction.commit_async()

    def _ask(self, what: str, path: str, watch: Callable[[Any], None] | None) -> Any:
        if what == "data":
            return self._client.get_async(path, watch=watch)
        if what == "names":
            return self._client.get_children_async(path, watch=watch, include_data=True)
        return self._client.exists_async(path, watch=watch)

    def _answer(self, asked: Any, deadline: Deadline) -> Any:
        """None if the znode, its parent or its children are not as this request needs them."""
        try:
            return self._wait(asked, deadline)
        except (NoNodeError, NodeExistsError, NotEmptyError):
            return None
        except (NoAuthError, AuthFailedError) as error:
            raise self._no_right() from error
        except _TROUBLE as error:
            raise self._out_of_reach() from error

    def _wait(self, asked: Any, deadline: Deadline) -> Any:
        """Its answer; raises what kazoo does."""
        now_ms = self._ambient.monotonic_ms()
        since_ms = now_ms if self._asked_ms is None else self._asked_ms
        self._asked_ms = since_ms
        try:
            answer = asked.get(timeout=deadline.left_ms() / 1000)
        except KazooTimeoutError:
            # Another thread may have had an answer, or a new connection, meanwhile.
            if self._asked_ms == since_ms:
                self._break_if_silent(since_ms)
            raise
        except KazooException:
            self._asked_ms = None  # an answer, or the connection is broken already
            raise
        self._asked_ms = None
        return answer

    def _break_if_silent(self, since_ms: int) -> None:
        # A third of the session, as kazoo's own limit: the rest is for finding another server.
        if self._ambient.monotonic_ms() - since_ms > self._session_ms / 3:
            self._asked_ms = None
            _log.warning("store.silent", extra={"hosts": self._hosts})
            with suppress(OSError, AttributeError):  # it is closed already
                self._client._connection._socket.shutdown(socket.SHUT_RDWR)  # noqa: SLF001

    def _on_watch(self, event: Any) -> None:
        self._ring(event.path)

    def _on_state(self, state: str) -> None:
        if not self._is_closed:
            self._has_ended = self._client.client_state in _ENDS
            level, event = _EVENTS[state]
            _log.log(level, event, extra={"hosts": self._hosts})

    def _out_of_reach(self) -> Unavailable:
        host, port = self._client.hosts[0]
        return Unavailable(
            f"{self._hosts}: no answer from ZooKeeper in time; nothing was done. "
            f"Next: echo srvr | nc {host} {port}"
        )

    def _no_right(self) -> Invalid:
        return Invalid(
            f"{self._hosts}: wrong user or password, or none: this belongs to somebody else. "
            "Next: export NAME=… and open it with ?user=…&password=${env:NAME} of its owner"
        )


def open_url(url: StoreUrl, namespace: str, ambient: Ambient) -> ZooKeeperStore:
    url.check_options("user", "password", "session_ms", "tls", "ca")
    user, password, ca = url.options.get("user"), url.secret("password"), url.options.get("ca")
    if (user is None) != (password is None):
        raise Invalid(f"{url.shown}: user and password need each other; next: give both, or none")
    if ca is not None and not Path(ca).is_file():
        raise Invalid(f"{url.shown}: option 'ca' names no file; next: ls -l {quote(ca)}")
    chroot = _chroot(url, namespace)
    handler = SequentialThreadingHandler()
    handler.select = _select
    try:
        client = KazooClient(
            hosts=",".join(url.hosts),
            timeout=url.number("session_ms", SESSION_MS) / 1000,
            handler=handler,
            # The server fills in who the creator is, by whatever hash it is set to.
            default_acl=None if user is None else CREATOR_ALL_ACL,
            auth_data=[] if user is None else [("digest", f"{user}:{password}")],
            connection_retry={"max_tries": -1, "max_delay": RECONNECT_S_MAX},
            logger=_kazoo_log,
            use_ssl=url.truth("tls", False),
            ca=ca,
            check_hostname=True,
        )
    except ValueError as error:
        raise Invalid(f"{url.shown}: {error}; next: write zk://HOST:PORT,…/PATH") from error
    root = f"{chroot}/{to_plain(namespace)}"
    store = ZooKeeperStore(Connection(client, ambient), root, ambient)
    try:
        store.list(limit=1, timeout_ms=OPEN_MS)  # somebody answers, and we may read
    except BaseException:
        store.close()
        raise
    return store


def _chroot(url: StoreUrl, namespace: str) -> str:
    chroot = url.path.rstrip("/")
    is_path = all(_CHROOT_PART.fullmatch(part) for part in chroot.split("/")[1:])
    if not is_path or f"{chroot}/{namespace}/".startswith("/zookeeper/"):  # that is its own
        raise Invalid(f"{url.shown}: ZooKeeper takes no path {chroot!a}; next: try /headgate")
    return chroot


def _znode(what: str, answer: Any) -> Znode | None:
    if answer is None:
        return None
    data, names, stat = b"", (), answer
    if what == "data":
        data, stat = answer
    elif what == "names":
        names, stat = answer
    return Znode(
        data,
        names,
        stat.version,
        stat.numChildren,
        stat.mzxid,
        stat.mtime,
        stat.ephemeralOwner,
    )


def _no_answer(path: str, error: Exception) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{path.partition('/!')[0]}: no answer to this write ({type(error).__name__}); it may be "
        "done, or still be done. Next: read it again, then decide"
    )


def _select(
    readable: Sequence[Any], writable: Sequence[Any], _: Sequence[Any], timeout: float | None = None
) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """As kazoo's own, which makes a new epoll each time: a fourth of the time of every request."""
    poll = select.poll()
    for one in readable:
        poll.register(one, select.POLLIN)
    for one in writable:
        poll.register(one, select.POLLOUT)
    ready = {number for number, _ in poll.poll(None if timeout is None else timeout * 1000)}
    return (
        [one for one in readable if one.fileno() in ready],
        [one for one in writable if one.fileno() in ready],
        [],
    )
