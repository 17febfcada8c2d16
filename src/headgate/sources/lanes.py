"""Lane: a source partition of files. Each file in it has a number, and gets it once.

    dropped ── numbered: a batch names it ──▶ unread ── the position passes it ──▶ read
                                                │                                    │
           lost: it was not there any more ◀────┘      known (kept), or forgotten ◀──┘

One document a lane says which numbers are where; it is changed by compare-and-set and carries the
epoch of its holder (invariant 3). What is long lies in documents of its own, under random names,
written before the lane's document names them and never changed:

    sources/<stream>/<prefix>               how many lanes there are: fixed for ever
    sources/<stream>/<lane>                 what is numbered, and how far it is dealt with
    sources/<stream>/<lane>/batches/<id>    up to a thousand files that got their numbers together
    sources/<stream>/<lane>/known/<id>      digests of files that were read and are kept

A lost number is a gap. Its identity is free again: if that file comes back, it is a new one.

The pure functions here say what a lane's document becomes; `book` writes it.
"""

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from headgate.errors import Conflict, Fenced
from headgate.sources.folder import Entry
from headgate.store.codec import Whole

BATCH_FILES_MAX = 1_000
BATCH_BYTES_MAX = 500_000  # of paths and columns: with all the rest it fits a document
KNOWN_FILES_MAX = 20_000  # 430 kB of text
UNREAD_FILES_MAX = 10_000  # of one lane: what is behind them waits without a number
BATCHES_MAX = 1_000  # of one lane that are not yet dealt with
READ_BATCHES_MAX = 50  # that wait to become known


@dataclass(frozen=True, slots=True)
class LaneCount:
    lanes: Whole
    format: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class Batch:
    id: str
    first: Whole
    count: Whole
    done: Whole = 0  # so many, from the front, are dealt with and forgotten

    @property
    def end(self) -> int:
        return self.first + self.count

    @property
    def start(self) -> int:
        """The first number that is not forgotten."""
        return self.first + self.done


@dataclass(frozen=True, slots=True)
class Known:
    id: str
    count: Whole


@dataclass(frozen=True, slots=True)
class Lane:
    epoch: Whole
    writer: str  # the instance that wrote last: two of one holder must not mix
    next: Whole = 0
    seen_ms: Whole = 0  # the latest arrival that was given: it never goes back
    folder: str = ""
    batches: tuple[Batch, ...] = ()
    known: tuple[Known, ...] = ()
    lost: tuple[Whole, ...] = ()
    format: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class BatchBody:
    epoch: Whole
    arrival_ms: Whole
    shapes: tuple[tuple[str, ...], ...]
    files: tuple[tuple[str, Whole, Whole, Whole], ...]  # path, size, mtime_ns, place in shapes
    format: Literal[1] = 1

    def entry(self, place: int) -> Entry:
        path, size_bytes, mtime_ns, _ = self.files[place]
        return Entry(path, size_bytes, mtime_ns)

    def columns(self, place: int) -> tuple[str, ...]:
        return self.shapes[self.files[place][3]]


@dataclass(frozen=True, slots=True)
class KnownBody:
    epoch: Whole
    digests: str  # base64, 16 bytes each
    format: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class Shaped:
    """A file that is about to get its number."""

    entry: Entry
    columns: tuple[str, ...]


def bodies(files: Iterable[Shaped], epoch: int, arrival_ms: int) -> Iterator[BatchBody]:
    """In the same order, as many in each as fit."""
    shapes: dict[tuple[str, ...], int] = {}
    rows: list[tuple[str, int, int, int]] = []
    size_bytes = 0
    for shaped in files:
        is_new = shaped.columns not in shapes
        costs_bytes = _cost_bytes(shaped.entry.path)
        costs_bytes += sum(map(_cost_bytes, shaped.columns)) if is_new else 0
        if rows and (len(rows) >= BATCH_FILES_MAX or size_bytes + costs_bytes > BATCH_BYTES_MAX):
            yield BatchBody(epoch, arrival_ms, tuple(shapes), tuple(rows))
            shapes, rows, size_bytes = {}, [], 0
        place = shapes.setdefault(shaped.columns, len(shapes))
        rows.append((*shaped.entry[:3], place))
        size_bytes += costs_bytes
    if rows:
        yield BatchBody(epoch, arrival_ms, tuple(shapes), tuple(rows))


def _cost_bytes(text: str) -> int:
    return 2 * len(text.encode("utf-8")) + 50  # quotes in it are written as two


def opened(lane: Lane, epoch: int, writer: str) -> Lane:
    """Raises Fenced."""
    if lane.epoch > epoch:
        raise Fenced(f"epoch {epoch} of this lane was followed by {lane.epoch}")
    return replace(lane, epoch=epoch, writer=writer)


def check_held(lane: Lane, epoch: int, writer: str) -> None:
    """Raises Fenced, Conflict (another instance of the same holder was here: open it again)."""
    opened(lane, epoch, writer)
    if lane.writer != writer:
        raise Conflict("another instance of this holder wrote to this lane; next: look again")


def numbered(lane: Lane, batch: str, count: int, seen_ms: int) -> Lane:
    if any(one.id == batch for one in lane.batches):
        return lane
    batches = (*lane.batches, Batch(batch, lane.next, count))
    return replace(lane, next=lane.next + count, seen_ms=seen_ms, batches=batches)


def marked_lost(lane: Lane, numbers: Iterable[int]) -> Lane:
    return replace(lane, lost=tuple(sorted({*lane.lost, *numbers})))


def dealt_with(lane: Lane, batch: str, end: int) -> Lane:
    """What is before `end` is put away, and forgotten."""
    batches = tuple(
        replace(one, done=max(one.done, min(end, one.end) - one.first)) if one.id == batch else one
        for one in lane.batches
    )
    return _without_lost(
        replace(lane, batches=tuple(one for one in batches if one.done < one.count))
    )


def remembered(lane: Lane, replaced: Collection[str], new: Known | None) -> Lane:
    """`new` takes the place of these known documents."""
    if new is not None and any(one.id == new.id for one in lane.known):
        return lane
    kept = tuple(one for one in lane.known if one.id not in replaced)
    return replace(lane, known=kept if new is None else (*kept, new))


def folded(lane: Lane, batches: Collection[str]) -> Lane:
    """All that is in these batches is known."""
    return _without_lost(
        replace(lane, batches=tuple(one for one in lane.batches if one.id not in batches))
    )


def _without_lost(lane: Lane) -> Lane:
    first = min((one.start for one in lane.batches), default=lane.next)
    return replace(lane, lost=tuple(number for number in lane.lost if number >= first))


def to_fold(lane: Lane, position: int, batches_max: int = READ_BATCHES_MAX) -> tuple[Batch, ...]:
    """Batches that were read, once there are enough of them; no more than one document holds."""
    read = [one for one in lane.batches if one.end <= position]
    files = sum(one.count for one in read)
    if len(read) < batches_max and files < BATCH_FILES_MAX * batches_max // READ_BATCHES_MAX:
        return ()
    while files > KNOWN_FILES_MAX:
        files -= read.pop().count
    return tuple(read)


def packed(digests: Iterable[bytes]) -> str:
    return b64encode(b"".join(digests)).decode("ascii")


def unpacked(text: str) -> Iterator[bytes]:
    """Raises ValueError."""
    raw = b64decode(text, validate=True)
    for start in range(0, len(raw), 16):
        yield raw[start : start + 16]
