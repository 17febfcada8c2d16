"""Znodes: how documents, versions and wake-ups are laid out in ZooKeeper.

    /CHROOT/NAMESPACE/part/part      a document: its sealed body; or a mere folder: no data
    …/part/!INCARNATION              its marker, there as long as this document is
    /CHROOT/NAMESPACE/!bells/PART    rung by every write below that first part of a key
    /CHROOT/NAMESPACE/!clock         written to read the ensemble's clock
    /CHROOT/NAMESPACE/!members/m-N   a member: ends with the ZooKeeper session that made it

Parts are spelled as in files (`names.to_plain`), which never makes a `!`. Other names that it never
makes are strangers' and are let alone.

**Version:** `INCARNATION:NUMBER`. The number is the znode's own, and starts at 0 again when the
znode is made anew: whoever slept through a delete and a create could replace a document that it
never read (S4). Therefore each document has an incarnation, an id that never comes twice. create
makes document and marker in one transaction; replace and delete are refused without the marker.

**Folders** are made when they are needed and pruned when a delete left them empty. Whoever comes in
between is refused, and tries again. A folder that becomes a document is *pinned* meanwhile, by a
child `!~INCARNATION`: were it pruned and made anew by somebody as a document, its version could be
the same again, and two creates would succeed.

**Bells.** A write rings its bell in its own transaction. The mark of a wait is the zxid, the number
of the transaction that rang last; a waiter leaves a watch on the bell, and then looks at the mark:
watches only wake. Waiting for everything watches all bells, so that a write rings no second one.

**Members** are ephemeral sequential znodes: ZooKeeper gives the number, and never gives it again as
long as their folder is there; nobody removes it. Their data, `{"node": …, "session": …}`, is for
people, and for finding one whose making was not answered.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, TypeAlias

from headgate.ambient import Ambient, Deadline
from headgate.errors import Conflict, Corrupt, Invalid, Unavailable
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
from headgate.store.walk import Folder, Found, Name, Thing, Walk

TRIES_MAX = 10  # of a write that meets neighbours who make or prune the same folders
LOOK_MS_MIN = 250  # a mark takes a round trip, however short its wait
BATCH_MAX = 100  # znodes that a listing asks about in one round trip

_VERSION = re.compile(r"([0-9a-f]{32}):([0-9]{1,10})")
_NUMBER_MAX = 2**31 - 1  # what does not fit into a request would end the client's thread
_MARKER = re.compile(r"![0-9a-f]{32}")
_MEMBER = re.compile(r"m-(-?[0-9]{10})")

Read: TypeAlias = tuple[Literal["data", "names", "stat"], str]
Write: TypeAlias = (
    tuple[Literal["create", "delete"], str]
    | tuple[Literal["check", "delete"], str, int]
    | tuple[Literal["create", "set_data"], str, bytes]
    | tuple[Literal["set_data"], str, bytes, int]
)
Ring: TypeAlias = Callable[[str | None], None]
"""Told the path whose watch fired, or None: the connection is lost, and every watch with it."""


@dataclass(frozen=True, slots=True)
class Znode:
    data: bytes  # only if asked for
    names: Sequence[str]  # of its children, only if asked for
    version: int
    count: int  # of its children
    zxid: int  # of its last change
    changed_at_ms: int
    owner: int  # the ZooKeeper session that it ends with; 0: none


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nothing of a transaction was done: its write of this index was refused."""

    index: int
    is_missing: bool  # the znode, or the parent of a new one
    is_full: bool  # has children, and so cannot be deleted


class Ensemble(Protocol):
    """All raise Unavailable, and Invalid if we have no right."""

    def start(self, ring: Ring) -> None: ...

    def close(self) -> None: ...

    def read(
        self,
        deadline: Deadline,
        reads: Sequence[Read],
        *,
        is_current: bool = False,
        is_watched: bool = False,
    ) -> Sequence[Znode | None]:
        """What is there, in one round trip. Current: with every write acknowledged before."""

    def write(self, deadline: Deadline, writes: Sequence[Write]) -> Sequence[int] | Refusal:
        """All or nothing; the new versions. Raises OutcomeUnknown, too."""

    def make(self, deadline: Deadline, paths: Sequence[str]) -> None:
        """Makes those that are missing, as far as their parents are there."""

    def remove(self, deadline: Deadline, path: str) -> None:
        """Unless it has children."""

    def touch(self, deadline: Deadline, path: str) -> Znode | None:
        """Writes no data into it, if it is there."""

    def make_ephemeral(self, deadline: Deadline, prefix: str, data: bytes) -> str | None:
        """Its path: the prefix and a number. None: its parent is missing. Raises OutcomeUnknown,
        too."""

    def session(self, deadline: Deadline) -> tuple[int, int]:
        """Of the connection: id, and how long it may be silent, in milliseconds, as agreed."""


