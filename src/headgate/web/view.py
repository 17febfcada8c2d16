"""View: a look as one JSON object, for the page and for programs. Values in, values out."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from headgate.periods import Period
from headgate.settings import Settings
from headgate.status import MemberStatus, exit_code
from headgate.status.hours import states_of, window, window_until
from headgate.status.still import Advice
from headgate.status.streams import StreamStatus
from headgate.status.why import as_json as why_as_json
from headgate.store import JsonObject
from headgate.web.look import Look

Command = Callable[[Advice], str]
"""The exact command for a person to copy."""


def view(found: Look, settings: Settings, command: Command, until: Period | None) -> JsonObject:
    """`until`: the last hour of the map; None: the last hours. Raises Invalid: too early."""
    frontiers = [one.why.ready_ms for one in found.known.values()]
    at_ms = found.fleet.at_ms
    if until is None:
        hours = window(at_ms, [one for one in frontiers if one is not None])
    else:
        hours = window_until(until)
    return {
        "at_ms": at_ms,
        "url": settings.store,
        "namespace": settings.namespace,
        "is_reachable": True,
        "verdict": _verdict(found),
        "warnings": [*found.fleet.warnings, *found.remarks],
        "damaged": [asdict(one) for one in found.damaged],
        "hours": [str(one) for one in hours],
        "streams": [
            body
            for one in found.streams.streams
            for body in _bodies(one, found, settings, command, hours)
        ],
        "standing": [
            {
                "kind": one.kind,
                "subject": one.subject,
                "words": one.words,
                "meaning": one.meaning,
                "is_for_a_person": one.is_for_a_person,
                "next": None if one.advice is None else command(one.advice),
            }
            for stream in found.streams.streams
            for one in stream.standing
        ],
        "tables": [asdict(one) for one in found.tables],
        "nodes": [asdict(one) | {"state": _state(one)} for one in found.fleet.members],
        "last_seen": [asdict(one) for one in found.fleet.last_seen],
        "leader": None if found.fleet.leader is None else asdict(found.fleet.leader),
        "tasks": {name.replace(" ", "_"): n for name, n in found.fleet.counts.items()},
    }


def unreachable(words: str, settings: Settings) -> JsonObject:
    """What is shown of a store that is away."""
    return {
        "url": settings.store,
        "namespace": settings.namespace,
        "is_reachable": False,
        "words": words,
    }


def _bodies(
    one: StreamStatus,
    found: Look,
    settings: Settings,
    command: Command,
    hours: Sequence[Period],
) -> list[JsonObject]:
    """A stream, and then its outputs, which have nothing of their own but hours."""
    own = settings.streams.get(one.name)
    outputs = [face for face in (() if own is None else own.flagged) if face.of]
    body = _stream(one, one.name, found, settings, command, hours)
    nothing = dict.fromkeys(("lag", "rows", "landed", "late", "dead", "gaps"))
    return [
        {**body, "of": None},
        *(
            {
                **_stream(one, face.name, found, settings, command, hours),
                **nothing,
                "of": one.name,
            }
            for face in outputs
        ),
    ]


def _stream(
    one: StreamStatus,
    name: str,
    found: Look,
    settings: Settings,
    command: Command,
    hours: Sequence[Period],
) -> JsonObject:
    known, lag = found.known.get(name), one.lag
    body: JsonObject = {
        "name": name,
        "is_in_settings": one.is_in_settings,
        "paused": one.paused,
        "lag": None if lag is None else asdict(lag),
        "watermark_ms": one.watermark_ms,
        "committed_ms": one.committed_ms,
        "due_ms": one.due_ms,
        **{count: getattr(one, count) for count in ("rows", "landed", "late", "dead", "gaps")},
        "hours": [],
        "why": None,
        "ask": command(Advice("why", (name,))),
    }
    if known is None:  # only the store has it, or its documents are damaged
        return body
    states = states_of(
        settings.flagged[name],
        known.evidence,
        known.root,
        hours,
        found.fleet.at_ms,
        is_held=known.why.state == "held",
    )
    cells = [{"hour": str(s.hour), "state": s.state, "words": s.words} for s in states]
    return {**body, "hours": cells, "why": why_as_json(known.why)}


def _verdict(found: Look) -> JsonObject:
    """As the exit code of `headgate status` says it."""
    is_damaged = found.damaged or any(one.state == "damaged" for one in found.tables)
    is_well = found.streams.is_healthy and all(one.is_healthy for one in found.tables)
    is_aside = any(task.set_aside for task in found.fleet.tasks)
    if is_damaged:
        code, words = 4, "damaged"
    elif exit_code(found.fleet) == 0 and is_well:
        is_anybody = bool(found.fleet.members)
        code, words = 0, "healthy" if is_anybody else "nobody is here, and nothing is to be done"
        words = found.streams.words_at_rest if found.fleet.is_at_rest else words
    elif is_well and not is_aside and not found.fleet.members:
        code, words = 1, "no node is running, and something waits"
    else:
        code, words = 1, "a person must look"
    return {"code": code, "words": words}


def _state(member: MemberStatus) -> str:
    if member.is_overdue:
        return "overdue"
    if member.is_silent:
        return "silent"
    if member.is_draining:
        return "draining"
    return "leader" if member.is_leader else "member"
