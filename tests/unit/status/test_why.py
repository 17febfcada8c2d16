"""Why an hour is not ready: every state, from values and from documents."""

from dataclasses import replace
from typing import Any

import pytest

from headgate.commits.certificate import (
    Certificate,
    CertifiedGap,
    flag_paths,
    hold_path,
    sealed,
    to_bytes,
)
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import Merging, RootDocument, Seat, place_of, root_key, root_name
from headgate.commits.streams import StreamDocument, stream_key
from headgate.engine import EventTime
from headgate.lake.memory import MemoryLake
from headgate.landing import StreamSettings
from headgate.periods import HOUR_MS, FolderTemplate, Period
from headgate.ready.evidence import Evidence
from headgate.sources import FilesSettings
from headgate.status.missing import Missing
from headgate.status.still import GAP, SILENT, Advice, Standing
from headgate.status.streams import ShardStatus, StreamStatus
from headgate.status.why import Why, as_json, explained, first_open, read_why
from headgate.store.changes import change, read
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store

FIRST = Period.parse("2026-11-01T13")
LATENESS_MS = 600_000
NOW_MS = FIRST.start_ms + 100 * HOUR_MS
TEMPLATE = FolderTemplate.parse("{yyyy}-{MM}-{dd}/{HH}/{stream}/data")
SETTINGS = StreamSettings("orders", FilesSettings("/incoming"), EventTime("json", "$.at"), TEMPLATE)
RELEASE = Advice("shard release", ("orders/1",), ("--reason", "x"))


def hour(number: int) -> Period:
    return Period(FIRST.start_ms + number * HOUR_MS, "hour")


def shard(number: int, node: str | None = "node-a") -> ShardStatus:
    doing = "waiting" if node else ""
    counts = (None, None, 0, 0, 0, 0, 0, 0, 0)
    return ShardStatus(
        f"orders/{number}", "orders", number, "in progress", node, doing, *counts, 77, None, ()
    )


def status(*standing: Standing, shards: int = 2) -> StreamStatus:
    known = tuple(shard(number) for number in range(shards))
    return StreamStatus("orders", True, "", FIRST.start_ms, known, standing)


def evidence(*marks: int | None, asked: int = 90, shards: int = 1) -> Evidence:
    """Watermarks of source partitions at the start of those hours."""
    found = {
        f"lane-{n}": None if mark is None else hour(mark).start_ms for n, mark in enumerate(marks)
    }
    checkpoint = Checkpoint(watermarks=found, discovered_ms=hour(asked).start_ms)
    return Evidence(StreamDocument(shards, FIRST.start_ms), (checkpoint,) * shards)


def root(frontier: int | None = 0, **fields: Any) -> RootDocument:
    """Hours before the frontier have their flags."""
    at_ms = None if frontier is None else hour(frontier).start_ms
    seat = Seat(None, None if frontier is None else FIRST.start_ms, at_ms)
    return replace(RootDocument(streams={"orders": seat}), **fields)


def why(
    wanted: Period | None,
    found: Evidence,
    at: RootDocument,
    *standing: Standing,
    now_ms: int = NOW_MS,
    is_held: bool = False,
    is_gone: bool = False,
    settings: StreamSettings = SETTINGS,
) -> Why:
    return explained(
        settings, status(*standing), found, at, wanted, now_ms, is_held=is_held, is_gone=is_gone
    )


# ── every state ───────────────────────────────────────────────────────────────────────────────────


def test_an_hour_behind_the_frontier_is_ready() -> None:
    assert why(hour(2), evidence(3), root(3)) == Why("orders", hour(2), "ready", "it is complete")


def test_k15_a_ready_hour_without_its_flag_is_to_be_repaired() -> None:
    found = why(hour(2), evidence(3), root(3), is_gone=True)

    assert (found.state, found.words) == ("ready", "it is complete, and its flag is gone")
    of_it = ("--from", "2026-11-01T15", "--to", "2026-11-01T15")
    assert found.advice == Advice("flags repair", (), of_it)


