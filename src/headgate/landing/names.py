"""Names: where the files of a commit lie. Fixed by stream, shard and number: nobody else has them.

<folder of the hour>/shard0-commit0000000017-0.parquet     on time
_late/<folder of the hour>/…                               late
_dead/<stream>/<date>/…                                    unusable, with the reason
_headgate/staging/<stream>/<attempt>.0-7.1-9/shard=0-7/…   where nobody looks
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from headgate.commits.record import commit_of as commit_of  # names of files belong together
from headgate.engine import Kind, StagedFile
from headgate.engine.codecs import suffix_of
from headgate.lake.paths import LATE as LATE
from headgate.lake.paths import STAGING
from headgate.landing import LateRecords, StreamSettings
from headgate.periods import Period, escape_name

DEAD = "_dead"
REDRIVE = "_redrive"  # dead letters that wait to be driven in again
REDRIVEN = "_redriven"
LATE_LETTERS = "late"  # among the dead letters: good records that came too late
ATTEMPT = re.compile(r"([0-9a-f]{32})((?:\.\d+-\d+)+)")


@dataclass(frozen=True, slots=True)
class Named:
    """A staged file and its fixed name."""

    staged: StagedFile
    kind: Kind
    published: str


def named(
    settings: StreamSettings,
    shard: int,
    number: int,
    date: Period,
    files: Sequence[StagedFile],
    first_hour_ms: int | None,
) -> list[Named]:
    """What is on time for its source partition, but before the stream's first hour or after its
    last, is late: no flag of this stream will ever speak for it."""
    end_ms = settings.end_ms
    found: list[Named] = []
    stem, suffix = file_stem(shard, number), suffix_of(settings.land_as, settings.codec)
    folders: dict[tuple[Kind, int | None], str] = {}  # of few hours, for many files
    counts: dict[str, int] = {}
    for file in sorted(files, key=attrgetter("path")):
        if file.kind == "skip":
            continue
        kind = file.kind
        hour_ms = file.hour_ms or 0
        is_early = first_hour_ms is not None and hour_ms < first_hour_ms
        is_after = end_ms is not None and hour_ms >= end_ms
        if kind == "data" and (is_early or is_after):
            kind = "late"
        folder = folders.get((kind, file.hour_ms))
        if folder is None:
            folder = folder_of(settings, shard, kind, file.hour_ms, date)
            folders[kind, file.hour_ms] = folder
            counts.setdefault(folder, 0)
        index = counts[folder]
        counts[folder] = index + 1
        found.append(Named(file, kind, f"{folder}/{stem}-{index}.{suffix}"))
    return found


def folder_of(
    settings: StreamSettings, shard: int, kind: Kind, hour_ms: int | None, date: Period
) -> str:
    if kind == "dead" or hour_ms is None:
        return f"{DEAD}/{escape_name(settings.name)}/{date}"
    hour = settings.folder.folder(Period(hour_ms, "hour"), stream=settings.name, shard=shard)
    if kind == "data":
        return hour
    return late_folder(settings.name, hour, date, settings.late_records)


def late_folder(stream: str, hour: str, date: Period, policy: LateRecords) -> str:
    if policy == "dead-letter":
        return f"{DEAD}/{escape_name(stream)}/{date}/{LATE_LETTERS}"
    return f"{LATE}/{hour}"


def file_stem(shard: int, number: int) -> str:
    """What the names of all files of a commit begin with."""
    return f"shard{shard}-commit{number:010}"


def label_of(shard: int, epoch: int) -> str:
    return f"{shard}-{epoch}"


def staging_folder(stream: str) -> str:
    return f"{STAGING}/{escape_name(stream)}"


def attempt_folder(stream: str, new_id: Callable[[], str], labels: Sequence[str]) -> str:
    """Its name says whose it is, so that the sweeper needs to ask nobody else."""
    return f"{staging_folder(stream)}/{new_id()}{''.join(f'.{label}' for label in labels)}"


def shard_folder(attempt: str, label: str) -> str:
    return f"{attempt}/shard={label}"


def labels_of(attempt_name: str) -> list[tuple[int, int]] | None:
    """Shard and epoch of each whose attempt it is; None: it is not ours."""
    found = ATTEMPT.fullmatch(attempt_name)
    if found is None:
        return None
    pairs = (label.split("-") for label in found[2].split(".")[1:])
    return [(int(shard), int(epoch)) for shard, epoch in pairs]
