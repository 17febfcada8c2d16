"""Jury: what lies in the landfall's lake and table, by counting, by `verify` and by `audit`."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.commits.certificate import flag_paths, parent_flag_path
from headgate.errors import Unavailable
from headgate.periods import FolderTemplate, Period
from headgate.testing.drama.headcount import (
    Dropped,
    LakeCount,
    TableCount,
    count_lake,
    count_table,
    hours_of,
    lake_faults,
    table_faults,
)
from headgate.testing.drama.home import Home, finished


@dataclass(frozen=True, slots=True)
class Checked:
    """What a command said of lake and store."""

    command: str
    is_clean: bool
    findings: tuple[str, ...]
    counts: Mapping[str, int]

    def faults(self) -> Iterator[str]:
        yield from (f"{self.command}: {words}" for words in self.findings)
        if not (self.is_clean or self.findings):
            yield f"{self.command}: is not clean"


@dataclass(frozen=True, slots=True)
class Judged:
    lake: Mapping[str, LakeCount]  # by stream
    table: TableCount
    verified: Checked
    audited: Checked
    faults: tuple[str, ...]


def judge(
    home: Home, table: str, dropped: Mapping[str, Dropped], hours: Sequence[Period]
) -> Judged:
    """`table`: that is fed by the stream of this name. Raises Unavailable, Corrupt."""
    commands = [("verify", "--all"), ("audit",)]
    running = [home.popen(*words, "--json") for words in commands]
    lake = {
        stream: count_lake(home.lake, own.folder, stream, dropped[stream].ids)
        for stream, own in home.settings.streams.items()
    }
    counted = count_table(home.table(table), lake[table])
    verified, audited = map(_checked, commands, running)
    faults = [
        *(
            fault
            for stream, found in lake.items()
            for fault in lake_faults(stream, dropped[stream], found)
        ),
        *table_faults(lake[table], counted, hours),
        *(f"{path}: this flag is missing" for path in missing_flags(home, dropped)),
        *verified.faults(),
        *audited.faults(),
    ]
    return Judged(lake, counted, verified, audited, tuple(faults))


def missing_flags(home: Home, dropped: Mapping[str, Dropped]) -> list[str]:
    """Whether each is what it should be, `verify` says."""
    return [
        path
        for stream, one in dropped.items()
        for path in flags_of(home.settings.streams[stream].folder, stream, hours_of(one))
        if not (home.lake / path).is_file()
    ]


def flags_of(place: FolderTemplate, stream: str, hours: Sequence[Period]) -> list[str]:
    """Of a stream's hours, in both folders, and of the hour over all streams."""
    return [
        flag
        for hour in hours
        for flag in (*flag_paths(place, hour, stream), parent_flag_path(place, hour))
        if flag is not None
    ]


def _checked(words: Sequence[str], popen: "subprocess.Popen[str]") -> Checked:
    """Raises Unavailable."""
    done, command = finished(popen), " ".join(("headgate", *words))
    try:
        found = json.loads(done.stdout)
    except ValueError as error:
        words_ = f"{command}: ended with {done.returncode}: {done.stderr}"
        raise Unavailable(words_) from error
    counts = {**found, **found.get("checked", {})}
    return Checked(
        command,
        bool(found["is_clean"]) and done.returncode == 0,
        tuple(f"{one['subject']} {one['words']}" for one in found["findings"]),
        {name: count for name, count in counts.items() if isinstance(count, int)},
    )
