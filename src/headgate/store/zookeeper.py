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

kazoo reconnects and starts new sessions by itself, without end; a call waits for that no longer than
its time. kazoo fails what was on its way when a connection breaks, and sends nothing twice.
"""

import logging
import re
import select
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
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

OPEN_MS = 10_000
SESSION_MS = 10_000
RECONNECT_S_MAX = 1  # kazoo's pause between two tries to connect; its own default is a minute

TRIES_MAX = 10  # of a write that met a neighbour who makes or prunes the same folders
LOOK_MS_MIN = 250  # a mark takes a round trip, however short its wait
PAGE_BYTES_MAX = 16_000_000

# Requests under way at once. kazoo wakes its thread by a byte in a socket for each; Linux holds 278
# of them, and the next one blocks its caller, without a time limit, while there is no connection.
PIPELINE_MAX = 100

_TROUBLE = (KazooException, KazooTimeoutError, RuntimeError)  # RuntimeError: an unknown error code

_VERSION = re.compile(r"([0-9a-f]{32}):(\d{1,10})")
_CHROOT = re.compile(r"(?:/[^/\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]+)*")

_log = logging.getLogger(__name__)
_kazoo_log = _log.getChild("kazoo")
_kazoo_log.setLevel(logging.ERROR)  # below that it writes bodies, at DEBUG even the password


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The first operation of a transaction that was refused, and so nothing was done."""

    index: int
    error: Exception


@dataclass(frozen=True, slots=True)
class _Name:
    """Listed: a znode of which only the name is known yet."""

    parts: Parts


@dataclass(frozen=True, slots=True)
class _Folder:
    """Listed: there are names below, not known yet."""

    parts: Parts
    count: int
    is_document: bool


@dataclass(frozen=True, slots=True)
class _Ready:
    found: Document | Damaged
    size_bytes: int


class _Ahead:
    """What is still to be listed, in order; each thing is looked at only when its turn comes."""

    def __init__(self) -> None:
        self._levels: list[Iterator[_Name | _Folder | _Ready]] = []

    def put(self, things: Iterator[_Name | _Folder | _Ready]) -> None:
        """These come next."""
        self._levels.append(things)

    def take(self) -> _Name | _Folder | _Ready | None:
        while self._levels:  # ends: each turn removes a level
            for thing in self._levels[-1]:
                return thing
            self._levels.pop()
        return None


