"""ZooKeeper: a store in an ensemble that survives the loss of a server. One door to kazoo.

    /CHROOT/NAMESPACE/part/part      a document: sealed body; or only a folder: no data
    …/part/!INCARNATION              its marker, there as long as this document is
    /CHROOT/NAMESPACE/!bells/PART    rung by each write below that first part of a key
    /CHROOT/NAMESPACE/!clock         written to read the ensemble's clock

Parts are written as in files (`names.to_plain`), which never makes a name with `!`.

A znode's own version starts at 0 again when it is made anew, so a client that slept through a
delete and a create could replace a document it never read (S4). Therefore each document has an
incarnation, an id that never comes twice: create makes marker and document in one transaction,
replace and delete require the marker. A version is `INCARNATION:ZNODE-VERSION`.

A write rings its bell in the same transaction; a waiter leaves a watch on the bell and compares its
zxid, the number of the transaction that rang it last. Watches only wake: one that is lost with its
connection is a ring, too. Waiting for everything watches all bells; so a write rings only one.

A read is preceded by a sync in the same breath (S3): a follower may lag behind. What remains is an
old leader that does not know yet that it was deposed: for `syncLimit` ticks it may answer with old
state; compare-and-set is not concerned.

kazoo reconnects and starts new sessions by itself, without end; a call waits for that no longer
than its time. When a connection breaks, kazoo fails what was on its way; it sends nothing twice.
"""

import logging
import re
import select
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
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
from headgate.errors import Conflict, Corrupt, Invalid, OutcomeUnknown, Unavailable
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
from headgate.store.codec import damaged, encode, seal, unseal
from headgate.store.names import Parts, from_plain, parts, prefix_parts, to_plain
from headgate.store.pages import check_limit
from headgate.store.url import StoreUrl
from headgate.store.walk import Folder, Found, Name, Thing, Walk

OPEN_MS = 10_000
SESSION_MS = 10_000
RECONNECT_S_MAX = 1.0  # kazoo's longest pause between two tries to connect; its default is a minute
TRIES_MAX = 10  # of a write that meets neighbours who make or prune the same folders
LOOK_MS_MIN = 250  # a mark takes a round trip, however short its wait

# Reads under way at once. For each request kazoo puts a byte into a socket to wake its thread;
# Linux holds 278 of them, and while there is no connection the next one blocks without a limit.
PIPELINE_MAX = 100

_TROUBLE = (KazooException, KazooTimeoutError, RuntimeError)  # RuntimeError: unknown to kazoo
_VERSION = re.compile(r"([0-9a-f]{32}):(\d{1,10})")
_CHROOT_PART = re.compile(r"(?!\.{1,2}$)[^/\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]+")

