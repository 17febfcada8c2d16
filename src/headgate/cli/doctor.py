"""Doctor: asks whether what Headgate stands on can be trusted."""

from contextlib import closing
from dataclasses import asdict

import typer
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.cli import console
from headgate.cli.places import ClusterNamespace, ConfigPath, here_of
from headgate.cli.store import Json, UrlIfAny
from headgate.store.probe import ProbeReport, Verdict, probe, remarks
from headgate.store.registry import open_store

app = typer.Typer(no_args_is_help=True)

STYLES = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.BAD: "bold red"}


@app.callback()
def group() -> None:
    """Ask whether a store is safe to use, and a source can be read."""


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