def test_a_withdrawn_hour_that_cannot_be_flagged_again_says_why() -> None:
    place = place_of(hour(1), "orders")
    opened = root(3, reopened={place: 2}, troubles={place: "a.json: is gone"})
    words = why(hour(1), evidence(3), opened, is_gone=True).words
    assert words.endswith("generation 2 is next, and cannot come: a.json: is gone")


def test_a_withdrawn_hour_names_its_next_generation() -> None:
    opened = root(3, reopened={place_of(hour(1), "orders"): 2})

    found = why(hour(1), evidence(3), opened, is_gone=True)

    assert (found.state, found.words) == (
        "withdrawn",
        "its flag was withdrawn; generation 2 is next",
    )
    assert why(hour(2), evidence(3), opened).state == "ready"


def test_an_hour_before_the_first_one_is_never_ready() -> None:
    found = why(hour(-1), evidence(3), root(3))

    assert found.state == "before the first hour"
    assert "the stream's first hour, 2026-11-01T13: its records are late" in found.words


@pytest.mark.parametrize(("now_ms", "state"), [(-1, "not over"), (0, "closing")])
def test_an_hour_is_over_with_its_last_millisecond(now_ms: int, state: str) -> None:
    found = why(hour(3), evidence(4), root(3), now_ms=hour(3).end_ms + now_ms)

    assert (found.state, found.reasons) == (state, ())


def test_k1_a_waiting_hour_names_each_source_partition_and_by_how_much_it_is_short() -> None:
    found = why(hour(3), evidence(1, 5, None), root(3))

    assert (found.state, found.words) == ("waiting", "it waits for 2 source partitions")
    assert [(one.shard, one.partition, one.short_ms) for one in found.reasons] == [
        ("orders/0", "lane-0", 3 * HOUR_MS),
        ("orders/0", "lane-2", None),
    ]
    assert {(one.node, one.doing, one.since_ms) for one in found.reasons} == {
        ("node-a", "waiting", 77)
    }
    one = why(hour(3), evidence(3), root(3))
    assert one.words == "it waits for a source partition"


@pytest.mark.parametrize(("shards", "words"), [(1, "a shard"), (2, "2 shards")])
def test_k22_a_waiting_hour_may_be_short_of_a_discovery(shards: int, words: str) -> None:
    found = why(hour(3), evidence(9, asked=4, shards=shards), root(3))

    assert (found.state, found.words) == ("waiting", f"it waits for {words}")
    assert [(one.partition, one.short_ms) for one in found.reasons] == [("", LATENESS_MS)] * shards


def test_a_shard_that_status_does_not_know_is_held_by_nobody() -> None:
    found = why(hour(3), evidence(1, shards=3), root(3))

    assert [(one.shard, one.node) for one in found.reasons] == [
        ("orders/0", "node-a"),
        ("orders/1", "node-a"),
        ("", None),
    ]


def test_a_held_hour_names_the_file_that_keeps_it_back() -> None:
    found = why(hour(3), evidence(4), root(3), is_held=True)

    assert found.state == "held"
    assert found.words.endswith(hold_path(TEMPLATE, hour(3), "orders"))
    assert why(hour(3), evidence(3), root(3), is_held=True).state == "waiting"


def test_an_hour_that_nothing_stands_in_the_way_of_is_closing_or_in_trouble() -> None:
    calm = why(hour(3), evidence(4), root(3))
    trouble = why(hour(3), evidence(4), root(3, troubles={"orders": "a record is gone"}))

    assert (calm.state, trouble.state) == ("closing", "closing")
    assert "whoever holds the root raises its flag next" in calm.words
    assert trouble.words == "a record is gone"


def test_an_hour_that_is_being_merged_says_so() -> None:
    merging = {"orders": Merging(str(hour(3)), 2, "no room")}
    found = why(hour(3), evidence(4), root(3, merging=merging))
    words = "everything is there: its small files are merged first, try 2 (failed: no room)"
    assert (found.state, found.words) == ("closing", words)
    other = why(hour(3), evidence(4), root(3, merging={"orders": Merging("2026-11-01T01", 3)}))
    assert "merged" not in other.words


