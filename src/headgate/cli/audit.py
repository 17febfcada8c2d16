"""Audit: do the invariants hold in store and lake? It changes nothing and starts no Spark."""

import os
import shlex
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.audit import Audit, Checked, Finding
from headgate.audit.inspection import audit as audit_all
from headgate.cli import console
from headgate.cli.places import ConfigPath, named_settings
from headgate.lake.opening import open_lake
from headgate.settings.loading import load
from headgate.store import JsonObject
from headgate.store.registry import open_store

KINDS = {"data": "on time", "late": "late", "dead": "dead letters", "skip": "skipped"}


def audit(
    stream: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this stream. Can be given several times."),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every file, and compare its checksum.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")] = False,
    config: ConfigPath = None,
) -> None:
    """Check the numbered invariants over store and lake. Nothing is changed; nodes may work on.

    1: a published file belongs to exactly one commit. 2: no position passes a record that is not in
    the lake, in the dead-letter folder or in a gap on record. 4: nothing new is committed while a
    journal is unfinished.

    Exit code 0: all hold; 1: there are findings.
    """
    settings = load(named_settings(config), os.environ)
    ambient = SystemAmbient()
    with (
        _Progress() as progress,
        closing(open_store(settings.store, settings.namespace, ambient=ambient)) as store,
    ):
        found = audit_all(
            store,
            open_lake(settings.lake, ambient),
            settings.streams,
            only=stream or (),
            is_deep=deep,
            on_progress=progress.show,
        )
    found = _with_config(found, config)
    if as_json:
        typer.echo(console.json_line(_as_json(found, is_deep=deep)))
    else:
        _show(found, is_deep=deep)
    raise typer.Exit(0 if found.is_clean else 1)


def _with_config(found: Audit, config: Path | None) -> Audit:
    """Every advice ends in a command: it is for the same settings."""
    if config is None:
        return found
    named = f" --config {shlex.quote(str(config))}"

    def for_them(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(replace(one, next=f"{one.next}{named}") for one in findings)

    return replace(found, findings=for_them(found.findings), remarks=for_them(found.remarks))


class _Progress:
    """A bar on a terminal, for each part of the way; elsewhere nothing."""

    def __init__(self) -> None:
        talk = console.talk()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._bar = Progress(*columns, console=talk, transient=True, disable=not talk.is_terminal)
        self._part: tuple[str, TaskID] | None = None

    def __enter__(self) -> "_Progress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, done: int, total: int | None, words: str) -> None:
        if self._part is None or self._part[0] != words:
            if self._part is not None:
                self._bar.remove_task(self._part[1])
            self._part = (words, self._bar.add_task(console.printable(words), total=total))
        self._bar.update(self._part[1], completed=done, total=total)


def _as_json(found: Audit, *, is_deep: bool) -> JsonObject:
    return {
        "is_clean": found.is_clean,
        "is_deep": is_deep,
        "findings": [asdict(finding) for finding in found.findings],
        "left_out": found.left_out,
        "remarks": [asdict(remark) for remark in found.remarks],
        "checked": asdict(found.checked),
    }


def _show(found: Audit, *, is_deep: bool) -> None:
    out = console.results()
    count = len(found.findings) + found.left_out
    if found.is_clean:
        verdict = Text("clean: the invariants hold", "green")
    else:
        verdict = Text(f"{_many(count, 'finding')}: something is not as it must be", "bold red")
    out.print(verdict)
    for finding in found.findings:
        _show_one(_title(finding), "red", finding)
    if found.left_out:
        out.print(f"and {found.left_out:,} more, which are not shown")
    for remark in found.remarks:
        _show_one("remark", "yellow", remark)
    out.print(Text(_checked_words(found.checked, is_deep=is_deep), "dim"))


def _show_one(title: str, style: str, finding: Finding) -> None:
    out = console.results()
    out.print(
        Text.assemble((title, style), console.printable(f"  {finding.subject}  {finding.words}"))
    )
    out.print(console.printable(f"  meaning  {finding.meaning}"))
    out.print(console.printable(f"  next     {finding.next}"))


def _title(finding: Finding) -> str:
    return "damage" if finding.invariant is None else f"invariant {finding.invariant}"


def _checked_words(checked: Checked, *, is_deep: bool) -> str:
    rows = [
        f"{checked.rows[kind]:,} {word}" for kind, word in KINDS.items() if kind in checked.rows
    ]
    counts: Sequence[str] = (
        _many(checked.streams, "stream"),
        _many(checked.shards, "shard"),
        _many(checked.records, "commit record"),
        _many(checked.folders, "folder"),
        f"{_many(checked.files, 'file')} by {'size and checksum' if is_deep else 'size'}",
    )
    return f"checked  {', '.join(counts)}" + (f"; rows: {', '.join(rows)}" if rows else "")


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
