"""Landing run: a node that lands the streams of its settings, with what it says to people."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
)

from headgate.ambient import SystemAmbient
from headgate.app import Joined
from headgate.app.progress import ShardProgress
from headgate.cli import console
from headgate.cli.backfill import Backfill
from headgate.cli.moments import many, shown_bytes, shown_moment
from headgate.cli.places import Here, command
from headgate.cli.signals import Signals, polling, tell_the_end, tell_the_start
from headgate.cli.status import look
from headgate.cli.streams import standing_lines
from headgate.cli.tables import Rows, show
from headgate.cluster.duties import NodeSettings
from headgate.engine.java import require_java
from headgate.errors import Unavailable
from headgate.node import Ending
from headgate.periods import Period
from headgate.settings import Settings
from headgate.status import shown_ms
from headgate.status.still import GAP, OPEN
from headgate.store import JsonObject
from headgate.store.registry import open_store

if TYPE_CHECKING:
    from headgate.app.library import RunResult

NAMES_MAX = 4  # of shards in one sentence


class Until(StrEnum):
    IDLE = "idle"


class LandingRun:
    """A node that lands the streams of its settings."""

    def __init__(
        self, here: Here, settings: Settings, own: NodeSettings, term_ms: int, *, is_json: bool
    ) -> None:
        self._here = here
        self._settings = settings
        self._own = own
        self._term_ms = term_ms
        self._is_json = is_json
        self._progress: Sequence[ShardProgress] = ()
        talk = console.talk()
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            console=talk,
            transient=True,
            disable=not talk.is_terminal,
        )

    def run(self, until: Until | None, max_seconds: float | None) -> int:
        """The exit code. Raises Invalid, Unavailable."""
        if not self._settings.spark.remote:
            require_java()  # now, and not in a log after five tries
        from headgate.app.library import App

        signals = Signals()
        poll = polling(signals)
        lands = _lands(self._settings, is_eager=until is not None)
        with signals, self._bar:
            is_eager = until is not None
            bar = self._bar.add_task("landing", total=None, visible=is_eager, unit="shards")
            backfill = Backfill(
                self._settings.flagged,
                SystemAmbient(),
                None if self._bar.disable or not is_eager else self._bar,
                is_waited_for=is_eager,
            )

            def on_poll(joined: Joined) -> None:
                poll(joined)
                backfill.poll(joined)

            result = App(settings=self._settings).run(
                "idle" if until is Until.IDLE else None,
                max_seconds=max_seconds,
                node=self._own.name,
                on_start=lambda joined: tell_the_start(joined, self._here, lands),
                on_poll=on_poll,
                on_progress=lambda found: self._show(bar, found),
                workers=self._own.workers,
                labels=self._own.labels,
                term_ms=self._term_ms,
            )
        if self._is_json:
            typer.echo(console.json_line(_as_json(result)))
        else:
            show([_table(result)])
        tell_the_end(self._own.name, self._here, result.ending)
        self._tell_what_stands_still(result)
        if until is Until.IDLE and not result.is_idle:
            self._tell_what_waits(is_asked=signals.is_asked)
            return 1
        return 0 if result.ending is Ending.DRAINED else 1

    def _show(self, bar: TaskID, found: Sequence[ShardProgress]) -> None:
        self._progress = found
        self._bar.update(
            bar,
            description=f"landing: {_waiting(found)}, {_rows(found):,} rows so far",
            completed=sum(not one.is_waited_for for one in found),
            total=len(found),
        )

    def _tell_what_stands_still(self, result: "RunResult") -> None:
        """With the next command for each. What goes on by itself is not told here; a gap is, after
        the run that found it."""
        here, talk = self._here, console.talk()
        try:
            with closing(open_store(here.url, here.namespace)) as store:
                found = look(store, here, SystemAmbient(), None)
        except Unavailable:
            return  # the end has said so
        own = [one for one in found.streams.streams if one.name in self._settings.streams]
        for stream in own:
            done = result.streams.get(stream.name)
            told = {"paused", "unfinished files", OPEN}
            if done is not None and done.gaps > 0:
                told.add(GAP)
            if done is not None and done.late > 0:
                is_set = self._settings.streams[stream.name].first_hour_ms is not None
                words = late_words(stream.name, done.late, stream.first_hour_ms, is_set=is_set)
                talk.print(console.printable(words))
            for one in stream.standing:
                if one.is_for_a_person or one.kind in told:
                    for line in standing_lines(one, here):
                        talk.print(line)

    def _tell_what_waits(self, *, is_asked: bool) -> None:
        waited = [one.name for one in self._progress if one.is_waited_for]
        if not waited and self._progress:
            return  # only what stands still is left
        why = "it was asked to stop" if is_asked else "its time is over"
        names = ", ".join(waited[:NAMES_MAX]) or "not everything"
        more = f" and {len(waited) - NAMES_MAX:,} more" if len(waited) > NAMES_MAX else ""
        again = command("run", self._here, options=["--until", "idle"])
        words = f"not idle: {why}, and {names}{more} still had something to land"
        console.talk().print(console.printable(f"{words}; next: {again}"), style="yellow")


def late_words(stream: str, late: int, first_hour_ms: int | None, *, is_set: bool) -> str:
    """Nobody sees in a number why: of a first landing mostly because the stream begins later."""
    words = f"late: {many(late, 'record')} of {stream}: of hours that were closed"
    if first_hour_ms is None:
        return words
    words = f"{words}, or before its first hour, {Period.hour_of(first_hour_ms)}"
    hint = "the first commit decided that; for older records, first_hour in the settings sets it"
    return words if is_set else f"{words} ({hint}, before the first run)"


def _lands(settings: Settings, *, is_eager: bool) -> str:
    """A node that stays says when: nobody should wait for what comes in five minutes."""
    every = {**settings.streams, **settings.templates}
    names = ", ".join(every)
    if is_eager:
        return f"it lands {names}"
    longest_ms = max(one.shift_ms + one.grace_ms for one in every.values())
    often = f"at the end of each shift, within {shown_ms(longest_ms)}, or once enough waits"
    return f"it lands {names}: {often}"


def _waiting(found: Sequence[ShardProgress]) -> str:
    reports = [one.report for one in found if one.report is not None and not one.is_idle]
    files = sum(report.waiting_files for report in reports)
    records = sum(report.waiting_records for report in reports)
    size_bytes = sum(report.waiting_bytes for report in reports)
    counts = [many(files, "file")] if files or not records else []
    counts += [many(records, "record")] if records else []
    return f"{', '.join(counts)}, {shown_bytes(size_bytes)} waiting"


def _rows(found: Sequence[ShardProgress]) -> int:
    return sum(one.checkpoint.rows for one in found)


def _table(result: "RunResult") -> Rows:
    return Rows(
        ("stream", "landed", "late", "dead", "gaps", "commits", "watermark"),
        tuple(
            (
                console.printable(one.name),
                *(f"{n:,}" for n in (one.landed, one.late, one.dead, one.gaps, one.commits)),
                shown_moment(one.watermark_ms),
            )
            for one in result.streams.values()
        ),
        frozenset({"landed", "late", "dead", "gaps", "commits"}),
    )


def _as_json(result: "RunResult") -> JsonObject:
    streams = [
        {**asdict(one), "ready_until": _iso(one.ready_until)} for one in result.streams.values()
    ]
    tables = [asdict(one) for one in result.tables.values()]
    return {
        "is_idle": result.is_idle,
        "ending": result.ending.value,
        "streams": streams,
        "tables": tables,
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")