def test_k7_a_stream_of_which_nothing_landed_has_no_hour_and_holds_the_others_back() -> None:
    alone = why(None, Evidence(None), RootDocument())
    both = RootDocument(streams={"orders": Seat(), "clicks": Seat()})
    among = why(hour(0), Evidence(StreamDocument(1)), both)
    apart = replace(SETTINGS, folder=FolderTemplate.parse("{stream}/{yyyy}-{MM}-{dd}/{HH}"))

    assert (alone.state, alone.hour, among.hour) == ("waiting", None, hour(0))
    assert alone.words == "nothing of it has landed: nobody knows its first hour"
    assert among.words == f"{alone.words}, so no hour over clicks, orders is ready before"
    assert why(hour(0), Evidence(None), both, settings=apart).words == alone.words


# ── hints ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("number", "earlier"), [(3, None), (4, hour(3)), (200, hour(3))])
def test_k8_an_hour_behind_an_open_one_names_it(number: int, earlier: Period | None) -> None:
    assert why(hour(number), evidence(3), root(3)).first_open == earlier


def test_what_is_for_a_person_is_advised_first() -> None:
    itself = Standing("paused", "orders", "", "", Advice("stream resume"), is_for_a_person=False)
    silent = Standing("clock", "orders/0", "", "", None, is_for_a_person=True)
    person = Standing("set aside", "orders/1", "", "", RELEASE, is_for_a_person=True)

    assert why(hour(3), evidence(1), root(3), itself, silent, person).advice == RELEASE
    assert why(hour(3), evidence(1), root(3), itself, silent).advice == itself.advice
    assert why(hour(3), evidence(1), root(3), silent).advice is None
    assert why(None, Evidence(None), RootDocument(), person).advice == RELEASE


def test_the_first_open_hour_is_the_frontier_or_where_the_stream_will_begin() -> None:
    begun = StreamDocument(1, FIRST.start_ms)
    joined = RootDocument(streams={"orders": Seat(floor_ms=hour(5).start_ms)})

    assert first_open("orders", root(3), Evidence(None)) == hour(3)
    assert first_open("orders", RootDocument(), Evidence(begun)) == hour(0)
    assert first_open("orders", joined, Evidence(begun)) == hour(5)
    assert first_open("orders", joined, Evidence(StreamDocument(1))) is None
    assert first_open("orders", RootDocument(), Evidence(None)) is None


# ── from documents ────────────────────────────────────────────────────────────────────────────────


class World:
    """Hours 0 to 2 are flagged, and hour 3 has all that it needs."""

    def __init__(self) -> None:
        self.store = manual_store(ManualAmbient())
        self.lake = MemoryLake()
        known = evidence(4)
        for key, value in (
            (stream_key("orders"), known.document),
            (checkpoint_key("orders", 0), known.checkpoints[0]),
            (root_key(root_name(TEMPLATE)), root(3)),
        ):
            self.store.create(key, body_of(value))
        for number in range(3):
            self.flags(number)

    def flags(self, number: int, *gaps: CertifiedGap) -> None:
        period = str(hour(number))
        found = Certificate("orders", period, 1, (), {}, gaps, {}, None, {}, 0, "node-a")
        for flag in flag_paths(TEMPLATE, hour(number), "orders"):
            self.lake.put(flag, to_bytes(sealed(found)))

    def ask(self, wanted: Period | None, lake: MemoryLake | None = None) -> Why:
        return read_why(self.store, lake or self.lake, SETTINGS, status(), wanted, NOW_MS)


def test_without_an_hour_the_first_one_that_is_not_ready_is_meant() -> None:
    found = World().ask(None)

    assert (found.hour, found.state, found.ready_ms) == (hour(3), "closing", hour(3).start_ms)


def test_flags_and_holds_are_looked_for_in_the_lake() -> None:
    world = World()
    assert world.ask(hour(1)).words == "it is complete"
    assert world.ask(hour(1), MemoryLake()).words == "it is complete, and its flag is gone"

    world.lake.stage(hold_path(TEMPLATE, hour(3), "orders"), b"")
    assert world.ask(hour(3)).state == "held"


