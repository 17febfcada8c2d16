"""Backfill: how far the flags of a stream are while many hours get theirs, for whoever waits.

Some hundred hours a second are flagged: years of empty ones take minutes in which nothing lands. A
bar on a terminal that waits for idle, elsewhere a line now and then; nothing for a few hours.
"""

from collections.abc import Mapping, Sequence

from rich.progress import Progress, TaskID

from headgate.ambient import Ambient
from headgate.app import Joined
from headgate.app.progress import FlagProgress, flags_behind
from headgate.cli import console
from headgate.cli.moments import shown_moment
from headgate.cluster.tasks import shown
from headgate.errors import Corrupt, Unavailable
from headgate.landing import StreamSettings
from headgate.ready.kind import kind_name as flags_of

BAR_MS = 1_000  # between two looks of one who waits
LINE_MS = 10_000  # of all others, and between two lines
HOURS_MIN = 500  # fewer are flagged before anybody wonders


class Backfill:
    """Asked ten times a second. `bar`: None: lines."""

    def __init__(
        self,
        streams: Mapping[str, StreamSettings],
        ambient: Ambient,
        bar: Progress | None,
        *,
        is_waited_for: bool,
    ) -> None:
        self._streams = streams
        self._ambient = ambient
        self._bar = bar
        self._is_waited_for = is_waited_for
        self._next_ms = self._line_ms = 0
        self._tasks: dict[str, tuple[TaskID, int]] = {}  # by stream: its bar, and hours at first

    def poll(self, joined: Joined) -> None:
        now_ms = self._ambient.monotonic_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + (BAR_MS if self._is_waited_for else LINE_MS)
        if not self._is_waited_for and not holds_flags(joined.duties.desk.keys()):
            return  # whoever holds them tells; a fleet does not ask for each other
        try:
            found = flags_behind(joined.store, self._streams)
        except (Unavailable, Corrupt):
            return  # for people only: the next look tells
        if self._bar is not None:
            self._draw(self._bar, found)
        elif now_ms >= self._line_ms:
            lines = lines_of(found)
            self._line_ms = now_ms + LINE_MS if lines else 0
            for line in lines:
                console.talk().print(console.printable(line))

    def _draw(self, bar: Progress, found: Sequence[FlagProgress]) -> None:
        for one in found:
            if one.stream not in self._tasks and one.left >= HOURS_MIN:
                self._tasks[one.stream] = (bar.add_task("", unit="hours"), one.left)
            if one.stream in self._tasks:
                task, at_first = self._tasks[one.stream]
                total = max(at_first, one.left)
                words = console.printable(f"flags of {one.stream}, to {shown_moment(one.ready_ms)}")
                bar.update(task, description=words, total=total, completed=total - one.left)


def holds_flags(held: Sequence[str]) -> bool:
    """Whether one of these tasks is that of flags."""
    return any(shown(key).startswith(flags_of("")) for key in held)


def lines_of(found: Sequence[FlagProgress]) -> list[str]:
    return [
        f"flags: {one.stream} is ready up to {shown_moment(one.ready_ms)}, {one.left:,} hours to go"
        for one in found
        if one.left >= HOURS_MIN
    ]
