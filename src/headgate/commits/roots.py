"""Root: the folder that streams share, and its document: how far their flags are.

    join: a stream takes its seat, at the frontier of then ──▶ expected from its first hour on
    raise: journal ──▶ flags ──▶ the fact: frontiers move
    withdraw: journal ──▶ flags renamed, parents first ──▶ the fact: reopened, next generation
    end: by the settings' last hour, or a person retires the stream ──▶ not expected any more
    merge: a try is counted ──▶ journal, a pointer to the merge record ──▶ files ──▶ the fact
    remove: a person asks ──▶ journal ──▶ statements ──▶ files go ──▶ marks ──▶ the fact

A stream joins by compare-and-set of this very document before its first hour is fixed: so no hour
below the frontier ever gets one more stream. The flags of a standing journal count as raised: it
will be carried out, whatever the settings of its next holder say. What is in here does not grow
with the age of the lake: frontiers, and only what is open again. An end that flags over all streams
went past stays: a parent's flag would else lack a child's.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from headgate.commits.checkpoint import Wish
from headgate.commits.removals import How, Removed, with_removed
from headgate.errors import Corrupt, Halted, Invalid
from headgate.lake import FileFacts
from headgate.periods import HOUR_MS, FolderTemplate, Period
from headgate.store import DocumentStore
from headgate.store.changes import Kept, change, create_if_absent
from headgate.store.codec import Whole, parse
from headgate.store.names import key, parts
from headgate.store.pages import pages

ROOTS = "roots"
REMOVALS_MAX = 200  # that are asked for and not done
REMOVED_MAX = 4_000  # spans of one root: each costs some sixty bytes of its document
WHY_MAX = 2_000  # letters of what stands in the way of one
WORDS_MAX = 100_000  # of all together: some are three bytes long
NAME_MAX = 200  # letters of a root's name in its key; a longer one is a hash


@dataclass(frozen=True, slots=True)
class Seat:
    """A stream in its root."""

    floor_ms: Whole | None = None  # the root's frontier when it joined
    first_ms: Whole | None = None  # start of the first hour that is expected, once it is known
    frontier_ms: Whole | None = None  # hours that end by then have their flags
    last_ms: Whole | None = None  # end of the last hour that is expected; None: no end
    retired: Wish | None = None  # by a person: it ended there for good
    removed: tuple[Removed, ...] = ()  # hours whose files are gone on purpose, in order


@dataclass(frozen=True, slots=True)
class FlagMove:
    """A file that gets another name: one that is raised, or one that is withdrawn."""

    staged: str
    published: str
    size_bytes: Whole
    checksum: str

    @property
    def facts(self) -> FileFacts:
        return FileFacts(self.size_bytes, self.checksum)


@dataclass(frozen=True, slots=True)
class RootJournal:
    """What whoever holds this root must finish, in order, and what the fact will set."""

    kind: Literal["raise", "withdraw", "merge", "remove"]
    folder: str  # of staging; "": none
    moves: tuple[FlagMove, ...]  # of a merge: of its record, which names the rest
    frontiers_ms: Mapping[str, Whole] = field(default_factory=dict)  # by stream
    hours_ms: Whole | None = None  # None: as before
    days_ms: Whole | None = None
    reopens: Mapping[str, Whole] = field(default_factory=dict)  # by place: the next generation
    raises: tuple[str, ...] = ()  # places that are not open any more
    merges: tuple[str, ...] = ()  # streams whose first open hour is merged
    removes: Mapping[str, How] = field(default_factory=dict)  # by place: its files go
    without: tuple[str, ...] = ()  # tables that need nothing of those


@dataclass(frozen=True, slots=True)
class Repair:
    """What a person asked for: flags that are missing in these hours are raised again."""

    from_ms: Whole  # start of the next hour to look at
    until_ms: Whole
    wish: Wish


@dataclass(frozen=True, slots=True)
class Removal:
    """What a person asked for: the files of these hours of a stream are to go."""

    how: How
    stream: str
    from_ms: Whole  # start of the next hour that is not done
    until_ms: Whole
    wish: Wish
    without: tuple[str, ...] = ()  # tables that need nothing of it, as that person says


@dataclass(frozen=True, slots=True)
class Merging:
    """An hour of a stream whose small files are being merged, or were left as they are."""

    period: str
    tries: Whole  # that were begun: one that takes its node down counts, too
    why: str = ""  # the last one failed


@dataclass(frozen=True, slots=True)
class RootDocument:
    epoch: Whole = 0
    turn: Whole = 0  # grows with each take-over
    streams: Mapping[str, Seat] = field(default_factory=dict)
    hours_ms: Whole | None = None  # hours that end by then have the flag over all streams
    days_ms: Whole | None = None
    reopened: Mapping[str, Whole] = field(default_factory=dict)  # by place: the next generation
    wishes: Mapping[str, Wish] = field(default_factory=dict)  # places that a person wants withdrawn
    repair: Repair | None = None
    troubles: Mapping[str, str] = field(default_factory=dict)  # by stream, for people
    journal: RootJournal | None = None
    merging: Mapping[str, Merging] = field(default_factory=dict)  # by stream; none: all went well
    removals: tuple[Removal, ...] = ()  # in the order in which they were asked for
    format: Literal[1] = 1


def root_name(folder: FolderTemplate) -> str:
    """Streams whose hours have one folder above them share a root; without such a folder those of
    one template do."""
    above = folder.hour_folder(Period(0, "hour"))
    names = folder.text.split("/")
    return folder.text if above is None else "/".join(names[: above.count("/") + 1])


def root_key(root: str) -> str:
    is_long = len(root.encode()) > NAME_MAX
    return f"{ROOTS}/{key(hashlib.sha256(root.encode()).hexdigest() if is_long else root)}"


def place_of(period: Period, stream: str | None = None) -> str:
    """An hour of a stream; without one, a parent."""
    return str(period) if stream is None else key(str(period), stream)


def joined(found: RootDocument, stream: str) -> RootDocument:
    """With a seat for it, once. What a journal is about to flag is flagged: it is carried out by
    whoever holds the root, without asking who joined since."""
    if stream in found.streams:
        return found
    return replace(found, streams={**found.streams, stream: Seat(coming_hours_ms(found))})


def coming_hours_ms(found: RootDocument) -> int | None:
    """The frontier over all streams; or where it will be, once the standing journal is carried out:
    whoever holds the root then, with whatever settings, raises exactly its flags."""
    journal = found.journal
    return found.hours_ms if journal is None or journal.hours_ms is None else journal.hours_ms


def coming_frontier_ms(found: RootDocument, stream: str) -> int | None:
    """The same of one stream."""
    frontier_ms = found.streams[stream].frontier_ms
    coming = {} if found.journal is None else found.journal.frontiers_ms
    return coming.get(stream, frontier_ms)


def begun(found: RootDocument, stream: str, first_ms: int) -> RootDocument:
    """Its first hour is known: from there on it is expected."""
    seat = found.streams[stream]
    if seat.first_ms is not None:
        return found
    begun_seat = replace(seat, first_ms=first_ms, frontier_ms=first_ms)
    return replace(found, streams={**found.streams, stream: begun_seat})


def ended(found: RootDocument, stream: str, last_ms: int | None) -> RootDocument:
    """It is expected until then and no longer, or without an end. Hours that have their flags stay;
    an end that is for good stays, too."""
    seat = found.streams[stream]
    if is_over_for_good(found, stream):
        return found
    end_ms = None if last_ms is None else max(last_ms, coming_frontier_ms(found, stream) or 0)
    return replace(found, streams={**found.streams, stream: replace(seat, last_ms=end_ms)})


def retired(found: RootDocument, stream: str, wish: Wish) -> RootDocument:
    """A person says that it is over: it is not expected from its frontier on. What a standing
    journal flags of it counts, too."""
    seat = found.streams[stream]
    if seat.retired is not None:
        return found
    reached = (seat.floor_ms, coming_frontier_ms(found, stream))
    end_ms = max((one for one in reached if one is not None), default=0)
    if seat.last_ms is not None:
        end_ms = min(end_ms, seat.last_ms)
    over = replace(seat, last_ms=end_ms, retired=wish)
    return replace(found, streams={**found.streams, stream: over})


def is_over_for_good(found: RootDocument, stream: str) -> bool:
    """A person retired it, or hours over all streams are flagged without it, or are about to be."""
    seat, hours_ms = found.streams[stream], coming_hours_ms(found)
    if seat.retired is not None:
        return True
    if seat.last_ms is None or hours_ms is None:
        return False
    return hours_ms > seat.last_ms


def goes_on(seat: Seat) -> bool:
    """Hours of it may still get their flags."""
    reached_ms = seat.floor_ms if seat.frontier_ms is None else seat.frontier_ms
    is_at_its_end = seat.last_ms is not None and (reached_ms or 0) >= seat.last_ms
    return seat.retired is None and not is_at_its_end


def check_end(found: RootDocument, stream: str, last_ms: int | None) -> None:
    """Raises Invalid: it is over for good, and the settings say that it goes on."""
    seat = found.streams.get(stream)
    if seat is None or seat.last_ms is None or not is_over_for_good(found, stream):
        return
    if seat.retired is not None:
        if last_ms is None:
            raise Invalid(
                f"stream {stream} was retired by {seat.retired.who}: {seat.retired.reason}; hours "
                "over all streams are flagged without it; next: take it out of the settings, or "
                "give it another name"
            )
    elif last_ms is None or last_ms > seat.last_ms:
        last = Period(seat.last_ms - HOUR_MS, "hour")
        raise Invalid(
            f"stream {stream} ended with hour {last}, and hours over all streams are flagged "
            f"behind that without it; next: write last_hour: {last} as before, or give the stream "
            "another name"
        )


def wished(found: RootDocument, place: str, wish: Wish) -> RootDocument:
    """A person wants the flags of an hour withdrawn."""
    return replace(found, wishes={**found.wishes, place: wish})


def unwished(found: RootDocument, place: str) -> RootDocument:
    return replace(found, wishes={one: w for one, w in found.wishes.items() if one != place})


def repaired(found: RootDocument, until_ms: int) -> RootDocument:
    """Up to there every flag that was missing is there again."""
    if found.repair is None:
        return found
    rest = replace(found.repair, from_ms=max(found.repair.from_ms, until_ms))
    return replace(found, repair=rest if rest.from_ms < rest.until_ms else None)


def removal_asked(name: str, found: RootDocument, removal: Removal) -> RootDocument:
    """Once: who asks for the same again, or for a part of it, finds it there. Raises Halted."""
    for known in found.removals:
        is_same = (known.stream, known.how) == (removal.stream, removal.how)
        is_within = known.from_ms <= removal.from_ms and removal.until_ms <= known.until_ms
        if is_same and is_within and set(removal.without) <= set(known.without):
            return found
    spans = sum(len(seat.removed) for seat in found.streams.values())
    if len(found.removals) >= REMOVALS_MAX or spans >= REMOVED_MAX:
        raise Halted(
            f"{name}: {len(found.removals):,} removals are asked for and not done, and the removed "
            f"hours are {spans:,} rows without a hole: more do not fit its document; next: wait "
            "until a node has done them (headgate status), and name whole days"
        )
    return replace(found, removals=(*found.removals, removal))


def removal_done(found: RootDocument, removal: Removal, until_ms: int) -> RootDocument:
    """Up to there nothing of it is left to do."""
    rest = replace(removal, from_ms=max(removal.from_ms, until_ms))
    after = (rest,) if rest.from_ms < rest.until_ms else ()
    kept = [(one,) if one != removal else after for one in found.removals]
    return replace(found, removals=tuple(one for some in kept for one in some))


def merge_tried(found: RootDocument, stream: str, period: str) -> RootDocument:
    """One more try begins."""
    before = found.merging.get(stream)
    tries = before.tries if before is not None and before.period == period else 0
    return replace(found, merging={**found.merging, stream: Merging(period, tries + 1)})


def merge_failed(found: RootDocument, stream: str, why: str) -> RootDocument:
    """The try that was begun came to nothing."""
    failed = replace(found.merging[stream], why=why[: _letters(len(found.streams))])
    return replace(found, merging={**found.merging, stream: failed})


def in_trouble(found: RootDocument, troubles: Mapping[str, str]) -> RootDocument:
    """With what stands still, and why, for people."""
    letters = _letters(len(troubles))
    return replace(found, troubles={one: why[:letters] for one, why in troubles.items()})


def _letters(many: int) -> int:
    """For each of so many: words for people must never be why the document does not fit."""
    return min(WHY_MAX, WORDS_MAX // max(many, 1))


def intended(name: str, found: RootDocument, journal: RootJournal) -> RootDocument:
    """With the next journal. Raises Corrupt."""
    if found.journal is not None:
        raise Corrupt(f"{name}: an earlier journal is not finished")
    return replace(found, journal=journal)


def roots_with(store: DocumentStore, stream: str) -> Iterator[Kept[RootDocument]]:
    """Those in which a stream has its seat: more than one if its folder was changed. Raises
    Unavailable, Corrupt."""
    for page in pages(store, ROOTS):
        for document in page.documents:
            found = parse(document, RootDocument)
            if stream in found.streams:
                yield Kept(document.key, found, document.version)


def join_root(store: DocumentStore, root: str, stream: str) -> int | None:
    """The stream has its seat; no hour of it may begin before the moment returned. Raises
    Unavailable, OutcomeUnknown."""
    name = root_key(root)
    create_if_absent(store, name, RootDocument())
    kept = change(store, name, RootDocument, lambda found: joined(found, stream))
    return kept.value.streams[stream].floor_ms


def concluded(name: str, found: RootDocument, journal: RootJournal) -> RootDocument:
    """The fact: everything that the journal says, and only that. Raises Corrupt."""
    if found.journal != journal:
        raise Corrupt(f"{name}: another journal stands than the one that was carried out")
    streams = dict(found.streams)
    for stream, frontier_ms in journal.frontiers_ms.items():
        seat = streams[stream]
        if seat.frontier_ms is not None and frontier_ms < seat.frontier_ms:
            raise Corrupt(f"{name}: the frontier of {stream} would move back")
        streams[stream] = replace(seat, frontier_ms=frontier_ms)
    for place, how in journal.removes.items():
        text, stream = parts(place)
        seat = streams[stream]
        removed = with_removed(seat.removed, Period.parse(text), how)
        streams[stream] = replace(seat, removed=removed)
    kept = {one: n for one, n in found.reopened.items() if one not in journal.raises}
    return replace(
        found,
        journal=None,
        streams=streams,
        hours_ms=found.hours_ms if journal.hours_ms is None else journal.hours_ms,
        days_ms=found.days_ms if journal.days_ms is None else journal.days_ms,
        reopened={**kept, **journal.reopens},
        wishes={one: wish for one, wish in found.wishes.items() if one not in journal.reopens},
        merging={one: m for one, m in found.merging.items() if one not in journal.merges},
    )