class ZooKeeperStore:
    def __init__(self, client: Any, root: str, ambient: Ambient) -> None:
        """`client` is started here and stopped by close()."""
        self._client = client
        self._root = root
        self._ambient = ambient
        self._hosts = ",".join(f"{host}:{port}" for host, port in client.hosts)
        self._pipeline = threading.Lock()  # held by whoever has many requests under way
        self._rung = threading.Condition()
        self._rings: dict[str, int] = {}  # by bell
        self._starting = threading.Lock()
        self._is_closed = False
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
        folder_version: int | None = None  # of the folder that becomes the document
        for _ in range(TRIES_MAX):
            first = (
                ("create", path, sealed)
                if folder_version is None
                else ("set_data", path, sealed, folder_version)
            )
            done = self._write(place, deadline, first, ("create", f"{path}/!{incarnation}"))
            if not isinstance(done, _Refusal):
                return _version(incarnation, 0 if folder_version is None else folder_version + 1)
            if folder_version is None and isinstance(done.error, NoNodeError):
                self._make(self._folders(place), deadline)
            else:
                folder_version = self._folder_version(key, path, deadline)
        raise self._gave_up(key)

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        place, raw = parts(key), encode(key, body)
        path = self._path(place)
        incarnation, number = _read_version(key, version)
        done = self._write(
            place,
            Deadline(self._ambient, timeout_ms),
            ("check", f"{path}/!{incarnation}", -1),  # -1: it exists
            ("set_data", path, seal(incarnation, raw), number),
        )
        if isinstance(done, _Refusal):
            raise _not_current(key, version) from done.error
        return _version(incarnation, done[1].version)

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        place = parts(key)
        path = self._path(place)
        incarnation, number = _read_version(key, version)
        deadline = Deadline(self._ambient, timeout_ms)
        marker_goes = ("delete", f"{path}/!{incarnation}")
        done = self._write(place, deadline, marker_goes, ("delete", path, number))
        if isinstance(done, _Refusal) and isinstance(done.error, NotEmptyError):
            # Documents below: the znode stays, as their folder.
            done = self._write(place, deadline, marker_goes, ("set_data", path, b"", number))
        if isinstance(done, _Refusal):
            raise _not_current(key, version) from done.error
        with suppress(Unavailable):  # the delete is acknowledged; an empty folder harms nobody
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
        ahead = self._ahead(prefix_parts(prefix), prefix_parts(after), deadline)
        found: list[Document | Damaged] = []
        size_bytes = 0
        is_last = False
        while len(found) <= limit and size_bytes < PAGE_BYTES_MAX and not is_last:
            thing = ahead.take()
            if isinstance(thing, _Ready):
                found.append(thing.found)
                size_bytes += thing.size_bytes
            elif thing is None:
                is_last = True
            else:
                ahead.put(iter([thing]))
                self._look_ahead(ahead, limit + 1 - len(found), deadline)
        page = found[:limit]
        return Page(
            tuple(one for one in page if isinstance(one, Document)),
            tuple(one for one in page if isinstance(one, Damaged)),
            None if is_last else page[-1].key,
        )

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        bell = "".join(map(self._bell, prefix_parts(prefix)[:1]))  # empty: all of them
        deadline = Deadline(self._ambient, timeout_ms)
        while True:  # ends: at the deadline
            with self._rung:
                rings = self._rings.setdefault(bell, 0)
            mark = self._mark(bell, Deadline(self._ambient, max(deadline.left_ms(), LOOK_MS_MIN)))
            if since is None or mark != since or deadline.is_over():
                return mark
            with self._rung:
                self._rung.wait_for(
                    lambda: self._rings[bell] != rings,  # noqa: B023 - called in this turn only
                    timeout=deadline.left_ms() / 1000,
                )
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
        raise self._gave_up("!clock")

    def close(self) -> None:
        with self._starting:
            if self._is_closed:
                return
            self._is_closed = True
        with suppress(WriterNotClosedException):
            self._client.stop()
            self._client.close()
        self._ring(None)

    # Paths

    def _path(self, place: Parts) -> str:
        return "/".join([self._root, *map(to_plain, place)])

    def _bell(self, first: str) -> str:
        return f"{self._root}/!bells/{to_plain(first)}"

    def _folders(self, place: Parts) -> list[str]:
        """All that must be there before a document is written, the outermost first."""
        bells = [f"{self._root}/!bells", self._bell(place[0])]
        folders = [self._path(place[:depth]) for depth in range(1, len(place))]
        return [*_lineage(self._root), *bells, *folders]

    # Talking to the server

    def _connect(self, deadline: Deadline) -> None:
        """Waits for a connection. Raises Unavailable."""
        if not self._live.is_set():
            with self._starting:
                # kazoo ends its thread after what it did not foresee, and would stay down.
                if self._client.client_state == KeeperState.CLOSED and not self._is_closed:
                    self._client.start_async()
        if self._is_closed:
            raise Unavailable(f"{self._hosts}: this store was closed; next: open it again")
        if not self._live.wait(deadline.left_ms() / 1000) or deadline.is_over():
            raise self._out_of_reach()

    def _ask(self, deadline: Deadline, requests: Sequence[Callable[[], Any]]) -> list[Any]:
        """Answers to a few reads, in one round trip; None where there is no znode.

        They show every write acknowledged before. Raises Unavailable, Invalid (no rights).
        """
        self._connect(deadline)
        under_way = [self._client.sync_async(self._root), *(request() for request in requests)]
        return [self._answer(one, deadline) for one in under_way][1:]

    def _ask_many(self, deadline: Deadline, requests: Sequence[Callable[[], Any]]) -> list[Any]:
        answers: list[Any] = []
        for start in range(0, len(requests), PIPELINE_MAX):
            if not self._pipeline.acquire(timeout=deadline.left_ms() / 1000):
                raise self._out_of_reach()
            try:
                answers += self._ask(deadline, requests[start : start + PIPELINE_MAX])
            finally:
                self._pipeline.release()
        return answers

    def _answer(self, under_way: Any, deadline: Deadline) -> Any:
        try:
            return under_way.get(timeout=deadline.left_ms() / 1000)
        except NoNodeError:
            return None
        except (NoAuthError, AuthFailedError) as error:
            raise self._no_right() from error
        except _TROUBLE as error:
            raise self._out_of_reach() from error

    def _write(
        self, place: Parts, deadline: Deadline, *operations: tuple[Any, ...]
    ) -> Sequence[Any] | _Refusal:
        """All of the operations, and the bell, or none. Raises Unavailable, OutcomeUnknown."""
        for _ in range(TRIES_MAX):
            self._connect(deadline)
            transaction = self._client.transaction()
            for verb, *arguments in (*operations, ("set_data", self._bell(place[0]), b"")):
                getattr(transaction, verb)(*arguments)
            try:
                results = transaction.commit_async().get(timeout=deadline.left_ms() / 1000)
            except AuthFailedError as error:
                raise self._no_right() from error
            except _TROUBLE as error:
                raise OutcomeUnknown(
                    f"{self._path(place)}: no answer to this write ({type(error).__name__}); "
                    "it may be done, or still be done. Next: read it again, then decide"
                ) from error
            refusal = _refusal(results)
            if refusal is None:
                return list(results)
            if isinstance(refusal.error, NoAuthError):
                raise self._no_right() from refusal.error
            if refusal.index < len(operations):
                return refusal
            self._make(self._folders(place)[: -len(place) + 1 or None], deadline)
        raise self._gave_up(self._path(place))

    def _make(self, folders: Sequence[str], deadline: Deadline) -> None:
        """Makes those that are missing; their parents come before them."""
        # Asked first: where we may not create, even what is there would be refused.
        exist = [partial(self._client.exists_async, folder) for folder in folders]
        there = self._ask(deadline, exist)
        missing = [folder for folder, stat in zip(folders, there, strict=True) if stat is None]
        self._connect(deadline)
        for under_way in [self._client.create_async(folder) for folder in missing]:
            with suppress(NodeExistsError):
                self._answer(under_way, deadline)

    def _prune(self, place: Parts, deadline: Deadline) -> None:
        """Removes the folders that a delete left empty; a document has its marker and stays."""
        folders = [self._path(place[:depth]) for depth in range(len(place), 0, -1)]
        stats = self._ask(deadline, [partial(self._client.exists_async, one) for one in folders])
        children = 0
        for folder, stat in zip(folders, stats, strict=True):
            if stat is None:
                continue
            if stat.numChildren > children:
                return
            with suppress(NotEmptyError):
                self._answer(self._client.delete_async(folder), deadline)
            children = 1  # above, this folder was the only one

    def _folder_version(self, key: str, path: str, deadline: Deadline) -> int | None:
        """The version of the mere folder at this path. Raises Conflict if a document is there."""
        (found,) = self._ask(deadline, [partial(self._client.get_async, path)])
        if found is None:
            return None
        data, stat = found
        if data or (stat.numChildren and self._is_hollow(path, deadline)):
            raise Conflict(f"{key}: is there already")
        return int(stat.version)

    def _is_hollow(self, path: str, deadline: Deadline) -> bool:
        """Is this a document that lost its data? A marker that stays while we look says so."""
        children = partial(self._client.get_children_async, path)
        before, found, after = self._ask(
            deadline, [children, partial(self._client.get_async, path), children]
        )
        markers = {name for name in before or () if name.startswith("!")}
        return found is not None and not found[0] and not markers.isdisjoint(after or ())

    # Listing

    def _ahead(self, below: Parts, after: Parts, deadline: Deadline) -> _Ahead:
        """All that comes behind `after`: read are the child lists on the way to it."""
        ahead = _Ahead()
        start = max(below, after)
        if start[: len(below)] != below:
            return ahead
        way = [start[:depth] for depth in range(len(below), len(start) + 1)]
        lists = self._ask_many(
            deadline, [partial(self._client.get_children_async, self._path(one)) for one in way]
        )
        for folder, children in zip(way, lists, strict=True):
            done = start[len(folder)] if len(folder) < len(start) else ""
            ahead.put(_names(folder, children or (), done))
        return ahead

    def _look_ahead(self, ahead: _Ahead, room: int, deadline: Deadline) -> None:
        """Asks about what comes next, about `room` documents of it, in one round trip."""
        things: list[_Name | _Folder | _Ready] = []
        requests: list[Callable[[], Any]] = []
        while room > 0 and len(requests) < PIPELINE_MAX and (thing := ahead.take()) is not None:
            things.append(thing)
            if isinstance(thing, _Name):
                requests.append(partial(self._client.get_async, self._path(thing.parts)))
            elif isinstance(thing, _Folder):
                path = self._path(thing.parts)
                requests.append(partial(self._client.get_children_async, path))
            room -= thing.count if isinstance(thing, _Folder) else 1
        answers = iter(self._ask_many(deadline, requests))
        looked: list[Iterator[_Name | _Folder | _Ready]] = []
        for thing in things:
            if isinstance(thing, _Name):
                looked.append(self._seen(thing.parts, next(answers)))
            elif isinstance(thing, _Folder):
                children = next(answers) or ()
                if not thing.is_document and any(name.startswith("!") for name in children):
                    looked.append(self._hollow(thing.parts, deadline))
                looked.append(_names(thing.parts, children, ""))
            else:
                looked.append(iter([thing]))
        ahead.put(chain.from_iterable(looked))

    def _seen(self, place: Parts, answer: Any) -> Iterator[_Name | _Folder | _Ready]:
        if answer is None:
            return  # gone since
        data, stat = answer
        if data:
            path = self._path(place)
            with suppress(Invalid):  # too long for a key: a stranger's
                key = spelling.key(*place)
                try:
                    yield _Ready(_document(key, path, data, stat), len(data))
                except Corrupt as error:
                    yield _Ready(Damaged(key, path, str(error)), len(data))
        count = stat.numChildren - (1 if data else 0)  # a document's marker is no name
        if count > 0:
            yield _Folder(place, count, bool(data))

    def _hollow(self, place: Parts, deadline: Deadline) -> Iterator[_Ready]:
        path = self._path(place)
        if place and self._is_hollow(path, deadline):
            reason = str(damaged(path, "it is empty"))
            yield _Ready(Damaged(spelling.key(*place), path, reason), 0)

    # Waiting

    def _mark(self, bell: str, deadline: Deadline) -> Mark:
        """The zxid of the last write that rang, with a watch left for the next one."""
        bells = [bell]
        if not bell:
            folder = f"{self._root}/!bells"
            request = partial(self._client.get_children_async, folder, watch=self._on_ring)
            (children,) = self._ask(deadline, [request])
            bells = [f"{folder}/{name}" for name in children or ()]
            if children is None:
                bells = [folder]  # nothing was ever written: watch for the first time
        stats = self._ask_many(
            deadline,
            [partial(self._client.exists_async, one, watch=self._on_ring) for one in bells],
        )
        return Mark(str(max((stat.mzxid for stat in stats if stat is not None), default=0)))

    def _on_ring(self, event: Any) -> None:
        self._ring(event.path)

    def _ring(self, bell: str | None) -> None:
        """None: the connection was lost, and every watch with it."""
        with self._rung:
            for waited in self._rings:
                if bell is None or waited in (bell, ""):
                    self._rings[waited] += 1
            self._rung.notify_all()

    def _on_state(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            _log.info("store.connected", extra={"hosts": self._hosts})
        elif not self._is_closed:
            _log.warning(f"store.{state.lower()}", extra={"hosts": self._hosts})  # noqa: G004

    # Errors

    def _out_of_reach(self) -> Unavailable:
        host, port = self._client.hosts[0]
        return Unavailable(
            f"{self._hosts}: no answer from ZooKeeper in time; nothing was done. "
            f"Next: echo srvr | nc {host} {port}"
        )

    def _gave_up(self, what: str) -> Unavailable:
        return Unavailable(f"{what}: gave up after {TRIES_MAX} tries, nothing was written")

    def _no_right(self) -> Invalid:
        return Invalid(
            f"{self._hosts}: wrong user or password for {self._root}, which was made by another "
            "user. Next: set user=NAME&password=${env:NAME} as whoever made it"
        )
