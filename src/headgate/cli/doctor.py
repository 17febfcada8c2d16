"""Doctor: asks whether what Headgate stands on can be trusted."""

import os
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.cli import console
from headgate.cli.places import (
    ClusterNamespace,
    ConfigPath,
    found_settings,
    here_of,
    installation_of,
)
from headgate.cli.store import Json, UrlIfAny
from headgate.errors import Invalid
from headgate.lake import BucketSettings, LakeSettings
from headgate.lake.examining import examine
from headgate.lake.opening import clock_of, open_lake, scheme_of
from headgate.settings.rules import endpoint as check_endpoint
from headgate.settings.rules import lake_root
from headgate.store.probe import ProbeReport, Verdict, probe, remarks
from headgate.store.registry import open_store

app = typer.Typer(no_args_is_help=True)

STYLES = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.BAD: "bold red"}


@app.callback()
def group() -> None:
    """Ask whether a store or a lake is safe to use, and a source can be read."""


@app.command("store")
def doctor_store(
    url: UrlIfAny = "",
    config: ConfigPath = None,
    namespace: ClusterNamespace = "",
    as_json: Json = False,
) -> None:
    """Probe a store and say in words whether it is safe.

    Writes some documents below a prefix of its own, doctor-…, and removes them again. Takes a few
    seconds. Exit code 0: safe, maybe with warnings; 1: not safe.
    """
    ambient, here = SystemAmbient(), here_of(url, namespace, config)
    url, namespace = here.url, here.namespace
    with (
        _Progress() as progress,
        closing(open_store(url, namespace, ambient=ambient)) as first,
        closing(open_store(url, namespace, ambient=ambient)) as second,
    ):
        found = probe(first, second, ambient, progress.asking)
    report = ProbeReport((*found.findings, *remarks(url)))
    if as_json:
        typer.echo(
            console.json_line(
                {
                    "url": url,
                    "namespace": namespace,
                    "is_safe": report.is_safe,
                    "words": report.words,
                    "findings": [asdict(finding) for finding in report.findings],
                }
            )
        )
    else:
        _show(url, report)
    raise typer.Exit(0 if report.is_safe else 1)


@app.command("lake")
def doctor_lake(
    url: Annotated[
        str,
        typer.Argument(help="A folder, or a URL as for the settings; none: that of the settings."),
    ] = "",
    endpoint: Annotated[str, typer.Option(help="Of s3: where the server is.")] = "",
    config: ConfigPath = None,
    as_json: Json = False,
) -> None:
    """Probe the place of a lake and say in words whether it is safe.

    Writes some small files below a folder of its own in staging, publishes them there, and removes
    them again; nothing that was landed is touched. Keys are looked up as a node does. Exit code 0:
    safe, maybe with warnings; 1: not safe.
    """
    ambient = SystemAmbient()
    settings = _lake_settings(url, endpoint, config)
    with _Progress() as progress:
        report = examine(
            open_lake(settings, ambient),
            open_lake(settings, ambient),
            clock_of(settings, ambient),
            ambient,
            progress.asking,
        )
    if as_json:
        typer.echo(
            console.json_line(
                {
                    "url": settings.root,
                    "is_safe": report.is_safe,
                    "words": report.words,
                    "findings": [asdict(finding) for finding in report.findings],
                }
            )
        )
    else:
        _show(settings.root, report)
    raise typer.Exit(0 if report.is_safe else 1)


def _lake_settings(url: str, endpoint: str, config: Path | None) -> LakeSettings:
    """Of the settings; with a URL those of another place, reached in the same way if that is a
    bucket, too. Raises Invalid."""
    found = found_settings(config)
    known = None if found is None else installation_of(config).settings.lake
    if not url:
        if known is None:
            raise Invalid("no lake: there are no settings here; next: headgate doctor lake URL")
        return known
    root = lake_root(url, os.getcwd())
    is_alike = known is not None and scheme_of(known.root) == scheme_of(root)
    bucket = known.bucket if known is not None and is_alike else BucketSettings()
    if endpoint:
        bucket = replace(bucket, endpoint=check_endpoint(endpoint))
    return LakeSettings(root, bucket=bucket)


class _Progress:
    """What is being asked: one line that changes on a terminal, elsewhere one line each."""

    def __init__(self) -> None:
        self._talk = console.talk()
        self._status = self._talk.status("opening") if self._talk.is_terminal else None

    def __enter__(self) -> "_Progress":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def asking(self, name: str) -> None:
        if self._status is None:
            self._talk.print(f"asking: {name}")
        else:
            self._status.update(f"asking: {name}")


def _show(url: str, report: ProbeReport) -> None:
    out = console.results()
    worst = max((finding.verdict for finding in report.findings), key=list(Verdict).index)
    out.print(Text.assemble((report.words, STYLES[worst]), f"   {console.printable(url)}"))
    width = max(len(finding.name) for finding in report.findings)
    for finding in report.findings:
        out.print(
            Text.assemble(
                (f"  {finding.verdict:4}", STYLES[finding.verdict]),
                f"  {finding.name:{width}}  {console.printable(finding.words)}",
            )
        )
