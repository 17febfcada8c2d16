"""One stream that lands under several names: its seats, its folders, its records."""

from dataclasses import replace

import pytest

from headgate.app.acts import Acts, Person
from headgate.audit.account import check_account
from headgate.commits.record import Record, RecordFile
from headgate.commits.roots import RootDocument, begun, root_key, root_name
from headgate.engine import EventTime, InputFile, Job, Shape, ShardInput, StagedFile, verdict
from headgate.errors import Invalid
from headgate.lake.ledger import Ledger
from headgate.landing import Output
from headgate.landing.names import folder_of, named
from headgate.landing.stream_document import check_seat, fix_first_hour, open_stream
from headgate.periods import HOUR_MS, Period
from headgate.status import read_status
from headgate.status.streams import known_streams, read_streams
from headgate.store.changes import change, read
from headgate.testing.brook import Brook, Speck
from headgate.testing.estuary import Estuary, settings_of
from headgate.testing.faults import Call
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.testing.mill import Mill
from tests.crash.landing_world import Process, Watching, land, world_of

SPLIT = replace(
    settings_of(),
    name="events",
    outputs=(Output("orders", "id % 2 = 0"), Output("clicks", "id % 3 = 0")),
)
HOUR = Period.parse("2026-11-01T13")
TODAY = Period.parse("2026-11-02")


def test_each_output_has_its_folder_and_dead_letters_are_the_streams() -> None:
    files = [
        StagedFile("a", "0-1", "data", HOUR.start_ms, 1, "orders"),
        StagedFile("b", "0-1", "data", HOUR.start_ms, 1, "orders"),
        StagedFile("c", "0-1", "data", HOUR.start_ms, 1, "clicks"),
        StagedFile("d", "0-1", "late", HOUR.start_ms, 1, "clicks"),
        StagedFile("e", "0-1", "dead", None, 1),
    ]
    assert [one.published for one in named(SPLIT, 0, 7, TODAY, files, None)] == [
        "2026-11-01/13/orders/data/shard0-commit0000000007-0.json",
        "2026-11-01/13/orders/data/shard0-commit0000000007-1.json",
        "2026-11-01/13/clicks/data/shard0-commit0000000007-0.json",
        "_late/2026-11-01/13/clicks/data/shard0-commit0000000007-0.json",
        "_dead/events/2026-11-02/shard0-commit0000000007-0.json",
    ]
    letters = replace(SPLIT, late_records="dead-letter")
    late = folder_of(letters, 0, "late", HOUR.start_ms, TODAY, "clicks")
    assert late == "_dead/events/2026-11-02/late"


def test_its_outputs_have_the_seats_and_it_has_none() -> None:
    store = manual_store(ManualAmbient())
    assert open_stream(store, SPLIT).has_outputs
    root = read(store, root_key(root_name(SPLIT.folder)), RootDocument)
    assert root is not None
    assert sorted(root.value.streams) == ["clicks", "orders"]


def test_inv7_an_output_that_comes_later_has_its_seat_before_it_lands() -> None:
    """Else a node whose settings lack it would flag hours over all streams without it."""
    world = world_of(replace(SPLIT, outputs=SPLIT.outputs[:1]))
    world.drop("lane-0", world.now_ms)
    land(world)
    world.settings = SPLIT
    world.drop("lane-0", world.now_ms)

    def look(call: Call) -> None:
        if call.method == "publish":
            root = read(world.store, root_key(root_name(SPLIT.folder)), RootDocument)
            assert root is not None
            assert sorted(root.value.streams) == ["clicks", "orders"]

    Process(world, Watching(look)).until(world.is_landed)
    assert world.checkpoint().number > 1


def test_a_stream_does_not_get_outputs_later_nor_lose_them() -> None:
    store = manual_store(ManualAmbient())
    open_stream(store, SPLIT)
    with pytest.raises(Invalid, match=r"began with outputs.* headgate stream reset events"):
        open_stream(store, replace(SPLIT, outputs=()))
    open_stream(store, replace(SPLIT, outputs=SPLIT.outputs[:1]))
    plain = settings_of()
    open_stream(store, plain)
    with pytest.raises(Invalid, match="began without outputs"):
        open_stream(store, replace(plain, outputs=SPLIT.outputs))


