"""Soak: what chance decides, many times. `pytest --soak=FILE --part=NAME` keeps only such tests,
repeats each, and writes the result into FILE, one entry for each part. A part can be run again by
itself: the others stay.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.report import machine, versions

BY_CHANCE = (  # parts of the names of tests whose course differs from run to run
    "histories_are_linearizable",
    "lost_wake_ups_only_delay",
    "racing_writers",
    "conflict_in_every_write",
    "complete_document_or_none",
    "while_others_come_and_go",
    "outage_is_answered_in_time",
    "killed_with_minus_nine",
)

BY_SEED = (  # many seeds, or every way to fail, in one run: not repeated
    "turmoil_does_nothing_twice",
    "in_every_tide_each_record_lands_once",
    "in_every_watershed_all_land_once",
    "crash_during_the_recovery_changes_nothing",
    "crash_during_the_recovery_of_flags_changes_nothing",
    "late_waker_in_the_middle_of_the_recovery",
    "late_holder_in_the_middle_of_the_recovery",
)


def is_by_seed(name: str) -> bool:
    return any(part in name for part in BY_SEED)


def is_by_chance(name: str) -> bool:
    return any(part in name for part in BY_CHANCE)


class Soak:
    """A plugin of one run."""

    def __init__(self, file: Path, part: str, rounds: int) -> None:
        self._file = file
        self._part = part
        self._rounds = rounds
        self._passed: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._seconds = 0.0

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if is_by_chance(metafunc.function.__name__):
            metafunc.fixturenames.append("soak_round")
            metafunc.parametrize("soak_round", range(self._rounds))

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        kept = [item for item in items if is_by_chance(item.name) or is_by_seed(item.name)]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.partition("[")[0].rpartition("/")[2]
        self._seconds += report.duration
        if report.failed:
            self._failed[name] += 1
        elif report.when == "call":
            self._passed[name] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):  # one of several processes: the first one writes
            return
        kept = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}
        kept[self._part] = {
            "rounds": self._rounds,
            "passed": sum(self._passed.values()),
            "failed": sum(self._failed.values()),
            "seconds": round(self._seconds),
            "tests": {name: self._passed[name] for name in sorted(self._passed)},
            "failures": dict(self._failed),
            "on": machine(),
            "versions": versions(),
        }
        self._file.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
