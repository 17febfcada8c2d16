"""Confluence: where streams, flags and tables meet. What must be true there in the end.

Every record that a brook gave out is in the lake once, and on time unless it came too late by its
own source partition; every hour that is over has its flags, and the parents theirs; every table has
every hour once and in order, or a person let it pass. What a person deleted is named, and nothing
else is. Read from files and documents alone, as anybody could.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from headgate.apply import TableSettings
from headgate.apply.table_document import TableDocument, table_key
from headgate.audit import Finding
from headgate.audit.inspection import audit
from headgate.audit.verifying import verify
from headgate.backlog.queue import entries
from headgate.commits.certificate import certificate_folder, flag_paths, parent_flag_path
from headgate.commits.record import COMMITS, from_bytes
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.commits.streams import StreamDocument, stream_key
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import folder_of, name_of
from headgate.landing.names import DEAD, LATE, commit_of
from headgate.periods import DAY_MS, DEFAULT_FOLDER, FolderTemplate, Period, hours_between
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.codec import parse_text
from headgate.tables.parquet import MARK, PROOF, Proof
from headgate.testing.basin import Basin, Ladle
from headgate.testing.estuary import Estuary

FOLDER = FolderTemplate.parse(DEFAULT_FOLDER)
ROOT = root_name(FOLDER)

Heard = Callable[[str], None]


class Reach(MemoryLake):
    """A lake that tells at once what got a name, and what lost its own."""

    def __init__(self) -> None:
        super().__init__()
        self.on_published: list[Heard] = []

    def publish(self, staged: str, published: str) -> None:
        super().publish(staged, published)
        for heard in self.on_published:
            heard(published)


class Pool(Basin):
    """A basin that tells at once what entered its table."""

    def __init__(self) -> None:
        super().__init__()
        self.on_published: list[Heard] = []

    def publish_folder(self, staged: str, published: str) -> None:
        super().publish_folder(staged, published)
        for heard in self.on_published:
            heard(published)

    def proofs(self) -> Iterator[tuple[str, Proof]]:
        """Of every run that is in the table, with its folder."""
        for path, content in self.files().items():
            if path.startswith("headgate_batch=") and name_of(path) == PROOF:
                yield path.removesuffix(f"/{PROOF}"), parse_text(content, path, Proof)


@dataclass(slots=True)
class Waters:
    """What all machines share, but for the store; and what persons took away."""

    lake: Reach
    streams: dict[str, Estuary]
    tables: dict[str, TableSettings]
    pools: dict[str, Pool]
    ladle: Ladle
    joined_ms: dict[tuple[str, str], int] = field(default_factory=dict)  # stream, source partition
    gone: dict[str, bytes] = field(default_factory=dict)  # published data files
    mended: set[str] = field(default_factory=set)  # those of them that were put back
    gone_flags: set[str] = field(default_factory=set)
    unmarked: set[str] = field(default_factory=set)  # tables that lost their mark
    poison: frozenset[str] = frozenset()  # words in paths that no table can take

    def may_halt(self, table: str, batch: str) -> bool:
        """Whether something happened by which this batch can fail."""
        if table in self.unmarked:
            return True
        here = (self.tables[table].stream, Period.parse(batch))
        files = [path for path in (*self.lake.files(), *self.gone) if self.place(path) == here]
        is_poison = any(word in path for path in files for word in self.poison)
        return is_poison or any(path in self.gone or path in self.mended for path in files)

    def place(self, path: str) -> tuple[str, Period] | None:
        """Stream and hour of a data file that is on time; None: it is something else."""
        if commit_of(name_of(path)) is None:
            return None
        found = FOLDER.match_file(path)
        if found is None or found[0].stream is None:
            return None
        return found[0].stream, found[0].period

    def missing_flags(self, store: DocumentStore, until_ms: int) -> list[str]:
        """Of all hours and days that end by then."""
        firsts = first_hours(store, self.streams)
        wanted: list[str] = []
        for name, first_ms in firsts.items():
            for hour in hours_between(first_ms, until_ms):
                wanted += flag_paths(FOLDER, hour, name)
        for hour in hours_between(min(firsts.values(), default=until_ms), until_ms):
            wanted.append(parent_flag_path(FOLDER, hour) or "")
            if hour.end_ms % DAY_MS == 0:
                wanted.append(parent_flag_path(FOLDER, hour.day()) or "")
        return [path for path in wanted if self.lake.facts(path) is None]


def first_hours(store: DocumentStore, streams: Iterable[str]) -> dict[str, int]:
    found = {name: read(store, stream_key(name), StreamDocument) for name in streams}
    return {
        name: kept.value.first_hour_ms
        for name, kept in found.items()
        if kept is not None and kept.value.first_hour_ms is not None
    }


def is_over(waters: Waters, store: DocumentStore, until_ms: int) -> bool:
    """Everything has landed; what ends by then is flagged; and the tables have it."""
    if not all(one.is_landed(store) for one in waters.streams.values()):
        return False
    kept = read(store, root_key(ROOT), RootDocument)
    if kept is None:
        return False
    root = kept.value
    seats = [root.streams.get(name) for name in waters.streams]
    is_flagged = all(seat is not None and (seat.frontier_ms or 0) >= until_ms for seat in seats)
    is_quiet = not (root.journal or root.wishes or root.reopened or root.repair)
    if not (is_flagged and is_quiet and (root.hours_ms or 0) >= until_ms):
        return False
    firsts = first_hours(store, waters.streams)
    begun = [one for one in waters.tables.values() if firsts.get(one.stream, 0) < until_ms]
    return all(_is_caught_up(store, one.name, until_ms) for one in begun)


def _is_caught_up(store: DocumentStore, table: str, until_ms: int) -> bool:
    kept = read(store, table_key(table), TableDocument)
    if kept is None or kept.value.state != "running" or kept.value.current is not None:
        return False
    last = Period.hour_of(until_ms - 1)
    return kept.value.applied_up_to >= str(last) and not list(entries(store, table))


def faults(waters: Waters, store: DocumentStore, until_ms: int, slack_ms: int) -> list[str]:
    """What is wrong, if everything should be over. `slack_ms`: how wrong the store's clock was."""
    found = [*_records(waters), *_made_late(waters, store, slack_ms)]
    found += [f"{path}: is missing" for path in waters.missing_flags(store, until_ms)]
    for name in waters.tables:
        found += _table(waters, store, name, until_ms)
    return [*found, *_findings(waters, store)]


