"""Hours: which are ready, and how far tables are, as blocks of status."""

from collections.abc import Sequence

from rich.text import Text

from headgate.cli import console
from headgate.cli.moments import shown_moment
from headgate.cli.places import Here, command
from headgate.cli.tables import Block, Rows
from headgate.status.overall import RETIRED, RootStatus
from headgate.status.tables import TableStatus
from headgate.status.why import Why


def hour_blocks(hours: Sequence[Why]) -> list[Block]:
    if not hours:
        return []
    rows = tuple(
        (
            console.printable(one.stream),
            shown_moment(one.ready_ms),
            "-" if one.hour is None else str(one.hour),
            one.state,
            console.printable(one.words),
        )
        for one in hours
    )
    return [Text(), Rows(("hours of", "ready up to", "next hour", "state", "why"), rows)]


def root_blocks(roots: Sequence[RootStatus], here: Here, at_ms: int) -> list[Block]:
    """Of hours over several streams: whom the next one waits for, once it is over."""
    shown: list[Block] = []
    for one in roots:
        asked = [Text(console.printable(f"  to go    {words}")) for words in one.removals]
        troubles = [
            Text(console.printable(f"  trouble  {words}"), "yellow") for words in one.troubles
        ]
        if len(one.streams) < 2:
            shown += [Text(), *asked, *troubles] if asked or troubles else []
            continue
        until = shown_moment(one.ready_ms)
        ready = "none is ready" if one.ready_ms is None else f"ready up to {until}"
        words = f"hours over {', '.join(one.streams)}: {ready}"
        if one.hour is not None:
            words += f"; next is {one.hour}"
        shown += [Text(), Text(console.printable(words))]
        is_over = one.hour is None or one.hour.end_ms <= at_ms
        if not is_over:
            shown.append(Text("  it is not over yet"))
        for awaited in one.waits:
            if awaited.is_in_settings and not is_over:
                continue
            if awaited.is_in_settings:
                following = command("why", here, awaited.stream)
            else:
                following = command("stream retire", here, awaited.stream, options=RETIRED)
            line = f"  waits for {awaited.stream}: {awaited.words}; next: {following}"
            shown.append(Text(console.printable(line)))
        shown += [*asked, *troubles]
    return shown


def table_blocks(tables: Sequence[TableStatus]) -> list[Block]:
    if not tables:
        return []
    rows = tuple(
        (
            console.printable(one.name),
            one.state,
            console.printable(one.applied_up_to or "-"),
            *(f"{count:,}" for count in (one.batches, one.rows, one.waiting)),
        )
        for one in tables
    )
    head = ("table", "state", "applied up to", "batches", "rows", "waiting")
    shown: list[Block] = [Text(), Rows(head, rows, frozenset({"batches", "rows", "waiting"}))]
    for one in tables:
        if one.notice:
            lines = map(console.printable, one.notice.split("\n"))
            shown += [Text(), *(Text(line, "yellow") for line in lines)]
    return shown