_log = logging.getLogger(__name__)
_kazoo_log = _log.getChild("kazoo")
_kazoo_log.setLevel(logging.ERROR)  # kazoo logs bodies, and at DEBUG the password
_EVENTS = {
    KazooState.CONNECTED: (logging.INFO, "store.connected"),
    KazooState.SUSPENDED: (logging.WARNING, "store.suspended"),
    KazooState.LOST: (logging.WARNING, "store.lost"),
}
_ENDS = (KeeperState.CLOSED, KeeperState.AUTH_FAILED)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nothing of a transaction was done: its operation of this index was refused."""

    index: int
    error: Exception


class ZooKeeperStore:
    def __init__(self, client: Any, root: str, ambient: Ambient) -> None:
        """`client` is started here, and stopped by close()."""
        self._client = client
        self._root = root
        self._ambient = ambient
        self._hosts = ",".join(f"{host}:{port}" for host, port in client.hosts)
        self._pipeline = threading.Lock()  # held by whoever has many reads under way
        self._rung = threading.Condition()
        self._rings: dict[str, int] = {}  # by path of the bell; "" is all of them
        self._starting = threading.Lock()
        self._is_closed = False
        self._has_ended = False  # kazoo's thread, at what it did not foresee
        client.add_listener(self._on_state)
        self._live: threading.Event = client.start_async()

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        path = self._path(parts(key))
        deadline = Deadline(self._ambient, timeout_ms)
        (found,) = self._ask(deadline, [partial(self._client.get_async, path)])
        if found is None:
            return None
        data, stat = found
        if data:
            return _document(key, path, data, stat)
        if stat.numChildren and self._is_hollow(path, deadline):
            raise damaged(path, "it is empty")
        return None

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        place, raw = parts(key), encode(key, body)
        path, incarnation = self._path(place), self._ambient.new_id()
        deadline = Deadline(self._ambient, timeout_ms)
        sealed = seal(incarnation, raw)
        folder: int | None = None  # the version of the mere folder that becomes the document
        for _ in range(TRIES_MAX):
            is_new = folder is None
            first = ("create", path, sealed) if is_new else ("set_data", path, sealed, folder)
            done = self._write(place, deadline, first, ("create", f"{path}/!{incarnation}"))
            if not isinstance(done, Refusal):
                return _version(incarnation, 0 if is_new else done[0].version)
            if is_new and isinstance(done.error, NoNodeError):
                self._make([*self._bells(place), *self._folders(place)], deadline)
            else:
                folder = self._folder_version(key, path, deadline)
        raise _gave_up(path)

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        place, raw = parts(key), encode(key, body)
        path = self._path(place)
        incarnation, number = _read_version(key, version)
        done = self._write(
            place,
            Deadline(self._ambient, timeout_ms),
            ("check", f"{path}/!{incarnation}", -1),  # -1: any version, it only has to be there
            ("set_data", path, seal(incarnation, raw), number),
        )
        if isinstance(done, Refusal):
            raise _not_current(key, version) from done.error
        return _version(incarnation, done[1].version)

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        place = parts(key)
        path = self._path(place)
        incarnation, number = _read_version(key, version)
        deadline = Deadline(self._ambient, timeout_ms)
        marker_goes = ("delete", f"{path}/!{incarnation}")
        done = self._write(place, deadline, marker_goes, ("delete", path, number))
        if isinstance(done, Refusal) and isinstance(done.error, NotEmptyError):
            # There are documents below: the znode stays, as their folder.
            done = self._write(place, deadline, marker_goes, ("set_data", path, b"", number))
        if isinstance(done, Refusal):
            raise _not_current(key, version) from done.error
        with suppress(Unavailable):  # the delete is acknowledged, and an empty folder harms nobody
            self._prune(place, deadline)

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        check_limit(limit)
        deadline = Deadline(self._ambient, timeout_ms)
        below, behind = prefix_parts(prefix), prefix_parts(after)
        walk = Walk(partial(self._look, deadline), PIPELINE_MAX)
        start = max(below, behind)
        if start[: len(below)] == below:
            way = [start[:depth] for depth in range(len(below), len(start) + 1)]
            children = partial(partial, self._client.get_children_async)
            lists = self._ask(deadline, [children(self._path(folder)) for folder in way])
            for folder, found in zip(way, lists, strict=True):
                done = start[len(folder)] if len(folder) < len(start) else ""
                walk.enter(_names(folder, found or (), done))
        return walk.page(limit)

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        first = prefix_parts(prefix)[:1]
        bell = self._bell(*first) if first else ""
        deadline = Deadline(self._ambient, timeout_ms)
        while True:  # ends: at the deadline
            with self._rung:
                rings = self._rings.setdefault(bell, 0)
            mark = self._mark(bell, Deadline(self._ambient, max(deadline.left_ms(), LOOK_MS_MIN)))
            if since is None or mark != since:
                return mark
            with self._rung:
                has_rung = partial(self._has_rung, bell, rings)
                self._rung.wait_for(has_rung, timeout=deadline.left_ms() / 1000)
            if deadline.is_over():
                return mark

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        deadline = Deadline(self._ambient, timeout_ms)
        clock = f"{self._root}/!clock"
        for _ in range(TRIES_MAX):
            self._connect(deadline)
            stat = self._answer(self._client.set_async(clock, b""), deadline)
            if stat is not None:
                return int(stat.mtime)
            self._make([*_lineage(self._root), clock], deadline)
        raise _gave_up(clock)

    def close(self) -> None:
        with self._starting:
            if self._is_closed:
                return
            self._is_closed = True
        self._ring(None)
        with suppress(WriterNotClosedException):
            self._client.stop()
            self._client.close()

    def _path(self, place: Parts) -> str:
        return "/".join([self._root, *map(to_plain, place)])

    def _bell(self, first: str) -> str:
        return f"{self._root}/!bells/{to_plain(first)}"

    def _bells(self, place: Parts) -> Sequence[str]:
        return [*_lineage(self._root), f"{self._root}/!bells", self._bell(place[0])]

    def _folders(self, place: Parts) -> Sequence[str]:
        return [self._path(place[:depth]) for depth in range(1, len(place))]

    def _connect(self, deadline: Deadline) -> None:
        """Waits for a connection. Raises Unavailable."""
        if self._has_ended:
            with self._starting:
                if self._has_ended and not self._is_closed:
                    self._has_ended = False
                    self._client.start_async()
        if self._is_closed:
            raise Unavailable(f"{self._hosts}: this store was closed; next: open it again")
        if not self._live.wait(deadline.left_ms() / 1000) or deadline.is_over():
            raise self._out_of_reach()

    def _ask(self, deadline: Deadline, requests: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        """Answers to a few reads, in one round trip; None where there is no znode.

        They show every write acknowledged before. Raises Unavailable, Invalid (no right).
        """
        self._connect(deadline)
        under_way = [self._client.sync_async(self._root), *(request() for request in requests)]
        return [self._answer(one, deadline) for one in under_way][1:]

    def _ask_many(self, deadline: Deadline, requests: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        for start in range(0, len(requests), PIPELINE_MAX):
            if not self._pipeline.acquire(timeout=deadline.left_ms() / 1000):
                raise self._out_of_reach()
            try:
                answers = self._ask(deadline, requests[start : start + PIPELINE_MAX])
            finally:
                self._pipeline.release()
            yield from answers

    def _answer(self, under_way: Any, deadline: Deadline) -> Any:
        """None if the znode, its parent or its children are not as this request needs them."""
        try:
            return under_way.get(timeout=deadline.left_ms() / 1000)
        except (NoNodeError, NodeExistsError, NotEmptyError):
            return None
        except (NoAuthError, AuthFailedError) as error:
            raise self._no_right() from error
        except _TROUBLE as error:
            raise self._out_of_reach() from error

    def _write(
        self, place: Parts, deadline: Deadline, *operations: tuple[Any, ...]
    ) -> Sequence[Any] | Refusal:
        """All of the operations, and the bell, or none. Raises Unavailable, OutcomeUnknown."""
        for _ in range(TRIES_MAX):
            self._connect(deadline)
            transaction = self._client.transaction()
            for verb, *arguments in (*operations, ("set_data", self._bell(place[0]), b"")):
                getattr(transaction, verb)(*arguments)
            try:
                results = transaction.commit_async().get(timeout=deadline.left_ms() / 1000)
            except (NoAuthError, AuthFailedError) as error:
                raise self._no_right() from error
            except _TROUBLE as error:
                raise OutcomeUnknown(
                    f"{self._path(place)}: no answer to this write ({type(error).__name__}); it "
                    "may be done, or still be done. Next: read it again, then decide"
                ) from error
            refusal = _refusal(results)
            if refusal is None:
                return list(results)
            if isinstance(refusal.error, NoAuthError):
                raise self._no_right() from refusal.error
            if refusal.index < len(operations):
                return refusal
            self._make(self._bells(place), deadline)
        raise _gave_up(self._path(place))

    def _make(self, folders: Sequence[str], deadline: Deadline) -> None:
        """Makes those that are missing; each one's parent comes before it."""
        # Looked first: in a folder of others, making even what is there is refused for its rights.
        exists = partial(partial, self._client.exists_async)
        there = self._ask(deadline, [exists(folder) for folder in folders])
        missing = [folder for folder, stat in zip(folders, there, strict=True) if stat is None]
        self._connect(deadline)
        for under_way in [self._client.create_async(folder) for folder in missing]:
            self._answer(under_way, deadline)

    def _prune(self, place: Parts, deadline: Deadline) -> None:
        """Removes the folders that a delete left empty. A document has its marker, and stays."""
        folders = [self._path(place), *reversed(self._folders(place))]
        exists = partial(partial, self._client.exists_async)
        stats = self._ask(deadline, [exists(folder) for folder in folders])
        children = 0
        for folder, stat in zip(folders, stats, strict=True):
            if stat is None:
                continue
            if stat.numChildren > children:
                return
            self._answer(self._client.delete_async(folder), deadline)
            children = 1  # in the next one: this folder

    def _folder_version(self, key: str, path: str, deadline: Deadline) -> int | None:
        """The version of a mere folder, None if nothing is there. Raises Conflict: a document."""
        (found,) = self._ask(deadline, [partial(self._client.get_async, path)])
        if found is None:
            return None
        data, stat = found
        if data or (stat.numChildren and self._is_hollow(path, deadline)):
            raise Conflict(f"{key}: is there already")
        return int(stat.version)

    def _is_hollow(self, path: str, deadline: Deadline) -> bool:
        """Is this a document that lost its data? Its marker, there before and after, says so."""
        children = partial(self._client.get_children_async, path)
        data = partial(self._client.get_async, path)
        before, found, after = self._ask(deadline, [children, data, children])
        markers = {name for name in before or () if name.startswith("!")}
        return found is not None and not found[0] and not markers.isdisjoint(after or ())

    def _look(
        self, deadline: Deadline, things: Sequence[Name | Folder]
    ) -> Iterable[Iterator[Thing]]:
        requests: list[Callable[[], Any]] = []
        for thing in things:
            read = (
                self._client.get_async
                if isinstance(thing, Name)
                else self._client.get_children_async
            )
            requests.append(partial(read, self._path(thing.place)))
        answers = list(self._ask_many(deadline, requests))
        for thing, answer in zip(things, answers, strict=True):
            if answer is None:
                yield iter(())  # gone since
            elif isinstance(thing, Name):
                yield self._unfold(thing.place, *answer)
            else:
                yield self._enter(thing, answer, deadline)

    def _unfold(self, place: Parts, data: bytes, stat: Any) -> Iterator[Thing]:
        key = _key(place)
        if data and key is not None:
            path = self._path(place)
            try:
                yield Found(_document(key, path, data, stat), len(data))
            except Corrupt as error:
                yield Found(Damaged(key, path, str(error)), len(data))
        count = stat.numChildren - (1 if data else 0)  # less its marker
        if count > 0:
            yield Folder(place, count, is_document=bool(data))

    def _enter(
        self, folder: Folder, children: Sequence[str], deadline: Deadline
    ) -> Iterator[Thing]:
        has_marker = any(name.startswith("!") for name in children)
        key, path = _key(folder.place), self._path(folder.place)
        if has_marker and not folder.is_document and key is not None:  # noqa: SIM102 - costs a look
            if self._is_hollow(path, deadline):
                yield Found(Damaged(key, path, str(damaged(path, "it is empty"))), 0)
        yield from _names(folder.place, children, "")

    def _mark(self, bell: str, deadline: Deadline) -> Mark:
        """The zxid of the last ring, with a watch left for the next one."""
        bells = [bell]
        if not bell:
            folder = f"{self._root}/!bells"
            children = partial(self._client.get_children_async, folder, watch=self._on_ring)
            (names,) = self._ask(deadline, [children])
            # No folder: nothing was ever written, and the watch is for that.
            bells = [folder] if names is None else [f"{folder}/{name}" for name in names]
        exists = partial(partial, self._client.exists_async, watch=self._on_ring)
        stats = self._ask_many(deadline, [exists(one) for one in bells])
        return Mark(str(max((stat.mzxid for stat in stats if stat is not None), default=0)))

    def _on_ring(self, event: Any) -> None:
        self._ring(event.path)

    def _ring(self, bell: str | None) -> None:
        """None: the connection is lost, and every watch with it."""
        with self._rung:
            for waited in self._rings:
                if bell is None or waited in (bell, ""):
                    self._rings[waited] += 1
            self._rung.notify_all()

    def _has_rung(self, bell: str, rings: int) -> bool:
        return self._rings[bell] != rings

    def _on_state(self, state: str) -> None:
        level, event = _EVENTS[state]
        if not self._is_closed:
            self._has_ended = self._client.client_state in _ENDS
            _log.log(level, event, extra={"hosts": self._hosts})

    def _out_of_reach(self) -> Unavailable:
        host, port = self._client.hosts[0]
        return Unavailable(
            f"{self._hosts}: no answer from ZooKeeper in time; nothing was done. "
            f"Next: echo srvr | nc {host} {port}"
        )

    def _no_right(self) -> Invalid:
        return Invalid(
            f"{self._hosts}: wrong user or password: {self._root} belongs to somebody else. "
            "Next: export NAME=… and open it with ?user=…&password=${env:NAME} of its owner"
        )


