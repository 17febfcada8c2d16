"""Locating: where a record of the source is in the lake, and where a file of the lake is from.

    position ──▶ its shard ──▶ the commit, by halving ──▶ the files of that commit ──▶ file and row
    file ──▶ the commit or the merge that its name says ──▶ ranges of the source

By records alone; then, of Parquet, only the columns that say where a row is from, of the files of
one commit. No folder of data is listed, and what it costs does not grow with the lake, but for one
more record to read each time the number of commits doubles.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from shlex import quote
from typing import Literal

from headgate.ambient import Ambient
from headgate.app.letters import Origins
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.merges import MergeRecord, merge_of, merge_path, merges_folder, read_merge
from headgate.commits.record import Record, RecordFile, RecordRange
from headgate.commits.replay import read_record
from headgate.commits.search import Reading, commit_that_read
from headgate.commits.streams import StreamDocument, stream_key
from headgate.engine.footers import places_of
from headgate.engine.rows import HEADGATE
from headgate.errors import Invalid
from headgate.lake import Lake
from headgate.lake.opening import place_of
from headgate.lake.pages import entries_of
from headgate.landing import StreamSettings
from headgate.landing.names import DEAD, REDRIVE, REDRIVEN, commit_of
from headgate.settings.problems import nearest
from headgate.sources import FilesSettings
from headgate.sources.book import Book
from headgate.sources.folder import lane_of
from headgate.sources.kafka.document import KafkaDocument, document_key
from headgate.sources.kafka.source import CLOSED
from headgate.status.streams import shards_of
from headgate.store import DocumentStore
from headgate.store.changes import read

PACKED = ".parquet"
SOURCES_MAX = 20  # of a commit, files of the source that are looked up by their number
COMMITS_NAMED = 20  # of a merged file, for which that is done

State = Literal["landed", "late", "dead", "gap", "not read yet", "before the start", "no record"]


@dataclass(frozen=True, slots=True)
class Holding:
    """A file that holds it, or may."""

    path: str
    kind: str  # data, late, dead
    hour: str  # "": it has none
    rows: int | None  # of it, in this file; None: the file was not opened
    row: int | None  # the first of them, from 0 on
    merged_from: str  # the file that its commit published; "": this one
    is_there: bool = True


@dataclass(frozen=True, slots=True)
class Located:
    stream: str
    partition: str
    position: str
    state: State
    words: str
    commit: str = ""  # STREAM/SHARD/NUMBER
    made_ms: int | None = None
    files: tuple[Holding, ...] = ()
    source: str = ""  # the file of the source that it is in; "": its name is not known any more

    @property
    def hours(self) -> tuple[str, ...]:
        return tuple(sorted({one.hour for one in self.files if one.hour}))


@dataclass(frozen=True, slots=True)
class Origin:
    """A commit that a file is from."""

    commit: str
    made_ms: int
    ranges: Mapping[str, RecordRange]  # of the whole commit, by source partition
    sources: tuple[str, ...] = ()  # files that it read, the first of those whose name is known


@dataclass(frozen=True, slots=True)
class FileOrigin:
    path: str
    stream: str
    kind: str
    hour: str
    rows: int
    commits: tuple[Origin, ...]  # of a merged file: of each file that went into it
    merge: str  # the record of its merge; "": it is of one commit


class Locating:
    """For whoever has the store and the lake of an installation."""

    def __init__(
        self,
        store: DocumentStore,
        lake: Lake,
        streams: Mapping[str, StreamSettings],
        ambient: Ambient,
    ) -> None:
        self._store = store
        self._lake = lake
        self._streams = streams
        self._ambient = ambient

    def locate(self, stream: str, what: str) -> Located:
        """`what`: TOPIC/PARTITION/OFFSET, LANE/NUMBER, LANE/NUMBER:LINE, or the path of a file of
        the source. Raises Invalid (there is no such one), Corrupt, Unavailable."""
        checkpoints = self._checkpoints(stream)
        partition, number, line = self._asked(stream, what, checkpoints)
        shard, checkpoint = next(
            (shard, one) for shard, one in checkpoints.items() if partition in one.positions
        )
        last = checkpoint.number - (checkpoint.journal is not None)
        found = commit_that_read(
            partial(read_record, self._lake, stream, shard),
            last,
            partition,
            number,
            lambda position: position == CLOSED,
        )
        position = f"{number}" if line is None else f"{number}:{line}"
        if found is None:
            waits = f"the next one to read is {checkpoint.positions[partition] or 'the first'}"
            told = Located(stream, partition, position, "not read yet", waits)
        else:
            told = self._in_commit(stream, shard, partition, number, line, position, found)
        return replace(told, source=self._sources(stream).of(partition, number).path)

    def _in_commit(
        self,
        stream: str,
        shard: int,
        partition: str,
        number: int,
        line: int | None,
        position: str,
        found: Reading,
    ) -> Located:
        record = found.record
        commit = f"{stream}/{shard}/{record.number}"

        def told(state: State, words: str, files: tuple[Holding, ...] = ()) -> Located:
            return Located(stream, partition, position, state, words, commit, record.made_ms, files)

        for gap in record.gaps:
            end = number + 1 if gap.next == CLOSED else int(gap.next)
            if gap.partition == partition and int(gap.first or 0) <= number < end:
                return told("gap", gap.reason)
        start = self._start(stream, partition)
        if number < max(found.first, start or 0):
            return told("before the start", f"reading of it began at {start or found.first:,}")
        wanted: dict[str, str | int] = {"partition": partition, "number": number}
        if line is not None:
            wanted["line"] = line
        files = tuple(self._holding(stream, record, wanted))
        sure = tuple(one for one in files if one.rows is None or one.rows > 0)
        if not sure:
            return told("no record", _NO_RECORD)
        kinds = {one.kind for one in sure}
        states: dict[str, State] = {"data": "landed", "late": "late", "dead": "dead"}
        state = states[kinds.pop()] if len(kinds) == 1 else "landed"
        is_open = any(one.rows is None for one in sure)
        return told(state, _ONE_OF if is_open and len(sure) > 1 else "", sure)

    def _holding(
        self, stream: str, record: Record, wanted: Mapping[str, str | int]
    ) -> Iterator[Holding]:
        merges: dict[str, list[MergeRecord]] = {}
        for file in record.files:
            path, is_there = self._now(stream, file, merges)
            rows = row = None
            if is_there and path.endswith(PACKED):
                with self._lake.open(path) as opened:
                    rows, row = places_of(path, HEADGATE, wanted, opened)
            landed_as = "" if path == file.published else file.published
            yield Holding(path, file.kind, file.period, rows, row, landed_as, is_there)

    def _now(
        self, stream: str, file: RecordFile, merges: dict[str, list[MergeRecord]]
    ) -> tuple[str, bool]:
        """Where its rows are now, and whether they are: somebody may have removed them."""
        published = file.published
        if self._lake.facts(published) is not None:
            return published, True
        if file.kind == "data":
            name = file.output or stream
            key = f"{name}/{file.period}"
            if key not in merges:
                merges[key] = list(self._merges(name, file.period))
            for merge in merges[key]:
                for output in merge.outputs:
                    if any(one.path == published for one in output.inputs):
                        is_there = self._lake.facts(output.published) is not None
                        return output.published, is_there
        for room in (REDRIVE, REDRIVEN):
            moved = f"{room}/{published.removeprefix(f'{DEAD}/')}"
            if published.startswith(f"{DEAD}/") and self._lake.facts(moved) is not None:
                return moved, True
        return published, False

    def _merges(self, stream: str, period: str) -> Iterator[MergeRecord]:
        """The newest first."""
        entries = [one.path for one in entries_of(self._lake, f"{merges_folder(stream)}/{period}")]
        for path in reversed(entries):
            number = path.rpartition("/")[2].removesuffix(".json")
            found = read_merge(self._lake, stream, period, int(number))
            if found is not None:
                yield found

    # What is asked for

    def _asked(
        self, stream: str, what: str, checkpoints: Mapping[int, Checkpoint]
    ) -> tuple[str, int, int | None]:
        known = [name for one in checkpoints.values() for name in one.positions]
        partition, _, rest = what.rpartition("/")
        number, colon, line = rest.partition(":")
        is_number = number.isascii() and number.isdecimal()
        is_line = not colon or (line.isascii() and line.isdecimal())
        if partition in known and is_number and is_line:
            return partition, int(number), int(line) if colon else None
        own = self._streams.get(stream)
        if own is not None and isinstance(own.source, FilesSettings):
            found = self._number_of(own, own.source, what)
            if found is not None:
                return *found, None
        near = nearest(partition or what, known)
        hint = f"the nearest source partition is {near!r}" if near else "nothing of it was read yet"
        raise Invalid(
            f"{what!r}: is no position of stream {stream}, and no file of its source that is known "
            f"by its name: {hint}; write {near or 'PARTITION'}/NUMBER; next: headgate status "
            f"{quote(stream)} names the source partitions"
        )

    def _number_of(
        self, stream: StreamSettings, source: FilesSettings, path: str
    ) -> tuple[str, int] | None:
        """Of a file that waits, or was read not long ago: later only its digest is known."""
        below = path.removeprefix(f"{source.path.rstrip('/')}/")
        lane = f"{source.prefix}-{lane_of(below, source.lanes)}"
        book = Book(self._store, stream.name, lane, 0, self._ambient)
        for batch in reversed(book.lane.batches):
            body = book.files_of(batch)
            for place in reversed(range(len(body.files))):
                if body.entry(place).path == below:
                    return lane, batch.first + place
        return None

    def _checkpoints(self, stream: str) -> dict[int, Checkpoint]:
        found = read(self._store, stream_key(stream), StreamDocument)
        shards = shards_of(self._streams.get(stream), None if found is None else found.value)
        kept = {n: read(self._store, checkpoint_key(stream, n), Checkpoint) for n in range(shards)}
        return {shard: one.value for shard, one in kept.items() if one is not None}

    def _sources(self, stream: str) -> Origins:
        own = self._streams.get(stream)
        files = own.source if own is not None and isinstance(own.source, FilesSettings) else None
        return Origins(self._store, self._lake, stream, files)

    def _start(self, stream: str, partition: str) -> int | None:
        found = read(self._store, document_key(stream), KafkaDocument)
        return None if found is None else found.value.starts.get(partition)

    # Back

    def origin(self, path: str, streams: Iterable[str]) -> FileOrigin:
        """Of a file in the lake, by its path there or from the first / on. Raises Invalid: no
        commit and no merge of these streams has published it."""
        below = path.removeprefix(f"{place_of(self._lake)}/").removeprefix("./")
        name = below.rpartition("/")[2]
        commit, generation = commit_of(name), merge_of(name)
        for stream in streams:
            found = None
            if commit is not None:
                found = self._of_commit(stream, *commit, below)
            elif generation is not None:
                found = self._of_merge(stream, generation, below)
            if found is not None:
                return found
        raise Invalid(
            f"{path}: no commit and no merge of a known stream has published it; next: headgate "
            "audit says what is in the lake and belongs to nothing"
        )

    def _of_commit(self, stream: str, shard: int, number: int, path: str) -> FileOrigin | None:
        record = read_record(self._lake, stream, shard, number)
        if record is None:
            return None
        published = path
        for room in (REDRIVE, REDRIVEN):
            if path.startswith(f"{room}/"):
                published = f"{DEAD}/{path.removeprefix(f'{room}/')}"
        for file in record.files:
            if file.published == published:
                origin = self._origin(record)
                return FileOrigin(path, stream, file.kind, file.period, file.rows, (origin,), "")
        return None

    def _origin(self, record: Record, names_max: int = SOURCES_MAX) -> Origin:
        commit = f"{record.stream}/{record.shard}/{record.number}"
        sources = self._sources(record.stream)
        names = (sources.of(*one).path for one in islice(numbers_read(record), names_max))
        return Origin(commit, record.made_ms, record.ranges, tuple(filter(None, names)))

    def _of_merge(self, stream: str, generation: int, path: str) -> FileOrigin | None:
        own = self._streams.get(stream)
        placed = None if own is None else own.folder.match_file(path)
        names = {stream, *(one.name for one in (() if own is None else own.flagged))}
        if placed is None or placed[0].stream not in names:
            return None
        period, lands = str(placed[0].period), placed[0].stream or stream
        merge = read_merge(self._lake, lands, period, generation)
        outputs = [] if merge is None else [one for one in merge.outputs if one.published == path]
        if not outputs:
            return None
        commits: dict[tuple[int, int], Origin] = {}
        for one in outputs[0].inputs:
            said = commit_of(one.path.rpartition("/")[2])
            record = None if said is None else read_record(self._lake, stream, *said)
            if said is not None and record is not None:
                names_max = SOURCES_MAX if len(commits) < COMMITS_NAMED else 0
                commits[said] = self._origin(record, names_max)
        origins = tuple(commits[one] for one in sorted(commits))
        where = merge_path(lands, period, generation)
        return FileOrigin(path, stream, "data", period, outputs[0].rows, origins, where)


def numbers_read(record: Record) -> Iterator[tuple[str, int]]:
    """Of files, by lane and number; of a log none."""
    for lane, span in sorted(record.ranges.items()):
        if "/" in lane:
            continue
        own = [gap for gap in record.gaps if gap.partition == lane]
        gone = [range(int(gap.first or 0), int(gap.next)) for gap in own]
        for number in range(int(span.first or 0), int(span.next or 0)):
            if not any(number in one for one in gone):
                yield lane, number


_NO_RECORD = (
    "its commit read past it, and no record is there: the end of a transaction, one that was "
    "aborted, what compaction took away, a blank line or a header"
)
_ONE_OF = "it is in one of these files, which are not opened: only Parquet says where a row is from"