class ZooKeeperStore:
    def __init__(self, ensemble: Ensemble, root: str, ambient: Ambient) -> None:
        """`ensemble` is started here, and closed by close()."""
        self._ensemble = ensemble
        self._root = root
        self._ambient = ambient
        self._rung = threading.Condition()
        self._rings: dict[str, int] = {}  # by path of the bell; "" is all of them
        self._member_nodes = MemberNodes(ensemble, root, ambient)
        ensemble.start(self._ring)

    @property
    def member_nodes(self) -> "MemberNodes":
        return self._member_nodes

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        path = self._path(parts(key))
        deadline = Deadline(self._ambient, timeout_ms)
        (znode,) = self._ensemble.read(deadline, [("data", path)], is_current=True)
        if znode is None:
            return None
        if znode.data:
            return _document(key, path, znode)
        if znode.count and self._is_hollow(path, deadline):
            raise damaged(path, "it is empty")
        return None

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        place, raw = parts(key), encode(key, body)
        path, incarnation = self._path(place), self._ambient.new_id()
        deadline = Deadline(self._ambient, timeout_ms)
        sealed = seal(incarnation, key, raw)
        folder: int | None = None  # the version of the mere folder that becomes the document
        pin = f"{path}/!~{incarnation}"
        is_pinned = False
        try:
            for _ in range(TRIES_MAX):
                writes: list[Write] = [("create", path, sealed)]
                if folder is not None:
                    # The pin was there all the time: this is still the folder that we looked at.
                    writes = [("set_data", path, sealed, folder), ("delete", pin)]
                writes.append(("create", f"{path}/!{incarnation}"))
                done = self._write(place, deadline, *writes)
                if not isinstance(done, Refusal):
                    is_pinned = False
                    return _version(incarnation, done[0])
                if folder is None and done.is_missing:
                    self._ensemble.make(deadline, [*self._bells(place), *self._folders(place)])
                else:
                    is_pinned = True
                    self._ensemble.make(deadline, [pin])  # first, then look at the version
                    folder = self._folder_version(key, path, deadline)
            raise _gave_up(path)
        finally:
            if is_pinned:
                with suppress(Unavailable, Invalid):  # left behind, it only keeps an empty folder
                    self._ensemble.remove(deadline, pin)

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        place, raw = parts(key), encode(key, body)
        path = self._path(place)
        incarnation, number = _read_version(key, version)
        done = self._write(
            place,
            Deadline(self._ambient, timeout_ms),
            ("check", f"{path}/!{incarnation}", -1),  # of any version: it only has to be there
            ("set_data", path, seal(incarnation, key, raw), number),
        )
        if isinstance(done, Refusal):
            raise _not_current(key, version)
        return _version(incarnation, done[1])

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        place = parts(key)
        path = self._path(place)
        incarnation, number = _read_version(key, version)
        deadline = Deadline(self._ambient, timeout_ms)
        marker_goes: Write = ("delete", f"{path}/!{incarnation}")
        done = self._write(place, deadline, marker_goes, ("delete", path, number))
        if isinstance(done, Refusal) and done.is_full:
            # There are documents below: the znode stays, as their folder.
            done = self._write(place, deadline, marker_goes, ("set_data", path, b"", number))
        if isinstance(done, Refusal):
            raise _not_current(key, version)
        with suppress(Unavailable, Invalid):  # it is deleted; an empty folder harms nobody
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
        walk = Walk(partial(self._look, deadline), BATCH_MAX)
        start = max(below, behind)
        if start[: len(below)] == below:
            way = [start[:depth] for depth in range(len(below), len(start) + 1)]
            reads: list[Read] = [("names", self._path(step)) for step in way]
            found = self._ensemble.read(deadline, reads, is_current=True)
            for step, znode in zip(way, found, strict=True):
                done = start[len(step)] if len(step) < len(start) else ""
                walk.enter(_names(step, znode.names if znode else (), done))
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
            znode = self._ensemble.touch(deadline, clock)
            if znode is not None:
                return znode.changed_at_ms
            self._ensemble.make(deadline, [*_lineage(self._root), clock])
        raise _gave_up(clock)

    def close(self) -> None:
        self._ensemble.close()

    def _path(self, place: Parts) -> str:
        return "/".join([self._root, *map(to_plain, place)])

    def _bell(self, first: str) -> str:
        return f"{self._root}/!bells/{to_plain(first)}"

    def _bells(self, place: Parts) -> Sequence[str]:
        return [*_lineage(self._root), f"{self._root}/!bells", self._bell(place[0])]

    def _folders(self, place: Parts) -> Sequence[str]:
        return [self._path(place[:depth]) for depth in range(1, len(place))]

    def _write(self, place: Parts, deadline: Deadline, *writes: Write) -> Sequence[int] | Refusal:
        """All of the writes, and the bell, or none."""
        for _ in range(TRIES_MAX):
            bell: Write = ("set_data", self._bell(place[0]), b"")
            done = self._ensemble.write(deadline, [*writes, bell])
            if not isinstance(done, Refusal) or done.index < len(writes):
                return done
            self._ensemble.make(deadline, self._bells(place))
        raise _gave_up(self._path(place))

    def _prune(self, place: Parts, deadline: Deadline) -> None:
        """Removes the folders that a delete left empty. A document has its marker, and stays."""
        folders = [self._path(place), *reversed(self._folders(place))]
        found = self._ensemble.read(deadline, [("stat", folder) for folder in folders])
        gone = 0
        for folder, znode in zip(folders, found, strict=True):
            if znode is None:
                continue
            if znode.count > gone:
                return
            self._ensemble.remove(deadline, folder)
            gone = 1  # of the next one's children: this folder

    def _folder_version(self, key: str, path: str, deadline: Deadline) -> int | None:
        """The version of a mere folder, None if nothing is there. Raises Conflict: a document."""
        (znode,) = self._ensemble.read(deadline, [("data", path)])
        if znode is None:
            return None
        if znode.data or (znode.count and self._is_hollow(path, deadline)):
            raise Conflict(f"{key}: is there already")
        return znode.version

    def _is_hollow(self, path: str, deadline: Deadline) -> bool:
        """Is this a document that lost its data? Its marker, there before and after, says so."""
        before, znode, after = self._ensemble.read(
            deadline, [("names", path), ("data", path), ("names", path)]
        )
        if before is None or znode is None or after is None or znode.data:
            return False
        return any(_is_marker(name) for name in {*before.names} & {*after.names})

    def _look(
        self, deadline: Deadline, things: Sequence[Name | Folder]
    ) -> Iterator[Iterator[Thing]]:
        reads: list[Read] = [
            ("data" if isinstance(thing, Name) else "names", self._path(thing.place))
            for thing in things
        ]
        found = self._ensemble.read(deadline, reads, is_current=True)
        for thing, (_, path), znode in zip(things, reads, found, strict=True):
            if znode is None:
                yield iter(())  # gone since
            elif isinstance(thing, Name):
                yield _unfold(thing.place, path, znode)
            else:
                yield self._enter(thing, path, znode, deadline)

    def _enter(
        self, folder: Folder, path: str, znode: Znode, deadline: Deadline
    ) -> Iterator[Thing]:
        has_marker = not folder.is_document and any(map(_is_marker, znode.names))
        key = _key(folder.place)
        if has_marker and key is not None and self._is_hollow(path, deadline):
            yield Found(Damaged(key, path, str(damaged(path, "it is empty"))), 0)
        yield from _names(folder.place, znode.names, "")

    def _mark(self, bell: str, deadline: Deadline) -> Mark:
        """The zxid of the last ring, with a watch left for the next one."""
        bells = [bell]
        if not bell:
            folder = f"{self._root}/!bells"
            (znode,) = self._ensemble.read(deadline, [("names", folder)], is_watched=True)
            # No folder: nothing was ever written, and the watch is for that.
            bells = [f"{folder}/{name}" for name in znode.names] if znode else [folder]
        found = self._ensemble.read(deadline, [("stat", one) for one in bells], is_watched=True)
        return Mark(str(max((znode.zxid for znode in found if znode is not None), default=0)))

    def _ring(self, bell: str | None) -> None:
        with self._rung:
            for waited in self._rings:
                if bell is None or waited in (bell, ""):
                    self._rings[waited] += 1
            self._rung.notify_all()
        self._member_nodes.on_watch(bell)

    def _has_rung(self, bell: str, rings: int) -> bool:
        return self._rings[bell] != rings


