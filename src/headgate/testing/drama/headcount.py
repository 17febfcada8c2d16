"""Headcount: what lies in the lake and in a table, record by record. No document is asked.

Every published Parquet file is read. A record is where its event time says, or among the late ones,
once; a table has each hour of the lake as one batch, in order, and no other rows.
"""

import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headgate.engine.footers import texts_of
from headgate.lake.paths import OURS
from headgate.landing.names import DEAD, LATE
from headgate.periods import HOUR_MS, FolderTemplate, Period, escape_name, hours_between
from headgate.store.codec import parse_text
from headgate.tables.parquet import PROOF, Proof

IDS_SHOWN = 5
NOWHERE, IS_LATE, FIRST_HOUR = 0, 1, 2  # where an id lies: from the last on, the hours in turn


@dataclass(frozen=True, slots=True)
class Dropped:
    """What somebody dropped for a stream: what the lake must hold."""

    ids: range
    hours: Mapping[int, int]  # by the start of the hour: records on time
    late: int
    dead: int

    @property
    def records(self) -> int:
        return len(self.ids)


@dataclass(slots=True)
class LakeCount:
    """What lies in the lake for a stream."""

    ids: range
    hours: Counter[int] = field(default_factory=Counter)  # by the start of the hour
    late: int = 0
    dead: int = 0
    files: int = 0
    doubled: list[int] = field(default_factory=list)
    astray: list[int] = field(default_factory=list)  # in an hour that is not that of its event time
    strangers: int = 0  # ids that nobody dropped
    places: "array[int]" = field(default_factory=lambda: array("H"))
    seen: list[int] = field(default_factory=list)  # hours in the order of their places

    @property
    def missing(self) -> list[int]:
        return [one for one, place in zip(self.ids, self.places, strict=True) if place == NOWHERE]

    def hour_of(self, one: int) -> int | None:
        """The start of the hour it lies in, on time; None: elsewhere."""
        place = self.places[one - self.ids.start] if one in self.ids else NOWHERE
        return None if place < FIRST_HOUR else self.seen[place - FIRST_HOUR]


def count_lake(lake: Path, template: FolderTemplate, stream: str, ids: range) -> LakeCount:
    """Raises Unavailable, Corrupt."""
    found = LakeCount(ids, places=array("H", bytes(2 * len(ids))))
    places: dict[int, int] = {}
    for path in sorted(lake.rglob("*.parquet")):
        name = path.relative_to(lake).as_posix()
        if name.startswith(f"{OURS}/"):
            continue
        if name.startswith(f"{DEAD}/"):
            if name.split("/")[1] == escape_name(stream):
                found.dead += sum(1 for _ in texts_of(str(path), "value"))
            continue
        is_late = name.startswith(f"{LATE}/")
        place = template.match_file(name.removeprefix(f"{LATE}/"))
        if place is None or place[0].stream != stream:
            continue
        found.files += 1
        hour_ms = place[0].period.start_ms
        if not is_late and hour_ms not in places:
            places[hour_ms] = FIRST_HOUR + len(found.seen)
            found.seen.append(hour_ms)
        _count_file(found, path, hour_ms, IS_LATE if is_late else places[hour_ms])
    return found


def _count_file(found: LakeCount, path: Path, hour_ms: int, place: int) -> None:
    for text in texts_of(str(path), "value"):
        record = json.loads(text)
        one = record["id"]
        if one not in found.ids:
            found.strangers += 1
            continue
        if found.places[one - found.ids.start] != NOWHERE:
            found.doubled.append(one)
        found.places[one - found.ids.start] = place
        if not hour_ms <= record["at"] < hour_ms + HOUR_MS:
            found.astray.append(one)
        if place == IS_LATE:
            found.late += 1
        else:
            found.hours[hour_ms] += 1


def lake_faults(stream: str, wanted: Dropped, found: LakeCount) -> Iterator[str]:
    """Where the lake is not what was dropped; nothing: each record is there once, in its hour."""
    for ids, words in (
        (found.missing, "missing in the lake"),
        (found.doubled, "in the lake more than once"),
        (found.astray, "in the folder of another hour"),
    ):
        if ids:
            shown = ", ".join(map(str, ids[:IDS_SHOWN]))
            more = ", …" if len(ids) > IDS_SHOWN else ""
            yield f"{stream}: {len(ids):,} records are {words}: {shown}{more}"
    if found.strangers:
        yield f"{stream}: {found.strangers:,} records in the lake were never dropped"
    for what, is_, must in (
        ("late records", found.late, wanted.late),
        ("dead letters", found.dead, wanted.dead),
    ):
        if is_ != must:
            yield f"{stream}: {is_:,} {what}, and {must:,} were dropped"
    for hour_ms in sorted({*found.hours, *wanted.hours}):
        is_, must = found.hours[hour_ms], wanted.hours.get(hour_ms, 0)
        if is_ != must:
            hour = Period(hour_ms, "hour")
            yield f"{stream}: {is_:,} records of {hour}, and {must:,} were dropped"


@dataclass(slots=True)
class TableCount:
    """What lies in a table."""

    proofs: list[Proof] = field(default_factory=list)  # by run: in the order in which they entered
    batches: Counter[str] = field(default_factory=Counter)  # rows of each
    doubled: int = 0
    strangers: int = 0  # rows of a batch that its hour in the lake does not have

    @property
    def rows(self) -> int:
        return self.batches.total()


def count_table(table: Path, lake: LakeCount) -> TableCount:
    """Raises Unavailable, Corrupt."""
    found = TableCount()
    is_seen = bytearray(len(lake.ids))
    for path in table.glob(f"headgate_batch=*/headgate_run=*/{PROOF}"):
        proof = parse_text(path.read_bytes(), str(path), Proof)
        found.proofs.append(proof)
        hour_ms = Period.parse(proof.batch).start_ms
        for file in sorted(path.parent.glob("*.parquet")):
            for text in texts_of(str(file), "value"):
                one = json.loads(text)["id"]
                found.batches[proof.batch] += 1
                if lake.hour_of(one) != hour_ms:
                    found.strangers += 1
                    continue
                found.doubled += is_seen[one - lake.ids.start]
                is_seen[one - lake.ids.start] = 1
    found.proofs.sort(key=lambda proof: proof.run)
    return found


def table_faults(lake: LakeCount, found: TableCount, hours: Sequence[Period]) -> Iterator[str]:
    """Where the table is not these hours of the lake, one after the other."""
    if found.doubled:
        yield f"{found.doubled:,} rows are in the table more than once"
    if found.strangers:
        yield f"{found.strangers:,} rows of the table are not in that hour of the lake"
    entered = [proof.batch for proof in found.proofs if proof.kind == "rows"]
    if entered != sorted(set(entered)):
        yield f"the batches of the table entered in this order: {', '.join(entered)}"
    wanted = {str(hour) for hour in hours}
    beyond = [one for one in entered if one not in wanted and found.batches[one]]
    gone = sorted(wanted.difference(entered))
    if gone:
        yield f"hours that the table does not have: {', '.join(gone)}"
    if beyond:
        yield f"batches of the table that no hour explains: {', '.join(beyond)}"
    for hour in hours:
        rows, must = found.batches[str(hour)], lake.hours[hour.start_ms]
        if rows != must:
            yield f"{rows:,} rows of {hour} are in the table, and {must:,} in the lake"


def hours_of(dropped: Dropped) -> list[Period]:
    """From the first to the last with records, the empty ones between them, too."""
    return list(hours_between(min(dropped.hours), max(dropped.hours) + HOUR_MS))
