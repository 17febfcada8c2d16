"""Status command: fleet and streams at a glance, for people and for programs."""

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from headgate.ambient import Ambient, SystemAmbient
from headgate.app.rest import rested
from headgate.app.roots import is_more_to_come, roots_of
from headgate.apply.kind import kind_name as table_feed
from headgate.cli import console
from headgate.cli.hours import hour_blocks, root_blocks, table_blocks
from headgate.cli.places import ClusterNamespace, ConfigPath, Here, StoreUrl, command, here_of
from headgate.cli.store import Json
from headgate.cli.store import command as store_command
from headgate.cli.streams import next_command, shard_blocks, stream_blocks
from headgate.cli.tables import Block, Rows, drawn, lines_of, show
from headgate.errors import Corrupt, Invalid, Unavailable
from headgate.lake import Lake
from headgate.lake.opening import is_there, open_lake
from headgate.landing.kind import feed_name
from headgate.ready.kind import kind_name as root_feed
from headgate.settings import Settings
from headgate.settings.problems import nearest
from headgate.status import (
    SESSION_LETTERS,
    ClusterStatus,
    MemberStatus,
    TaskStatus,
    as_json,
    exit_code,
    read_status,
    shown_ms,
)
from headgate.status.overall import RETIRED, RootStatus
from headgate.status.overall import as_json as root_as_json
from headgate.status.still import RELEASED, Advice
from headgate.status.streams import StreamsStatus, read_streams
from headgate.status.streams import as_json as stream_as_json
from headgate.status.tables import TableStatus, read_tables
from headgate.status.why import Why, read_why
from headgate.status.why import as_json as why_as_json
from headgate.store import DocumentStore, JsonObject
from headgate.store.probe import remarks
from headgate.store.registry import open_store

TASKS_SHOWN_MAX = 20  # of each condition
WORDS_MAX = 60  # of an error, in a table
STYLES = {0: "bold green", 1: "bold yellow", 4: "bold red"}


@dataclass(frozen=True, slots=True)
class Found:
    """What one look saw."""

    fleet: ClusterStatus
    streams: StreamsStatus
    only: str | None  # a stream that was asked for
    hours: tuple[Why, ...] = ()  # of each stream, the first that is not ready
    tables: tuple[TableStatus, ...] = ()

    @property
    def exit_code(self) -> int:
        """4: damaged; 1: a person must look, or something waits and no node runs; 0."""
        if self.streams.damaged:
            return 4
        if self.only is not None:
            return 0 if self.streams.is_healthy and self.fleet.is_served else 1
        if any(table.state == "damaged" for table in self.tables):
            return 4
        is_healthy = self.streams.is_healthy and all(table.is_healthy for table in self.tables)
        return exit_code(self.fleet) or (0 if is_healthy else 1)

    @property
    def is_nobody_here(self) -> bool:
        """Nodes are all that is missing."""
        tasks = self.fleet.tasks
        is_well = self.streams.is_healthy and not any(task.set_aside for task in tasks)
        is_well = is_well and all(table.is_healthy for table in self.tables)
        return not self.fleet.members and is_well and not self.fleet.damaged


def status(
    stream: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="Only this one, shard by shard.")
    ] = None,
    config: ConfigPath = None,
    store: StoreUrl = "",
    namespace: ClusterNamespace = "",
    as_json_line: Json = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, max=3_600, metavar="S", help="Between two looks.")
    ] = 1,
    show_all: Annotated[
        bool, typer.Option("--all", help=f"All shards and tasks, not the first {TASKS_SHOWN_MAX}.")
    ] = False,
) -> None:
    """Show who is there, how far each stream is, and what a person must look at. Changes nothing.

    Exit code 0: healthy, also if no node is running and nothing waits; 1: a person must look, or
    something waits and no node is running; 3: the store cannot be reached; 4: documents are
    damaged. A stream that is paused changes no exit code.
    """
    ambient, here = SystemAmbient(), here_of(store, namespace, config)
    with closing(open_store(here.url, here.namespace, ambient=ambient)) as documents:
        if watch:
            _watch(documents, here, ambient, interval, stream, as_json_line, is_all=show_all)
        found = look(documents, here, ambient, stream)
    if as_json_line:
        typer.echo(console.json_line(_as_json(found, here)))
    else:
        show(blocks(found, here, is_all=show_all))
        fleet = found.fleet
        if not (fleet.members or fleet.last_seen or fleet.tasks or fleet.feeds or fleet.damaged):
            for remark in remarks(here.url):  # a folder that is not there may be a slip of the pen
                console.talk().print(console.printable(remark.words), style="yellow")
    raise typer.Exit(found.exit_code)


