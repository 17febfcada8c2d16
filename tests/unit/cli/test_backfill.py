from headgate.app.progress import FlagProgress
from headgate.cli.backfill import HOURS_MIN, holds_flags, lines_of
from headgate.cluster.tasks import task_key


def test_many_hours_that_get_their_flags_are_told_and_a_few_are_not() -> None:
    found = [FlagProgress("orders", 1_793_538_000_000, 12_345), FlagProgress("clicks", 0, 3)]

    assert lines_of(found) == [
        "flags: orders is ready up to 2026-11-01T13:00:00Z, 12,345 hours to go"
    ]
    assert lines_of([FlagProgress("orders", 0, HOURS_MIN - 1)]) == []


def test_only_whoever_holds_flags_tells_of_them() -> None:
    assert holds_flags([task_key("land:orders", 0), task_key("ready:{yyyy}", 0)])
    assert not holds_flags([task_key("land:orders", 0)])
