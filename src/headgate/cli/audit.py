"""Audit: do the invariants hold, in store, lake and tables? It changes nothing."""

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.app.roots import site_opener, tables_of
from headgate.audit import Audit, Checked
from headgate.audit.inspection import audit as audit_all
from headgate.cli import console
from headgate.cli.bars import PartsBar
from headgate.cli.findings import for_settings, show_finding, show_findings
from headgate.cli.moments import many
from headgate.cli.places import ConfigPath, named_settings
from headgate.lake.opening import open_lake
from headgate.landing.report import words_of
from headgate.settings.loading import load
from headgate.store import JsonObject
from headgate.store.registry import open_store


def audit(
    stream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this stream, its flags and its tables. Can be given several times.",
        ),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every file, and compare its checksum.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")] = False,
    config: ConfigPath = None,
) -> None:
    """Check the numbered invariants over store, lake and tables. Nothing is changed; nodes may work
    on.

    1: a published file belongs to exactly one commit. 2: no position passes a record that is not in
    the lake, in the dead-letter folder or in a gap on record. 4: nothing new is committed while a
    journal is unfinished. 6: nothing comes to a closed hour after its certificate. 7: a flag
    implies the flag of every child that was expected. 8: what a table took, with what was passed on
    record, is a prefix of the order. 9: one batch at a time changes a table, and a halted one does
    not change.

    Exit code 0: all hold; 1: there are findings.
    """
    settings = load(named_settings(config), os.environ)
    ambient = SystemAmbient()
    with (
        PartsBar() as progress,
        closing(open_store(settings.store, settings.namespace, ambient=ambient)) as store,
    ):
        found = audit_all(
            store,
            open_lake(settings.lake, ambient),
            settings.every,
            tables=tables_of(settings),
            open_site=site_opener(ambient),
            only=[settings.called(one) for one in stream or ()],
            is_deep=deep,
            on_progress=progress.show,
        )
    found = replace(
        found,
        findings=for_settings(found.findings, config),
        remarks=for_settings(found.remarks, config),
    )
    if as_json:
        typer.echo(console.json_line(_as_json(found, is_deep=deep)))
    else:
        _show(found, is_deep=deep)
    raise typer.Exit(0 if found.is_clean else 1)


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
        verdict = Text(f"{many(count, 'finding')}: something is not as it must be", "bold red")
    out.print(verdict)
    show_findings(found.findings, found.left_out)
    for remark in found.remarks:
        show_finding("remark", "yellow", remark)
    out.print(Text(_checked_words(found.checked, is_deep=is_deep), "dim"))


def _checked_words(checked: Checked, *, is_deep: bool) -> str:
    counts: Sequence[str] = (
        many(checked.streams, "stream"),
        many(checked.shards, "shard"),
        many(checked.records, "commit record"),
        many(checked.folders, "folder"),
        f"{many(checked.files, 'file')} by {'size and checksum' if is_deep else 'size'}",
    )
    more = [
        *([many(checked.hours, "closed hour")] if checked.hours else []),
        *([many(checked.parents, "parent")] if checked.parents else []),
        *([many(checked.tables, "table")] if checked.tables else []),
        *(
            ["1 batch" if checked.batches == 1 else f"{checked.batches:,} batches"]
            if checked.batches
            else []
        ),
    ]
    return f"checked  {', '.join([*counts, *more])}" + (
        f"; rows: {words_of(checked.rows)}" if any(checked.rows.values()) else ""
    )