def look(documents: DocumentStore, here: Here, ambient: Ambient, only: str | None) -> Found:
    """Raises Unavailable, Invalid: there is no such stream."""
    fleet = read_status(documents, ambient)
    known = {} if here.settings is None else here.settings.streams
    if only is not None and here.settings is not None:
        only = here.settings.called(only)
        own = here.settings.flagged.get(only)
        only = only if own is None else own.lands  # of an output, what it shares
    settings = here.settings
    # A lake that is not there yet is not made by a look at it.
    has_lake = settings is not None and is_there(settings.lake)
    lake = open_lake(settings.lake, ambient) if settings is not None and has_lake else None
    streams = read_streams(documents, known, fleet, only, lake)
    if only is not None and not streams.streams:
        every = read_streams(documents, known, fleet)
        near = nearest(only, [one.name for one in every.streams])
        hint = f"the nearest is {near!r}" if near else "there is none at all"
        raise Invalid(f"no stream {only!r} here: {hint}; next: {command('status', here)}")
    if settings is None:
        return Found(rested(fleet, streams, lambda: False), streams, only)
    tables = () if only is not None else read_tables(documents, settings.tables)
    hours = tuple(_hours(documents, settings, streams, fleet.at_ms, lake))

    def is_more() -> bool:
        if only is not None or lake is None:
            return any(one.state == "closing" for one in hours)
        with suppress(Corrupt):  # it is named where it is read
            return is_more_to_come(documents, lake, settings)
        return True

    return Found(rested(fleet, streams, is_more), streams, only, hours, tuple(tables))


def _hours(
    documents: DocumentStore,
    settings: Settings,
    streams: StreamsStatus,
    at_ms: int,
    lake: Lake | None,
) -> Iterator[Why]:
    for one in streams.streams:
        own = settings.streams.get(one.name)
        for face in () if own is None else own.flagged:
            with suppress(Corrupt):  # it is named where it is read
                yield read_why(documents, lake, face, one, None, at_ms)


def _watch(
    documents: DocumentStore,
    here: Here,
    ambient: Ambient,
    interval_s: float,
    only: str | None,
    is_json: bool,
    *,
    is_all: bool,
) -> None:
    """Ends with Ctrl-C. A store that is out of reach is shown as such, and asked again."""
    out = console.results()
    live = None if is_json or not out.is_terminal else Live(console=out, auto_refresh=False)
    if live is not None:
        live.start()
    try:
        while True:  # a person ends it
            shown: list[Block]
            try:
                found = look(documents, here, ambient, only)
                shown = blocks(found, here, is_all=is_all)
            except Unavailable as error:
                found = None
                shown = [Text(console.printable(f"unavailable: {error}"), "bold red")]
            if live is not None:
                live.update(Group(*map(drawn, shown)), refresh=True)
            elif found is not None and is_json:
                typer.echo(console.json_line(_as_json(found, here)))
            elif is_json:
                console.talk().print(shown[0])
            else:
                typer.echo("\n".join(line for block in shown for line in lines_of(block)) + "\n")
            ambient.sleep_ms(interval_s * 1000)
    finally:
        if live is not None:
            live.stop()


def _as_json(found: Found, here: Here) -> JsonObject:
    body = as_json(found.fleet, lambda task: _release(task, here))
    streams = [
        stream_as_json(one, lambda advice: next_command(advice, here))
        for one in found.streams.streams
    ]
    damaged = [asdict(one) for one in (*found.fleet.damaged, *found.streams.damaged)]
    return {
        "url": here.url,
        "namespace": here.namespace,
        **body,
        "damaged": damaged,
        "is_healthy": found.exit_code == 0,
        "streams": streams,
        "hours": [why_as_json(one) for one in found.hours],
        "roots": [root_as_json(one) for one in _roots_of(found)],
        "tables": [asdict(one) for one in found.tables],
    }


