"""Documents: checkpoints, and the documents of streams, roots and tables, each for itself."""

from collections.abc import Collection, Iterator

from headgate.apply.table_document import TableDocument, table_key
from headgate.audit import Finding
from headgate.audit.advice import restore
from headgate.audit.steady import AGAIN
from headgate.backlog.needs import TABLES
from headgate.commits.checkpoint import CHECKPOINTS, Checkpoint, checkpoint_key
from headgate.commits.record import COMMITS
from headgate.commits.roots import ROOTS, RootDocument
from headgate.commits.streams import STREAMS, StreamDocument, stream_key
from headgate.errors import Corrupt
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import name_of
from headgate.periods import escape_name
from headgate.store import Damaged, Document, DocumentStore
from headgate.store.changes import read
from headgate.store.codec import parse
from headgate.store.names import parts
from headgate.store.pages import pages


def check_stream_documents(store: DocumentStore, only: Collection[str]) -> Iterator[Finding]:
    """`only`: of these streams; none: of all. Raises Unavailable."""
    for entry in _entries(store, STREAMS):
        stream = _part(entry.key, 1)
        if not only or stream in only:
            yield from _damage(entry, StreamDocument, stream, None)


def check_checkpoints(store: DocumentStore, only: Collection[str]) -> Iterator[Finding]:
    judged: dict[str, StreamDocument | Corrupt | None] = {}
    for entry in _entries(store, CHECKPOINTS):
        stream = _part(entry.key, 1)
        if only and stream not in only:
            continue
        shard = _shard(entry.key)
        if shard is None:
            yield _finding(
                entry.key, stream, None, "is no key of a checkpoint", "nobody reads or writes it"
            )
            continue
        yield from _damage(entry, Checkpoint, stream, shard)
        if stream not in judged:  # after its checkpoint: it is made before
            judged[stream] = _stream_document(store, stream)
        yield from _is_of_a_stream(entry.key, stream, shard, judged[stream])


def check_root_documents(store: DocumentStore, only: Collection[str]) -> Iterator[Finding]:
    """`only`: with these keys; none: all."""
    for entry in _entries(store, ROOTS):
        if not only or entry.key in only:
            yield from _damage(entry, RootDocument, "", None)


def check_table_documents(store: DocumentStore, only: Collection[str]) -> Iterator[Finding]:
    for entry in _entries(store, TABLES):
        if not only or entry.key in only:
            yield from _damage(entry, TableDocument, "", None)


def remark_tables(store: DocumentStore, known: Collection[str]) -> Iterator[Finding]:
    """Of tables that the settings do not have."""
    keys = {table_key(name) for name in known}
    for entry in _entries(store, TABLES):
        if entry.key not in keys:
            words = "is not in the settings"
            meaning = "where its rows lie is not known, and nothing of it was audited"
            yield Finding(None, "", None, entry.key, words, meaning, "headgate config check")


def remark_streams(store: DocumentStore, known: Collection[str]) -> Iterator[Finding]:
    """Of streams that the settings do not have: nothing of them can be audited."""
    for entry in _entries(store, STREAMS):
        stream = _part(entry.key, 1)
        if stream not in known:
            yield Finding(
                None,
                stream,
                None,
                entry.key,
                "is not in the settings",
                "its folders are not known, and nothing of it was audited",
                "headgate config check",
            )


def shards_of(store: DocumentStore, lake: Lake, stream: str) -> list[int]:
    """Every shard that has a checkpoint or commit records. Raises Unavailable."""
    prefix = stream_key(stream).replace(STREAMS, CHECKPOINTS, 1)
    keys = [entry.key for entry in _entries(store, prefix)]
    found = {shard for shard in map(_shard, keys) if shard is not None}
    for entry in entries_of(lake, f"{COMMITS}/{escape_name(stream)}"):
        name = name_of(entry.path)
        if entry.is_folder and name.isascii() and name.isdigit() and str(int(name)) == name:
            found.add(int(name))
    return sorted(found)


def _entries(store: DocumentStore, prefix: str) -> Iterator[Document | Damaged]:
    for page in pages(store, prefix):
        yield from page.documents
        yield from page.damaged


def _damage(
    entry: Document | Damaged,
    kind: type[Checkpoint | StreamDocument | RootDocument | TableDocument],
    stream: str,
    shard: int | None,
) -> Iterator[Finding]:
    words = ""
    if isinstance(entry, Damaged):
        words = f"is damaged: {entry.reason} ({entry.place})"
    else:
        try:
            parse(entry, kind)
        except Corrupt as error:
            words = f"cannot be read: {error}"
    if words:
        yield _finding(entry.key, stream, shard, words, "what depends on it stands still")


def _is_of_a_stream(
    key: str, stream: str, shard: int, document: StreamDocument | Corrupt | None
) -> Iterator[Finding]:
    if document is None:
        words = f"there is no stream document {stream_key(stream)}"
        meaning = "how many shards the stream has is not known; a second number would mix them"
        yield _finding(key, stream, shard, words, meaning)
    elif isinstance(document, StreamDocument) and shard >= document.shards:
        words = f"the stream has {document.shards} shards, and this is number {shard}"
        yield _finding(key, stream, shard, words, "source partitions may be read by two shards")


def _stream_document(store: DocumentStore, stream: str) -> StreamDocument | Corrupt | None:
    try:
        kept = read(store, stream_key(stream), StreamDocument)
    except Corrupt as error:
        return error
    return None if kept is None else kept.value


def _finding(key: str, stream: str, shard: int | None, words: str, meaning: str) -> Finding:
    next_ = restore("it", stream) if stream else f"put it back from a backup, then {AGAIN}"
    return Finding(None, stream, shard, key, words, meaning, next_)


def _part(key: str, place: int) -> str:
    found = parts(key)
    return found[place] if place < len(found) else ""


def _shard(key: str) -> int | None:
    """None: no checkpoint has such a key."""
    text = _part(key, 2)
    if not (text.isascii() and text.isdigit()):
        return None
    return int(text) if checkpoint_key(_part(key, 1), int(text)) == key else None
