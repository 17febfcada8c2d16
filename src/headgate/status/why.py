"""Why: why an hour of a stream is not ready, and what will move it. Values, read-only.

    ready, withdrawn, expired, erased, before the first hour, not over, held, waiting, closing,
    ended, not in the settings

An hour waits for source partitions: each that is short is named, by how much, and who holds its
shard. Hours are flagged in order, so the first that is not ready is named as well.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Literal

from headgate.commits.certificate import HOLD, flag_paths, hold_path
from headgate.commits.removals import how_of, statements_of
from headgate.commits.roots import RootDocument, Seat, place_of, root_key, root_name
from headgate.errors import Corrupt
from headgate.lake import Lake
from headgate.landing import StreamSettings
from headgate.periods import HOUR_MS, Period
from headgate.ready.closing import begins_ms, obstacles
from headgate.ready.evidence import Evidence, read_evidence
from headgate.ready.removing import removal_subject
from headgate.status.fleet import shown_ms
from headgate.status.missing import certified, others
from headgate.status.overall import Awaited, awaited
from headgate.status.still import GAP, OPEN, SILENT, UNREADABLE, Advice
from headgate.status.streams import ShardStatus, StreamStatus
from headgate.store import DocumentStore, JsonObject
from headgate.store.changes import read

IN_THE_WAY = (  # of what stands still
    "unreadable files", "unfinished files", UNREADABLE, OPEN, "waits", "clock", SILENT,
)  # fmt: skip

OPEN_STATES = ("not over", "held", "waiting", "closing")

State = Literal[
    "ready",
    "withdrawn",
    "expired",
    "erased",
    "before the first hour",
    "not over",
    "held",
    "waiting",
    "closing",
    "ended",
    "not in the settings",
]


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that stands in the way."""

    words: str
    shard: str  # STREAM/SHARD; "": the stream as a whole
    partition: str
    short_ms: int | None  # by so much event time, or wall time of a discovery
    node: str | None  # that holds the shard; not one that seems to be gone
    doing: str
    since_ms: int | None  # wall time of the last commit
    free_ms: int | None = None  # whoever held it seems to be gone: wall time when its session ends
    due_ms: int | None = None  # wall time by which the holder commits: the end of the shift


@dataclass(frozen=True, slots=True)
class Why:
    stream: str
    hour: Period | None  # None: nothing has landed, so there is no hour yet
    state: State
    words: str
    reasons: tuple[Reason, ...] = ()
    first_open: Period | None = None  # an earlier hour that must be ready before
    advice: Advice | None = None  # what a person can do
    ready_ms: int | None = None  # every hour that ends by then is ready
    overall: tuple[Awaited, ...] = ()  # whom the flag over all streams waits for, of a ready hour
    earliest_ms: int | None = None  # of an hour that is not over: wall time from which on its flag
    # can come, by whatever commit follows: its end, and the allowed lateness


def read_why(
    store: DocumentStore,
    lake: Lake | None,
    settings: StreamSettings,
    status: StreamStatus,
    hour: Period | None,
    now_ms: int,
    together: Collection[str] = (),
) -> Why:
    """`hour`: None asks for the first that is not ready; `lake`: None: it is not there yet;
    `together`: the streams of the settings. Raises Unavailable, Corrupt."""
    evidence = read_evidence(store, settings.lands)
    found = read(store, root_key(root_name(settings.folder)), RootDocument)
    root = RootDocument() if found is None else found.value
    wanted = hour or first_open(settings.name, root, evidence)
    is_held = is_flag_gone = False
    if wanted is not None and lake is not None:
        is_held = lake.facts(hold_path(settings.folder, wanted, settings.name)) is not None
        flags = flag_paths(settings.folder, wanted, settings.name)
        is_flag_gone = any(lake.facts(flag) is None for flag in flags)
    why = explained(
        settings, status, evidence, root, wanted, now_ms, is_held=is_held, is_gone=is_flag_gone
    )
    if status.paused and why.state in ("not over", "waiting", "closing"):
        words = f"{why.words}; and it is {status.paused}: nothing more of it lands"
        why = replace(why, words=words, advice=_advice(status))
    if why.state in ("not over", "closing") and why.advice is None and not status.is_held:
        advice = _advice(status) or Advice("run")
        why = replace(why, words=f"{why.words}; no node has it now", advice=advice)
    if why.state == "waiting" and why.reasons and why.advice is None and not status.is_held:
        why = replace(why, advice=Advice("run"))  # the reasons say that nobody holds them
    why = _with_gaps(why, lake, settings, status)
    if why.state in ("expired", "erased") and lake is not None:
        told = [one.words for one in statements_of(lake, settings.name, str(why.hour))]
        why = replace(why, words="; ".join([why.words, *told]))
    seat = root.streams.get(settings.name)
    is_begun = seat is not None and seat.first_ms != seat.frontier_ms
    others: tuple[Awaited, ...] = ()
    if why.state == "ready" and why.hour is not None and "hour" in settings.folder.rolls_up:
        is_over_all = root.hours_ms is not None and why.hour.end_ms <= root.hours_ms
        others = () if is_over_all else tuple(awaited(root, together, why.hour))
    ready_ms = seat.frontier_ms if seat is not None and is_begun else None
    return replace(why, ready_ms=ready_ms, overall=others)


