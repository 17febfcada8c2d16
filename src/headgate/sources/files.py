"""Files: a folder into which somebody drops files, as a source.

    look:   scan ── new ones get their numbers, those that are gone are marked as lost
    plan:   numbered files from the position on, of one shape
    settle: what was read is kept and known, moved, or deleted

A file is its path, size and modification time; with another one it is another file. It belongs to
the lane its path hashes to, and gets its number there once, within one look in the order of names.
A position is the next number to read. Whoever holds the lane reads it: all that has to be known is
in the store (`lanes`), and the folder is the same on every node.

The folder is looked at the less often the longer that takes: a look soon after the last one answers
from memory. A plan is empty and yet `has_more` if its first file is gone since: look again.

One thread at a time.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from shlex import quote

from headgate.ambient import Ambient
from headgate.engine import InputFile, Tally
from headgate.errors import Conflict, Corrupt, Invalid, Unavailable
from headgate.sources import FilesSettings, Gap, Plan, Range, Waiting
from headgate.sources.away import Away
from headgate.sources.book import Book, check_lanes
from headgate.sources.folder import Folder, digest_of
from headgate.sources.glance import Found, Glance, Glancing
from headgate.sources.lanes import BATCHES_MAX, UNREAD_FILES_MAX, Shaped
from headgate.sources.origins import files_origin
from headgate.sources.picking import PLAN_FILES_MAX, Candidate, pick
from headgate.sources.reckoning import reconcile
from headgate.sources.shapes import SchemaOf, columns_of
from headgate.store import DocumentStore

LOOK_MS_MIN = 1_000
LOOK_DURATIONS = 20  # at most a twentieth of the time is spent with looking
FORGET_MS = 30 * 24 * 3_600_000  # so long a kept file may be out of sight and is still known
UNREADABLE_SHOWN = 10

log = logging.getLogger(__name__)


class FilesSource:
    """Implements `headgate.sources.Source`."""

    def __init__(
        self,
        settings: FilesSettings,
        stream: str,
        partitions: Sequence[str],
        epoch: int,
        store: DocumentStore,
        folder: Folder,
        ambient: Ambient,
        schema_of: SchemaOf = lambda _path: (),
    ) -> None:
        """Raises Invalid."""
        _check(settings, partitions)
        self._settings = settings
        self._stream = stream
        self._store = store
        self._are_lanes_checked = False
        self._partitions = tuple(partitions)
        self._folder = folder
        self._ambient = ambient
        self._schema_of = schema_of
        self._books = {lane: Book(store, stream, lane, epoch, ambient) for lane in partitions}
        self._glancing = Glancing(settings)
        self._glance: Glance | None = None
        self._fresh_until_ms = 0
        self._forget_at_ms = ambient.monotonic_ms() + FORGET_MS
        self._ends: dict[str, tuple[int, int]] = {}  # by lane: nothing waits behind, as of when
        self._planned: dict[str, int] = {}  # up to there somebody may be reading
        self._warned: frozenset[str] = frozenset()
        self.unreadable: tuple[str, ...] = ()
        """Why some files get no number, as of the last look."""

    @property
    def _format(self) -> str:
        """As the reader knows it: csv whose first line is no header is bare."""
        is_bare = self._settings.format == "csv" and self._settings.columns
        return "csv-bare" if is_bare else self._settings.format

    @property
    def clock_behind_ms(self) -> int:
        """By how much the wall clock is behind the latest arrival on record. Raises Unavailable."""
        now_ms = self._ambient.wall_ns() // 1_000_000
        seen_ms = max((book.lane.seen_ms for book in self._books.values()), default=0)
        return max(0, seen_ms - now_ms)

    def partitions(self) -> tuple[str, ...]:
        return self._partitions

    def look(self, positions: Mapping[str, str], *, is_fresh: bool = False) -> Waiting:
        """`is_fresh`: look at the folder in any case."""
        self._open()
        for lane, book in self._books.items():
            _check_position(lane, number_of(positions, lane), book.lane.next)
        now_ms = self._ambient.monotonic_ms()
        if is_fresh or now_ms >= self._fresh_until_ms or self._has_room(positions):
            self._look(positions)
        return self._waiting(positions)

    def plan(
        self, positions: Mapping[str, str], *, size_bytes_max: int, until: Mapping[str, str] = {}
    ) -> Plan:
        wanted = tuple(until) or self._partitions
        waiting = {
            lane: self._candidates(lane, number_of(positions, lane), until.get(lane))
            for lane in wanted
        }
        picked = waiting if until else pick(waiting, size_bytes_max)
        there = {lane: self._there(lane, files, must=bool(until)) for lane, files in picked.items()}
        ranges = {
            lane: Range(positions.get(lane, ""), str(files[-1].number + 1))
            for lane, files in there.items()
            if files
        }
        ends = {lane: number_of(positions, lane) for lane in wanted}
        ends |= {lane: int(one.next) for lane, one in ranges.items()}
        self._planned |= ends
        read = [(lane, one) for lane, files in there.items() for one in files if one.has_records]
        return Plan(
            reader="files",
            format=self._format,
            # Of dead letters the first says only how they are written.
            columns=read[0][1].columns[self._settings.format == "dead" :] if read else (),
            ranges=ranges,
            files=tuple(self._input(lane, one) for lane, one in read),
            gaps=tuple(
                _gap(lane, one) for lane, files in there.items() for one in files if one.is_lost
            ),
            ends_ms={} if until else self._ends_ms(ends),
            has_more=self._has_more(ends),
            origin=files_origin(
                {
                    lane: [digest_of(one.entry) for one in files if not one.is_lost]
                    for lane, files in there.items()
                }
            ),
        )

    def confirm(self, plan: Plan) -> None:
        for file in plan.files:
            found = self._books[file.partition].find(file.number)
            if found is None or self._folder.stat(found[0].path) != found[0]:
                self._fresh_until_ms = 0
                raise Conflict(
                    f"{file.path}: changed or vanished while it was read; nothing of it is "
                    "committed; next: plan again"
                )

    def reconcile(self, plan: Plan, tallies: Sequence[Tally]) -> None:
        reconcile(plan, tallies)

    def settle(self, positions: Mapping[str, str]) -> None:
        self._open()
        for lane, book in self._books.items():
            position = number_of(positions, lane)
            if self._settings.after_read == "keep":
                try:
                    book.fold(position)
                except Conflict as error:  # another instance of this holder
                    raise Unavailable(str(error)) from error
            else:
                Away(self._settings, lane, book, self._folder).settle(position)

    def _open(self) -> None:
        if not self._are_lanes_checked:
            check_lanes(self._store, self._stream, self._settings.prefix, self._settings.lanes)
            self._are_lanes_checked = True
        for book in self._books.values():
            book.open()

    def _look(self, positions: Mapping[str, str]) -> None:
        started_ms = self._ambient.monotonic_ms()
        wall_ns = self._ambient.wall_ns()  # before the scan: it is what the proof is worth
        self._ends, self._fresh_until_ms = {}, 0
        ident = self._ident()
        rooms = {lane: self._room(lane, positions) for lane in self._partitions}
        glance = self._glancing.sort_out(
            self._folder.scan() if ident else (), self._books, rooms, wall_ns, started_ms
        )
        self._note_folder(ident, glance)
        refused = [self._blind(path) for path in glance.blind]
        for lane, found in glance.lanes.items():
            self._mark_lost(lane, number_of(positions, lane), found)
            is_complete = self._number(lane, found, refused)
            if is_complete and not (found.young or glance.unfinished or glance.blind):
                self._ends[lane] = (wall_ns // 1_000_000, self._books[lane].lane.next)
        self._warn(refused)
        self._glance = glance
        if not glance.blind:  # what could not be looked into may hold them all
            self._forget()
        now_ms = self._ambient.monotonic_ms()
        self._fresh_until_ms = now_ms + max(LOOK_MS_MIN, LOOK_DURATIONS * (now_ms - started_ms))

    def _ident(self) -> str:
        """Our own dead letters have no folder before the first is driven in again. Raises
        Unavailable."""
        ident = self._folder.ident()
        if not ident and self._settings.format != "dead":
            path = self._settings.path
            raise Unavailable(f"{path}: is not there; next: mount it, or mkdir -p {quote(path)}")
        return ident

    def _note_folder(self, ident: str, glance: Glance) -> None:
        """An empty mount point must not look like a folder that is idle. Raises Unavailable."""
        for book in self._books.values():
            lane = book.lane
            if lane.folder == ident or not ident:
                continue
            if lane.folder and glance.entries == 0:
                raise Unavailable(
                    f"{self._settings.path}: is empty, and is not the folder that was there "
                    "before: is a disk not mounted? Nothing is read, and no hour is complete. "
                    "Next: mount it; if it is meant to be so, put an empty file named .keep into it"
                )
            book.note_folder(ident)

    def _mark_lost(self, lane: str, position: int, found: Found) -> None:
        """Unread files that are not there any more. Nobody may be reading them: their identity is
        free from now on."""
        book = self._books[lane]
        first = max(position, self._planned.get(lane, 0))
        book.mark_lost(
            [
                one.number
                for one in book.numbered_from(first)
                if not one.is_lost
                and one.number not in found.seen
                and self._folder.stat(one.entry.path) != one.entry
            ]
        )

    def _number(self, lane: str, found: Found, refused: list[str]) -> bool:
        """Is everything numbered that was found?"""
        shaped: list[Shaped] = []
        for entry in found.new:
            try:
                columns = columns_of(self._settings, self._folder, self._schema_of, entry)
            except Invalid as error:
                refused.append(str(error))
                found.refused += 1
                continue
            if self._folder.stat(entry.path) == entry:  # asked after its head: that belongs to it
                shaped.append(Shaped(entry, columns))
        if shaped:
            self._books[lane].number(shaped)
        return len(shaped) == len(found.new) and found.beyond_files == 0

    def _blind(self, path: str) -> str:
        place = self._folder.absolute(path)
        return f"{place}: cannot be looked into; next: ls -ld {quote(place)}"

    def _warn(self, refused: Sequence[str]) -> None:
        for reason in sorted({*refused} - self._warned)[:UNREADABLE_SHOWN]:
            log.warning("source.file_cannot_be_read", extra={"reason": reason})
        self._warned = frozenset(refused)
        self.unreadable = tuple(sorted(self._warned)[:UNREADABLE_SHOWN])

    def _forget(self) -> None:
        now_ms = self._ambient.monotonic_ms()
        if now_ms >= self._forget_at_ms:
            for book in self._books.values():
                book.forget_unseen()
            self._forget_at_ms = now_ms + FORGET_MS

    def _room(self, lane: str, positions: Mapping[str, str]) -> int:
        state = self._books[lane].lane
        if len(state.batches) >= BATCHES_MAX:
            return 0
        return max(0, UNREAD_FILES_MAX - (state.next - number_of(positions, lane)))

    def _has_room(self, positions: Mapping[str, str]) -> bool:
        """For what was seen, and got no number because too much was waiting."""
        lanes = {} if self._glance is None else self._glance.lanes
        return any(
            found.beyond_files > 0 and 2 * self._room(lane, positions) >= UNREAD_FILES_MAX
            for lane, found in lanes.items()
        )

    def _waiting(self, positions: Mapping[str, str]) -> Waiting:
        glance = self._glance or Glance({})
        found = glance.lanes.values()
        unread = [
            one
            for lane in self._partitions
            for one in self._books[lane].numbered_from(number_of(positions, lane))
            if not one.is_lost
        ]
        return Waiting(
            files=len(unread) + sum(one.beyond_files for one in found),
            size_bytes=sum(one.entry.size_bytes for one in unread)
            + sum(one.beyond_bytes for one in found),
            oldest_ms=min((one.arrival_ms for one in unread), default=None),
            unfinished=glance.unfinished + sum(one.young for one in found),
            unreadable=len(glance.blind) + sum(one.refused for one in found),
            why=next(iter(self.unreadable), ""),
        )

    def _candidates(self, lane: str, position: int, until: str | None) -> list[Candidate]:
        """Raises Unavailable, Corrupt."""
        files = self._books[lane].numbered_from(position)
        if until is None:
            return list(islice(files, PLAN_FILES_MAX))
        end = _number(lane, until)
        found = list(takewhile(lambda one: one.number < end, files))
        if (found[-1].number + 1 if found else position) != end:
            raise _rolled_back(lane, end, self._books[lane].lane.next)
        return found

    def _there(self, lane: str, files: Sequence[Candidate], *, must: bool) -> list[Candidate]:
        """Up to the first that is not there any more: the next look decides what becomes of that.
        `must`: all of them. Raises Unavailable: one is missing, and no look has found it lost."""
        there = []
        for one in files:
            is_there = not one.has_records or self._folder.stat(one.entry.path) == one.entry
            if not is_there:
                self._fresh_until_ms = 0
                log.info("source.file_gone", extra={"partition": lane, "path": one.entry.path})
                if must:
                    raise Unavailable(f"{one.entry.path}: is not there now; next: look again")
                break
            there.append(one)
        return there

    def _input(self, lane: str, one: Candidate) -> InputFile:
        path = self._folder.absolute(one.entry.path)
        return InputFile(lane, one.number, path, one.entry.size_bytes, one.arrival_ms)

    def _ends_ms(self, ends: Mapping[str, int]) -> dict[str, int]:
        return {
            lane: seen_ms
            for lane, (seen_ms, behind) in self._ends.items()
            if ends.get(lane) == behind
        }

    def _has_more(self, ends: Mapping[str, int]) -> bool:
        lanes = {} if self._glance is None else self._glance.lanes
        is_beyond = any(found.beyond_files > 0 for found in lanes.values())
        return is_beyond or any(end < self._books[lane].lane.next for lane, end in ends.items())


def number_of(positions: Mapping[str, str], lane: str) -> int:
    """The next number to read. Raises Corrupt."""
    return _number(lane, positions.get(lane, ""))


def _number(lane: str, position: str) -> int:
    if position and not (position.isascii() and position.isdecimal()):
        raise Corrupt(f"{lane}: {position!r} is no position in a lane of files")
    return int(position or "0")


def _gap(lane: str, one: Candidate) -> Gap:
    reason = (
        f"{one.entry.path} vanished or changed before it was read"
        if one.entry.path
        else "these numbers were dealt with before, and their files are no longer known"
    )
    return Gap(lane, str(one.first), str(one.number + 1), reason)


def _check_position(lane: str, position: int, end: int) -> None:
    """Else new files would get numbers that count as read, and be lost. Raises Corrupt."""
    if position > end:
        raise _rolled_back(lane, position, end)


def _rolled_back(lane: str, position: int, end: int) -> Corrupt:
    return Corrupt(
        f"{lane}: its position is {position:,}, and only {end:,} files have a number. The store "
        "was rolled back, or a part of it was lost; what depends on it stops. Next: stop all nodes "
        "and restore the store from a backup"
    )


def _check(settings: FilesSettings, partitions: Sequence[str]) -> None:
    names = [f"{settings.prefix}-{n}" for n in range(settings.lanes)]
    unknown = sorted({*partitions} - {*names})
    if unknown:
        raise Invalid(f"{unknown[0]}: this source has {settings.lanes} lanes: {', '.join(names)}")
    if settings.after_read == "move" and settings.format != "dead":  # that place is ours
        inside = f"{settings.move_to}/".startswith(f"{settings.path}/")
        if inside or not settings.move_to.startswith("/"):
            raise Invalid(
                f"move_to {settings.move_to!r}: must be an absolute path outside {settings.path}, "
                "or what was read would be read again; next: choose another folder"
            )