# Records


def ids_of(content: bytes) -> list[int]:
    return [json.loads(line)["id"] for line in content.decode().splitlines()]


def _records(waters: Waters) -> Iterator[str]:
    landed: Counter[int] = Counter()
    events = {
        speck.id: speck.event_ms
        for one in waters.streams.values()
        for drops in one.brook.drops.values()
        for drop in drops
        for speck in drop.specks
    }
    for path, content in waters.lake.files().items():
        place = waters.place(path)
        if place is None and not path.startswith((f"{LATE}/", f"{DEAD}/")):
            continue
        landed.update(ids_of(content))
        for one in () if place is None else ids_of(content):
            event_ms = events[one]
            if event_ms is None or not place[1].contains(event_ms):  # type: ignore[index]
                yield f"record {one} is in {path}, and is of another hour"
    taken = {one for content in waters.gone.values() for one in ids_of(content)}
    for one in sorted(set(events) - set(landed) - taken):
        yield f"record {one} is lost"
    for one, count in sorted(landed.items()):
        if count > 1:
            yield f"record {one} is there {count} times"


def _made_late(waters: Waters, store: DocumentStore, slack_ms: int) -> Iterator[str]:
    """A source partition that was there before an hour's end plus lateness holds that hour back
    until its first commit: what that one reads of it is on time."""
    firsts = first_hours(store, waters.streams)
    files = waters.lake.files()
    for path, raw in files.items():
        if not path.startswith(f"{COMMITS}/"):
            continue
        stream, record = path.split("/")[2], from_bytes(raw, path)
        lateness_ms = waters.streams[stream].settings.allowed_lateness_ms
        for file in record.files:
            if file.kind != "late" or file.published not in files:
                continue
            hour = Period.parse(file.period)
            for line in files[file.published].decode().splitlines():
                partition = json.loads(line)["at"].partition("/")[0]
                mark = record.watermarks.get(partition)
                is_first = mark is None or mark.before_ms is None
                is_there = (
                    waters.joined_ms[stream, partition] < hour.end_ms + lateness_ms - slack_ms
                )
                if is_first and is_there and hour.start_ms >= firsts[stream]:
                    yield f"{file.published}: a record of {partition} was made late"