def blocks(found: Found, here: Here, *, is_all: bool) -> list[Block]:
    fleet, streams = found.fleet, found.streams
    shown: list[Block] = [_verdict(found, here)]
    if found.only is not None:
        if not fleet.is_anybody_able and not fleet.is_at_rest:
            shown.append(Text.assemble("  next     ", (command("run", here), "cyan")))
        shown += _damaged(found, here)
        shown += stream_blocks(streams.streams, here, fleet.at_ms, is_all=is_all)
        shown += [*hour_blocks(found.hours), *root_blocks(_roots_of(found), here, fleet.at_ms)]
        return shown if is_all else [*shown, *shard_blocks(streams.streams, fleet.at_ms)]
    shown += _fleet(found, here)
    shown += stream_blocks(streams.streams, here, fleet.at_ms, is_all=is_all)
    shown += [*hour_blocks(found.hours), *root_blocks(_roots_of(found), here, fleet.at_ms)]
    shown += table_blocks(found.tables)
    return [*shown, *_task_blocks(found, here, is_all=is_all)]


def _roots_of(found: Found) -> list[RootStatus]:
    roots = found.streams.roots
    return [one for one in roots if found.only is None or found.only in one.streams]


def _fleet(found: Found, here: Here) -> Iterator[Block]:
    fleet = found.fleet
    for warning in fleet.warnings:
        yield Text(f"  warning  {console.printable(warning)}", "yellow")
    for line in _next(fleet, here):
        yield Text.assemble("  next     ", (line, "cyan"))
    yield Text(f"  leader   {_leader(fleet)}")
    yield Text(f"  tasks    {_counts(fleet)}")
    own = _own_feeds(found, here)
    for feed in fleet.feeds:
        if feed.name not in own:  # what is never done is shown below
            name = console.printable(feed.name)
            yield Text(f"  feed     {name}: {feed.created:,} created, {feed.done:,} done")
    yield from _damaged(found, here)
    if fleet.members:
        yield Text()
        yield _members(fleet.members)
    elif fleet.last_seen:
        who = ", ".join(f"{seen.node} (number {seen.number})" for seen in fleet.last_seen)
        yield Text(console.printable(f"  last seen  {who}"))


def _damaged(found: Found, here: Here) -> Iterator[Block]:
    for damage in (*found.fleet.damaged, *found.streams.damaged):
        yield Text(console.printable(f"  damaged  {damage.place}: {damage.reason}"), "red")
    for damage in found.streams.damaged[:1]:
        get = store_command("get", here.url, here.namespace, damage.key)
        yield Text.assemble("  next     ", (get, "cyan"))


def _own_feeds(found: Found, here: Here) -> set[str]:
    """Of streams, their flags and their tables; what is set aside of the last two is a task."""
    own = {feed_name(one.name) for one in found.streams.streams}
    if here.settings is not None:
        own |= {root_feed(root.name) for root in roots_of(here.settings)}
        own |= {table_feed(name) for name in here.settings.tables}
    aside = {task.name.rpartition("/")[0] for task in found.fleet.tasks if task.set_aside}
    return own - (aside - {feed_name(one.name) for one in found.streams.streams})


def _task_blocks(found: Found, here: Here, *, is_all: bool) -> Iterator[Block]:
    """Of what is no stream: those have their own."""
    own = _own_feeds(found, here)
    tasks = [task for task in found.fleet.tasks if task.name.rpartition("/")[0] not in own]
    aside = [task for task in tasks if task.set_aside is not None]
    shown_aside = aside if is_all else aside[:TASKS_SHOWN_MAX]
    for task in shown_aside:
        yield Text()
        yield from _set_aside(task, here)
    rows = _interesting(tasks, is_all=is_all)
    if rows:
        yield Text()
        yield _tasks(rows)
    left_out = len(tasks) - len(rows) - len(shown_aside)
    if left_out:
        all_ = command("status", here, options=["--all"])
        yield Text(f"and {left_out:,} more tasks; next: {all_}", "dim")


def _verdict(found: Found, here: Here) -> Text:
    code = found.exit_code
    words = {0: "healthy", 1: "a person must look", 4: "damaged"}[code]
    if found.streams.streams and code == 1 and found.is_nobody_here:
        words = "no node is running, and something waits"
    elif found.fleet.is_at_rest and code == 0:
        words = found.streams.words_at_rest
    elif code == 0 and not found.fleet.members:
        words = "nobody is here, and nothing is to be done"
    where = here.url if here.namespace == "default" else f"{here.url}, {here.namespace}"
    return Text.assemble((words, STYLES[code]), f"   {console.printable(where)}")


