"""Book: one lane as its holder keeps it: its document, what that names, and what it knows by heart.

    closed ── open: the epoch is written, and what that write contained is read ──▶ open
       ▲                                                                              │
       └──────────── Conflict: another instance of the same holder was here ──────────┘

Every change is a compare-and-set of the lane's document. A document that it will name is created
before; one that it no longer names is deleted afterwards. What was created and never named is
rubbish: the next holder deletes it when it opens the lane, since nobody of an older epoch can name
it any more.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from headgate.ambient import Ambient
from headgate.errors import Conflict, Corrupt, Invalid, OutcomeUnknown, Unavailable
from headgate.sources.folder import Entry, digest_of
from headgate.sources.identities import Identities
from headgate.sources.lanes import (
    KNOWN_FILES_MAX,
    READ_BATCHES_MAX,
    Batch,
    BatchBody,
    Known,
    KnownBody,
    Lane,
    LaneCount,
    Shaped,
    bodies,
    check_held,
    dealt_with,
    folded,
    marked_lost,
    numbered,
    opened,
    packed,
    remembered,
    to_fold,
    unpacked,
)
from headgate.sources.picking import Candidate
from headgate.store import DocumentStore
from headgate.store.changes import Kept, change, create_if_absent, read
from headgate.store.names import key, parts
from headgate.store.pages import pages

CREATE_TRIES = 3
SWEPT_AT_ONCE = 20  # each up to half a megabyte

Body = TypeVar("Body", BatchBody, KnownBody)


def lane_key(stream: str, lane: str) -> str:
    return key("sources", stream, lane)


def check_lanes(store: DocumentStore, stream: str, prefix: str, lanes: int) -> None:
    """With another number of them a file would belong to another lane, and be read again. Raises
    Invalid, Unavailable, OutcomeUnknown."""
    place = key("sources", stream, prefix)
    create_if_absent(store, place, LaneCount(lanes))
    found = read(store, place, LaneCount)
    if found is None or found.value.lanes != lanes:
        fixed = "unknown" if found is None else found.value.lanes
        raise Invalid(
            f"stream {stream}: it has {fixed} lanes, not {lanes}; their number is fixed when the "
            f"stream is first read. Next: set lanes to {fixed}, or give the stream another name"
        )


def find_file(
    store: DocumentStore, stream: str, lane: str, number: int
) -> tuple[Entry, int] | None:
    """The file that has this number, and when it arrived, for who only looks. None: it was dealt
    with, and is forgotten. Raises Unavailable, Corrupt."""
    found = read(store, lane_key(stream, lane), Lane)
    for batch in () if found is None else found.value.batches:
        if batch.first <= number < batch.end:
            body = read(store, f"{lane_key(stream, lane)}/batches/{batch.id}", BatchBody)
            is_there = body is not None and len(body.value.files) == batch.count
            if body is not None and is_there:
                return body.value.entry(number - batch.first), body.value.arrival_ms
    return None


class Book:
    """One instance of one holder; used by one thread at a time."""

    def __init__(
        self, store: DocumentStore, stream: str, lane: str, epoch: int, ambient: Ambient
    ) -> None:
        self.known = Identities()
        self.live: dict[bytes, int] = {}  # number by identity: numbered, neither known nor lost
        self._store = store
        self._key = lane_key(stream, lane)
        self._epoch = epoch
        self._ambient = ambient
        self._writer = ambient.new_id()
        self._kept: Kept[Lane] | None = None
        self._batches: dict[str, BatchBody] = {}

    @property
    def lane(self) -> Lane:
        """As of the last acknowledged write; before the first, or elsewhere, of a plain read."""
        if self._kept is not None:
            return self._kept.value
        found = read(self._store, self._key, Lane)
        return Lane(0, "") if found is None else found.value

    def open(self) -> None:
        """Nothing, if it is open. Raises Fenced, Unavailable, OutcomeUnknown, Corrupt."""
        if self._kept is not None:
            return
        self._insist(self._key, Lane(0, ""))
        # Another name each time: only what was written, and answered, is acted on.
        self._writer = self._ambient.new_id()
        claim = partial(opened, epoch=self._epoch, writer=self._writer)
        kept = change(self._store, self._key, Lane, claim)
        named = {one.id for one in kept.value.batches}
        self._batches = {name: one for name, one in self._batches.items() if name in named}
        self.known, self.live = Identities(), {}
        for one in kept.value.known:
            for digest in self._known_of(one):
                self.known.add(digest)
        for batch in kept.value.batches:
            self._remember(kept.value, batch)
        self._sweep(kept.value)
        self._kept = kept

    def check(self) -> None:
        """Is this still the holder? Raises Fenced, Conflict, Unavailable."""
        found = read(self._store, self._key, Lane)
        if found is None:
            raise Corrupt(f"{self._key}: is gone; next: stop all nodes and restore the store")
        try:
            check_held(found.value, self._epoch, self._writer)
        except Conflict:
            self._kept = None
            raise
        self._kept = found

    def files_of(self, batch: Batch) -> BatchBody:
        """Raises Unavailable (the lane has changed since), Corrupt."""
        body = self._batches.get(batch.id)
        if body is None:
            body = self._read("batches", batch.id, BatchBody)
            self._batches[batch.id] = body
        if len(body.files) != batch.count:
            found = len(body.files)
            raise Corrupt(f"{self._key}: batch {batch.id} has {found} files, not {batch.count}")
        return body

    def find(self, number: int) -> tuple[Entry, BatchBody] | None:
        """None: it is not numbered, or is dealt with."""
        for batch in self.lane.batches:
            if batch.start <= number < batch.end:
                body = self.files_of(batch)
                return body.entry(number - batch.first), body
        return None

    def numbered_from(self, position: int) -> Iterator[Candidate]:
        """In the order of numbers, without a hole. Raises Unavailable, Corrupt."""
        lane = self.lane
        lost = set(lane.lost)
        first = min((batch.start for batch in lane.batches), default=lane.next)
        if position < first:
            yield Candidate(position, first - 1, Entry("", 0, 0), 0, (), is_lost=True)
        for batch in lane.batches:
            if batch.end <= position:
                continue
            body = self.files_of(batch)
            for number in range(max(position, batch.start), batch.end):
                place = number - batch.first
                entry, columns = body.entry(place), body.columns(place)
                is_lost = number in lost
                yield Candidate(number, number, entry, body.arrival_ms, columns, is_lost)

    def note_folder(self, ident: str) -> None:
        self._change(partial(replace, folder=ident))

    def number(self, files: Sequence[Shaped]) -> None:
        """In this order. Raises Fenced, Conflict, Unavailable, OutcomeUnknown."""
        arrival_ms = max(self._ambient.wall_ns() // 1_000_000, self.lane.seen_ms)
        for body in bodies(files, self._epoch, arrival_ms):
            name = self._create("batches", body)
            self._batches[name] = body
            count = len(body.files)
            lane = self._change(partial(numbered, batch=name, count=count, seen_ms=arrival_ms))
            self._remember(lane, lane.batches[-1])

    def mark_lost(self, numbers: Iterable[int]) -> None:
        lost = frozenset(numbers)
        if lost:
            self._change(partial(marked_lost, numbers=lost))
            self.live = {one: n for one, n in self.live.items() if n not in lost}

    def deal_with(self, batch: Batch, end: int) -> None:
        """What is before `end` is put away."""
        self._change(partial(dealt_with, batch=batch.id, end=end))
        self.live = {one: n for one, n in self.live.items() if not batch.first <= n < end}
        if end >= batch.end:
            self._delete("batches", batch.id)

    def fold(self, position: int, batches_max: int = READ_BATCHES_MAX) -> None:
        """What was read is known from now on, in less room; nothing is done while it is little."""
        while batches := to_fold(self.lane, position, batches_max):
            names = {one.id for one in batches}
            digests = [
                digest
                for batch in batches
                for digest in self._digests_of(batch)
                # Not if it was lost there and came back: then another number has it.
                if batch.first <= self.live.get(digest, -1) < batch.end
            ]
            self.remember(digests)
            self._change(partial(folded, batches=names))
            for digest in digests:
                self.live.pop(digest, None)
            for batch in batches:
                self._delete("batches", batch.id)

    def remember(self, digests: Sequence[bytes]) -> None:
        """As known. Together with the last of the known documents, if that has room."""
        if not digests:
            return
        last = self.lane.known[-1:]
        if last and last[0].count + len(digests) > KNOWN_FILES_MAX:
            last = ()
        old = [digest for one in last for digest in self._known_of(one)]
        self._replace_known(last, sorted({*old, *digests}))
        for digest in digests:
            self.known.add(digest)

    def forget_unseen(self) -> None:
        """Known files that no look has seen since the last time are not there any more."""
        if self.known.unseen() * 4 >= len(self.known) > 0:
            for one in self.lane.known:
                digests = list(self._known_of(one))
                seen = [digest for digest in digests if self.known.is_seen(digest)]
                if len(seen) < len(digests):
                    self._replace_known((one,), seen)
            left = Identities()
            for digest in self.known:
                if self.known.is_seen(digest):
                    left.add(digest)
            self.known = left
        self.known.look_away()

    def _replace_known(self, old: Sequence[Known], digests: Sequence[bytes]) -> None:
        new = None
        if digests:
            name = self._create("known", KnownBody(self._epoch, packed(digests)))
            new = Known(name, len(digests))
        replaced = {one.id for one in old}
        self._change(partial(remembered, replaced=replaced, new=new))
        for one in old:
            self._delete("known", one.id)

    def _change(self, decide: Callable[[Lane], Lane]) -> Lane:
        """Raises Fenced, Conflict, Unavailable, OutcomeUnknown. After that it is closed: what was
        written is learnt by opening it."""

        def held(lane: Lane) -> Lane:
            check_held(lane, self._epoch, self._writer)
            return decide(lane)

        known, self._kept = self._kept, None
        self._kept = change(self._store, self._key, Lane, held, known)
        return self._kept.value

    def _remember(self, lane: Lane, batch: Batch) -> None:
        lost = set(lane.lost)
        for place, digest in enumerate(self._digests_of(batch)):
            number = batch.first + place
            if number >= batch.start and number not in lost and digest not in self.known:
                self.live[digest] = number

    def _digests_of(self, batch: Batch) -> list[bytes]:
        body = self.files_of(batch)
        return [digest_of(body.entry(place)) for place in range(batch.count)]

    def _known_of(self, known: Known) -> list[bytes]:
        body = self._read("known", known.id, KnownBody)
        try:
            digests = list(unpacked(body.digests))
        except ValueError as error:
            raise Corrupt(f"{self._key}: known {known.id} is damaged: {error}") from error
        if len(digests) != known.count:
            raise Corrupt(f"{self._key}: known {known.id} has {len(digests)}, not {known.count}")
        return digests

    def _read(self, room: str, name: str, kind: type[Body]) -> Body:
        found = read(self._store, self._name(room, name), kind)
        if found is not None:
            return found.value
        now = read(self._store, self._key, Lane)
        if now is not None and name in _named(now.value):
            raise Corrupt(
                f"{self._name(room, name)}: is gone, and {self._key} still names it. What depends "
                "on it stops. Next: stop all nodes and restore the store from a backup"
            )
        self._kept = None
        raise Unavailable(f"{self._key}: was changed by another holder; next: look again")

    def _create(self, room: str, body: BatchBody | KnownBody) -> str:
        """Its random name. Raises Unavailable, OutcomeUnknown."""
        name = self._ambient.new_id()
        self._insist(self._name(room, name), body)
        return name

    def _insist(self, name: str, body: BatchBody | KnownBody | Lane) -> None:
        """There afterwards: nobody names a document that may not be written yet. Raises
        Unavailable, OutcomeUnknown."""
        for _ in range(CREATE_TRIES - 1):
            with suppress(OutcomeUnknown):
                create_if_absent(self._store, name, body)
                return
        create_if_absent(self._store, name, body)

    def _delete(self, room: str, name: str) -> None:
        """Nobody needs it: what cannot be deleted now, the next holder sweeps."""
        self._batches.pop(name, None)
        with suppress(Conflict, Unavailable, OutcomeUnknown):
            found = self._store.get(self._name(room, name))
            if found is not None:
                self._store.delete(found.key, found.version)

    def _sweep(self, lane: Lane) -> None:
        """What somebody of an older epoch created, and nobody named."""
        named = _named(lane)
        with suppress(Unavailable, OutcomeUnknown):
            for room in ("batches", "known"):
                for page in pages(self._store, f"{self._key}/{room}", limit=SWEPT_AT_ONCE):
                    for document in page.documents:
                        epoch = document.body.get("epoch")
                        is_old = isinstance(epoch, int) and epoch < self._epoch
                        if is_old and parts(document.key)[-1] not in named:
                            with suppress(Conflict):
                                self._store.delete(document.key, document.version)

    def _name(self, room: str, name: str) -> str:
        return f"{self._key}/{room}/{name}"


def _named(lane: Lane) -> set[str]:
    return {one.id for one in lane.batches} | {one.id for one in lane.known}
