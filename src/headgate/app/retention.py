"""Retention: what a person asks of files that are old, or that must not be there: they go, on
record.

    expire   every ready hour that ended so long ago     erase   one period, whatever its age

A look says what would go. What is asked for is in the ledger first, then in the root's document, by
compare-and-set; whoever holds the root does it, through the journal: nobody else may change what is
below flags (decision 11). Asking for the same again changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from headgate.ambient import Ambient
from headgate.app.acts import Person
from headgate.backlog.needs import tables_behind
from headgate.commits.certificate import Certificate
from headgate.commits.checkpoint import Wish
from headgate.commits.removals import How, how_of, statements_of
from headgate.commits.roots import Removal, RootDocument, Seat, removal_asked, root_key
from headgate.commits.streams import StreamDocument, stream_key
from headgate.errors import Halted, Invalid
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.periods import HOUR_MS, Period, aligned, hours_between
from headgate.ready import ReadyStream, RootSettings
from headgate.ready.archive import required
from headgate.ready.removing import (
    hours_of,
    is_flagged,
    late_files,
    obstacle,
    removal_subject,
)
from headgate.store import DocumentStore
from headgate.store.changes import change, read

OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """Hours of one stream, and what is to become of them."""

    root: str
    removal: Removal


@dataclass(frozen=True, slots=True)
class GoingHour:
    """What would go of one hour."""

    stream: str
    hour: Period
    files: int
    late: int  # files of records that came late
    size_bytes: int
    rows: int
    obstacle: str  # why it waits; "": nothing is in the way


class RetentionActs:
    """For whoever has the store and the lake of an installation."""

    def __init__(
        self,
        store: DocumentStore,
        lake: Lake,
        ledger: Ledger,
        ambient: Ambient,
        roots: Sequence[RootSettings],
    ) -> None:
        self._store = store
        self._lake = lake
        self._ledger = ledger
        self._ambient = ambient
        self._roots = roots

    def expiring(
        self, older_than_ms: int, person: Person, stream: str = "", without: Sequence[str] = ()
    ) -> list[Asked]:
        """Ready hours that ended so long ago by the store's clock; of this stream, or of all.
        Raises Invalid, Unavailable, Corrupt."""
        before_ms = aligned(max(0, self._store.now_ms() - older_than_ms), HOUR_MS)
        found = []
        for root, own in self._chosen(stream):
            seat = self._read(root.name).streams.get(own.name, Seat())
            if seat.first_ms is None or seat.frontier_ms is None:
                continue
            until_ms = min(before_ms, seat.frontier_ms)
            if seat.first_ms < until_ms:
                span = (seat.first_ms, until_ms)
                found.append(self._asked(root, "expired", own.name, span, person, without))
        return [one for one in found if any(hours_of(self._read(one.root), one.removal))]

    def erasing(
        self, period: Period, person: Person, stream: str = "", without: Sequence[str] = ()
    ) -> list[Asked]:
        """One hour, or every hour of a day. Raises Halted (one of them is not ready, or there is
        none), Invalid, Unavailable, Corrupt."""
        found = []
        for root, own in self._chosen(stream):
            document = self._read(root.name)
            seat = document.streams.get(own.name, Seat())
            begin_ms = period.start_ms if seat.first_ms is None else seat.first_ms
            end_ms = period.end_ms if seat.last_ms is None else min(period.end_ms, seat.last_ms)
            hours = list(hours_between(max(begin_ms, period.start_ms), end_ms))
            for hour in hours:
                if not is_flagged(document, own.name, hour):
                    raise Halted(
                        f"{own.name} {hour} is not ready: what belongs to it may still come, and "
                        "would be there after the rest was erased; nothing was asked for; "
                        f"next: headgate why {own.name} {hour}, and the same again once it is"
                    )
            if hours:
                span = (hours[0].start_ms, hours[-1].end_ms)
                found.append(self._asked(root, "erased", own.name, span, person, without))
        if not found:
            raise Halted(
                f"{period}: no stream has such an hour, so there is nothing to erase; "
                "next: headgate status"
            )
        return found

    def outlook(
        self, asked: Iterable[Asked], on_progress: OnProgress = lambda *_: None
    ) -> Iterator[GoingHour]:
        """What would go, hour by hour. Reads only. Raises Unavailable, Corrupt, Halted."""
        for one in asked:
            document, removal = self._read(one.root), one.removal
            root = next(root for root in self._roots if root.name == one.root)
            own = root.stream(removal.stream)
            hours = list(hours_of(document, removal))
            if own is None or not hours:
                continue
            behind = list(tables_behind(self._store, own.name, str(hours[-1]), removal.without))
            kept = read(self._store, stream_key(own.name), StreamDocument)
            shards = 1 if kept is None else kept.value.shards
            for done, hour in enumerate(hours):
                on_progress(done, len(hours), f"looking at {own.name}")
                going = self._going(own, hour, shards, obstacle(document, removal, behind, hour))
                if going is not None:
                    yield going

    def ask(self, asked: Iterable[Asked]) -> None:
        """The ledger first, then each root. Raises Halted, Unavailable, OutcomeUnknown."""
        for one in asked:
            removal = one.removal
            first, last = Period(removal.from_ms, "hour"), Period(removal.until_ms, "hour")
            self._ledger.note(
                f"lake.{'expire' if removal.how == 'expired' else 'erase'}",
                removal.stream,
                f"{removal.wish.reason}: {first} to {last.previous()}",
                id=self._ambient.new_id(),
                who=removal.wish.who,
            )
            decide = partial(removal_asked, root_key(one.root), removal=removal)
            change(self._store, root_key(one.root), RootDocument, decide)

    def left(self, asked: Iterable[Asked]) -> int:
        """Hours of it that are not done. Raises Unavailable, Corrupt."""
        count = 0
        for one in asked:
            document, wanted = self._read(one.root), one.removal
            for known in document.removals:
                if (known.stream, known.how) == (wanted.stream, wanted.how):
                    from_ms = max(known.from_ms, wanted.from_ms)
                    until_ms = min(known.until_ms, wanted.until_ms)
                    removed = document.streams.get(wanted.stream, Seat()).removed
                    count += sum(
                        wanted.how == "erased" or how_of(removed, hour) is None
                        for hour in hours_between(from_ms, until_ms)
                    )
        return count

    def troubles(self, asked: Iterable[Asked]) -> list[str]:
        """Why something of it stands still. Raises Unavailable, Corrupt."""
        found = (
            self._read(one.root).troubles.get(removal_subject(one.removal), "") for one in asked
        )
        return list(dict.fromkeys(words for words in found if words))

    def _going(self, stream: ReadyStream, hour: Period, shards: int, why: str) -> GoingHour | None:
        """None: nothing of it is left."""
        certificate = required(self._lake, hour, stream.name).certificate
        if not isinstance(certificate, Certificate):
            return None
        before = statements_of(self._lake, stream.name, str(hour))
        gone = {file.path for one in before for file in one.every}
        files = [one for one in certificate.files if one.path not in gone]
        late = [one for one in late_files(self._lake, stream, hour, shards) if one.path not in gone]
        if before and not files and not late:
            return None
        every = (*files, *late)
        size_bytes, rows = sum(one.size_bytes for one in every), sum(one.rows for one in every)
        return GoingHour(stream.name, hour, len(files), len(late), size_bytes, rows, why)

    def _asked(
        self,
        root: RootSettings,
        how: How,
        stream: str,
        span: tuple[int, int],
        person: Person,
        without: Sequence[str],
    ) -> Asked:
        wish = Wish(person.reason, person.who, self._ambient.wall_ns() // 1_000_000)
        return Asked(root.name, Removal(how, stream, *span, wish, tuple(sorted(without))))

    def _chosen(self, stream: str) -> Iterator[tuple[RootSettings, ReadyStream]]:
        every = [(root, own) for root in self._roots for own in root.streams]
        if stream and all(own.name != stream for _, own in every):
            raise Invalid(
                f"no stream {stream!r} in the settings: where its files lie is not known; "
                "next: headgate stream ls"
            )
        yield from ((root, own) for root, own in every if not stream or own.name == stream)

    def _read(self, root: str) -> RootDocument:
        found = read(self._store, root_key(root), RootDocument)
        return RootDocument() if found is None else found.value
