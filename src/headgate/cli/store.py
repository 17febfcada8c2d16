"""Store commands: look at documents. Nothing here writes one."""

import shlex
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Annotated

import typer
from rich.text import Text

from headgate.cli import console
from headgate.store import PAGE_DOCUMENTS_MAX, Damaged, Document, DocumentStore, JsonObject
from headgate.store.codec import encode
from headgate.store.names import parts
from headgate.store.pages import pages
from headgate.store.registry import open_store

VERSION_LETTERS = 12

app = typer.Typer(no_args_is_help=True)

Url = Annotated[
    str, typer.Argument(metavar="URL", help="file:PATH, zk://HOSTS/CHROOT or es://HOSTS/INDEX")
]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Whose documents.")]
Json = Annotated[bool, typer.Option("--json", help="For programs: one JSON object a line.")]


@app.callback()
def group() -> None:
    """Look at the documents of a store.

    A store is named by a URL:

    * file:./state              a folder, for several processes on one machine
    * zk://h1:2181,h2/chroot    ZooKeeper
    * es://h1:9200,h2/index     OpenSearch or Elasticsearch
    * memory:name               inside one process, for tests

    Options follow as ?name=value&… A secret is named, never written: password=${env:NAME}
    """


@app.command("ls")
def list_documents(
    url: Url,
    prefix: Annotated[
        str, typer.Argument(metavar="PREFIX", help="Only below this, in whole parts.")
    ] = "",
    namespace: Namespace = "default",
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most so many documents.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List documents: bytes, version, key."""
    out = console.results()
    damaged = listed = 0
    with closing(open_store(url, namespace)) as store:
        for entry in islice(_entries(store, prefix, limit or PAGE_DOCUMENTS_MAX), limit):
            listed += 1
            damaged += isinstance(entry, Damaged)
            if as_json:
                typer.echo(console.json_line(_as_json(entry)))
            elif out.is_terminal:
                out.print(_as_text(entry))
            else:  # the same without styles, and much faster
                typer.echo(_as_text(entry).plain)
    if as_json:
        return
    if not listed:
        below = f" below {prefix}" if prefix else ""
        console.talk().print(f"no documents{below} in namespace {namespace}", style="dim")
    if damaged:
        console.talk().print(
            f"{damaged} damaged; next: headgate store get {shlex.quote(url)} KEY says where",
            style="red",
        )


@app.command("get")
def get_document(
    url: Url,
    key: Annotated[str, typer.Argument(metavar="KEY", help="As `store ls` shows it.")],
    namespace: Namespace = "default",
    as_json: Json = False,
) -> None:
    """Show one document; its version goes to stderr."""
    with closing(open_store(url, namespace)) as store:
        found = store.get(key)
    if found is None:
        console.talk().print(
            f"there is no document {console.printable(key)} in namespace {namespace}; "
            f"next: headgate store ls {shlex.quote(url)}{namespace_option(namespace)}"
        )
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


def namespace_option(namespace: str) -> str:
    return "" if namespace == "default" else f" --namespace {shlex.quote(namespace)}"