def test_a_ready_hour_names_the_gaps_of_its_certificate() -> None:
    world = World()
    gap = CertifiedGap("lane-0", "4", "5", "a.json vanished or changed before it was read")
    world.flags(1, gap, replace(gap, first="7", next="8"))

    found = world.ask(hour(1))

    assert found.state == "ready"
    assert found.words == (
        "it is complete, but for what is on record as a gap: a.json vanished or changed before it "
        "was read, and 1 more"
    )
    assert found.advice == Advice("certificate", ("orders", str(hour(1))))


def test_a_ready_hour_with_a_damaged_flag_says_so() -> None:
    world = World()
    flag = flag_paths(TEMPLATE, hour(1), "orders")[-1]
    world.lake.put(flag, b"{}")

    found = world.ask(hour(1))

    assert found.words == "it is complete, and its flag is damaged: what it says proves nothing"
    assert found.advice == Advice("verify", (str(hour(1)),))


def test_an_open_hour_names_a_gap_that_may_concern_it() -> None:
    gone = Missing(7, NOW_MS, 1, "a.json vanished", str(hour(2)), str(hour(3)))
    known = replace(status(), shards=(replace(shard(0), missing=gone), shard(1)))
    advice = Advice("history")
    gap = Standing(GAP, "orders/0", "a.json vanished", "m", advice, is_for_a_person=False)
    known = replace(known, standing=(gap,))
    world = World()

    found = read_why(world.store, world.lake, SETTINGS, known, hour(3), NOW_MS)
    later = read_why(world.store, world.lake, SETTINGS, known, hour(4), NOW_MS)

    assert found.words.endswith(
        "; orders/0 has a gap on record that may concern it: a.json vanished"
    )
    assert found.advice is None, "it moves nothing"
    assert "gap" not in later.words


def test_a_lake_that_is_not_there_is_not_asked() -> None:
    found = read_why(World().store, None, SETTINGS, status(), None, NOW_MS)

    assert (found.hour, found.state) == (hour(3), "closing")


def test_an_empty_store_has_no_hour() -> None:
    store = manual_store(ManualAmbient())

    found = read_why(store, MemoryLake(), SETTINGS, status(), None, NOW_MS)

    assert (found.hour, found.state, found.ready_ms) == (None, "waiting", None)


def test_for_programs_hours_are_texts() -> None:
    found = as_json(why(hour(4), evidence(3), root(3)))

    assert (found["hour"], found["first_open"]) == ("2026-11-01T17", "2026-11-01T16")
    assert found["state"] == "waiting"
    assert as_json(why(None, Evidence(None), RootDocument()))["hour"] is None


def test_a_paused_stream_says_so_whatever_its_hour_waits_for() -> None:
    resume = Advice("stream resume", ("orders",))
    standing = Standing(
        "paused", "orders", "by ann", "nothing lands", resume, is_for_a_person=False
    )
    stopped = replace(status(standing), paused="paused by ann: maintenance")
    found = read_why(World().store, None, SETTINGS, stopped, None, NOW_MS)

    assert "and it is paused by ann: maintenance: nothing more of it lands" in found.words
    assert found.advice == resume


def test_an_hour_after_the_end_of_a_stream_is_waited_for_by_nobody() -> None:
    seat = replace(root(3).streams["orders"], last_ms=hour(3).start_ms)
    over = replace(root(3), streams={"orders": seat})
    found = why(hour(3), evidence(9), over)
    assert (found.state, found.reasons) == ("ended", ())
    assert "its last hour was 2026-11-01T15; nobody waits for this hour" in found.words
    assert why(hour(2), evidence(9), over).state == "ready"


def test_k7_a_ready_hour_names_whom_the_flag_over_all_streams_waits_for() -> None:
    world = World()
    key = root_key(root_name(SETTINGS.folder))
    kept = read(world.store, key, RootDocument)
    assert kept is not None
    both = replace(kept.value, streams={**kept.value.streams, "old": Seat()})
    change(world.store, key, RootDocument, lambda _: both)
    lake, names = world.lake, ("orders",)

    found = read_why(world.store, lake, SETTINGS, status(), hour(1), NOW_MS, names)
    done = replace(both, hours_ms=hour(2).start_ms)
    change(world.store, key, RootDocument, lambda _: done)
    after = read_why(world.store, lake, SETTINGS, status(), hour(1), NOW_MS, names)

    assert [(one.stream, one.is_in_settings) for one in found.overall] == [("old", False)]
    assert after.overall == ()


