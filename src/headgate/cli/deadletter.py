"""Dead-letter commands: what could not be landed and why, and driving it in again."""

import base64
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Annotated

import typer
from rich.text import Text

from headgate.app.letters import (
    Letter,
    Origin,
    Origins,
    ahead_ms,
    check_redrivable,
    folder_of,
    letters_of,
    reasons_in,
    rows_on_record,
)
from headgate.cli import console
from headgate.cli.asking import Asking, Reason, StreamName, asking, person
from headgate.cli.moments import many, shown_bytes
from headgate.cli.places import ConfigPath, command
from headgate.cli.store import Json
from headgate.cli.tables import Rows, show
from headgate.errors import Corrupt, Halted, Invalid
from headgate.lake import Entry
from headgate.periods import EPOCH, MILLISECOND
from headgate.settings.problems import nearest
from headgate.sources import FilesSettings, KafkaSettings
from headgate.status import shown_ms
from headgate.store import JsonObject, JsonValue

RAW_SHOWN_MAX = 500  # bytes of a record, for people
KEY_SHOWN_MAX = 60  # bytes
LS_MAX = 200  # files that are looked into
SHOW_MAX = 20  # records
SOURCES_MAX = 20  # source files that are named for one file of letters
GREP_BYTES_MAX = 60  # of a record, to look for it

app = typer.Typer(no_args_is_help=True)

FileNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE]…", help="As `deadletter ls` shows it."),
]


@app.callback()
def group() -> None:
    """Records that could not be landed: see why, and drive them in again."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Where letters came from."""

    partition: str
    number: int
    path: str  # "": it is forgotten


@dataclass(frozen=True, slots=True)
class LetterFile:
    file: str  # below the stream's folder of dead letters
    path: str  # below the root of the lake
    size_bytes: int
    rows: int | None  # None: no record knows
    reasons: dict[str, int]
    sources: tuple[SourceFile, ...]  # the first of them
    damaged: str

    @property
    def date(self) -> str:
        return self.file.partition("/")[0]


@app.command("ls")
def list_letters(
    name: StreamName,
    limit: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="N", help="At most so many files.")
    ] = LS_MAX,
    config: ConfigPath = None,
    as_json: Json = False,
) -> None:
    """List a stream's files of dead letters: date, rows by reason, size.

    Exit code 0: there are none, or all were listed; 4: one cannot be read.
    """
    with asking(config) as asked:
        name = asked.stream(name)
        entries = list(islice(asked.acts.dead_letters(name), limit + 1))
        shown, origins = (
            console.tracked(entries[:limit], "looking into files"),
            _origins(asked, name),
        )
        found = [_looked_into(asked, name, entry, origins) for entry in shown]
        if as_json:
            for one in found:
                typer.echo(console.json_line(_as_json(one)))
        elif found:
            show([_rows(found)])
        _tell_the_sum(asked, name, found, has_more=len(entries) > limit, is_quiet=as_json)
    raise typer.Exit(4 if any(one.damaged for one in found) else 0)


@app.command("show")
def show_letters(
    name: StreamName,
    files: FileNames = None,
    limit: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="N", help="At most so many records.")
    ] = SHOW_MAX,
    config: ConfigPath = None,
    as_json: Json = False,
) -> None:
    """Show dead letters: why, from where, and the record as it came.

    A record is shown up to 500 bytes; `--json` has all of it. Exit code 0: shown; 1: there are
    none.
    """
    with asking(config) as asked:
        name = asked.stream(name)
        paths = _paths(asked, name, files or ())
        found = islice(
            ((path, one) for path in paths for one in letters_of(asked.lake, path)), limit
        )
        origins, count, lost = _origins(asked, name), 0, list[Letter]()
        for path, letter in found:
            count += 1
            origin = _origin(origins, letter.partition, letter.number)
            ahead = ahead_ms(asked.lake, name, path, letter, origin)
            lost += [] if origin.path else [letter]
            if as_json:
                typer.echo(console.json_line(_letter_as_json(path, letter, origin, ahead)))
            else:
                _print_letter(letter, origin, ahead)
        if lost and not as_json:
            _tell_of_lost(asked, name, lost)
        if not count:
            see = command("deadletter ls", asked.here, name)
            console.talk().print(console.printable(f"no dead letters of {name}; next: {see}"))
            raise typer.Exit(1)
        if count == limit and not as_json:
            console.talk().print(f"the first {limit:,}; next: --limit {limit * 10}", style="dim")


