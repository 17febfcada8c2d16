"""What a person asks of a cluster, on a store in memory."""

import pytest

from headgate.ambient import SystemAmbient
from headgate.app import (
    Equipment,
    Place,
    ask_to_drain,
    find_session,
    find_sessions,
    joined_node,
    release_task,
)
from headgate.cluster import Advert
from headgate.cluster.duties import NodeSettings
from headgate.cluster.picture import Drain, drain_key
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.tasks import Task, Trouble, task_key
from headgate.errors import Invalid, Unavailable
from headgate.store import DocumentStore, JsonObject, Version
from headgate.store.changes import read
from headgate.store.codec import body_of
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.planted import ForwardingStore

FIVE = ("1/1", "1/2", "2/1", "2/2", "3/1")

AMBIENT = SystemAmbient()
NAME, KEY = "f/1", task_key("f", 1)


@pytest.fixture
def store() -> DocumentStore:
    return MemoryStore(Shelf(AMBIENT), "test", AMBIENT)


def set_aside(store: DocumentStore) -> None:
    trouble = Trouble("it broke", "n", 1)
    task = Task(
        "k",
        "",
        starts=FIVE,
        start="3/1",
        epoch=3,
        error=trouble,
        set_aside=trouble,
    )
    store.create(KEY, body_of(task))


def task(store: DocumentStore) -> Task:
    found = read(store, KEY, Task)
    assert found is not None
    return found.value


def test_a_released_task_has_all_its_tries_and_remembers_its_error(store: DocumentStore) -> None:
    set_aside(store)

    before = release_task(store, NAME, "fixed", SystemAmbient())

    assert before is not None
    assert before.set_aside is not None
    assert (task(store).set_aside, task(store).tries, task(store).epoch) == (None, 0, 3)
    assert task(store).error is not None


def test_releasing_twice_changes_nothing_more(store: DocumentStore) -> None:
    set_aside(store)
    release_task(store, NAME, "fixed", SystemAmbient())
    version = store.get(KEY)

    again = release_task(store, NAME, "fixed", SystemAmbient())

    assert again is not None
    assert again.set_aside is None
    assert store.get(KEY) == version


def test_a_task_that_is_not_there_is_none_and_a_name_that_is_none_is_invalid(
    store: DocumentStore,
) -> None:
    assert release_task(store, NAME, "fixed", SystemAmbient()) is None
    with pytest.raises(Invalid, match="FEED/NUMBER"):
        release_task(store, "nonsense", "fixed", SystemAmbient())


class SomebodyIsFirst(ForwardingStore):
    """Just before this release, another one: a node has claimed and started the task since."""

    def replace(self, key: str, body: JsonObject, version: Version, **options: int) -> Version:
        running = Task("k", "", holder="s", epoch=4, starts=("4/1",), start="4/1")
        found = self.behind.get(key)
        assert found is not None
        if found.version == version:
            self.behind.replace(key, body_of(running), version)
        return self.behind.replace(key, body, version, **options)


def test_a_release_that_comes_second_does_not_touch_a_running_task(store: DocumentStore) -> None:
    set_aside(store)

    release_task(SomebodyIsFirst(store), NAME, "fixed", SystemAmbient())

    assert (task(store).holder, task(store).tries, task(store).start) == ("s", 1, "4/1")


class RemovedMeanwhile(ForwardingStore):
    def replace(self, key: str, body: JsonObject, version: Version, **options: int) -> Version:
        self.behind.delete(key, version)
        return self.behind.replace(key, body, version, **options)


def test_a_task_that_is_removed_during_its_release_is_none(store: DocumentStore) -> None:
    set_aside(store)

    assert release_task(RemovedMeanwhile(store), NAME, "fixed", SystemAmbient()) is None


def test_nodes_are_found_by_name_and_number_also_those_that_left(store: DocumentStore) -> None:
    presence = DocumentPresence(store, AMBIENT)
    presence.join("a", Advert("red", 1))
    gone = presence.join("b", Advert("red", 1))
    presence.leave(gone)
    store.create("sessions/damaged", {"format": 1})

    assert [id for id, _ in find_sessions(store, "red")] == ["a", "b"]
    assert [(id, one.is_live) for id, one in find_sessions(store, "2")] == [("b", False)]
    assert find_sessions(store, "blue") == []
    assert find_session(store, "c") is None


def test_asking_twice_to_drain_keeps_the_first_wish(store: DocumentStore) -> None:
    ask_to_drain(store, "a", "first", AMBIENT)
    ask_to_drain(store, "a", "second", AMBIENT)

    wish = read(store, drain_key("a"), Drain)
    assert wish is not None
    assert wish.value.reason == "first"


def test_a_node_that_cannot_join_says_so_and_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Unavailable("nobody answers")

    monkeypatch.setattr(DocumentPresence, "join", refuse)

    with (
        pytest.raises(Unavailable, match="nobody answers"),
        joined_node(Place("memory:x"), NodeSettings("n"), AMBIENT, equip=lambda *_: Equipment(())),
    ):
        pass


def test_a_joined_node_is_a_member_before_it_runs() -> None:
    with joined_node(
        Place("memory:y"), NodeSettings("n"), AMBIENT, equip=lambda *_: Equipment(())
    ) as joined:
        assert (joined.member.number, joined.member.advert.node) == (1, "n")
