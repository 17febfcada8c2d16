"""What the next round would do: as a node would plan it, and no document is written."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from headgate.app.preview import NextRange, NextRound, OpenSource, look_ahead, preview
from headgate.cluster import Order
from headgate.cluster.tasks import Trouble, new_task, task_key
from headgate.commits.checkpoint import Checkpoint, Journal, checkpoint_key
from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.lake.memory import MemoryLake
from headgate.landing import StreamSettings
from headgate.landing.kind import feed_name, kind_name
from headgate.settings import Settings
from headgate.settings.loading import judge
from headgate.sources import FilesSettings, KafkaSettings, Source, Waiting
from headgate.sources.files import FilesSource
from headgate.sources.kafka.document import KafkaDocument, document_key
from headgate.sources.kafka.source import KafkaSource
from headgate.sources.memory_folder import MemoryFolder
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.testing.weir import Weir

KAFKA = b"""
store: memory:tests
lake: /lake
streams:
  sales:
    source: {kind: kafka, brokers: "127.0.0.1:9", topic: orders}
    event_time: {json: $.at}
"""
FILES = KAFKA.replace(
    b'{kind: kafka, brokers: "127.0.0.1:9", topic: orders}', b"{kind: files, path: /in}"
)


def settings_of(raw: bytes) -> Settings:
    found = judge(raw, "/", {})
    assert found.settings is not None, found.problems
    return found.settings


class World:
    def __init__(self, raw: bytes = KAFKA) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.lake = MemoryLake()
        self.settings = settings_of(raw)
        self.stream = self.settings.streams["sales"]
        self.weir = Weir()
        self.folder = MemoryFolder()
        self.weir.make("orders", 2)

    def put(self, key: str, value: object) -> None:
        self.store.create(key, body_of(value))

    def open(self, stream: StreamSettings, shard: int, epoch: int, store: DocumentStore) -> Source:
        source = stream.source
        if isinstance(source, KafkaSettings):
            cluster = self.weir.cluster(source.isolation)
            return KafkaSource(source, stream.name, lambda _: True, store, cluster, self.ambient)
        assert isinstance(source, FilesSettings)
        return FilesSource(source, stream.name, ["lane-0"], epoch, store, self.folder, self.ambient)

    def round(self) -> NextRound:
        before = self.documents()
        (found,) = preview(
            self.stream, self.store, self.lake, self.settings, self.open, self.ambient
        ).rounds
        assert self.documents() == before
        assert list(self.lake.list("").entries) == []
        return found

    def documents(self) -> list[object]:
        return list(self.store.list("").documents)


@pytest.fixture
def world() -> World:
    return World()


def test_the_next_round_of_a_log_is_told_by_partition(world: World) -> None:
    world.weir.send("orders", 0, [b"x" * 10] * 7)
    world.weir.send("orders", 1, [b"x" * 10] * 3)
    world.put(stream_key("sales"), StreamDocument(1))
    positions = {"orders/0": "5", "orders/1": ""}
    world.put(
        checkpoint_key("sales", 0),
        Checkpoint(2, 2, 4, positions=positions, periods={"2026-11-01T13": ((1, 3),)}),
    )

    found = world.round()

    assert found.ranges == (
        NextRange("orders/0", "5", "7", 0, 2, 20),
        NextRange("orders/1", "", "3", 0, 3, 30),
    )
    assert (found.waiting_records, found.has_more, found.stands) == (5, False, "")
    assert found.open_hours == ("2026-11-01T13",)


def test_files_are_told_as_they_would_be_numbered() -> None:
    world = World(FILES)
    for name in ("b.json", "a.json"):
        world.folder.files[name] = (b"{}\n", 1)

    found = world.round()

    assert found.ranges == (NextRange("lane-0", "", "2", 2, 0, 6),)
    assert (found.waiting_files, found.waiting_bytes) == (2, 6)
    assert world.documents() == []


def test_what_is_behind_a_round_is_for_later_ones(world: World) -> None:
    world.weir.send("orders", 0, [b"x" * 10] * 100)
    world.stream = replace(world.stream, round_bytes=50)

    found = world.round()

    assert (found.ranges[0].next, found.waiting_records, found.has_more) == ("5", 100, True)


def test_a_commit_that_is_not_finished_comes_first_and_is_counted(world: World) -> None:
    world.weir.send("orders", 0, [b"x" * 10] * 7)
    journal = Journal(5, 1, "f", "f/r", 1, "sha256:0", {"orders/0": "6"}, {}, {}, (), 1)
    world.put(
        checkpoint_key("sales", 0),
        Checkpoint(2, 2, 5, positions={"orders/0": "2", "orders/1": ""}, journal=journal),
    )

    found = world.round()

    assert found.first == "commit 5 is finished first"
    assert [(one.first, one.next) for one in found.ranges] == [("6", "7")]


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        (lambda world: setattr(world.weir, "is_silent", True), "no broker answers"),
        (
            lambda world: world.put(
                stream_key("sales"), StreamDocument(1, paused=Pause("lunch", "ada", 1))
            ),
            "paused by ada: lunch",
        ),
        (
            lambda world: world.put(
                task_key(feed_name("sales"), 0),
                replace(
                    new_task(Order(kind_name("sales"), b"")), set_aside=Trouble("broken", "n", 1)
                ),
            ),
            "set aside: broken",
        ),
    ],
)
def test_why_nothing_would_be_read_is_told(
    world: World, stop: Callable[[World], None], words: str
) -> None:
    world.weir.send("orders", 0, [b"x"])
    stop(world)

    assert words in world.round().stands


def test_what_expired_stands_until_a_person_decides(world: World) -> None:
    world.weir.send("orders", 0, [b"x"] * 9)
    world.weir.expire("orders", 0, 5)
    world.put(checkpoint_key("sales", 0), Checkpoint(2, 2, 5, positions={"orders/0": "2"}))

    assert "headgate gap accept sales orders/0" in world.round().stands


def test_a_look_ahead_tells_what_waits_and_writes_nothing(world: World) -> None:
    world.weir.send("orders", 0, [b"xyz"])
    opened: OpenSource = world.open

    found = look_ahead(world.stream, 0, world.store, opened)

    assert isinstance(found.waiting, Waiting)
    assert (found.waiting.records, found.checkpoint) == (1, Checkpoint())
    assert read(world.store, document_key("sales"), KafkaDocument) is None