class MemberNodes:
    """The members' znodes of one store; `cluster.ephemeral` says what they mean."""

    def __init__(self, ensemble: Ensemble, root: str, ambient: Ambient) -> None:
        self._ensemble = ensemble
        self._root = root
        self._folder = f"{root}/!members"
        self._ambient = ambient
        self._rings: list[Callable[[], None]] = []

    def session_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        """How long a client may be silent before its members end. Raises Unavailable."""
        return self._ensemble.session(Deadline(self._ambient, timeout_ms))[1]

    def make(self, session: str, node: str, *, timeout_ms: int = TIMEOUT_MS) -> int:
        """The new member's number. Raises Unavailable, OutcomeUnknown."""
        deadline = Deadline(self._ambient, timeout_ms)
        data = json.dumps({"node": node, "session": session}).encode()
        for _ in range(TRIES_MAX):
            path = self._ensemble.make_ephemeral(deadline, f"{self._folder}/m-", data)
            if path is not None:
                return _member_number(path)
            self._ensemble.make(deadline, [*_lineage(self._root), self._folder])
        raise _gave_up(self._folder)

    def find(self, session: str, *, timeout_ms: int = TIMEOUT_MS) -> int | None:
        """The number of the one that this client made for a session. Raises Unavailable."""
        deadline = Deadline(self._ambient, timeout_ms)
        (folder,) = self._ensemble.read(deadline, [("names", self._folder)], is_current=True)
        names = [name for name in folder.names if _MEMBER.fullmatch(name)] if folder else []
        reads: list[Read] = [("data", f"{self._folder}/{name}") for name in names]
        mine, _ = self._ensemble.session(deadline)
        for name, znode in zip(names, self._ensemble.read(deadline, reads), strict=True):
            if znode is not None and znode.owner == mine and _session_in(znode.data) == session:
                return _member_number(name)
        return None

    def is_mine(self, number: int, *, timeout_ms: int = TIMEOUT_MS) -> bool:
        """Is it there, and does it end with this client's session? Raises Unavailable."""
        deadline = Deadline(self._ambient, timeout_ms)
        (znode,) = self._ensemble.read(deadline, [("stat", self._path(number))], is_current=True)
        return znode is not None and znode.owner == self._ensemble.session(deadline)[0]

    def numbers(self, *, timeout_ms: int = TIMEOUT_MS) -> frozenset[int]:
        """Of all that are there. The next that comes or goes rings. Raises Unavailable."""
        deadline = Deadline(self._ambient, timeout_ms)
        (folder,) = self._ensemble.read(
            deadline, [("names", self._folder)], is_current=True, is_watched=True
        )
        names = folder.names if folder else ()
        return frozenset(_member_number(name) for name in names if _MEMBER.fullmatch(name))

    def remove(self, number: int, *, timeout_ms: int = TIMEOUT_MS) -> None:
        """Raises Unavailable."""
        self._ensemble.remove(Deadline(self._ambient, timeout_ms), self._path(number))

    def watch(self, ring: Callable[[], None]) -> None:
        """`ring` is called on the connection's own thread: it must be quick."""
        self._rings.append(ring)

    def on_watch(self, path: str | None) -> None:
        if path is None or path == self._folder:
            for ring in self._rings:
                ring()

    def _path(self, number: int) -> str:
        return f"{self._folder}/m-{number:010d}"


