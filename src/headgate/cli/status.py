"""Status command: the cluster at a glance, for people and for programs."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.ambient import Ambient, SystemAmbient
from headgate.app import Place
from headgate.cli import console
from headgate.cli.places import StoreUrl, command
from headgate.cli.store import Json, Namespace
from headgate.cli.store import command as store_command
from headgate.errors import Unavailable
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
from headgate.store import DocumentStore, JsonObject
from headgate.store.probe import remarks
from headgate.store.registry import open_store

TASKS_SHOWN_MAX = 20  # of each condition
WORDS_MAX = 60  # of an error, in a table
STYLES = {0: "bold green", 1: "bold yellow", 4: "bold red"}


@dataclass(frozen=True, slots=True)
class Rows:
    """A table as values: to be drawn on a terminal, or aligned as text."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str]  # columns that are aligned to the right


Block = Text | Rows


def status(
    store: StoreUrl,
    namespace: Namespace = "default",
    as_json_line: Json = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, max=3_600, metavar="S", help="Between two looks.")
    ] = 1,
    show_all: Annotated[
        bool, typer.Option("--all", help=f"All tasks, not the first {TASKS_SHOWN_MAX}.")
    ] = False,
) -> None:
    """Show who is there, who does what, and what a person must look at. Changes nothing.

    Exit code 0: healthy; 1: a person must look (a task is set aside, or nobody can take some); 3:
    the store cannot be reached; 4: documents are damaged.
    """
    ambient, place = SystemAmbient(), Place(store, namespace)
    with closing(open_store(store, namespace, ambient=ambient)) as documents:
        if watch:
            _watch(documents, place, ambient, interval, is_json=as_json_line, is_all=show_all)
        found = read_status(documents, ambient)
    if as_json_line:
        typer.echo(console.json_line(_as_json(found, place)))
    else:
        _print(blocks(found, place, is_all=show_all))
        if not (found.members or found.last_seen or found.tasks or found.feeds or found.damaged):
            for remark in remarks(store):  # a folder that does not exist may be a slip of the pen
                console.talk().print(console.printable(remark.words), style="yellow")
    raise typer.Exit(exit_code(found))


def _watch(
    documents: DocumentStore,
    place: Place,
    ambient: Ambient,
    interval_s: float,
    *,
    is_json: bool,
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
                found = read_status(documents, ambient)
                shown = blocks(found, place, is_all=is_all)
            except Unavailable as error:
                found = None
                shown = [Text(console.printable(f"unavailable: {error}"), "bold red")]
            if live is not None:
                live.update(Group(*map(_drawn, shown)), refresh=True)
            elif found is not None and is_json:
                typer.echo(console.json_line(_as_json(found, place)))
            elif is_json:
                console.talk().print(shown[0])
            else:
                typer.echo("\n".join(line for block in shown for line in _lines(block)) + "\n")
            ambient.sleep_ms(interval_s * 1000)
    finally:
        if live is not None:
            live.stop()


def _as_json(found: ClusterStatus, place: Place) -> JsonObject:
    body = as_json(found, lambda task: _release(task, place))
    return {"url": place.url, "namespace": place.namespace, **body}


def blocks(found: ClusterStatus, place: Place, *, is_all: bool) -> list[Block]:
    """What is shown, in order: the verdict, who is there, what is wrong, what goes on."""
    shown: list[Block] = [_verdict(found, place)]
    for warning in found.warnings:
        shown.append(Text(f"  warning  {console.printable(warning)}", "yellow"))
    shown += [Text.assemble("  next     ", (line, "cyan")) for line in _next(found, place)]
    shown.append(Text(f"  leader   {_leader(found)}"))
    shown.append(Text(f"  tasks    {_counts(found)}"))
    for feed in found.feeds:
        name = console.printable(feed.name)
        shown.append(Text(f"  feed     {name}: {feed.created:,} created, {feed.done:,} done"))
    for damage in found.damaged:
        words = f"  damaged  {damage.place}: {damage.reason}"
        shown.append(Text(console.printable(words), "red"))
    if found.members:
        shown += [Text(), _members(found.members)]
    elif found.last_seen:
        who = ", ".join(f"{seen.node} (number {seen.number})" for seen in found.last_seen)
        shown.append(Text(console.printable(f"  last seen  {who}")))
    aside = [task for task in found.tasks if task.set_aside is not None]
    for task in aside if is_all else aside[:TASKS_SHOWN_MAX]:
        shown += [Text(), *_set_aside(task, place)]
    rows = _interesting(found.tasks, is_all=is_all)
    if rows:
        shown += [Text(), _tasks(rows)]
    left_out = (
        len(found.tasks) - len(rows) - (len(aside) if is_all else len(aside[:TASKS_SHOWN_MAX]))
    )
    if left_out:
        all_ = command("status", place, options=["--all"])
        shown.append(Text(f"and {left_out:,} more tasks; next: {all_}", "dim"))
    return shown


def _verdict(found: ClusterStatus, place: Place) -> Text:
    words = {0: "healthy", 1: "a person must look", 4: "damaged"}[exit_code(found)]
    if not exit_code(found) and not found.members:
        words = "nobody is here, and nothing is to be done"
    where = place.url if place.namespace == "default" else f"{place.url}, {place.namespace}"
    return Text.assemble((words, STYLES[exit_code(found)]), f"   {console.printable(where)}")


def _next(found: ClusterStatus, place: Place) -> Iterator[str]:
    """Commands that help with the warnings. What was set aside has its own."""
    if found.tasks and not found.is_anybody_able:
        yield command("run", place)
    for labels in sorted({task.labels for task in found.tasks if task.is_stranded}):
        yield command("run", place, options=["--label", labels[0]])
    for damage in found.damaged[:1]:
        yield store_command("get", place.url, place.namespace, damage.key)


def _leader(found: ClusterStatus) -> str:
    leader = found.leader
    if leader is None:
        return "nobody"
    who = console.printable(leader.node or f"session {leader.session[:SESSION_LETTERS]}")
    gone = "" if leader.is_live else ", gone"
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


def _set_aside(task: TaskStatus, place: Place) -> Iterator[Text]:
    trouble = task.set_aside
    assert trouble is not None  # noqa: S101 - for the type checker
    tries = "once" if task.tries == 1 else f"{task.tries:,} times"
    yield Text(console.printable(f"set aside: {task.name} was tried {tries}"), "bold yellow")
    age = shown_ms(trouble.age_ms)
    yield Text(console.printable(f"  cause    {trouble.words}"))
    yield Text(console.printable(f"  where    node {trouble.node}, {age} ago"))
    yield Text("  meaning  no node tries it again until a person releases it; others go on")
    yield Text.assemble("  next     ", (_release(task, place), "cyan"))


def _release(task: TaskStatus, place: Place) -> str:
    return command("task release", place, task.name, options=["--reason", "the cause is fixed"])


def _drawn(block: Block) -> RenderableType:
    if isinstance(block, Text):
        return block
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in block.head:
        right = name in block.numbers
        table.add_column(name, justify="right" if right else "left", no_wrap=name == "task")
    for row in block.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _lines(block: Block) -> list[str]:
    if isinstance(block, Text):
        return [block.plain]
    rows = [block.head, *block.rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(block.head))]
    return [
        "  ".join(
            cell.rjust(width) if name in block.numbers else cell.ljust(width)
            for name, cell, width in zip(block.head, row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _print(shown: Sequence[Block]) -> None:
    out = console.results()
    for block in shown:
        if out.is_terminal:
            out.print(_drawn(block))
        else:
            typer.echo("\n".join(_lines(block)))
