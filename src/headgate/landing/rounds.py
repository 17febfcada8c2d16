"""Round: one job inside a shift. When the next one starts, and what it ends. Values in, values out.

    shift ── enough waits: a round ──▶ shift ── its end and grace are over: the last round ──▶ next

The shift's end is a wall time (aligned), and a monotonic one: a clock that is set back must not
make a shift last for an hour.
"""

from dataclasses import dataclass

from headgate.landing import StreamSettings
from headgate.periods import aligned
from headgate.sources import Waiting

HELD_BACK_MS = 500  # between two looks at what a limit holds back, while somebody waits for it


@dataclass(frozen=True, slots=True)
class Shift:
    number: int
    end_ms: int  # wall time
    over_ms: int  # monotonic: at the latest


@dataclass(frozen=True, slots=True)
class Start:
    """A round now. `ends_shift`: it is the last one, if nothing is left behind it."""

    ends_shift: bool
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    until_ms: int  # monotonic


def shift_at(settings: StreamSettings, number: int, wall_ms: int, monotonic_ms: int) -> Shift:
    """The shift of this number, if it begins now: to the end of the aligned interval."""
    end_ms = aligned(wall_ms, settings.shift_ms) + settings.shift_ms
    return Shift(number, end_ms, monotonic_ms + end_ms - wall_ms + settings.grace_ms)


def next_move(
    settings: StreamSettings,
    shift: Shift,
    waiting: Waiting,
    *,
    wall_ms: int,
    monotonic_ms: int,
    look_ms: int,
    is_eager: bool,
    is_proved: bool,
) -> Start | Wait:
    """`is_eager`: somebody waits until everything has landed; `is_proved`: it has, as far as the
    checkpoint knows; `look_ms`: how long until the source is looked at again."""
    is_over = wall_ms >= shift.end_ms + settings.grace_ms or monotonic_ms >= shift.over_ms
    if waiting.is_held_back and (is_eager or is_over):  # else rounds of next to nothing
        return Wait(monotonic_ms + max(1, min(look_ms, HELD_BACK_MS)))
    if is_eager and waiting.is_any:
        return Start(ends_shift=True, why="something waits")
    if is_eager and not is_proved and not (waiting.unfinished or waiting.unreadable):
        return Start(ends_shift=True, why="nothing waits")
    if waiting.size_bytes >= settings.round_bytes and not waiting.is_held_back:
        return Start(ends_shift=False, why="enough waits")
    if is_over:
        return Start(ends_shift=True, why="the shift is over")
    left_ms = min(shift.end_ms + settings.grace_ms - wall_ms, shift.over_ms - monotonic_ms)
    return Wait(monotonic_ms + max(1, min(look_ms, left_ms)))
