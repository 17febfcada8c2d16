"""Whether it is trouble that no node runs: only while something is to be done."""

from dataclasses import replace
from typing import Any

import pytest

from headgate.app.rest import rested
from headgate.cluster import Advert, Order
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.tasks import new_task, task_key
from headgate.commits.checkpoint import Checkpoint, Journal, checkpoint_key
from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.landing.kind import feed_name, kind_name
from headgate.landing.report import Report, report_key
from headgate.ready.kind import kind_name as flags_of
from headgate.status import ClusterStatus, read_status
from headgate.status.streams import read_streams
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store

JOURNAL = Journal(8, 3, "staged", "staged/record.json", 5, "sha256:0", {}, {}, {}, (), 0)


class World:
    """A stream whose node has left, and the task of its flags."""

    def __init__(self) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)

    def put(self, name: str, value: object) -> None:
        self.store.create(name, body_of(value))

    def was_landed(
        self, *, waiting: int = 0, journal: Journal | None = None, pause: Pause | None = None
    ) -> None:
        self.put(stream_key("orders"), StreamDocument(1, paused=pause))
        self.has_task(feed_name("orders"), kind_name("orders"))
        self.has_task("ready:x", flags_of("x"))
        checkpoint = Checkpoint(epoch=3, turn=4, number=8, positions={"a": "1"}, journal=journal)
        self.put(checkpoint_key("orders", 0), checkpoint)
        self.put(report_key("orders", 0), Report("node-a", 3, "idle", waiting))

    def has_task(self, feed: str, kind: str, **fields: Any) -> None:
        self.put(task_key(feed, 0), replace(new_task(Order(kind, b"{}")), **fields))

    def joins(self) -> None:
        DocumentPresence(self.store, self.ambient).join("a", Advert("node-a", 2))

    def words(self) -> str:
        return read_streams(self.store, {}, read_status(self.store, self.ambient)).words_at_rest

    def fleet(self, *, is_more: bool = False) -> ClusterStatus:
        fleet = read_status(self.store, self.ambient)
        return rested(fleet, read_streams(self.store, {}, fleet), lambda: is_more)


@pytest.fixture
def world() -> World:
    return World()


def test_with_nothing_to_do_nobody_has_to_run(world: World) -> None:
    world.was_landed()

    assert (world.fleet().is_at_rest, world.fleet().is_healthy) == (True, True)


@pytest.mark.parametrize("what", [{"waiting": 3}, {"journal": JOURNAL}])
def test_what_waits_for_a_node_is_no_rest(world: World, what: dict[str, Any]) -> None:
    world.was_landed(**what)

    assert (world.fleet().is_at_rest, world.fleet().is_healthy) == (False, False)


def test_at_rest_it_is_said_if_only_what_is_paused_waits(world: World) -> None:
    world.was_landed(waiting=3, pause=Pause("the disk is full", "ada", 1))

    assert world.fleet().is_at_rest
    assert world.words() == "no node is running, and what waits is paused"


def test_at_rest_nothing_waits_in_a_paused_stream_that_has_nothing(world: World) -> None:
    world.was_landed(pause=Pause("the disk is full", "ada", 1))

    assert world.words() == "no node is running, and nothing waits"


def test_flags_that_follow_from_what_has_landed_are_no_rest(world: World) -> None:
    world.was_landed()

    assert not world.fleet(is_more=True).is_at_rest


def test_a_task_of_another_kind_is_no_rest(world: World) -> None:
    world.was_landed()
    world.has_task("f", "steps")

    assert not world.fleet().is_at_rest


def test_a_shard_that_nobody_has_looked_at_is_no_rest(world: World) -> None:
    world.put(stream_key("orders"), StreamDocument(1))
    world.has_task(feed_name("orders"), kind_name("orders"))

    assert not world.fleet().is_at_rest


def test_what_a_person_paused_waits_for_that_person(world: World) -> None:
    world.was_landed(waiting=3, pause=Pause("maintenance", "ann", 1))

    assert world.fleet().is_at_rest


def test_a_node_that_was_killed_is_no_rest_even_if_nothing_waits(world: World) -> None:
    world.was_landed()
    world.joins()
    world.ambient.pass_ms(31_000)

    found = world.fleet()

    assert (found.is_at_rest, found.is_healthy) == (False, False)
