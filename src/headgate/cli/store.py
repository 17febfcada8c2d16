"""Store commands: look at documents, and make a lost store anew. Nothing else here writes one."""

import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headgate.cli import console
from headgate.cli.places import ClusterNamespace, ConfigPath, Here, here_of
from headgate.errors import Invalid
from headgate.store import PAGE_DOCUMENTS_MAX, Damaged, Document, DocumentStore, JsonObject
from headgate.store.codec import encode
from headgate.store.names import parts
from headgate.store.pages import pages
from headgate.store.probe import remarks
from headgate.store.registry import open_store

VERSION_LETTERS = 12
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

app = typer.Typer(no_args_is_help=True)

UrlIfAny = Annotated[
    str,
    typer.Argument(
        metavar="[URL]", help="file:PATH, zk://HOSTS/CHROOT or es://HOSTS/INDEX; or the settings'."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="For programs: one JSON object a line.")]


@app.callback()
def group() -> None:
    """Look at the documents of a store, or make a lost one anew from the lake.

    A store is named by a URL:

    * file:./state              a folder, for several processes on one machine
    * zk://h1:2181,h2/chroot    ZooKeeper
    * es://h1:9200,h2/index     OpenSearch or Elasticsearch
    * memory:name               inside one process, for tests

    Without a URL it is the store of the settings, `--config PATH` or ./headgate.yaml.

    Options follow as ?name=value&… A secret is named, never written: password=${env:NAME}
    """


@app.command("ls")
def list_documents(
    url: UrlIfAny = "",
    prefix: Annotated[
        str, typer.Argument(metavar="[PREFIX]", help="Only below this, in whole parts.")
    ] = "",
    config: ConfigPath = None,
    namespace: ClusterNamespace = "",
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most so many documents.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List documents: bytes, version, key.

    Exit code 4: all were listed, and some of them are damaged.
    """
    here, (prefix, *others) = _here(config, namespace, url, prefix)
    if any(others):
        raise Invalid(f"{url}: is no URL of a store; next: headgate store ls --help")
    url, namespace = here.url, here.namespace
    out = console.results()
    listed = damaged = 0
    first_damaged = ""
    with closing(open_store(url, namespace)) as store:
        for entry in islice(_entries(store, prefix, limit or PAGE_DOCUMENTS_MAX), limit):
            listed += 1
            if isinstance(entry, Damaged):
                damaged += 1
                first_damaged = first_damaged or entry.key
            if as_json:
                typer.echo(console.json_line(_as_json(entry)))
            elif out.is_terminal:
                out.print(_as_text(entry))
            else:  # the same without styles, and much faster
                typer.echo(_as_text(entry).plain)
    if not listed and not as_json:
        _say_that_nothing_is_there(url, prefix, namespace)
    if damaged and not as_json:
        look = command("get", url, namespace, first_damaged)
        console.talk().print(f"{damaged:,} damaged; next: {look}", style="red")
    raise typer.Exit(4 if damaged else 0)


def _say_that_nothing_is_there(url: str, prefix: str, namespace: str) -> None:
    talk = console.talk()
    below = f" below {prefix}" if prefix else ""
    words = f"no documents{below} in namespace {namespace}"
    talk.print(console.printable(words), style="dim")
    for remark in remarks(url):  # a folder that does not exist yet may be a slip of the pen
        talk.print(console.printable(remark.words), style="yellow")


@app.command("get")
def get_document(
    url: UrlIfAny = "",
    key: Annotated[str, typer.Argument(metavar="KEY", help="As `store ls` shows it.")] = "",
    config: ConfigPath = None,
    namespace: ClusterNamespace = "",
    as_json: Json = False,
) -> None:
    """Show one document; its version goes to stderr."""
    here, (key, *others) = _here(config, namespace, url, key)
    if not key or any(others):
        raise Invalid("a document has one KEY; next: headgate store get --help")
    url, namespace = here.url, here.namespace
    with closing(open_store(url, namespace)) as store:
        found = store.get(key)
    if found is None:
        words = f"there is no document {key} in namespace {namespace}"
        console.talk().print(f"{console.printable(words)}; next: {command('ls', url, namespace)}")
        raise typer.Exit(1)
    if as_json:
        value: JsonObject = {"key": key, "version": found.version, "body": found.body}
        typer.echo(console.json_line(value))
        return
    console.talk().print(f"version {console.printable(found.version)}", style="dim")
    out = console.results()
    if out.is_terminal:
        out.print_json(console.pretty(found.body), indent=2)
    else:
        typer.echo(console.pretty(found.body))


def _here(
    config: Path | None, namespace: str, first: str, second: str
) -> tuple[Here, tuple[str, ...]]:
    """Which store, and what else was said. A key's first part never looks like a URL."""
    if URL.match(first):
        return here_of(first, namespace, None), (second,)
    return here_of("", namespace, config), (first, second)


def _entries(store: DocumentStore, prefix: str, limit: int) -> Iterator[Document | Damaged]:
    for page in pages(store, prefix, limit=min(limit, PAGE_DOCUMENTS_MAX)):
        entries: list[Document | Damaged] = [*page.documents, *page.damaged]
        yield from sorted(entries, key=lambda entry: parts(entry.key))


def _as_json(entry: Document | Damaged) -> JsonObject:
    if isinstance(entry, Damaged):
        damage: JsonObject = {"place": entry.place, "reason": entry.reason}
        return {"key": entry.key, "size_bytes": None, "version": None, "damaged": damage}
    size_bytes = len(encode(entry.key, entry.body))
    return {
        "key": entry.key,
        "size_bytes": size_bytes,
        "version": entry.version,
        "damaged": None,
    }


def _as_text(entry: Document | Damaged) -> Text:
    key = console.printable(entry.key)
    if isinstance(entry, Damaged):
        return Text.assemble((f"{'damaged':>9}  {'':{VERSION_LETTERS}}  ", "bold red"), key)
    size = f"{len(encode(entry.key, entry.body)):>9,}"
    version = console.printable(entry.version)
    if len(version) > VERSION_LETTERS:
        version = version[: VERSION_LETTERS - 1] + "…"
    return Text.assemble((size, "cyan"), "  ", (f"{version:{VERSION_LETTERS}}", "dim"), "  ", key)


def command(verb: str, url: str, namespace: str, *words: str) -> str:
    """A command of this group, for a person to copy into a shell."""
    named = [] if namespace == "default" else ["--namespace", namespace]
    if any(word.startswith("-") for word in words):  # a key like this looks like an option
        arguments = [*named, "--", url, *words]
    else:
        arguments = [url, *words, *named]
    return console.printable(shlex.join(["headgate", "store", verb, *arguments]))