@app.command("redrive")
def redrive(
    name: StreamName,
    reason: Reason,
    files: FileNames = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All files that are there now.")
    ] = False,
    config: ConfigPath = None,
) -> None:
    """Drive dead letters in again: the stream reads them once more, as if they had just arrived.

    What is still unusable becomes a dead letter again. Exit code 0: done; 1: there was nothing to
    do, or a file had to stay where it is; it says why.
    """
    with asking(config) as asked:
        who = person(reason)
        name = asked.stream(name)
        if bool(files) == everything:
            see = command("deadletter ls", asked.here, name)
            raise Invalid(f"name the files, or say --all; next: {see}")
        driven, waiting = 0, list[str]()
        paths = list(_paths(asked, name, files or ()))
        own = asked.settings.streams.get(name)
        for path in console.tracked(paths, "driving in"):
            try:
                check_redrivable(path, "" if own is None else own.source.format)
                driven += asked.acts.redrive(name, path, who)
            except Halted as error:
                waiting.append(str(error))
        talk = console.talk()
        for words in waiting:
            talk.print(console.printable(words), style="yellow")
        if not driven:
            _tell_why_nothing(asked, name, was_there=bool(paths))
            raise typer.Exit(1)
        words = f"{many(driven, 'file')} of {name} {'waits' if driven == 1 else 'wait'}"
        talk.print(console.printable(f"{words} to be read again"))
        talk.print(f"next: {command('status', asked.here, name)}", style="dim")
    raise typer.Exit(1 if waiting else 0)


def _tell_why_nothing(asked: Asking, stream: str, *, was_there: bool) -> None:
    """What was there and stayed has its own sentence already."""
    talk, see = console.talk(), command("status", asked.here, stream)
    earlier = asked.acts.driven(stream)
    words = f"nothing of {stream} was driven in"
    if not was_there:
        words += ": no dead letters are there"
    if earlier:
        still = "waits" if earlier == 1 else "wait"
        words += f"; {many(earlier, 'file')} from an earlier time still {still} to be read again"
    elif not was_there:
        words += " (those that were driven in earlier have been read)"
    talk.print(console.printable(f"{words}; next: {see}"))


def _paths(asked: Asking, stream: str, files: Sequence[str]) -> Iterator[str]:
    """All there are, or those that were named. Raises Invalid: one is not there."""
    folder = folder_of(stream)
    if not files:
        yield from (entry.path for entry in asked.acts.dead_letters(stream))
        return
    named = [one if one.startswith(f"{folder}/") else f"{folder}/{one}" for one in files]
    for path in named:
        if asked.lake.facts(path) is None:
            known = [entry.path.removeprefix(f"{folder}/") for entry in _some(asked, stream)]
            near = nearest(path.removeprefix(f"{folder}/"), known)
            hint = f"the nearest is {near}" if near else "there is none at all"
            see = command("deadletter ls", asked.here, stream)
            raise Invalid(f"no such file of dead letters: {path}; {hint}; next: {see}")
    yield from named


def _some(asked: Asking, stream: str) -> Iterable[Entry]:
    return islice(asked.acts.dead_letters(stream), LS_MAX)


def _origins(asked: Asking, stream: str) -> Origins:
    own = asked.settings.streams.get(stream)
    files = own.source if own is not None and isinstance(own.source, FilesSettings) else None
    return Origins(asked.store, asked.lake, stream, files)


def _origin(origins: Origins, partition: str, number: int) -> Origin:
    try:
        return origins.of(partition, number)
    except Corrupt:  # status and audit name it
        return Origin("", None)


def _looked_into(asked: Asking, stream: str, entry: Entry, origins: Origins) -> LetterFile:
    damaged, reasons, numbers = "", Counter[str](), Counter[tuple[str, int]]()
    try:
        reasons, numbers = reasons_in(asked.lake, entry.path)
    except Corrupt as error:
        damaged = str(error)
    rows = rows_on_record(asked.lake, stream, entry.path)
    return LetterFile(
        entry.path.removeprefix(f"{folder_of(stream)}/"),
        entry.path,
        entry.size_bytes,
        rows,
        dict(reasons.most_common()),
        tuple(
            SourceFile(partition, number, _origin(origins, partition, number).path)
            for partition, number in sorted(numbers)[:SOURCES_MAX]
        ),
        damaged,
    )


def _rows(found: Sequence[LetterFile]) -> Rows:
    return Rows(
        ("file", "rows", "size", "reasons", "from"),
        tuple(
            (
                console.printable(one.file),
                "-" if one.rows is None else f"{one.rows:,}",
                shown_bytes(one.size_bytes),
                "damaged" if one.damaged else console.printable(_counted(one.reasons)),
                console.printable(_from(one.sources)),
            )
            for one in found
        ),
        frozenset({"rows", "size"}),
    )


def _from(sources: Sequence[SourceFile]) -> str:
    """The first; `show` has each."""
    if not sources:
        return "-"
    first = sources[0]
    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    return f"{first.path or f'{first.partition}/{first.number}'}{more}"