def _next(found: ClusterStatus, here: Here) -> Iterator[str]:
    """Commands that help with the warnings. What was set aside has its own."""
    if found.tasks and not found.is_anybody_able and not found.is_at_rest:
        yield command("run", here)
    stranded = [task for task in found.tasks if task.is_stranded and task.is_known]
    for labels in sorted({task.labels for task in stranded}):
        yield command("run", here, options=["--label", labels[0]])
    own = {} if here.settings is None else here.settings.streams
    kinds = {task.kind for task in found.tasks if task.is_stranded and not task.is_known}
    for kind in sorted(kinds):
        stream = kind.removeprefix("land:")
        if own and stream != kind and stream not in own:  # no node with these settings lands it
            yield command("stream retire", here, stream, options=RETIRED)
    for damage in found.damaged[:1]:
        yield store_command("get", here.url, here.namespace, damage.key)


def _leader(found: ClusterStatus) -> str:
    leader = found.leader
    if leader is None:
        return "nobody"
    who = console.printable(leader.node or f"session {leader.session[:SESSION_LETTERS]}")
    gone = ", silent" if leader.is_silent else "" if leader.is_live else ", gone"
    return f"{who}, epoch {leader.epoch}, for {shown_ms(leader.age_ms)}{gone}"


def _counts(found: ClusterStatus) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in found.counts.items())


def _members(members: Sequence[MemberStatus]) -> Rows:
    return Rows(
        ("node", "number", "session", "state", "workers", "holds", "labels", "session ends"),
        tuple(
            (
                console.printable(member.node),
                str(member.number),
                member.session[:SESSION_LETTERS],
                _state(member),
                str(member.workers),
                f"{member.held_count:,}",
                console.printable(" ".join(member.labels)) or "-",
                f"overdue {shown_ms(-member.left_ms)}"
                if member.is_overdue
                else f"in {shown_ms(member.left_ms)}",
            )
            for member in members
        ),
        frozenset({"number", "workers", "holds"}),
    )


def _state(member: MemberStatus) -> str:
    if member.is_overdue:
        return "overdue"
    if member.is_silent:
        return "silent"
    if member.is_draining:
        return "draining"
    return "leader" if member.is_leader else "member"


def _interesting(tasks: Sequence[TaskStatus], *, is_all: bool) -> list[TaskStatus]:
    """Failing ones first, then those in progress, then the rest; those set aside have their own."""
    open_ = [task for task in tasks if task.set_aside is None]
    failing = [task for task in open_ if task.error is not None or task.tries > 1]
    calm = [task for task in open_ if task not in failing]
    progressing = [task for task in calm if task.condition == "in progress"]
    free = [task for task in calm if task.condition != "in progress"]
    if is_all:
        return [*failing, *progressing, *free]
    stranded = [task for task in free if task.is_stranded]
    return [
        *failing[:TASKS_SHOWN_MAX],
        *stranded[:TASKS_SHOWN_MAX],
        *progressing[:TASKS_SHOWN_MAX],
    ]


def _tasks(tasks: Sequence[TaskStatus]) -> Rows:
    return Rows(
        ("task", "kind", "condition", "node", "epoch", "for", "tries", "last error"),
        tuple(
            (
                console.printable(task.name),
                console.printable(task.kind),
                "no node may take it" if task.is_stranded else task.condition,
                console.printable(task.node or "-"),
                str(task.epoch),
                "-" if task.held_ms is None else shown_ms(task.held_ms),
                str(task.tries),
                _short(task.error.words) if task.error else "-",
            )
            for task in tasks
        ),
        frozenset({"epoch", "tries"}),
    )


def _short(words: str) -> str:
    plain = console.printable(words)
    return plain if len(plain) <= WORDS_MAX else plain[: WORDS_MAX - 1] + "…"


def _set_aside(task: TaskStatus, here: Here) -> Iterator[Text]:
    trouble = task.set_aside
    assert trouble is not None  # noqa: S101 - for the type checker
    tries = "once" if task.tries == 1 else f"{task.tries:,} times"
    yield Text(console.printable(f"set aside: {task.name} was tried {tries}"), "bold yellow")
    age = shown_ms(trouble.age_ms)
    yield Text(console.printable(f"  cause    {trouble.words}"))
    yield Text(console.printable(f"  where    node {trouble.node}, {age} ago"))
    yield Text("  meaning  no node tries it again until a person releases it; others go on")
    yield Text.assemble("  next     ", (_release(task, here), "cyan"))


def _release(task: TaskStatus, here: Here) -> str:
    shard = task.name.removeprefix("land:")
    if task.name != shard:  # also noted in the ledger
        return next_command(Advice("shard release", (shard,), RELEASED), here)
    return command("task release", here, task.name, options=RELEASED)