def _member_number(path: str) -> int:
    return int(path.rpartition("/m-")[2].removeprefix("m-"))


def _session_in(data: bytes) -> object:
    try:
        found = json.loads(data)
    except ValueError:
        return None  # a stranger's
    return found.get("session") if isinstance(found, dict) else None


def _document(key: str, path: str, znode: Znode) -> Document:
    incarnation, body = unseal(znode.data, key, path)
    return Document(key, body, _version(incarnation, znode.version))


def _version(incarnation: str, number: int) -> Version:
    return Version(f"{incarnation}:{number}")


def _read_version(key: str, version: Version) -> tuple[str, int]:
    found = _VERSION.fullmatch(version)
    if found is None or int(found[2]) > _NUMBER_MAX:
        raise _not_current(key, version)
    return found[1], int(found[2])


def _not_current(key: str, version: Version) -> Conflict:
    return Conflict(f"{key}: version {version} is not current")


def _gave_up(path: str) -> Unavailable:
    return Unavailable(f"{path}: gave up after {TRIES_MAX} tries, nothing was written")


def _lineage(path: str) -> Sequence[str]:
    """/a, /a/b, /a/b/c"""
    steps = path.split("/")
    return ["/".join(steps[: depth + 1]) for depth in range(1, len(steps))]


def _is_marker(name: str) -> bool:
    return _MARKER.fullmatch(name) is not None


def _names(folder: Parts, children: Iterable[str], done: str) -> Iterator[Thing]:
    """Our names among them, behind `done`, in order."""
    ours = (part for part in map(from_plain, children) if part is not None and part > done)
    return (Name((*folder, part)) for part in sorted(ours))


def _unfold(place: Parts, path: str, znode: Znode) -> Iterator[Thing]:
    key = _key(place)
    if znode.data and key is not None:
        try:
            yield Found(_document(key, path, znode), len(znode.data))
        except Corrupt as error:
            yield Found(Damaged(key, path, str(error)), len(znode.data))
    count = znode.count - (1 if znode.data else 0)  # less its marker
    if count > 0:
        yield Folder(place, count, is_document=bool(znode.data))


def _key(place: Parts) -> str | None:
    """None: it is too long for a key, so a stranger's."""
    try:
        return spelling.key(*place)
    except Invalid:
        return None
