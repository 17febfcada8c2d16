"""Rebuilding: `headgate store rebuild`: a lost store is made anew from the lake."""

from contextlib import closing
from typing import Annotated

import typer
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.app.rebuild import Rebuild, Rebuilt
from headgate.app.redriving import redriven_letters
from headgate.app.roots import site_opener
from headgate.cli import console
from headgate.cli.asking import WHERE, Reason, asking, person
from headgate.cli.bars import PartsBar
from headgate.cli.findings import show_findings
from headgate.cli.moments import many
from headgate.cli.places import ConfigPath, Here, command
from headgate.cli.store import Json
from headgate.lake.ledger import Ledger
from headgate.landing import StreamSettings
from headgate.node import Hands
from headgate.sources import FilesSettings
from headgate.sources.folder import Folder
from headgate.sources.local_folder import LocalFolder
from headgate.store import JsonObject


def rebuild(
    reason: Reason,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be made anew.")
    ] = False,
    as_json: Json = False,
    config: ConfigPath = None,
) -> None:
    """Make a lost store anew from the lake: from commit records, certificates and tables.

    The store of the settings must be empty, and no node may run. What was made is audited before
    nodes may land again. Killed in the middle, the same command goes on.

    Exit code 0: it is made anew, and clean; 1: the store is not empty, a node runs, or the audit
    has findings: then no node lands.
    """
    by = person(reason)
    with asking(config) as asked, closing(Hands()) as hands:
        settings, ambient = asked.settings.lake, SystemAmbient()

        def folders_of(stream: StreamSettings) -> list[tuple[FilesSettings, Folder]]:
            own, letters = stream.source, redriven_letters(settings, asked.lake, stream.name)
            if not isinstance(own, FilesSettings):
                return [letters]
            return [(own, LocalFolder(own.path)), letters]

        with PartsBar() as bar:
            work = Rebuild(
                asked.store,
                asked.lake,
                Ledger(asked.lake, WHERE, ambient),
                ambient,
                asked.settings,
                folders_of=folders_of,
                open_site=site_opener(ambient),
                each=hands.each,
                on_progress=bar.show,
            )
            found = work.outlook() if dry_run else work.run(by)
        if as_json:
            typer.echo(console.json_line(_as_json(found, is_dry=dry_run)))
        else:
            _tell(found, asked.here, is_dry=dry_run)
    raise typer.Exit(1 if found.audit.findings else 0)


def _as_json(found: Rebuilt, *, is_dry: bool) -> JsonObject:
    return {
        "streams": found.streams,
        "shards": found.shards,
        "records": found.records,
        "documents": found.documents,
        "tables": found.tables,
        "standing": list(found.standing),
        "findings": len(found.audit.findings) + found.audit.left_out,
        "is_dry_run": is_dry,
    }


def _tell(found: Rebuilt, here: Here, *, is_dry: bool) -> None:
    out, talk = console.results(), console.talk()
    what = f"{many(found.documents, 'document')} from {many(found.records, 'commit record')}"
    if is_dry:
        out.print(f"would make {what}; nothing was changed")
        return
    if found.audit.findings:
        out.print(Text(f"made {what}, and the audit is not clean: no node lands", "bold red"))
        show_findings(found.audit.findings, found.audit.left_out)
        talk.print(f"next: mend what is named, then {command('store rebuild', here)} again")
        return
    out.print(Text(f"the store is made anew: {what}; the audit is clean", "green"))
    for name in found.standing:
        out.print(
            console.printable(f"  {name}: its last commit was cut in half; a node finishes it")
        )
    talk.print(f"next: {command('run', here)}", style="dim")
