"""What the page is told, from documents that were written as nodes write them."""

import json
from collections.abc import Iterator

import pytest

from headgate.cluster import Advert
from headgate.cluster.presence import DocumentPresence
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import RootDocument, Seat, root_key, root_name
from headgate.commits.streams import StreamDocument, stream_key
from headgate.engine import EventTime
from headgate.errors import Invalid, Unavailable
from headgate.lake import LakeSettings
from headgate.landing import StreamSettings
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period
from headgate.settings import Settings, TableSettings
from headgate.sources import FilesSettings
from headgate.status.still import Advice
from headgate.store import DocumentStore, JsonObject
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.web.look import KEEP_MS, Lookout, read_look
from headgate.web.view import unreachable, view

NAME = '<script>"é" 日本'
FOLDER = FolderTemplate.parse(DEFAULT_FOLDER)
STREAM = StreamSettings(NAME, FilesSettings("/incoming"), EventTime("json", "$.at"), FOLDER)
SETTINGS = Settings(
    "memory:view",
    LakeSettings("/there/is/no/such/lake"),
    streams={NAME: STREAM},
    tables={"t": TableSettings("t", "parquet", NAME, "/table")},
)


class World:
    def __init__(self) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.now_ms = self.ambient.wall_ns() // 1_000_000
        self.this_ms = Period.hour_of(self.now_ms).start_ms

    def put(self, key: str, value: object) -> None:
        self.store.create(key, body_of(value))

    def lands(self) -> None:
        """Ready up to two hours ago, and complete up to one hour ago."""
        first_ms = self.this_ms - 10 * HOUR_MS
        self.put(stream_key(NAME), StreamDocument(1, first_ms))
        marks = {"lane": self.this_ms - HOUR_MS}
        self.put(checkpoint_key(NAME, 0), Checkpoint(watermarks=marks, discovered_ms=self.now_ms))
        seat = Seat(None, first_ms, self.this_ms - 2 * HOUR_MS)
        self.put(root_key(root_name(FOLDER)), RootDocument(streams={NAME: seat}))

    def view(self, until: Period | None = None) -> JsonObject:
        found = read_look(self.store, SETTINGS, self.ambient)
        return view(found, SETTINGS, spoken, until)


def spoken(advice: Advice) -> str:
    return " ".join(["headgate", advice.verb, *advice.words])


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.store.close()


def test_every_hour_of_the_map_has_its_state(world: World) -> None:
    world.lands()

    told = json.loads(json.dumps(world.view()))

    (stream,) = told["streams"]
    assert stream["name"] == NAME
    assert stream["ask"] == f"headgate why {NAME}"
    assert [one["hour"] for one in stream["hours"]] == told["hours"]
    assert [one["state"] for one in stream["hours"][-4:-1]] == ["ready", "closing", "waiting"]
    assert stream["why"]["state"] == "closing"
    assert [one["name"] for one in told["tables"]] == ["t"]


def test_an_empty_store_is_no_error(world: World) -> None:
    told = world.view()
    assert told["is_reachable"] is True
    assert told["nodes"] == []


def test_what_only_the_store_has_is_shown_without_hours(world: World) -> None:
    world.put(stream_key("old"), StreamDocument(1, 0))
    found = json.loads(json.dumps(world.view()))["streams"]
    assert [(one["name"], one["is_in_settings"]) for one in found] == [(NAME, True), ("old", False)]
    assert found[1]["hours"] == []


def test_a_damaged_root_is_named_and_everything_else_shown(world: World) -> None:
    world.lands()
    key = root_key(root_name(FOLDER))
    found = world.store.get(key)
    assert found is not None
    world.store.replace(key, {"format": 1, "streams": "x"}, found.version)
    told = json.loads(json.dumps(world.view()))
    assert told["verdict"] == {"code": 4, "words": "damaged"}
    assert [one["key"] for one in told["damaged"]] == [key]
    assert [one["name"] for one in told["streams"]] == [NAME]


def test_nodes_are_there_with_their_state(world: World) -> None:
    DocumentPresence(world.store, world.ambient).join("s", Advert("node-a", 2))
    told = json.loads(json.dumps(world.view()))
    assert [(one["node"], one["state"]) for one in told["nodes"]] == [("node-a", "member")]


def test_other_hours_can_be_asked_for(world: World) -> None:
    world.lands()
    told = world.view(Period.parse("2026-01-02T23"))
    assert isinstance(told["hours"], list)
    assert (told["hours"][0], told["hours"][-1]) == ("2026-01-01T00", "2026-01-02T23")
    with pytest.raises(Invalid):
        world.view(Period.parse("0001-01-01T00"))


def test_many_pages_cost_the_store_as_much_as_one(world: World) -> None:
    opened: list[DocumentStore] = []

    def open_it() -> DocumentStore:
        opened.append(world.store)
        return world.store

    lookout = Lookout(open_it, SETTINGS, world.ambient)
    first = lookout.look()
    assert lookout.look() is first
    world.ambient.pass_ms(KEEP_MS)
    assert lookout.look() is not first
    assert len(opened) == 1


def test_a_store_that_is_away_is_asked_again_and_not_by_everybody(world: World) -> None:
    tries: list[int] = []

    def open_it() -> DocumentStore:
        tries.append(1)
        if len(tries) < 2:
            raise Unavailable("nobody answers")
        return world.store

    lookout = Lookout(open_it, SETTINGS, world.ambient)
    for _ in range(3):
        with pytest.raises(Unavailable, match="nobody answers"):
            lookout.look()
    assert len(tries) == 1
    world.ambient.pass_ms(KEEP_MS)
    assert lookout.look().tables[0].name == "t"
    assert unreachable("x", SETTINGS)["is_reachable"] is False
