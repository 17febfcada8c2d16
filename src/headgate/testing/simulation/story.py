"""Story: the events of a simulation as short lines for a person.

      12.034 s  node-2  replace cluster/leader … conflict
      12.100 s  node-1  paused for 45000 ms
      12.311 s  node-3  replace cluster/sessions/3 … done  (14 times until 152.400 s)

Left out is what says nothing: reads that were answered, and the same write with the same outcome,
made again by the machine that made the last one to that key.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headgate.testing.faults import Call, Sort
from headgate.testing.simulation.events import Event, Happening

_SILENT = frozenset({Happening.STARTED})


@dataclass(slots=True)
class _Line:
    event: Event
    text: str
    times: int = 1
    last_us: int = 0

    def __str__(self) -> str:
        again = f"  ({self.times} times until {_seconds(self.last_us)} s)" if self.times > 1 else ""
        at = _seconds(self.event.time_us)
        return f"{at:>10} s  {self.event.machine}  {self.text}{again}"


def tell(
    events: Iterable[Event],
    about: Sequence[str] = (),
    *,
    with_reads: bool = False,
    describe: Callable[[Call], str] = lambda _: "",
) -> Sequence[str]:
    """`about` are names of machines and beginnings of keys; none: everything. `describe` says in a
    few words what a call writes.

    What happens to machines is always told, because it explains the rest.
    """
    lines: list[_Line] = []
    last: dict[str, _Line] = {}  # the last write to each key
    acted: dict[tuple[str, int], object] = {}
    for event in events:
        if event.happening is Happening.ACTED:
            acted[event.machine, event.number] = event.outcome
        if _is_old_news(event, acted):
            continue
        if _is_left_out(event, with_reads) or not _is_about(event, about):
            continue
        line = _Line(event, _text(event, describe))
        if event.call is not None:
            key = event.call.subject
            before = last.get(key)
            if before is not None and _is_again(before, line):
                before.times += 1
                before.last_us = event.time_us
                continue
            last[key] = line
        lines.append(line)
    return [str(line) for line in lines]


def _is_old_news(event: Event, acted: dict[tuple[str, int], object]) -> bool:
    """The caller was told just what happened."""
    is_reply = event.happening is Happening.REPLIED
    return is_reply and acted.pop((event.machine, event.number), event) is event.outcome


def _is_left_out(event: Event, with_reads: bool) -> bool:
    if event.happening in _SILENT:
        return True
    is_read = event.call is not None and event.call.sort is not Sort.WRITE
    is_answered = not isinstance(event.outcome, Exception)
    is_harm = event.happening is Happening.HARMED
    return is_read and is_answered and not with_reads and not is_harm


def _is_about(event: Event, about: Sequence[str]) -> bool:
    if not about or event.call is None:
        return True
    subject = event.call.subject
    return any(event.machine == one or subject.startswith(one) for one in about)


def _is_again(before: _Line, line: _Line) -> bool:
    return (before.event.machine, before.text) == (line.event.machine, line.text)


def _text(event: Event, describe: Callable[[Call], str]) -> str:
    if event.call is None:
        return _of_a_machine(event)
    said = describe(event.call)
    what = f"{event.call.method} {event.call.subject}{said and f' ({said})'}".rstrip()
    match event.happening:
        case Happening.HARMED:
            return f"{event.outcome} {what}"
        case Happening.REPLIED:
            return f"{what} … is told: {_outcome(event.outcome)}"
        case _:
            return f"{what} … {_outcome(event.outcome)}"


def _of_a_machine(event: Event) -> str:
    match event.happening:
        case Happening.PAUSED | Happening.ASLEEP | Happening.CUT:
            return f"{event.happening.value} for {event.outcome} ms"
        case Happening.SKEWED:
            return f"wall clock off by {event.outcome} ms"
        case Happening.TOLD:
            return str(event.outcome)
        case _:
            return str(event.happening.value)


def _outcome(outcome: object) -> str:
    if not isinstance(outcome, Exception):
        return "done"
    name = type(outcome).__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


def _seconds(time_us: int) -> str:
    return f"{time_us / 1_000_000:.3f}"
