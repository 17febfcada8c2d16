"""Which streams share their flags, which tables take them, and whether more is to come."""

from dataclasses import replace

import pytest

from headgate.app.roots import first_hour_ms, is_more_to_come, roots_of, tables_of
from headgate.apply.kind import kind_name as batches_of
from headgate.apply.table_document import TableDocument, table_key
from headgate.backlog import Entry
from headgate.backlog.queue import queue
from headgate.cluster import Order
from headgate.cluster.tasks import Trouble, new_task, task_key
from headgate.commits.roots import RootDocument, RootJournal, Seat, root_key
from headgate.engine import EventTime
from headgate.lake import LakeSettings
from headgate.lake.memory import MemoryLake
from headgate.landing import StreamSettings
from headgate.periods import DEFAULT_FOLDER, FolderTemplate
from headgate.ready.kind import kind_name as flags_of
from headgate.settings import Settings, TableSettings
from headgate.sources import FilesSettings
from headgate.store import DocumentStore
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store

APART = "{stream}/{yyyy}/{MM}/{dd}/{HH}"
ROOT = "{yyyy}-{MM}-{dd}/{HH}"
TROUBLE = Trouble("the disk is on fire", "node-1", 1)


def stream(name: str, folder: str = DEFAULT_FOLDER, lateness_ms: int = 600_000) -> StreamSettings:
    return StreamSettings(
        name,
        FilesSettings(f"/incoming/{name}"),
        EventTime("json", "$.at"),
        FolderTemplate.parse(folder),
        allowed_lateness_ms=lateness_ms,
    )


def settings_of(*streams: StreamSettings, **tables: str) -> Settings:
    """Tables by name: the stream that they take."""
    return Settings(
        "memory:x",
        LakeSettings("/lake"),
        streams={one.name: one for one in streams},
        tables={
            name: TableSettings(name, "parquet", of, f"/tables/{name}")
            for name, of in tables.items()
        },
    )


def new_store() -> DocumentStore:
    return manual_store(ManualAmbient())


def put(store: DocumentStore, key: str, value: object) -> None:
    store.create(key, body_of(value))


def sets_aside(store: DocumentStore, feed: str) -> None:
    put(store, task_key(feed, 0), replace(new_task(Order(feed, b"{}")), set_aside=TROUBLE))


def test_two_streams_of_one_template_share_a_root() -> None:
    both = (stream("orders", lateness_ms=7), stream("clicks"))

    (found,) = roots_of(settings_of(*both))

    assert found.name == ROOT
    assert [(one.name, one.allowed_lateness_ms) for one in found.streams] == [
        ("orders", 7),
        ("clicks", 600_000),
    ]


def test_streams_whose_flags_lie_in_other_folders_have_other_roots() -> None:
    found = roots_of(settings_of(stream("orders"), stream("logs", APART), stream("clicks")))

    assert {one.name: [s.name for s in one.streams] for one in found} == {
        ROOT: ["orders", "clicks"],
        APART: ["logs"],
    }
    assert roots_of(settings_of()) == []


def test_a_table_takes_the_hours_of_its_stream_from_the_streams_folder() -> None:
    found = tables_of(settings_of(stream("logs", APART), b="logs", a="logs"))

    assert [(one.name, one.stream, one.path) for one in found] == [
        ("a", "logs", "/tables/a"),
        ("b", "logs", "/tables/b"),
    ]
    assert {one.folder.text for one in found} == {APART}


@pytest.mark.parametrize(
    ("seats", "expected"),
    [({}, None), ({"orders": Seat()}, None), ({"orders": Seat(None, 7_200_000)}, 7_200_000)],
)
def test_the_first_hour_is_that_of_the_streams_seat(
    seats: dict[str, Seat], expected: int | None
) -> None:
    store, settings = new_store(), settings_of(stream("orders"))
    assert first_hour_ms(store, settings, "orders") is None

    put(store, root_key(ROOT), RootDocument(streams=seats))

    assert first_hour_ms(store, settings, "orders") == expected


def test_an_empty_installation_has_nothing_to_come() -> None:
    settings = settings_of(stream("orders"), stream("logs", APART), orders="orders")

    assert not is_more_to_come(new_store(), MemoryLake(), settings)


def test_flags_that_are_to_come_are_waited_for_unless_their_root_is_set_aside() -> None:
    store, settings = new_store(), settings_of(stream("orders"))
    put(store, root_key(ROOT), RootDocument(journal=RootJournal("raise", "", ())))
    assert is_more_to_come(store, MemoryLake(), settings)

    sets_aside(store, flags_of(ROOT))

    assert not is_more_to_come(store, MemoryLake(), settings)


def test_a_root_that_is_set_aside_does_not_hide_another() -> None:
    store, settings = new_store(), settings_of(stream("orders"), stream("logs", APART))
    sets_aside(store, flags_of(ROOT))
    put(store, root_key(APART), RootDocument(journal=RootJournal("raise", "", ())))

    assert is_more_to_come(store, MemoryLake(), settings)


def test_batches_that_are_to_come_are_waited_for_unless_their_table_is_set_aside() -> None:
    store, settings = new_store(), settings_of(stream("orders"), daily="orders")
    put(store, table_key("daily"), TableDocument(queued=1))
    queue(store, "daily", Entry("2026-11-01T00", 0, "orders", 1, "m", "h", 1, 10))
    assert is_more_to_come(store, MemoryLake(), settings)

    sets_aside(store, batches_of("daily"))

    assert not is_more_to_come(store, MemoryLake(), settings)


def test_a_root_that_is_set_aside_does_not_hide_a_table() -> None:
    store, settings = new_store(), settings_of(stream("orders"), daily="orders")
    sets_aside(store, flags_of(ROOT))
    queue(store, "daily", Entry("2026-11-01T00", 0, "orders", 1, "m", "h", 1, 10))

    assert is_more_to_come(store, MemoryLake(), settings)
