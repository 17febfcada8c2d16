"""Doctor of sources: can what a stream is read from be read, and what comes from it."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from headgate.app.checkup import Checkup, SampleRecord
from headgate.app.library import App
from headgate.cli import console
from headgate.cli.asking import StreamName
from headgate.cli.doctor import STYLES
from headgate.cli.moments import shown_moment
from headgate.cli.places import ConfigPath, command, installation_of, stream_of
from headgate.cli.store import Json


def doctor_source(
    stream: StreamName,
    config: ConfigPath = None,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Also ask Spark which event time the samples would get."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask whether the source of a stream can be read, and show a record of it. Changes nothing.

    Of Kafka: topics, rights, ends, retention, open transactions. Of files: the folder, what waits,
    what cannot be read. Of a stream with expressions in SQL (`outputs`, `event_time: {sql: …}`):
    whether Spark takes them. With --spark the samples are staged as a round would, and removed
    again.

    Exit code 0: it can be read, maybe with warnings; 1: something is wrong.
    """
    asked = installation_of(config)
    stream = stream_of(asked, stream).name  # says what the nearest is
    found = App(settings=asked.settings).check_source(stream, is_spark_asked=spark)
    if as_json:
        body = {**asdict(found), "is_readable": found.is_readable}
        typer.echo(console.json_line(body))
    else:
        _show(found, is_spark_asked=spark)
        if found.samples and not spark:
            again = command("doctor source", asked.here, stream, options=["--spark"])
            console.talk().print(f"which event time they would get: {again}", style="dim")
    raise typer.Exit(0 if found.is_readable else 1)


def _show(found: Checkup, *, is_spark_asked: bool) -> None:
    out = console.results()
    worst = max((one.verdict for one in found.findings), key=list(STYLES).index)
    words = "it can be read" if found.is_readable else "a person must look"
    title = console.printable(f"   {found.stream}: {found.source}")
    out.print(Text.assemble((words, STYLES[worst]), title))
    width = max(len(one.name) for one in found.findings)
    for one in found.findings:
        name, told = console.printable(one.name), console.printable(one.words)
        out.print(
            Text.assemble((f"  {one.verdict:4}", STYLES[one.verdict]), f"  {name:{width}}  {told}")
        )
    for sample in found.samples:
        out.print(Text(console.printable(_where(sample)), "bold"))
        out.print(f"  record   {console.printable(sample.text) or '(empty)'}")
        if is_spark_asked and sample.becomes:
            event = shown_moment(sample.event_ms, "none")
            out.print(console.printable(f"  becomes  {sample.becomes}, event time {event}"))


def _where(sample: SampleRecord) -> str:
    stamp = "" if sample.stamp_ms is None else f", of {shown_moment(sample.stamp_ms)}"
    return f"{sample.partition} {sample.position}{stamp}"