def _tell_of_lost(asked: Asking, stream: str, letters: Sequence[Letter]) -> None:
    """Of files whose number is forgotten: what was read can be looked for where it lies now."""
    own = asked.settings.streams.get(stream)
    source = None if own is None else own.source
    if isinstance(source, KafkaSettings):
        return  # partition and offset are all there is to know
    talk = console.talk()
    records = "1 record" if len(letters) == 1 else f"{len(letters):,} records"
    talk.print(
        f"of {records} only lane, number of the file and line are known: the names of files that "
        "were read are forgotten after a while, or when they are put away",
        style="dim",
    )
    if source is not None and source.after_read != "delete":
        found = search_for(letters, source.move_to or source.path)
        if found:
            talk.print(f"next: {found}", style="dim")


def search_for(letters: Sequence[Letter], place: str) -> str:
    """A command that looks for one of them by how it begins; "": none can be typed."""
    for letter in letters:
        begins = (letter.raw or b"")[:GREP_BYTES_MAX].decode("utf-8", "replace")
        head = begins.partition("\ufffd")[0].strip()
        if head and head.isprintable():
            return shlex.join(["grep", "-rnF", "--", head, place])
    return ""


def _tell_the_sum(
    asked: Asking, stream: str, found: Sequence[LetterFile], *, has_more: bool, is_quiet: bool
) -> None:
    talk = console.talk()
    for one in found:
        if one.damaged:
            talk.print(console.printable(f"damaged: {one.damaged}"), style="red")
    if is_quiet:
        return
    if not found:
        talk.print(console.printable(f"no dead letters of {stream}"), style="dim")
        return
    total = Counter[str]()
    for one in found:
        total.update(one.reasons)
    more = " and more; next: --limit N" if has_more else ""
    words = f"{many(len(found), 'file')}{more}: {_counted(dict(total.most_common()))}"
    talk.print(console.printable(words), style="dim")
    see = command("deadletter show", asked.here, stream)
    again = command(
        "deadletter redrive",
        asked.here,
        stream,
        options=["--all", "--reason", "they are usable now"],
    )
    talk.print(f"next: {see}", style="dim")
    talk.print(f"      {again}", style="dim")


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items()) or "-"


def _as_json(one: LetterFile) -> JsonObject:
    return {**asdict(one), "date": one.date, "damaged": one.damaged or None}


def _letter_as_json(path: str, letter: Letter, origin: Origin, ahead: int | None) -> JsonObject:
    """The record as text, or in base64 if it is no UTF-8."""
    text, as_base64 = _told(letter.raw)
    return {
        "path": path,
        "reason": letter.reason,
        "partition": letter.partition,
        "number": letter.number,
        "line": letter.line,
        "source": origin.path or None,
        "arrival_ms": origin.arrival_ms,
        "ahead_ms": ahead,
        "raw": text,
        "raw_base64": as_base64,
        "beside": _beside_as_json(letter),
    }


def _told(raw: bytes | None) -> tuple[str | None, str | None]:
    """As text, or in base64 if it is no UTF-8; neither: there is nothing."""
    if raw is None:
        return None, None
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError:
        return None, base64.b64encode(raw).decode("ascii")


def _beside_as_json(letter: Letter) -> JsonObject | None:
    """What Kafka kept beside a record; None: the stream does not land it."""
    if not letter.beside:
        return None
    found: dict[str, JsonValue] = {}
    for name, value in letter.beside.items():
        if name == "key":
            found["key"], found["key_base64"] = _told(value)
        elif name == "headers":
            pairs = [(one["key"], *_told(one["value"])) for one in value or ()]
            found["headers"] = [
                {"key": key, "value": text, "value_base64": as_base64}
                for key, text, as_base64 in pairs
            ]
        elif name == "timestamp":
            found["timestamp_ms"] = None if value is None else (value - EPOCH) // MILLISECOND
        else:
            found[name] = value
    return found


def _print_letter(letter: Letter, origin: Origin, ahead: int | None) -> None:
    raw = b"(no value)" if letter.raw is None else letter.raw
    shown = raw[:RAW_SHOWN_MAX].decode("utf-8", "backslashreplace")
    left = len(raw) - RAW_SHOWN_MAX
    more = f"… and {left:,} bytes more" if left > 0 else ""
    least = "" if origin.arrival_ms is not None else "more than "
    by = "" if ahead is None else f" by {least}{shown_ms(ahead)}"
    where = f"  {origin.path}:{letter.line}" if origin.path else ""
    if letter.beside.get("key") is not None:
        where += f"  key {letter.beside['key'][:KEY_SHOWN_MAX].decode('utf-8', 'backslashreplace')}"
    line = Text.assemble(
        (f"{console.printable(letter.reason)}{by}  ", "yellow"),
        (console.printable(f"{letter.position}{where}"), "dim"),
        f"  {console.printable(shown)}{more}",
    )
    out = console.results()
    if out.is_terminal:
        out.print(line)
    else:
        typer.echo(line.plain)