def open_url(url: StoreUrl, namespace: str, ambient: Ambient) -> ZooKeeperStore:
    url.check_options("user", "password", "session_ms", "tls", "ca")
    user, password, ca = url.options.get("user"), url.secret("password"), url.options.get("ca")
    if (user is None) != (password is None):
        raise Invalid(f"{url.shown}: user and password need each other; next: give both, or none")
    if ca is not None and not Path(ca).is_file():
        raise Invalid(f"{url.shown}: option 'ca' names no file; next: ls -l {ca}")
    handler = SequentialThreadingHandler()
    handler.select = _select
    try:
        client = KazooClient(
            hosts=",".join(url.hosts),
            timeout=url.number("session_ms", SESSION_MS) / 1000,
            handler=handler,
            # The server fills in who "creator" is, by whatever hash it is set to.
            default_acl=None if user is None else CREATOR_ALL_ACL,
            auth_data=[] if user is None else [("digest", f"{user}:{password}")],
            connection_retry={"max_tries": -1, "max_delay": RECONNECT_S_MAX},
            logger=_kazoo_log,
            use_ssl=url.truth("tls", False),
            ca=ca,
            check_hostname=True,
        )
    except ValueError as error:
        raise Invalid(f"{url.shown}: {error}; next: write zk://HOST:PORT,HOST:PORT/PATH") from error
    store = ZooKeeperStore(client, f"{_chroot(url)}/{to_plain(namespace)}", ambient)
    try:
        store.list(limit=1, timeout_ms=OPEN_MS)  # somebody answers, and we may read
    except BaseException:
        store.close()
        raise
    return store


