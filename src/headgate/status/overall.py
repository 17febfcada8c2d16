"""Overall: how far the hours over all streams of a root are, and whom the next one waits for.

A stream that is in no settings any more keeps its seat, and every later hour waits for it until a
person says that it is over. Values in, values out, but for `read_roots`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from headgate.commits.roots import Removal, RootDocument, Seat, place_of, root_key, root_name
from headgate.errors import Corrupt
from headgate.landing import StreamSettings
from headgate.periods import HOUR_MS, Period
from headgate.status.still import Advice, Standing
from headgate.store import Damaged, DocumentStore, JsonObject
from headgate.store.changes import read

RETIRED = ("--reason", "it is over")
NOT_OURS = "and it is not in the settings any more"


@dataclass(frozen=True, slots=True)
class Awaited:
    """A stream that the next hour waits for."""

    stream: str
    words: str
    is_in_settings: bool


@dataclass(frozen=True, slots=True)
class RootStatus:
    """Of streams whose flags roll up in one folder."""

    name: str
    streams: tuple[str, ...]  # that are expected in the next hour, or may be
    ready_ms: int | None  # hours that end by then have the flag over all streams; None: none has
    days_ms: int | None
    hour: Period | None  # the next one; None: nobody knows it, or every stream has ended
    waits: tuple[Awaited, ...]
    troubles: tuple[str, ...]  # with flags, for a person
    removals: tuple[str, ...] = ()  # files that a person wants to be gone, and are not yet


def read_roots(
    store: DocumentStore, settings: Mapping[str, StreamSettings], damaged: list[Damaged]
) -> dict[str, RootDocument]:
    """By name, those of the settings whose flags roll up. Raises Unavailable."""
    found: dict[str, RootDocument] = {}
    for name in sorted({root_name(one.folder) for one in settings.values() if one.folder.rolls_up}):
        try:
            kept = read(store, root_key(name), RootDocument)
        except Corrupt as error:
            damaged.append(Damaged(root_key(name), root_key(name), str(error)))
            continue
        found[name] = RootDocument() if kept is None else kept.value
    return found


def left_seats(document: RootDocument, own: Sequence[str]) -> list[str]:
    """Streams that a root still expects, and the settings do not have."""
    return [
        name
        for name, seat in document.streams.items()
        if name not in own and not _is_over(document, seat)
    ]


def overall(name: str, document: RootDocument, own: Sequence[str]) -> RootStatus:
    """`own`: its streams in the settings."""
    hour = _next_hour(document)
    waits = () if hour is None else tuple(awaited(document, own, hour))
    if hour is None:
        waits = tuple(
            Awaited(stream, _unknown(stream in own), stream in own)
            for stream, seat in document.streams.items()
            if seat.first_ms is None and not _is_over(document, seat)
        )
    open_ = [one for one, seat in document.streams.items() if not _is_over(document, seat)]
    troubles = tuple(
        words if subject in ("/hour", "/day") else f"{subject}: {words}"  # those name their hours
        for subject, words in document.troubles.items()
        if subject not in document.streams  # a stream's own is told with its hours
    )
    return RootStatus(
        name,
        tuple(sorted({*open_, *(one for one in own if one not in document.streams)})),
        document.hours_ms,
        document.days_ms,
        hour,
        waits,
        troubles,
        tuple(map(_removal_words, document.removals)),
    )


def _removal_words(removal: Removal) -> str:
    hours = (removal.until_ms - removal.from_ms) // HOUR_MS
    first, last = Period(removal.from_ms, "hour"), Period(removal.until_ms - HOUR_MS, "hour")
    return (
        f"{removal.stream}: {hours:,} hours from {first} to {last} are to be {removal.how}, as "
        f"{removal.wish.who} asked: {removal.wish.reason}"
    )


def vanished(stream: str, document: RootDocument, others: Sequence[str]) -> Standing:
    """Of a stream that only its seat still knows."""
    seat = document.streams[stream]
    from_ms = seat.frontier_ms if seat.frontier_ms is not None else seat.floor_ms
    since = "" if from_ms is None else f" from {Period.hour_of(from_ms)} on"
    together = ", ".join(sorted(others))
    return Standing(
        "not in the settings",
        stream,
        "it shares its folders with streams of the settings, and is not in there any more",
        f"no hour{since} gets the flag over all streams ({together}) until it is back in the "
        "settings or retired; the streams' own flags go on",
        Advice("stream retire", (stream,), RETIRED),
        is_for_a_person=True,
    )


def as_json(found: RootStatus) -> JsonObject:
    return {**asdict(found), "hour": None if found.hour is None else str(found.hour)}


def _next_hour(document: RootDocument) -> Period | None:
    seats = [seat for seat in document.streams.values() if not _is_over(document, seat)]
    firsts = [seat.first_ms for seat in seats if seat.first_ms is not None]
    if not firsts:
        return None
    start_ms = min(firsts) if document.hours_ms is None else max(min(firsts), document.hours_ms)
    return Period(start_ms, "hour")


def awaited(document: RootDocument, own: Collection[str], hour: Period) -> Iterator[Awaited]:
    """Whom the flag of this hour over all streams waits for."""
    for name, seat in sorted(document.streams.items()):
        is_own = name in own
        if _is_over(document, seat) or (seat.last_ms is not None and seat.last_ms <= hour.start_ms):
            continue
        if seat.first_ms is None:
            if seat.floor_ms is None or seat.floor_ms < hour.end_ms:
                yield Awaited(name, _unknown(is_own), is_own)
        elif seat.first_ms <= hour.start_ms:
            words = _of_its_flag(document, name, seat, hour)
            if words:
                yield Awaited(name, words if is_own else f"{words}, {NOT_OURS}", is_own)


def _unknown(is_own: bool) -> str:
    words = "nothing of it has landed, so nobody knows its first hour"
    return words if is_own else f"{words}, {NOT_OURS}"


def _of_its_flag(document: RootDocument, name: str, seat: Seat, hour: Period) -> str:
    if place_of(hour, name) in document.reopened:
        return "its flag was withdrawn, and the next generation is to come"
    if (seat.frontier_ms or 0) >= hour.end_ms:
        return ""
    is_near = (seat.frontier_ms or 0) >= hour.end_ms - HOUR_MS
    first = "" if is_near else f"; its own next is {Period.hour_of(seat.frontier_ms or 0)}"
    return f"it has no flag of its own there yet{first}"


def _is_over(document: RootDocument, seat: Seat) -> bool:
    """Nothing waits for it any more."""
    if seat.retired is not None or seat.last_ms is None:
        return seat.retired is not None
    return document.hours_ms is not None and seat.last_ms <= document.hours_ms