def test_inv1_a_name_that_was_a_streams_does_not_become_an_outputs_nor_the_other_way_round() -> (
    None
):
    """Both number their commits from 1: their files would have the same names."""
    plain = replace(settings_of(), name="orders", outputs=())
    store = manual_store(ManualAmbient())
    open_stream(store, plain)
    open_stream(store, SPLIT)
    check_seat(store, SPLIT)  # nothing has landed yet
    fix_first_hour(store, "orders", HOUR.start_ms)
    with pytest.raises(Invalid, match=r"hours of orders were landed by another .*another name"):
        check_seat(store, SPLIT)

    store = manual_store(ManualAmbient())
    open_stream(store, SPLIT)
    root = root_key(root_name(SPLIT.folder))
    change(store, root, RootDocument, lambda found: begun(found, "orders", HOUR.start_ms))
    with pytest.raises(Invalid, match="hours of orders were landed by another stream"):
        open_stream(store, plain)
    with pytest.raises(Invalid, match="hours of orders were landed by another stream"):
        open_stream(store, replace(SPLIT, name="others"))


def test_the_first_filter_that_holds_takes_a_record_and_none_makes_it_dead() -> None:
    estuary = Estuary(SPLIT)
    brook: Brook = estuary.brook
    at_ms = 10 * HOUR_MS
    specks = [Speck(n, at_ms) for n in range(7)]
    brook.drop("lane-0", [*specks, Speck(7, None)], at_ms)
    filters = tuple((one.name, one.filter) for one in SPLIT.outputs)
    event_time = EventTime("json", "$.at")
    shape = Shape("events", "files", "json", (), event_time, "json", 1000, 1000, filters=filters)
    file = InputFile("lane-0", 0, "/brook/lane-0/0", 1, at_ms)
    wanted = ShardInput("0-1", (file,), {"lane-0": 0})
    staged = Mill(brook, estuary.lake).stage(Job(shape, "attempt", (wanted,)))
    assert {(one.output, one.kind): one.rows for one in staged.files} == {
        ("orders", "data"): 4,  # 0, 2, 4, 6: also those that clicks would take
        ("clicks", "data"): 1,  # 3
        ("", "dead"): 3,  # 1, 5, and one without a time
    }
    assert sum(one.rows for one in staged.tallies) == 8


def test_the_verdict_asks_filters_in_order_and_only_of_good_records() -> None:
    shape = Shape(
        "events", "files", "json", (), EventTime("json", "$.at"), "json", 1, 1,
        filters=(("a", "x = 1"), ("b", "y")),
    )  # fmt: skip
    assert verdict.output(shape) == (
        "CASE WHEN _headgate.flaw IS NULL THEN "
        "CASE WHEN (x = 1) THEN 0 WHEN (y) THEN 1 ELSE CAST(NULL AS INT) END END"
    )
    reason = verdict.reason(shape)
    assert reason.index("'ahead'") < reason.index("WHEN output IS NULL THEN 'no output'")
    assert "no output" not in verdict.reason(replace(shape, filters=()))


def test_inv1_a_file_of_one_output_in_the_folder_of_another_is_found() -> None:
    def found(output: str, folder: str) -> list[str]:
        file = RecordFile(
            "data", str(HOUR), "s", f"{folder}/shard0-commit0000000001-0.json", 1, "c", 1, output
        )
        record = Record("events", 0, 1, 1, "n", 0, 0, {}, {"data": 1}, (file,))
        return [one.words for one in check_account(record, SPLIT)]

    assert found("orders", "2026-11-01/13/orders/data") == []
    (words,) = found("orders", "2026-11-01/13/clicks/data")
    assert "which is no place of data records" in words
    assert found("", "2026-11-01/13/orders/data")


def test_an_output_of_the_settings_is_no_stream_that_left_them() -> None:
    ambient = ManualAmbient()
    store = manual_store(ambient)
    open_stream(store, SPLIT)
    known = {"events": SPLIT}
    assert list(known_streams(store, known)[0]) == ["events"]
    (one,) = read_streams(store, known, read_status(store, ambient)).streams
    assert one.name == "events"
    assert [standing.kind for standing in one.standing if standing.is_for_a_person] == []

    fewer = {"events": replace(SPLIT, outputs=SPLIT.outputs[:1])}
    found = read_streams(store, fewer, read_status(store, ambient)).streams
    left = next(stream for stream in found if stream.name == "clicks")
    assert [standing.kind for standing in left.standing] == ["not in the settings"]


def test_an_output_is_retired_once_it_left_the_settings() -> None:
    ambient = ManualAmbient()
    store, lake = manual_store(ambient), Estuary(SPLIT).lake
    open_stream(store, SPLIT)
    acts = Acts(store, lake, Ledger(lake, "here", ambient), ambient)
    ada = Person("ada", "over")
    with pytest.raises(Invalid, match="stream clicks is in the settings, without an end"):
        acts.retire("clicks", ada, {"events": SPLIT})
    assert (
        acts.retire("clicks", ada, {"events": replace(SPLIT, outputs=SPLIT.outputs[:1])})
        is not None
    )
    root = read(store, root_key(root_name(SPLIT.folder)), RootDocument)
    assert root is not None
    assert [name for name, seat in root.value.streams.items() if seat.retired] == ["clicks"]