def _with_gaps(why: Why, lake: Lake | None, settings: StreamSettings, status: StreamStatus) -> Why:
    """Of a flagged hour its certificate says what is missing; of others, what was found last."""
    if why.hour is None:
        return why
    if why.state == "ready" and lake is not None:
        try:
            found = certified(lake, settings, why.hour)
        except Corrupt:
            words = f"{why.words}, and its flag is damaged: what it says proves nothing"
            return replace(why, words=words, advice=Advice("verify", (str(why.hour),)))
        if found is not None and found.gaps:
            gaps = found.gaps
            words = f"{why.words}, but for what is on record as a gap: {gaps[0].reason}"
            advice = why.advice or Advice("certificate", (settings.name, str(why.hour)))
            return replace(why, words=f"{words}{others(len(gaps))}", advice=advice)
    if why.state in OPEN_STATES:
        told = [
            f"{one.name} has a gap on record that may concern it: {one.missing.words}"
            for one in status.shards
            if one.missing is not None and one.missing.concerns(why.hour)
        ]
        return replace(why, words="; ".join([why.words, *told]))
    return why


def without_settings(status: StreamStatus) -> Why:
    """Of a stream that only the store has."""
    if status.ended:
        return Why(status.name, None, "ended", f"it is over: {status.ended}")
    left = next((one for one in status.standing if one.is_for_a_person), None)
    words = "it is not in the settings: nothing of it is read"
    if left is not None:
        words = f"{words}; {left.meaning}"
    return Why(status.name, None, "not in the settings", words, advice=_advice(status))


def first_open(stream: str, root: RootDocument, evidence: Evidence) -> Period | None:
    """The first hour that is not ready; None: nothing has landed."""
    seat = root.streams.get(stream)
    if seat is not None and seat.frontier_ms is not None:
        return Period.hour_of(seat.frontier_ms)
    document = evidence.document
    if document is None or document.first_hour_ms is None:
        return None
    begin_ms = document.first_hour_ms if seat is None else begins_ms(seat, document)
    return None if begin_ms is None else Period.hour_of(begin_ms)


def explained(
    settings: StreamSettings,
    status: StreamStatus,
    evidence: Evidence,
    root: RootDocument,
    hour: Period | None,
    now_ms: int,
    *,
    is_held: bool,
    is_gone: bool,
) -> Why:
    """Values in, values out."""
    name = settings.name
    first = first_open(name, root, evidence)
    if hour is None or first is None:
        return Why(name, hour, "waiting", _unknown(settings, root), advice=_advice(status))
    seat = root.streams.get(name)
    begin_ms = first.start_ms if seat is None or seat.first_ms is None else seat.first_ms
    if hour.start_ms < begin_ms:
        begin = Period(begin_ms, "hour")
        words = f"it is before the stream's first hour, {begin}: its records are late"
        return Why(name, hour, "before the first hour", words)
    if seat is not None and seat.last_ms is not None and hour.start_ms >= seat.last_ms:
        return _after_the_end(name, hour, seat, status)
    if hour.end_ms <= first.start_ms:
        return _flagged(name, hour, root, is_gone=is_gone)
    earlier = first if first < hour else None
    if now_ms < hour.end_ms:
        words = f"it is not over yet: it ends in {shown_ms(hour.end_ms - now_ms)}"
        earliest_ms = hour.end_ms + settings.allowed_lateness_ms
        return Why(name, hour, "not over", words, first_open=earlier, earliest_ms=earliest_ms)
    reasons = tuple(
        _reason(status, one.why, one.shard, one.partition, one.short_ms)
        for one in obstacles(evidence, hour, settings.allowed_lateness_ms)
    )
    if reasons:
        words = "; ".join([f"it waits for {_count(reasons)}", *_in_the_way(status, reasons)])
        return Why(name, hour, "waiting", words, reasons, earlier, _advice(status))
    if is_held:
        path = hold_path(settings.folder, hour, name)
        words = f"everything is there, and the file {HOLD} keeps it back until it is gone: {path}"
        return Why(name, hour, "held", words, (), earlier)
    trouble = root.troubles.get(name)
    merging = root.merging.get(name)
    words = trouble or "everything is there: whoever holds the root raises its flag next"
    if trouble is None and merging is not None and merging.period == str(hour):
        words = f"everything is there: its small files are merged first, try {merging.tries}"
        words += f" (failed: {merging.why})" if merging.why else ""
    return Why(name, hour, "closing", words, (), earlier, _advice(status))


