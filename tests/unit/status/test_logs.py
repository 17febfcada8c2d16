"""What status and why say of a stream that is read from a log: lag in records, how long what waits
is still there, and open transactions."""

from dataclasses import replace

import pytest

from headgate.cli.streams import shard_blocks, waiting
from headgate.cli.tables import Rows
from headgate.cluster.tasks import Trouble
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.landing.kind import kind_name
from headgate.sources import KafkaSettings
from headgate.status.still import ACCEPTED, OPEN, Advice, Standing
from headgate.status.streams import Lag, as_json
from headgate.store.changes import change
from tests.unit.status import test_streams
from tests.unit.status.test_streams import settings_of
from tests.unit.status.test_why import evidence, hour, root, why

MINUTE_MS = 60_000
POSITIONS = {"orders/0": "12", "orders/1": "5"}
EXPIRED = (
    "orders/1: offsets 5 to 7 expired before they were read; nothing is read until a person "
    "decides; next: headgate gap accept orders orders/1 --reason \"…\"; or set out_of_range: "
    "earliest"
)  # fmt: skip


class World(test_streams.World):
    """A stream of one topic with two partitions, of one shard that a node holds."""

    def __init__(self) -> None:
        super().__init__()
        source = KafkaSettings("127.0.0.1:9", ("orders",))
        self.settings["orders"] = replace(settings_of(), source=source)
        marks = dict.fromkeys(POSITIONS, self.now_ms - MINUTE_MS)
        self.has_checkpoint(positions=POSITIONS, watermarks=marks)

    def kinds(self) -> list[str]:
        return [one.kind for one in self.orders().standing]


@pytest.fixture
def world() -> World:
    return World()


def test_what_waits_in_a_log_is_told_in_records(world: World) -> None:
    world.runs()
    world.has_report(waiting_records=1_234, waiting_bytes=5_000)

    lag = world.orders().lag

    assert lag is not None
    assert (lag.files, lag.records) == (0, 1_234)
    assert waiting(lag) == "1,234 records, 5.0 kB"
    assert waiting(Lag(0, 0, None, 0, 0, 0, is_now=True)) == "nothing"
    both = Lag(2, 10, None, 0, 0, 0, is_now=True, records=1)
    assert waiting(both) == "2 files, 1 record, 10 B"  # dead letters are driven in, too


def test_how_long_what_waits_is_still_there_is_told_by_partition(world: World) -> None:
    world.runs()
    world.has_report(expires_ms={"orders/1": world.now_ms + 90 * MINUTE_MS})

    found = world.orders()

    assert [one.left_ms for one in found.shards[0].partitions] == [None, 90 * MINUTE_MS]
    assert as_json(found, lambda _: "")["left_ms"] == 90 * MINUTE_MS
    assert world.kinds() == []  # there is time
    table = shard_blocks([found], world.now_ms)[-1]
    assert isinstance(table, Rows)
    assert (table.head[-1], [row[-1] for row in table.rows]) == ("expires", ["-", "in 1 h 30 min"])


def test_records_that_are_gone_within_an_hour_are_for_a_person(world: World) -> None:
    world.runs()
    world.has_report(
        expires_ms={
            "orders/0": world.now_ms + 50 * MINUTE_MS,
            "orders/1": world.now_ms + 20 * MINUTE_MS,
        }
    )

    found = world.standing()

    assert (found.kind, found.subject, found.advice) == ("expires soon", "orders/0", None)
    assert found.words == (
        "orders/1: the next record to read expires in 20 min 0 s at the source, and 1 more follow"
    )
    assert not world.look().is_healthy


def test_the_clock_runs_on_while_no_node_reads(world: World) -> None:
    world.has_task()
    world.has_report(expires_ms={"orders/1": world.now_ms - 1})

    found = next(one for one in world.orders().standing if one.kind == "expires soon")

    assert "may have expired by now" in found.words
    assert found.advice == Advice("run")


def test_what_was_read_to_its_end_cannot_expire(world: World) -> None:
    world.runs()
    ends = dict.fromkeys(POSITIONS, world.now_ms - 1_000)
    change(
        world.store,
        checkpoint_key("orders", 0),
        Checkpoint,
        lambda found: replace(found, ends_ms=ends),
    )
    world.has_report(expires_ms={"orders/1": world.now_ms + 1})

    assert world.orders().left_ms is None
    assert "expires soon" not in world.kinds()


def test_an_open_transaction_is_no_unfinished_file(world: World) -> None:
    world.runs()
    world.has_report(unfinished=2, doing="idle")

    found = world.standing()

    assert (found.kind, found.words) == (
        "open transactions",
        "a transaction is open in 2 source partitions",
    )
    assert not found.is_for_a_person
    assert "file" not in f"{found.words} {found.meaning}"


def test_a_topic_that_cannot_be_read_is_for_a_person(world: World) -> None:
    world.runs()
    cause = "topic orders may not be read; next: give this user the right READ on it"
    world.has_report(unreadable=2, unreadable_why=cause, doing="idle")

    found = world.standing()

    assert (found.kind, found.words) == ("unreadable topics", f"{cause}, and 1 more")
    assert found.is_for_a_person


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (EXPIRED, Advice("gap accept", ("orders", "orders/1"), ACCEPTED)),
        (
            """next: headgate gap accept 'a b' t --reason "…\"""",
            Advice("gap accept", ("a b", "t"), ACCEPTED),
        ),
        (EXPIRED[:140], Advice("shard release", ("orders/0",), ("--reason", "the cause is fixed"))),
    ],
)
def test_a_shard_that_stands_for_a_gap_leads_to_the_command_that_accepts_it(
    world: World, words: str, advice: Advice
) -> None:
    world.joins("a", kind_name("orders"))
    world.has_task(set_aside=Trouble(words, "node-a", world.now_ms))

    found: Standing = world.standing()

    assert (found.kind, found.advice) == ("set aside", advice)


def test_why_names_an_open_transaction_in_words_of_a_log() -> None:
    standing = Standing(OPEN, "orders/0", "a transaction is open", "it is waited for", None, False)

    found = why(hour(3), evidence(3), root(3), standing)

    assert found.words == (
        "it waits for a source partition; a transaction is open (it is waited for)"
    )
