"""What status says of streams, from documents that were written as nodes write them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from headgate.cluster import Advert, Order
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.tasks import Task, Trouble, new_task, task_key
from headgate.commits.checkpoint import Checkpoint, Journal, LastGap, checkpoint_key
from headgate.commits.record import Record, RecordGap, record_path, to_bytes
from headgate.commits.roots import Merging, RootDocument, root_key, root_name
from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.engine import EventTime
from headgate.lake.memory import MemoryLake
from headgate.landing import StreamSettings
from headgate.landing.kind import feed_name, kind_name
from headgate.landing.report import Report, report_key
from headgate.periods import FolderTemplate
from headgate.sources import FilesSettings
from headgate.status import read_status
from headgate.status.missing import TOLD_MS
from headgate.status.still import GAP, Advice, Standing
from headgate.status.streams import StreamsStatus, StreamStatus, as_json, read_streams
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store

JOURNAL = Journal(8, 3, "staged", "staged/record.json", 5, "sha256:0", {}, {}, {}, (), 0)
GONE = 'what was staged for it is missing; next: headgate journal restage orders/0 --reason "…"'


def settings_of(name: str = "orders", shards: int = 1) -> StreamSettings:
    template = FolderTemplate.parse("{yyyy}-{MM}-{dd}/{HH}/{stream}/data")
    how = EventTime("json", "$.at")
    return StreamSettings(name, FilesSettings("/incoming"), how, template, shards=shards)


class World:
    def __init__(self) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.lake = MemoryLake()
        self.settings: dict[str, StreamSettings] = {"orders": settings_of()}
        self.now_ms = self.ambient.wall_ns() // 1_000_000

    def put(self, name: str, value: object) -> None:
        self.store.create(name, body_of(value))

    def joins(self, session: str, *kinds: str) -> None:
        presence = DocumentPresence(self.store, self.ambient)
        presence.join(session, Advert(f"node-{session}", 2, kinds=kinds))

    def has_task(self, shard: int = 0, stream: str = "orders", **fields: Any) -> None:
        task = new_task(Order(kind_name(stream), b"{}"))
        self.put(task_key(feed_name(stream), shard), replace(task, **fields))

    def has_checkpoint(self, shard: int = 0, stream: str = "orders", **fields: Any) -> None:
        usual: dict[str, Any] = {
            "epoch": 3,
            "turn": 4,
            "number": 7,
            "positions": {"lane-0": "12"},
            "watermarks": {"lane-0": self.now_ms - 60_000},
            "counts": {"data": 490, "late": 6, "dead": 4, "gaps": 2},
            "committed_ms": self.now_ms - 5_000,
        }
        self.put(checkpoint_key(stream, shard), Checkpoint(**(usual | fields)))

    def has_report(self, shard: int = 0, **fields: Any) -> None:
        usual: dict[str, Any] = {"node": "node-a", "epoch": 3, "doing": "waiting"}
        usual |= {"at_ms": self.now_ms - 2_000}
        self.put(report_key("orders", shard), Report(**(usual | fields)))

    def has_gaps(self, *gaps: RecordGap) -> None:
        """Found an hour ago, in commit 6."""
        record = Record("orders", 0, 6, 3, "node-a", 0, 0, {}, {}, gaps=gaps)
        self.lake.stage(record_path("orders", 0, 6), to_bytes(record))
        self.has_checkpoint(last_gap=LastGap(6, self.now_ms - 3_600_000))

    def runs(self) -> None:
        """A node has the stream, and holds its shard."""
        self.joins("a", kind_name("orders"))
        self.put(stream_key("orders"), StreamDocument(1))
        self.has_task(holder="a", epoch=3)

    def look(self, only: str | None = None) -> StreamsStatus:
        fleet = read_status(self.store, self.ambient)
        return read_streams(self.store, self.settings, fleet, only, self.lake)

    def orders(self) -> StreamStatus:
        (found,) = self.look().streams
        return found

    def standing(self) -> Standing:
        (found,) = self.orders().standing
        return found


@pytest.fixture
def world() -> World:
    return World()


def test_a_stream_that_nobody_has_started_is_shown_as_such_and_is_no_trouble(world: World) -> None:
    found = world.orders()

    assert (found.lag, found.watermark_ms, found.committed_ms, found.commits) == (
        None,
        None,
        None,
        0,
    )
    assert found.shards[0].condition == "not started"
    assert (world.standing().kind, world.standing().advice) == ("not started", Advice("run"))
    assert world.look().is_healthy


def test_a_stream_that_runs_says_how_far_it_is(world: World) -> None:
    world.runs()
    world.has_checkpoint(periods={"2026-11-01T00": ((1, 8),), "2026-11-01T01": ((3, 4),)})
    world.has_report(waiting_files=3, waiting_bytes=900, oldest_ms=world.now_ms - 20_000)

    found = world.orders()
    lag = found.lag

    assert lag is not None
    assert (lag.files, lag.size_bytes, lag.oldest_ms, lag.is_now) == (3, 900, 20_000, True)
    assert (found.commits, found.rows, found.hours) == (7, 500, 2)
    assert (found.landed, found.late, found.dead, found.gaps) == (490, 6, 4, 2)
    assert as_json(found, str)["landed"] == 490
    assert found.watermark_ms == world.now_ms - 60_000
    assert found.committed_ms == world.now_ms - 5_000
    assert (found.shards[0].condition, found.shards[0].node) == ("in progress", "node-a")
    assert found.standing == ()
    assert world.look().is_healthy


GONE_FILE = RecordGap(
    "lane-0", "4", "5", "a.json vanished or changed before it was read", "2026-11-01T13"
)


def test_a_gap_is_named_with_its_file_its_commit_and_the_hours_it_may_concern(world: World) -> None:
    world.runs()
    first = replace(GONE_FILE, until="2026-11-01T15")
    world.has_gaps(first, replace(first, first="7", next="8", until="2026-11-01T16"))

    found = world.standing()

    assert (found.kind, found.subject, found.is_for_a_person) == (GAP, "orders/0", False)
    assert found.words == (
        "a.json vanished or changed before it was read, and 1 more; found 1 h 0 min ago, noted in "
        "commit 6"
    )
    assert "the certificates of 2026-11-01T13 to 2026-11-01T16 name the gap" in found.meaning
    assert "what has its name now, or is put back, is read as a new file" in found.meaning
    assert found.advice is not None
    assert (found.advice.verb, found.advice.options[:2]) == ("history", ("--subject", "orders/0/6"))
    assert world.look().is_healthy


def test_a_gap_whose_record_cannot_be_read_is_told_all_the_same(world: World) -> None:
    world.runs()
    world.has_gaps(GONE_FILE)
    world.lake = MemoryLake()

    assert world.standing().words.startswith("something was gone before it was read; found 1 h")


def test_a_gap_of_one_hour_names_that_hour_once(world: World) -> None:
    world.runs()
    world.has_gaps(replace(GONE_FILE, until=GONE_FILE.since))

    assert "the certificate of 2026-11-01T13 names the gap" in world.standing().meaning


def test_a_gap_that_may_be_of_any_hour_says_up_to_which(world: World) -> None:
    world.runs()
    world.has_gaps(replace(GONE_FILE, since="1970-01-01T00", until="2026-11-01T13"))

    assert "the certificates of all hours up to 2026-11-01T13 name the gap" in (
        world.standing().meaning
    )


def test_a_gap_is_news_for_a_week(world: World) -> None:
    world.runs()
    world.has_gaps(GONE_FILE)
    world.ambient.pass_ms(TOLD_MS)

    assert GAP not in [one.kind for one in world.orders().standing]


def test_the_watermark_of_a_stream_is_that_of_its_slowest_source_partition(world: World) -> None:
    world.settings = {"orders": settings_of(shards=2)}
    world.has_checkpoint(0, positions={"a": "", "b": ""}, watermarks={"a": 9, "b": 5})
    world.has_checkpoint(1, positions={"c": ""}, watermarks={"c": 7})

    assert world.orders().watermark_ms == 5


def test_a_source_partition_without_a_watermark_holds_the_streams_back_and_is_named(
    world: World,
) -> None:
    world.runs()
    world.has_checkpoint(positions={"a": "", "b": ""}, watermarks={"a": 9, "b": None})

    assert world.orders().watermark_ms is None
    assert (world.standing().kind, world.standing().words) == (
        "no watermark",
        "b has no watermark yet",
    )
    assert world.look().is_healthy


def test_a_proof_that_nothing_waits_outlives_an_older_report(world: World) -> None:
    world.runs()
    world.has_report(waiting_files=3, waiting_bytes=900, unfinished=1)
    world.has_checkpoint(ends_ms={"lane-0": world.now_ms - 1_000})

    lag = world.orders().lag

    assert lag is not None
    assert (lag.files, lag.unfinished, lag.age_ms) == (0, 0, 1_000)
    assert world.orders().standing == ()


@pytest.mark.parametrize(
    ("ends_ms", "journal"),
    [
        ({"lane-0": 1}, None),
        ({}, None),
        ({"lane-0": 10**13}, None),  # of a clock that has been set back since
        ({"lane-0": 1_800_000_000_000}, JOURNAL),
    ],
)
def test_an_older_proof_or_one_before_the_fact_proves_nothing(
    world: World, ends_ms: Mapping[str, int], journal: Journal | None
) -> None:
    world.runs()
    world.has_report(waiting_files=3)
    world.has_checkpoint(ends_ms=ends_ms, journal=journal, number=8)

    lag = world.orders().lag

    assert lag is not None
    assert lag.files == 3


def test_what_was_said_by_a_holder_before_is_not_of_now(world: World) -> None:
    world.joins("a", kind_name("orders"))
    world.has_task(holder="a", epoch=4)
    world.has_report(epoch=3, waiting_files=3, doing="round of 3 files")

    found = world.orders()

    assert found.lag is not None
    assert not found.lag.is_now
    assert found.shards[0].doing == ""


def test_q10_a_shard_that_was_set_aside_is_shown_with_its_cause_and_the_command(
    world: World,
) -> None:
    world.joins("a", kind_name("orders"))
    world.has_task(set_aside=Trouble("disk is on fire", "node-a", world.now_ms))

    found = world.standing()

    assert (found.kind, found.subject, found.words) == ("set aside", "orders/0", "disk is on fire")
    assert found.advice == Advice(
        "shard release", ("orders/0",), ("--reason", "the cause is fixed")
    )
    assert not world.look().is_healthy


def test_a_shard_whose_staged_files_are_gone_is_told_to_restage(world: World) -> None:
    world.joins("a", kind_name("orders"))
    world.has_task(set_aside=Trouble(GONE, "node-a", world.now_ms))
    world.has_checkpoint(journal=JOURNAL, number=8)

    found = world.standing()

    assert found.advice is not None
    assert (found.advice.verb, found.advice.words) == ("journal restage", ("orders/0",))
    assert world.orders().commits == 7


def test_a_journal_that_nobody_holds_is_shown_and_goes_on_by_itself(world: World) -> None:
    world.has_task()
    world.has_checkpoint(journal=JOURNAL, number=8)

    found = world.standing()

    assert (found.kind, found.words) == (
        "journal stands",
        "commit 8 is journaled and not finished",
    )
    assert world.look().is_healthy


def test_a_journal_in_its_holders_hand_is_work_and_not_standing_still(world: World) -> None:
    world.runs()
    world.has_checkpoint(journal=JOURNAL, number=8)

    assert world.orders().standing == ()
    assert world.orders().shards[0].journal == 8


def test_a_paused_stream_says_who_and_why_and_how_it_goes_on(world: World) -> None:
    world.joins("a", kind_name("orders"))
    pause = Pause("the disk is full", "ada", world.now_ms - 4_000)
    world.put(stream_key("orders"), StreamDocument(1, paused=pause))

    found = world.standing()

    assert found.words == "paused by ada, 4.0 s ago: the disk is full"
    assert found.advice is not None
    assert (found.advice.verb, found.advice.words) == ("stream resume", ("orders",))
    assert world.look().is_healthy


def test_unfinished_files_are_told(world: World) -> None:
    world.runs()
    world.has_checkpoint()
    world.has_report(unfinished=2, doing="idle")

    assert world.standing().words.startswith("2 files are unfinished")


def test_a_file_that_cannot_be_read_is_for_a_person_and_named(world: World) -> None:
    world.runs()
    world.has_checkpoint()
    world.has_report(unreadable=1, unreadable_why="/in/a.gz: is no gzip; next: rm it", doing="idle")

    found = world.standing()

    assert (found.kind, found.subject) == ("unreadable files", "orders/0")
    assert found.words == "/in/a.gz: is no gzip; next: rm it"
    assert found.is_for_a_person
    assert not world.look().is_healthy


def test_a_clock_that_is_wrong_is_for_a_person(world: World) -> None:
    world.runs()
    world.has_checkpoint()
    world.has_report(remark="the clock of node-a is 3,600 s ahead")

    assert (world.standing().kind, world.standing().is_for_a_person) == ("clock", True)


def test_nodes_that_do_not_have_the_stream_are_no_help(world: World) -> None:
    world.joins("a", kind_name("other"))

    assert (world.standing().kind, world.standing().is_for_a_person) == ("no node has it", True)


def test_settings_that_contradict_what_is_fixed_are_for_a_person(world: World) -> None:
    world.joins("a", kind_name("orders"))
    world.put(stream_key("orders"), StreamDocument(3))

    assert (world.standing().kind, len(world.orders().shards)) == ("shards differ", 3)


def test_a_stream_that_only_the_store_has_is_shown_too(world: World) -> None:
    world.put(stream_key("a/b é"), StreamDocument(2))

    names = [(one.name, one.is_in_settings, len(one.shards)) for one in world.look().streams]

    assert names == [("orders", True, 1), ("a/b é", False, 2)]
    assert [one.name for one in world.look("a/b é").streams] == ["a/b é"]
    assert world.look("nothing").streams == ()


def test_g5_a_damaged_checkpoint_concerns_only_itself(world: World) -> None:
    world.settings["clicks"] = settings_of("clicks")
    world.has_checkpoint(stream="clicks")
    world.store.create(checkpoint_key("orders", 0), {"format": 1, "epoch": "x"})

    found = world.look()

    assert [damage.key for damage in found.damaged] == [checkpoint_key("orders", 0)]
    assert found.streams[1].commits == 7
    assert not found.is_healthy


def test_as_json_has_the_next_command_and_the_sums(world: World) -> None:
    world.joins("a", kind_name("orders"))
    world.has_task(set_aside=Trouble("broken", "node-a", world.now_ms))
    world.has_checkpoint()

    found = as_json(world.orders(), lambda advice: f"headgate {advice.verb}")

    assert found["standing"] == [
        {
            "kind": "set aside",
            "subject": "orders/0",
            "words": "broken",
            "meaning": world.standing().meaning,
            "is_for_a_person": True,
            "next": "headgate shard release",
        }
    ]
    assert (found["commits"], found["rows"], found["lag"]) == (7, 500, None)


def test_a_task_of_a_kind_that_no_node_knows_is_stranded(world: World) -> None:
    world.joins("a", kind_name("other"))
    world.put(task_key("f", 1), Task("k", ""))

    found = read_status(world.store, world.ambient)

    assert [(task.is_stranded, task.is_known) for task in found.tasks] == [(True, False)]
    assert found.warnings[-1] == "no node can do 1 task (f/1): none of them knows the kind k"


@pytest.mark.parametrize(
    ("merging", "words", "meaning"),
    [
        (
            Merging("2026-11-01T13", 3, "no room"),
            "the small files of 2026-11-01T13 were not merged, in 3 of 3 tries: no room",
            "its flag is raised all the same, and later hours are merged if they can be",
        ),
        (
            Merging("2026-11-01T13", 1, "no java was found"),
            "the small files of 2026-11-01T13 were not merged, in 1 of 3 tries: no java was found",
            "its flag waits for the next try, or the last",
        ),
    ],
)
def test_an_hour_that_was_not_merged_is_told_and_needs_nobody(
    world: World, merging: Merging, words: str, meaning: str
) -> None:
    world.settings = {"orders": replace(settings_of(), is_merged=True)}
    world.runs()
    world.put(root_key(root_name(settings_of().folder)), RootDocument(merging={"orders": merging}))

    expected = Standing("not merged", "orders", words, meaning, None, is_for_a_person=False)
    assert world.standing() == expected
    assert world.look().is_healthy


def test_a_merge_that_is_under_way_is_nothing_that_stands_still(world: World) -> None:
    world.settings = {"orders": replace(settings_of(), is_merged=True)}
    world.runs()
    merging = {"orders": Merging("2026-11-01T13", 1)}
    world.put(root_key(root_name(settings_of().folder)), RootDocument(merging=merging))

    assert world.orders().standing == ()


# ── a holder that was killed ──────────────────────────────────────────────────────────────────────


def test_a_shard_whose_node_seems_to_be_gone_says_when_it_is_free_and_what_to_do(
    world: World,
) -> None:
    world.runs()
    world.has_checkpoint()
    world.has_report(waiting_files=3)
    world.ambient.pass_ms(14_000)

    (shard,) = world.orders().shards
    found = world.standing()

    assert (shard.is_silent, shard.node, shard.doing) == (True, "node-a", "")
    assert shard.free_ms == pytest.approx(world.now_ms + 30_000, abs=50)
    assert shard.lag is not None
    assert not shard.lag.is_now
    assert (found.kind, found.subject, found.is_for_a_person) == ("node silent", "orders/0", False)
    assert found.words.startswith(
        "node node-a, which held it, seems to be gone: nothing was heard of it for 14.0 s; it was "
    )
    assert found.meaning.startswith("its session ends in about 1")
    assert "; then any node that runs takes it over" in found.meaning
    assert found.advice == Advice("run")
    world.ambient.pass_ms(20_000)
    assert world.standing().meaning.startswith("its session is over: any node that runs takes it")


def test_a_shard_whose_node_seems_to_be_gone_needs_nobody_while_another_can_take_it(
    world: World,
) -> None:
    world.runs()
    world.has_checkpoint()
    world.ambient.pass_ms(14_000)
    world.joins("b", kind_name("orders"))

    found = world.standing()

    assert (found.kind, found.advice) == ("node silent", None)
    assert "then another node takes the shard over" in found.meaning


# ── the next commit ───────────────────────────────────────────────────────────────────────────────


def test_a_stream_says_when_its_next_commit_is_due(world: World) -> None:
    world.runs()
    world.has_checkpoint()
    world.has_report(due_ms=world.now_ms + 90_000)

    found = world.orders()

    assert (found.due_ms, found.shards[0].due_ms) == (world.now_ms + 90_000, found.due_ms)
    assert as_json(found, str)["due_ms"] == found.due_ms


def test_nobody_promises_a_commit_for_a_node_that_is_not_there(world: World) -> None:
    world.has_task()
    world.has_checkpoint()
    world.has_report(due_ms=world.now_ms + 90_000)

    assert world.orders().due_ms is None