# Tables


def _table(waters: Waters, store: DocumentStore, table: str, until_ms: int) -> Iterator[str]:
    settings, pool = waters.tables[table], waters.pools[table]
    kept = read(store, table_key(table), TableDocument)
    first_ms = first_hours(store, [settings.stream]).get(settings.stream)
    if kept is None or first_ms is None or not kept.value.applied_up_to:
        if first_ms is None or first_ms < until_ms:
            yield f"table {table}: nothing was ever applied"
        return
    document = kept.value
    passed = {one.batch for one in document.passed}
    runs = [(folder, proof) for folder, proof in pool.proofs() if proof.kind == "rows"]
    counts = Counter(proof.batch for _, proof in runs)
    wanted = [str(h) for h in hours_between(first_ms, Period.parse(document.applied_up_to).end_ms)]
    for batch in wanted:
        if counts[batch] != (batch not in passed):
            yield f"table {table}: has {batch} {counts[batch]} times (invariant 8)"
    for batch in sorted(set(counts) - set(wanted)):
        yield f"table {table}: has {batch}, which nobody says is applied (invariant 8)"
    for folder, proof in runs:
        yield from _batch(waters, settings, pool, folder, proof)


def _batch(
    waters: Waters, settings: TableSettings, pool: Pool, folder: str, proof: Proof
) -> Iterator[str]:
    here = (settings.stream, Period.parse(proof.batch))
    every = {**waters.lake.files(), **waters.gone}
    landed = [
        one for path, raw in every.items() if waters.place(path) == here for one in ids_of(raw)
    ]
    applied = [
        one
        for path, raw in pool.files().items()
        if path.startswith(f"{folder}/") and name_of(path) != PROOF
        for one in ids_of(raw)
    ]
    if sorted(landed) != sorted(applied):
        what = f"has {sorted(applied)}, and {sorted(landed)} landed"
        yield f"table {settings.name}: {proof.batch} {what}"


# Audit and verify


def _findings(waters: Waters, store: DocumentStore) -> Iterator[str]:
    streams = {name: one.settings for name, one in waters.streams.items()}
    audited = audit(
        store,
        waters.lake,
        streams,
        tables=list(waters.tables.values()),
        open_site=lambda table: waters.pools[table.name],
    ).findings
    verified = verify(waters.lake, {name: one.folder for name, one in streams.items()}).findings
    unmarked = {
        table.path
        for name, table in waters.tables.items()
        if waters.pools[name].facts(MARK) is None and any(waters.pools[name].proofs())
    }
    yield from _named("audit", audited, {*waters.gone, *unmarked}, {*waters.gone, *unmarked})
    certified = {path for path in waters.gone if _is_certified(waters, path)}
    yield from _named("verify", verified, set(waters.gone), certified)


def _is_certified(waters: Waters, path: str) -> bool:
    place = waters.place(path)
    return place is not None and bool(waters.lake.list(certificate_folder(*place)).entries)


def _named(
    who: str, findings: Iterable[Finding], gone: set[str], wanted: set[str]
) -> Iterator[str]:
    """What a person deleted, all of it, and nothing else."""
    named: set[str] = set()
    for finding in findings:
        text = f"{finding.subject} {finding.words}"
        about = [path for path in gone if path in text]
        named.update(about)
        if about and " more" in finding.words:  # of one folder the first is named, and how many
            named.update(one for one in gone if folder_of(one) == folder_of(finding.subject))
        if not about:
            yield f"{who}, invariant {finding.invariant}: {text}"
    for path in sorted(wanted - named):
        yield f"{who}: does not name {path}, which a person deleted"