def _after_the_end(stream: str, hour: Period, seat: Seat, status: StreamStatus) -> Why:
    if seat.retired is not None:
        words = f"it was retired by {seat.retired.who}: {seat.retired.reason}"
    else:
        last = Period((seat.last_ms or HOUR_MS) - HOUR_MS, "hour")
        words = f"its last hour was {last}"
    return Why(
        stream,
        hour,
        "ended",
        f"{words}; nobody waits for this hour of it, and it gets no flag",
        advice=_advice(status),
    )


def _unknown(settings: StreamSettings, root: RootDocument) -> str:
    """Who else waits for its first record is told, too."""
    words = "nothing of it has landed: nobody knows its first hour"
    if settings.first_hour_ms is not None:
        first = Period.hour_of(settings.first_hour_ms)
        words = f"no node has looked at it yet: its first hour is to be {first}"
    together = sorted({*root.streams, settings.name})
    if len(together) == 1 or "hour" not in settings.folder.rolls_up:
        return words
    return f"{words}, so no hour over {', '.join(together)} is ready before"


def _flagged(stream: str, hour: Period, root: RootDocument, *, is_gone: bool) -> Why:
    place = place_of(hour, stream)
    if place in root.reopened:
        words = f"its flag was withdrawn; generation {root.reopened[place]} is next"
        words += f", and cannot come: {root.troubles[place]}" if place in root.troubles else ""
        return Why(stream, hour, "withdrawn", words)
    seat = root.streams.get(stream, Seat())
    how = how_of(seat.removed, hour)
    if how is not None:
        words = f"it was complete, and its files are gone on purpose: {how}; its flag stays"
        return Why(stream, hour, how, words)
    asked = [one for one in root.removals if one.stream == stream]
    for one in asked:
        if one.from_ms <= hour.start_ms and hour.end_ms <= one.until_ms:
            words = f"it is complete, and {one.wish.who} wants its files {one.how}"
            trouble = root.troubles.get(removal_subject(one))
            waits = f"; that waits: {trouble}" if trouble else ""
            return Why(stream, hour, "ready", f"{words}: {one.wish.reason}{waits}")
    wish = root.wishes.get(place_of(hour, stream))
    if wish is not None:
        words = f"it is complete, and {wish.who} wants its flags withdrawn: {wish.reason}"
        return Why(stream, hour, "ready", words)
    if is_gone:
        advice = Advice("flags repair", (), ("--from", str(hour), "--to", str(hour)))
        return Why(stream, hour, "ready", "it is complete, and its flag is gone", advice=advice)
    return Why(stream, hour, "ready", "it is complete")


def _reason(
    status: StreamStatus, words: str, shard: int | None, partition: str, short_ms: int | None
) -> Reason:
    known = {one.shard: one for one in status.shards}
    held: ShardStatus | None = None if shard is None else known.get(shard)
    if held is None:
        return Reason(words, "", partition, short_ms, None, "", None)
    node = None if held.is_silent else held.node
    times = (held.committed_ms, held.free_ms, held.due_ms)
    return Reason(words, held.name, partition, short_ms, node, held.doing, *times)


def _in_the_way(status: StreamStatus, reasons: tuple[Reason, ...]) -> list[str]:
    """What keeps the shards of these from going on, with what to do about it."""
    shards = {one.shard for one in reasons}
    return [
        f"{one.words} ({one.meaning})"
        for one in status.standing
        if one.subject in shards and one.kind in IN_THE_WAY
    ]


def _count(reasons: tuple[Reason, ...]) -> str:
    partitions = len({one.partition for one in reasons if one.partition})
    if not partitions:
        shards = len({one.shard for one in reasons})
        return "a shard" if shards == 1 else f"{shards} shards"
    return "a source partition" if partitions == 1 else f"{partitions} source partitions"


def _advice(status: StreamStatus) -> Advice | None:
    """What a person can do, if it does not go on by itself."""
    standing = [one for one in status.standing if one.kind != GAP]  # that moves nothing
    for_a_person = [one.advice for one in standing if one.is_for_a_person and one.advice]
    every = for_a_person or [one.advice for one in standing if one.advice is not None]
    return every[0] if every else None


def as_json(why: Why) -> JsonObject:
    """Every field, for programs."""
    hours = {"hour": why.hour, "first_open": why.first_open}
    return {**asdict(why), **{name: None if p is None else str(p) for name, p in hours.items()}}
