"""Hours: what one may ask of a stream's hours: why one is not ready, until when to wait, what is
certified. The command line and the library ask the same way. Nothing is changed, no Spark started.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from headgate.ambient import Ambient, Deadline
from headgate.commits.certificate import Certificate, flag_paths, from_bytes
from headgate.commits.removals import Statement, statements_of
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.errors import Invalid
from headgate.lake import Lake
from headgate.landing import StreamSettings
from headgate.periods import FolderTemplate, Period, hours_between
from headgate.ready.archive import Filed, latest
from headgate.settings import Settings
from headgate.status import read_status
from headgate.status.streams import read_streams
from headgate.status.why import Why, read_why, without_settings
from headgate.store import DocumentStore
from headgate.store.changes import read

LOOK_MS = 1_000  # between two looks at the flags


def hour_of(text: str) -> Period:
    """Raises Invalid: it is no hour."""
    found = Period.parse(text)
    if found.kind != "hour":
        raise Invalid(f"{text} is a day; next: name an hour of it, {text}T00 for one")
    return found


def why_not_ready(
    store: DocumentStore,
    lake: Lake,
    settings: Settings,
    stream: str,
    hour: Period | None,
    ambient: Ambient,
) -> Why:
    """`stream`: one of the settings or an output of one, or one that only the store still has;
    `hour`: None asks for the first that is not ready. Raises Unavailable, Corrupt."""
    fleet, own = read_status(store, ambient), settings.flagged.get(stream)
    lands = stream if own is None else own.lands
    (status,) = read_streams(store, settings.streams, fleet, lands, lake).streams
    if own is None:
        return without_settings(status)
    return read_why(store, lake, own, status, hour, fleet.at_ms, settings.flagged)


def await_ready(
    lake: Lake, stream: StreamSettings, period: Period, timeout_ms: int, ambient: Ambient
) -> Period | None:
    """Looks at flags alone. The first hour that is not ready after that time; None: all are. Raises
    Corrupt: a flag was changed; Unavailable."""
    deadline = Deadline(ambient, timeout_ms)
    hours = list(hours_between(period.start_ms, period.end_ms))
    while True:  # ends with the last hour, or with the time
        hours = hours[_ready(lake, stream.folder, stream.name, hours) :]
        if not hours:
            return None
        if deadline.is_over():
            return hours[0]
        ambient.sleep_ms(min(LOOK_MS, deadline.left_ms()))


def _ready(lake: Lake, folder: FolderTemplate, stream: str, hours: Sequence[Period]) -> int:
    """How many of them, from the first on."""
    for done, hour in enumerate(hours):
        for flag in flag_paths(folder, hour, stream):
            raw = lake.read(flag)
            if raw is None:
                return done
            from_bytes(raw, flag)
    return len(hours)


def first_removed(lake: Lake, stream: StreamSettings, period: Period) -> Statement | None:
    """Of its hours: what says that its files are gone on purpose; None: none is gone. Raises
    Corrupt, Unavailable."""
    for hour in hours_between(period.start_ms, period.end_ms):
        for one in statements_of(lake, stream.name, str(hour)):
            return one
    return None


def filed_certificate(lake: Lake, stream: str, hour: Period) -> tuple[Filed, Certificate] | None:
    """Of the last generation; None: the hour was never flagged. Raises Corrupt, Unavailable."""
    filed = latest(lake, hour, stream)
    if filed is None or not isinstance(filed.certificate, Certificate):
        return None
    return filed, filed.certificate


def ready_until(store: DocumentStore, stream: StreamSettings) -> datetime | None:
    """Every hour of it, of each of its outputs, that ends by then has its flags; None: none has.
    Raises Unavailable, Corrupt."""
    found = read(store, root_key(root_name(stream.folder)), RootDocument)
    frontiers: list[int] = []
    for one in stream.flagged:
        seat = None if found is None else found.value.streams.get(one.name)
        if seat is None or seat.frontier_ms is None or seat.frontier_ms == seat.first_ms:
            return None
        frontiers.append(seat.frontier_ms)
    return datetime.fromtimestamp(min(frontiers) / 1_000, UTC)
