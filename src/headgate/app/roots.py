"""Roots: which streams of the settings share their flags, which tables take their hours, and
whether more of that is to come."""

from headgate.ambient import Ambient
from headgate.apply import TableSettings
from headgate.apply.kind import kind_name as batches_of
from headgate.apply.outlook import has_batches_to_come
from headgate.audit.reading import OpenSite
from headgate.cluster.tasks import Task, task_key
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.lake import Lake
from headgate.landing import StreamSettings
from headgate.ready import ReadyStream, RootSettings
from headgate.ready.kind import kind_name as flags_of
from headgate.ready.outlook import has_flags_to_come
from headgate.settings import Settings
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.tables.site import opened_site


def roots_of(settings: Settings) -> list[RootSettings]:
    """Streams whose flags roll up in the same folders share a root."""
    found: dict[str, list[StreamSettings]] = {}
    for stream in settings.flagged.values():
        found.setdefault(root_name(stream.folder), []).append(stream)
    return [
        RootSettings(name, tuple(_ready(one) for one in streams))
        for name, streams in sorted(found.items())
    ]


def _ready(stream: StreamSettings) -> ReadyStream:
    return ReadyStream(
        stream.name,
        stream.folder,
        stream.allowed_lateness_ms,
        stream.last_hour_ms,
        merge_bytes=stream.target_bytes if stream.is_merged else None,
        of=stream.of,
    )


def tables_of(settings: Settings) -> list[TableSettings]:
    return [
        TableSettings(name, one.stream, settings.flagged[one.stream].folder, one.path)
        for name, one in sorted(settings.tables.items())
    ]


def site_opener(ambient: Ambient) -> OpenSite:
    """For whoever only looks: nothing is made, and Spark is not needed."""
    return lambda table: opened_site(table.path, ambient)


def first_hour_ms(store: DocumentStore, settings: Settings, stream: str) -> int | None:
    """Of a stream in its root: the first that can have a flag. None: nobody knows it yet. Raises
    Unavailable, Corrupt."""
    found = read(store, root_key(root_name(settings.flagged[stream].folder)), RootDocument)
    seat = None if found is None else found.value.streams.get(stream)
    return None if seat is None else seat.first_ms


def is_more_to_come(store: DocumentStore, lake: Lake, settings: Settings) -> bool:
    """Flags of what has landed, or batches of what has its flag; without a person. Raises
    Unavailable, Corrupt."""
    for root in roots_of(settings):
        if not _is_aside(store, flags_of(root.name)) and has_flags_to_come(store, lake, root):
            return True
    for table in tables_of(settings):
        first_ms = first_hour_ms(store, settings, table.stream)
        is_aside = _is_aside(store, batches_of(table.name))
        if not is_aside and has_batches_to_come(store, lake, table, first_ms):
            return True
    return False


def _is_aside(store: DocumentStore, feed: str) -> bool:
    task = read(store, task_key(feed, 0), Task)
    return task is not None and task.value.set_aside is not None