def _chroot(url: StoreUrl) -> str:
    chroot = url.path.rstrip("/")
    is_path = all(_CHROOT_PART.fullmatch(part) for part in chroot.split("/")[1:])
    if not is_path or f"{chroot}/".startswith("/zookeeper/"):
        raise Invalid(
            f"{url.shown}: {chroot!r} is no path that ZooKeeper takes; next: try /headgate"
        )
    return chroot


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


def _document(key: str, path: str, data: bytes, stat: Any) -> Document:
    incarnation, body = unseal(data, path)
    return Document(key, body, _version(incarnation, stat.version))


def _version(incarnation: str, number: int) -> Version:
    return Version(f"{incarnation}:{number}")


def _read_version(key: str, version: Version) -> tuple[str, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise _not_current(key, version)
    return found[1], int(found[2])


def _not_current(key: str, version: Version) -> Conflict:
    return Conflict(f"{key}: version {version} is not current")


def _gave_up(path: str) -> Unavailable:
    return Unavailable(f"{path}: gave up after {TRIES_MAX} tries, nothing was written")


def _refusal(results: Sequence[Any]) -> Refusal | None:
    for index, result in enumerate(results):
        if isinstance(result, Exception) and not isinstance(result, RolledBackError):
            return Refusal(index, result)
    return None


def _lineage(path: str) -> Sequence[str]:
    """/a, /a/b, /a/b/c"""
    steps = path.split("/")
    return ["/".join(steps[: depth + 1]) for depth in range(1, len(steps))]


def _names(folder: Parts, children: Iterable[str], done: str) -> Iterator[Thing]:
    """Our names among them, behind `done`, in order; what we never write is a stranger's."""
    ours = (part for part in map(from_plain, children) if part is not None and part > done)
    return map(Name, ((*folder, part) for part in sorted(ours)))


def _key(place: Parts) -> str | None:
    """None: it is too long for a key, so a stranger's."""
    try:
        return spelling.key(*place)
    except Invalid:
        return None