def test_what_keeps_a_shard_from_going_on_is_named_with_what_to_do() -> None:
    blocks = Standing(
        "unreadable files", "orders/0", "/in/a.gz: is no gzip; next: rm it", "m", None, True
    )
    elsewhere = replace(blocks, subject="orders/1", words="of another shard")
    harmless = replace(blocks, kind="journal stands", words="goes on by itself")

    found = why(hour(3), evidence(3), root(3), blocks, elsewhere, harmless)

    assert found.state == "waiting"
    assert found.words == ("it waits for a source partition; /in/a.gz: is no gzip; next: rm it (m)")


def test_a_first_hour_that_is_set_is_told_before_anything_was_read() -> None:
    settings = replace(SETTINGS, first_hour_ms=hour(2).start_ms)
    found = why(None, Evidence(None, ()), RootDocument(), settings=settings)
    assert found.words == f"no node has looked at it yet: its first hour is to be {hour(2)}"


def test_a_node_that_seems_to_be_gone_is_not_named_as_if_it_held_the_work() -> None:
    gone = replace(shard(0), is_silent=True, doing="", free_ms=NOW_MS + 9_000)
    words, meaning = "node node-a, which held it, seems to be gone", "its session ends in 9 s"
    still = Standing(SILENT, "orders/0", words, meaning, Advice("run"), is_for_a_person=False)
    known = StreamStatus("orders", True, "", FIRST.start_ms, (gone,), (still,))

    found = explained(
        SETTINGS, known, evidence(1), root(3), hour(3), NOW_MS, is_held=False, is_gone=False
    )

    (reason,) = found.reasons
    assert (reason.node, reason.doing, reason.free_ms) == (None, "", NOW_MS + 9_000)
    assert found.words == f"it waits for a source partition; {words} ({meaning})"
    assert found.advice == Advice("run")


def test_a_waiting_hour_says_when_the_next_commit_is_due() -> None:
    due = replace(shard(0), due_ms=NOW_MS + 90_000)
    known = StreamStatus("orders", True, "", FIRST.start_ms, (due,), ())

    found = explained(
        SETTINGS, known, evidence(1), root(3), hour(3), NOW_MS, is_held=False, is_gone=False
    )

    assert [one.due_ms for one in found.reasons] == [NOW_MS + 90_000]


def test_an_hour_that_is_not_over_says_from_when_on_its_flag_can_come() -> None:
    settings = replace(SETTINGS, allowed_lateness_ms=LATENESS_MS)
    current = Period.hour_of(NOW_MS)

    found = why(current, evidence(3), root(3), settings=settings)

    assert (found.state, found.earliest_ms) == ("not over", current.end_ms + LATENESS_MS)
    assert why(hour(3), evidence(3), root(3)).earliest_ms is None


def test_an_hour_that_only_needs_a_node_says_that_none_has_it() -> None:
    nobody = replace(status(), shards=(shard(0, None), replace(shard(1), is_silent=True)))
    aside = Standing("set aside", "orders/1", "x", "m", RELEASE, is_for_a_person=True)
    world = World()

    found = read_why(world.store, world.lake, SETTINGS, nobody, hour(3), NOW_MS)
    now = read_why(world.store, world.lake, SETTINGS, nobody, Period.hour_of(NOW_MS), NOW_MS)
    stuck = replace(nobody, standing=(aside,))
    released = read_why(world.store, world.lake, SETTINGS, stuck, hour(3), NOW_MS)

    for one in (found, now):
        assert one.words.endswith("; no node has it now")
        assert one.advice == Advice("run")
    assert (found.state, now.state) == ("closing", "not over")
    assert released.advice == RELEASE
    waiting = read_why(world.store, world.lake, SETTINGS, nobody, hour(4), NOW_MS)
    assert (waiting.state, waiting.advice) == ("waiting", Advice("run"))
    assert World().ask(hour(3)).advice is None
