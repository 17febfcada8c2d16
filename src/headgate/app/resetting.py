"""Resetting: a stream begins anew in a new root; what it landed before stays as it is, and proved.

    noted ──▶ each checkpoint ends ──▶ the old life is retired ──▶ a seat in the new root ──▶ begun

Its effects, in order: what a crash just after each leaves, and what a node of the old life does at
most that was paused before it and wakes up when all is done. The same act again does what is left.

    effect                          a crash leaves                           woken late
    a line in the ledger            a line about something that was begun    nothing
    a checkpoint: ended             that shard reads no more, for good       its intent is refused
    the old stream, tasks, seats    it is retired: no hour waits for it      starts no round
    the task of the old root        no node is missed for its flags          nothing
    a seat in the new root          the new root waits for its first hour    the same
    the new stream's document       **begun**: nodes land it from its start  has another name

To all but the settings and its folders the new life is a stream of another name, `orders~2`: its
checkpoints, commit records, certificates and dead letters are named so, and no name comes twice.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from shlex import quote

from headgate.ambient import Ambient
from headgate.app.acts import Acts, Person
from headgate.apply.table_document import table_key
from headgate.cluster.tasks import Task, closed_by_person, task_key
from headgate.commits.checkpoint import Checkpoint, Wish, checkpoint_key, ended_for_good
from headgate.commits.roots import RootDocument, root_key, root_name, roots_with
from headgate.commits.streams import StreamDocument, stream_key
from headgate.errors import Fenced, Halted, Invalid
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.landing import StreamSettings
from headgate.landing.kind import feed_name
from headgate.landing.names import LATE
from headgate.landing.stream_document import begin_stream
from headgate.periods import Period, life_name
from headgate.ready.kind import kind_name as flags_of
from headgate.settings import Settings
from headgate.status import read_status
from headgate.store import DocumentStore
from headgate.store.changes import change, create_if_absent, read


@dataclass(frozen=True, slots=True)
class Reset:
    """What a reset does, or would do."""

    stream: str  # the new life
    before: str  # the old one
    folder: str  # of the new one
    commits: tuple[int, ...]  # of the old one, by shard
    rows: int  # of the old one that lie in the lake
    until: Period | None  # hours of the old one before it have their flags; None: none has


class ResetActs:
    """For whoever has the store and the lake of an installation."""

    def __init__(self, store: DocumentStore, lake: Lake, ledger: Ledger, ambient: Ambient) -> None:
        self._store = store
        self._lake = lake
        self._ledger = ledger
        self._ambient = ambient
        self._acts = Acts(store, lake, ledger, ambient)

    def look(self, stream: StreamSettings, into: str, settings: Settings) -> Reset | None:
        """What a reset would do; None: it was done. Nothing is changed. Raises Invalid (settings
        and command do not agree, the new root is not empty), Halted (a node holds a shard, a commit
        is not finished), Unavailable, Corrupt."""
        _check_agreed(stream, into)
        if read(self._store, stream_key(stream.name), StreamDocument) is not None:
            return None
        before = life_name(stream.word, stream.life - 1)
        document = read(self._store, stream_key(before), StreamDocument)
        if document is None:
            raise Invalid(
                f"stream {stream.word}: no node has ever read its life {stream.life - 1} here, so "
                "there is nothing to begin anew; next: take a folder from former_folders, then "
                "headgate config check"
            )
        old = _seated(before, settings)
        self._check_new_root(stream, old)
        self._check_old_root(before, settings)
        self._check_removals(old)
        self._check_tables(stream, settings)
        checkpoints = [self._checkpoint(before, shard) for shard in range(document.value.shards)]
        self._check_free(before, checkpoints)
        seats = [one.value.streams[name] for name in old for one in roots_with(self._store, name)]
        frontiers = [one.frontier_ms for one in seats if one.frontier_ms is not None]
        return Reset(
            stream.name,
            before,
            stream.folder.text,
            tuple(one.number for one in checkpoints),
            sum(one.rows for one in checkpoints),
            Period.hour_of(max(frontiers)) if frontiers else None,
        )

    def reset(
        self, stream: StreamSettings, into: str, settings: Settings, person: Person
    ) -> Reset | None:
        """The same, and does it. Raises as `look`, and OutcomeUnknown."""
        found = self.look(stream, into, settings)
        if found is None:
            return None
        words = f"begins anew as {stream.name} in {into}"
        self._ledger.note(
            "stream.reset",
            found.before,
            f"{words}; {person.reason}",
            id=f"reset {stream.name}",
            who=person.who,
        )
        wish = Wish(person.reason, person.who, self._ambient.wall_ns() // 1_000_000)
        for shard in range(len(found.commits)):
            self._end(found.before, shard, wish)
        why = Person(person.who, f"it {words}: {person.reason}")
        for name in _seated(found.before, settings):
            if name == found.before or next(roots_with(self._store, name), None) is not None:
                self._acts.retire(name, why, settings.streams)
        self._close_old_root(found.before, settings)
        begin_stream(self._store, stream)
        return found

    def _end(self, stream: str, shard: int, wish: Wish) -> None:
        """By a write of the very document that every intent is a write of."""
        name = checkpoint_key(stream, shard)
        create_if_absent(self._store, name, Checkpoint())
        change(self._store, name, Checkpoint, lambda found: ended_for_good(name, found, wish))

    def _checkpoint(self, stream: str, shard: int) -> Checkpoint:
        found = read(self._store, checkpoint_key(stream, shard), Checkpoint)
        return Checkpoint() if found is None else found.value

    def _check_free(self, before: str, checkpoints: Iterable[Checkpoint]) -> None:
        """Raises Halted: somebody works on it, or would have to."""
        tasks = {task.name: task for task in read_status(self._store, self._ambient).tasks}
        wish = Wish("", "", 0)
        for shard, checkpoint in enumerate(checkpoints):
            ended_for_good(f"{before}/{shard}", checkpoint, wish)
            task = tasks.get(f"{feed_name(before)}/{shard}")
            if task is not None and task.condition == "in progress":
                node = task.node or "?"
                raise Halted(
                    f"{before}/{shard}: node {node} holds it, with the settings as they were; "
                    "nothing was changed; next: restart that node with the new settings, or stop "
                    f"it with headgate node drain {quote(node)}; then the same command again"
                )

    def _check_new_root(self, stream: StreamSettings, before: Iterable[str]) -> None:
        """Raises Invalid: something is there."""
        root = root_name(stream.folder)
        found = read(self._store, root_key(root), RootDocument)
        seats = {} if found is None else found.value.streams
        # A node that knew the new folder too early gave the old life a seat there, without a flag.
        idle = {name for name, one in seats.items() if one.first_ms is None}
        ours = (*before, *(one.name for one in stream.flagged))
        others = sorted({*seats} - idle.intersection(ours))
        if others:
            raise Invalid(
                f"root {root} is not new: {', '.join(others)} has flags or a seat there; nothing "
                "was changed; next: give the stream another folder in the settings, one that "
                "starts with a name of its own"
            )
        top = stream.folder.text.partition("/")[0]
        for folder in (top, f"{LATE}/{top}"):
            if self._lake.list(folder, limit=1).entries:
                raise Invalid(
                    f"folder {folder} of the lake is not empty, and a stream begins anew where "
                    "nothing is; nothing was changed; next: give the stream another folder in the "
                    "settings, one that starts with a name of its own"
                )

    def _check_old_root(self, before: str, settings: Settings) -> None:
        """Raises Halted: flags are half raised, and nobody would raise the rest."""
        root = _lonely_root(before, settings)
        found = None if root is None else read(self._store, root_key(root), RootDocument)
        if found is not None and found.value.journal is not None:
            raise Halted(
                f"flags in root {root} are being raised or withdrawn, and nobody would finish "
                "that; nothing was changed; next: headgate run --until idle with the settings as "
                "they were, then the same command again"
            )

    def _check_removals(self, old: Iterable[str]) -> None:
        """Raises Halted: files are to go, and nobody would know where they lie."""
        for name in old:
            for kept in roots_with(self._store, name):
                for one in kept.value.removals:
                    if one.stream == name:
                        raise Halted(
                            f"{one.wish.who} asked that hours of {name} are {one.how}, and that is "
                            "not done; nobody would do it afterwards; nothing was changed; next: "
                            "headgate run --until idle with the settings as they were, then the "
                            "same command again"
                        )

    def _close_old_root(self, before: str, settings: Settings) -> None:
        """Nobody needs a node for its flags any more, if no other stream has them there."""
        root = _lonely_root(before, settings)
        key = None if root is None else task_key(flags_of(root), 0)
        if key is not None and read(self._store, key, Task) is not None:
            with suppress(Fenced):  # removed meanwhile
                change(self._store, key, Task, closed_by_person)

    def _check_tables(self, stream: StreamSettings, settings: Settings) -> None:
        """Raises Invalid: a table has hours of the old life, and would get some of them again."""
        names = {one.name for one in stream.flagged}
        for table in settings.tables.values():
            if table.stream in names and self._store.get(table_key(table.name)) is not None:
                raise Invalid(
                    f"table {table.name} took hours of {stream.word} as it was; it would mix them "
                    "with those of the new beginning; nothing was changed; next: give the table "
                    "another name and path in the settings, then the same command again"
                )


def _seated(before: str, settings: Settings) -> tuple[str, ...]:
    """The old life, and the outputs that it may have had."""
    old = settings.past.get(before)
    return (before, *(one.name for one in (() if old is None else old.flagged) if one.of))


def _lonely_root(before: str, settings: Settings) -> str | None:
    """The root of the old life; None: it is not known, or streams of the settings have theirs
    there."""
    old = settings.past.get(before)
    root = None if old is None else root_name(old.folder)
    return None if root in {root_name(one.folder) for one in settings.streams.values()} else root


def _check_agreed(stream: StreamSettings, into: str) -> None:
    """Raises Invalid: a node would not do what the command says."""
    word, folder = stream.word, stream.folder.text
    if into == folder and stream.life > 1:
        return
    if into == folder:
        raise Invalid(
            f"stream {word} lands in {folder} as it is; nothing was changed; next: in the "
            "settings, add that to its former_folders and write a new folder, then headgate "
            f'stream reset {quote(word)} --into FOLDER --reason "…"'
        )
    raise Invalid(
        f"the settings say folder: {folder} for stream {word}, and the command {into}; nothing was "
        f"changed; next: in the settings, add {folder} to its former_folders and write folder: "
        f"{into}, then the same command again"
    )
