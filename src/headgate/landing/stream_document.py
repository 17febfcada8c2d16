"""Stream document: how landing opens it, by what the settings say.

The number of shards and the first hour are fixed once: every folder and checkpoint rests on them. A
stream has its seat in its root before it has its document: no hour of it can then begin where the
root's flags already are.
"""

import hashlib
from shlex import quote

from headgate.commits.roots import RootDocument, check_end, join_root, root_key, root_name
from headgate.commits.streams import StreamDocument, stream_key, with_first_hour
from headgate.errors import Invalid, Unavailable
from headgate.landing import StreamSettings
from headgate.store import DocumentStore
from headgate.store.changes import change, create_if_absent, read


def shard_of(partition: str, shards: int) -> int:
    """The bucket that a source partition's name hashes to."""
    return int.from_bytes(hashlib.sha256(partition.encode()).digest()[:8], "big") % shards


def open_stream(store: DocumentStore, settings: StreamSettings) -> StreamDocument:
    """Raises Invalid if the settings contradict what is fixed, Unavailable (also: a person has not
    let it begin anew yet), OutcomeUnknown, Corrupt."""
    name = stream_key(settings.name)
    found = read(store, name, StreamDocument)
    if found is None:
        if settings.life > 1:
            raise Unavailable(  # until a person says so: then it goes on by itself
                f"stream {settings.word} has {settings.life - 1} former folders in the settings, "
                f"and nobody let it begin anew so often; nothing is read; next: {anew(settings)}"
            )
        begin_stream(store, settings)
        found = read(store, name, StreamDocument)
    if found is None:
        raise Unavailable(f"{name}: was deleted just now; it is made again at the next try")
    if found.value.first_hour_ms is None and settings.first_hour_ms is not None:
        # The settings may say it later: a stream without records holds nobody back then.
        first_ms = settings.first_hour_ms
        found = change(store, name, StreamDocument, lambda one: with_first_hour(one, first_ms))
    if found.value.shards != settings.shards:
        raise Invalid(
            f"stream {settings.name} has {found.value.shards} shards since it began, and the "
            f"settings say {settings.shards}; the number of shards of a live stream is fixed; "
            f"next: write shards: {found.value.shards}, or give the stream another name"
        )
    if found.value.has_outputs != bool(settings.outputs):
        began, say = ("with", "none") if found.value.has_outputs else ("without", "some")
        raise Invalid(
            f"stream {settings.word} began {began} outputs, and the settings have {say}: its hours "
            "would change their names; next: write them as before, or begin it anew in another "
            f'folder: headgate stream reset {quote(settings.word)} --into FOLDER --reason "…"'
        )
    return found.value


def begin_stream(store: DocumentStore, settings: StreamSettings) -> None:
    """Its seat, or those of its outputs, then its document; again is harmless. Raises Invalid (a
    name is another stream's), Unavailable, OutcomeUnknown."""
    root, outputs = root_name(settings.folder), bool(settings.outputs)
    _check_new(store, root, settings)
    floors = [join_root(store, root, one.name) for one in settings.flagged]
    floor_ms = max((one for one in floors if one is not None), default=None)
    new = StreamDocument(settings.shards, floor_ms=floor_ms, has_outputs=outputs)
    first_ms = settings.first_hour_ms
    create_if_absent(
        store,
        stream_key(settings.name),
        new if first_ms is None else with_first_hour(new, first_ms),
    )


def _check_new(store: DocumentStore, root: str, settings: StreamSettings) -> None:
    """Raises Invalid: a seat has its first hour already, by another stream."""
    found = read(store, root_key(root), RootDocument)
    seats = {} if found is None else found.value.streams
    for one in settings.flagged:
        if one.name in seats and seats[one.name].first_ms is not None:
            raise Invalid(_mixed(settings, one.name))


def _check_output(store: DocumentStore, settings: StreamSettings, name: str) -> None:
    """Raises Invalid: its hours are those of a stream that landed by itself."""
    found = read(store, stream_key(name), StreamDocument)
    is_begun = found is not None and found.value.first_hour_ms is not None
    if found is not None and is_begun and not found.value.has_outputs:
        raise Invalid(_mixed(settings, name))


def _mixed(settings: StreamSettings, name: str) -> str:
    return (
        f"stream {settings.word}: hours of {name} were landed by another stream; files of both "
        "would get the same names, and some be in no certificate; nothing is read; next: give it "
        "another name in the settings"
    )


def anew(settings: StreamSettings) -> str:
    """The command by which a person lets it begin anew."""
    into = quote(settings.folder.text)
    return f'headgate stream reset {quote(settings.word)} --into {into} --reason "…"'


def check_seat(store: DocumentStore, settings: StreamSettings) -> None:
    """It has its seat, and each of its outputs: one that came later takes it before anything lands
    under its name, else a node whose settings lack it would flag hours without it. Raises Invalid:
    the stream is over for good, and the settings say that it goes on, or a name is another
    stream's; Unavailable, OutcomeUnknown."""
    root = root_name(settings.folder)
    found = read(store, root_key(root), RootDocument)
    for one in settings.flagged:
        if one.of:
            _check_output(store, settings, one.name)
        if found is None or one.name not in found.value.streams:
            join_root(store, root, one.name)
        else:
            check_end(found.value, one.name, settings.end_ms)


def fix_first_hour(store: DocumentStore, stream: str, hour_ms: int) -> int:
    """Whoever is first decides. Raises Unavailable, OutcomeUnknown."""
    kept = change(
        store, stream_key(stream), StreamDocument, lambda found: with_first_hour(found, hour_ms)
    )
    fixed = kept.value.first_hour_ms
    return hour_ms if fixed is None else fixed
