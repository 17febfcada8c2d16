"""Acts: what a person asks of streams and shards. Each is in the ledger before it is done."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from shlex import quote

from headgate.ambient import Ambient
from headgate.app.nodes import release_task
from headgate.cluster.tasks import Task, closed_by_person, task_key
from headgate.commits.checkpoint import Checkpoint, Wish, add_wish, checkpoint_key
from headgate.commits.record import Record, commit_of, from_bytes, record_path
from headgate.commits.replay import read_record
from headgate.commits.roots import RootDocument, retired, root_key, root_name, roots_with
from headgate.commits.steps import PublishFile, State
from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.errors import Corrupt, Fenced, Halted, Invalid
from headgate.lake import Entry, FileFacts, Lake
from headgate.lake.ledger import Ledger
from headgate.lake.paths import name_of
from headgate.lake.relocation import Relocation, relocate
from headgate.landing import StreamSettings
from headgate.landing.kind import feed_name
from headgate.landing.names import DEAD, LATE_LETTERS, REDRIVE, REDRIVEN
from headgate.periods import escape_name
from headgate.status import read_status
from headgate.store import DocumentStore
from headgate.store.changes import change, read

WORDS = {State.STAGED: "staged", State.HALF: "published", State.DONE: "done"}
DEPTH_MAX = 4  # of folders below the dead letters of a stream


@dataclass(frozen=True, slots=True)
class Person:
    """Who asks, and why."""

    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class StepState:
    """How far one step of a standing commit is."""

    kind: str  # record, or the kind of file
    path: str  # published
    size_bytes: int
    rows: int
    state: str  # staged, published, done, missing, another file has its name
    trouble: str  # "": none; else why a person must decide


class Acts:
    """For whoever has the store and the lake of an installation."""

    def __init__(self, store: DocumentStore, lake: Lake, ledger: Ledger, ambient: Ambient) -> None:
        self._store = store
        self._lake = lake
        self._ledger = ledger
        self._ambient = ambient

    def pause(self, stream: str, person: Person) -> bool:
        """No new round starts until it is resumed; whether anything changed. Raises Invalid (no
        such stream), Unavailable, OutcomeUnknown."""
        pause = Pause(person.reason, person.who, self._now_ms())
        return self._change_stream("stream.paused", stream, person, pause)

    def resume(self, stream: str, person: Person) -> bool:
        return self._change_stream("stream.resumed", stream, person, None)

    def retire(
        self, stream: str, person: Person, known: Mapping[str, StreamSettings]
    ) -> dict[str, int] | None:
        """It is over for good: nothing more of it is read, and no hour from its frontier on waits
        for it. By root, where its hours end; None: it was retired already. `known`: the settings.

        Its own document comes first: whoever still has it in its settings starts no round then.
        A crash in between is mended by the same act again. Raises Invalid, Unavailable,
        OutcomeUnknown.
        """
        outputs = {face.name: face for one in known.values() for face in one.flagged}
        own = known.get(stream) or outputs.get(stream)
        seats = list(roots_with(self._store, stream))
        document = read(self._store, stream_key(stream), StreamDocument)
        if not seats and document is None:
            raise Invalid(
                f"stream {stream}: no node has ever read it here; next: headgate status shows "
                "those that there are"
            )
        is_going_on = own is not None and own.last_hour_ms is None
        if own is not None and is_going_on:  # it may have left a seat where its folder was before
            seats = [one for one in seats if one.key != root_key(root_name(own.folder))]
            if not seats:
                raise Invalid(
                    f"stream {stream} is in the settings, without an end: a node would go on with "
                    "it; next: take it out of the settings, or give it a last_hour, restart the "
                    "nodes, then the same command again"
                )
        due = [one for one in seats if one.value.streams[stream].retired is None]
        is_read = not is_going_on and document is not None and document.value.retired is None
        shards = 0 if is_going_on or document is None else document.value.shards
        free = self._free_tasks(stream, shards)
        if not due and not is_read and not free:
            return None
        self._note("stream.retired", stream, person)
        at_ms = self._now_ms()
        if document is not None and is_read:
            pause = Pause(person.reason, person.who, at_ms)
            change(
                self._store,
                document.key,
                StreamDocument,
                lambda value: value if value.retired else replace(value, retired=pause),
                document,
            )
        for key in free:
            with suppress(Fenced):  # removed meanwhile
                change(self._store, key, Task, closed_by_person)
        wish, ends = Wish(person.reason, person.who, at_ms), dict[str, int]()
        for one in due:
            after = change(
                self._store, one.key, RootDocument, lambda value: retired(value, stream, wish), one
            )
            ends[one.key] = after.value.streams[stream].last_ms or 0
        return ends

    def _free_tasks(self, stream: str, shards: int) -> list[str]:
        """Of its shards, those that no live node holds: nobody needs a node for them any more.
        Whoever holds one finishes its commit, and then rests. Raises Halted: a commit would never
        be finished."""
        tasks = {task.name: task for task in read_status(self._store, self._ambient).tasks}
        found: list[str] = []
        for shard in range(shards):
            task = tasks.get(f"{feed_name(stream)}/{shard}")
            if task is not None and task.condition == "in progress":
                continue
            kept = read(self._store, checkpoint_key(stream, shard), Checkpoint)
            if kept is not None and kept.value.journal is not None:
                raise Halted(
                    f"{stream}/{shard}: commit {kept.value.journal.number} is journaled and not "
                    "finished, and nobody would finish it; next: put the stream back into the "
                    "settings, headgate run --until idle, then retire it"
                )
            found += [] if task is None else [task.key]
        return found

    def release(self, stream: str, shard: int, person: Person) -> Task | None:
        """A shard that was set aside goes on. What its task was before; None: there is none."""
        found = read(self._store, task_key(feed_name(stream), shard), Task)
        if found is None or found.value.set_aside is None:
            return None if found is None else found.value  # nothing is decided
        self._note("shard.released", f"{stream}/{shard}", person)
        return release_task(
            self._store, f"{feed_name(stream)}/{shard}", person.reason, self._ambient
        )

    def restage(self, stream: str, shard: int, person: Person) -> Checkpoint:
        """The standing journal, whose files are gone, is to be staged again; the shard goes on.
        Raises Invalid (no such shard), Halted (no journal stands)."""
        found = read(self._store, checkpoint_key(stream, shard), Checkpoint)
        if found is None:
            raise Invalid(f"{stream}/{shard}: has no checkpoint; next: headgate status")
        if found.value.journal is None:
            raise Halted(
                f"{stream}/{shard}: no journal stands, so there is nothing to restage; "
                "next: headgate status"
            )
        self._note("journal.restage", f"{stream}/{shard}/{found.value.journal.number}", person)
        wish = Wish(person.reason, person.who, self._now_ms())
        key = checkpoint_key(stream, shard)
        after = change(self._store, key, Checkpoint, lambda value: add_wish(value, wish))
        self.release(stream, shard, person)
        return after.value

    def journal(self, stream: str, shard: int) -> tuple[Checkpoint, Record | None] | None:
        """The checkpoint, and the record of its standing journal or of its last commit; None
        instead of a record: it is gone. Raises Corrupt, Unavailable."""
        found = read(self._store, checkpoint_key(stream, shard), Checkpoint)
        if found is None:
            return None
        checkpoint = found.value
        record = read_record(self._lake, stream, shard, checkpoint.number)
        if record is None and checkpoint.journal is not None:
            staged = checkpoint.journal.record
            raw = self._lake.read(staged)
            record = None if raw is None else from_bytes(raw, staged)
        return checkpoint, record

    def steps(self, stream: str, checkpoint: Checkpoint, record: Record) -> Iterator[StepState]:
        """How far the standing journal's commit is, file by file; the record itself is first."""
        journal = checkpoint.journal
        if journal is None:
            return
        name = f"{stream}/{record.shard}"
        facts = FileFacts(journal.size_bytes, journal.checksum)
        published = record_path(stream, record.shard, journal.number)
        yield self._step("record", 0, PublishFile(name, journal.record, published, facts))
        for file in record.files:
            step = PublishFile(name, file.staged, file.published, file.facts)
            yield self._step(file.kind, file.rows, step)

    def dead_letters(self, stream: str) -> Iterator[Entry]:
        """Files of dead letters that were not driven in again, in order."""
        yield from self._files(f"{DEAD}/{escape_name(stream)}", DEPTH_MAX)

    def driven(self, stream: str) -> int:
        """Files of dead letters that were driven in, and are not read yet."""
        return sum(1 for _ in self._files(f"{REDRIVE}/{escape_name(stream)}", DEPTH_MAX))

    def redrive(self, stream: str, path: str, person: Person) -> bool:
        """One file of dead letters waits to be driven in; False: it is not there any more, or was
        driven in before, by a move that was cut in half. Done twice, by several at once, it ends
        the same."""
        prefix = f"{DEAD}/{escape_name(stream)}/"
        if not path.startswith(prefix):
            raise Invalid(
                f"{path}: is no dead letter of {stream}; next: headgate deadletter ls {stream}"
            )
        if f"/{LATE_LETTERS}/" in path.removeprefix(prefix):
            raise Halted(
                f"{path}: holds good records that came too late, and would be late again; they are "
                "left where they are; next: read them from there"
            )
        facts = self._lake.facts(path)
        if facts is None:
            return False
        self._check_finished(stream, path)
        below = f"{escape_name(stream)}/{path.removeprefix(prefix)}"
        target = f"{REDRIVE}/{below}"
        waiting = self._lake.facts(target)
        # After that look: what waited then and was put away since is there by now.
        if self._lake.facts(f"{REDRIVEN}/{below}") == facts:  # it was read: never twice
            self._lake.remove(path, facts)
            return False
        if waiting not in (None, facts):
            raise Halted(
                f"{target}: an earlier letter of this name still waits to be driven in; "
                "next: headgate status, and again once it has landed"
            )
        self._note("deadletter.redriven", path, person)
        relocate(self._lake, Relocation(path, target, facts))
        self._lake.settle([path.rpartition("/")[0], target.rpartition("/")[0]])
        return True

    def _check_finished(self, stream: str, path: str) -> None:
        """Raises Halted: whoever finishes its commit would find it lost, and read its range again
        at a person's word; its records would come twice."""
        shard, number = commit_of(name_of(path)) or (0, 0)
        found = read(self._store, checkpoint_key(stream, shard), Checkpoint)
        journal = None if found is None else found.value.journal
        if journal is not None and journal.number == number:
            raise Halted(
                f"{path}: its commit {stream}/{shard}/{number} is not finished; it stays where it "
                f"is; next: headgate status {quote(stream)}, and again once it is"
            )

    def _step(self, kind: str, rows: int, step: PublishFile) -> StepState:
        trouble = ""
        try:
            state = WORDS[step.state(self._lake)]
        except Halted as error:
            state, trouble = "missing", str(error)
        except Corrupt as error:
            state, trouble = "another file has its name", str(error)
        return StepState(kind, step.published, step.facts.size_bytes, rows, state, trouble)

    def _files(self, folder: str, depth: int) -> Iterator[Entry]:
        after: str | None = ""
        while after is not None:
            page = self._lake.list(folder, after=after)
            for entry in page.entries:
                if not entry.is_folder:
                    yield entry
                elif depth > 0:
                    yield from self._files(entry.path, depth - 1)
            after = page.next_after

    def _change_stream(self, what: str, stream: str, person: Person, pause: Pause | None) -> bool:
        found = read(self._store, stream_key(stream), StreamDocument)
        if found is None:
            raise Invalid(
                f"stream {stream}: no node has ever read it here; next: headgate status shows "
                "those that there are"
            )
        if (found.value.paused is None) == (pause is None):
            return False
        self._note(what, stream, person)
        try:
            change(
                self._store,
                found.key,
                StreamDocument,
                lambda value: replace(value, paused=pause),
                found,
            )
        except Fenced as error:
            raise Invalid(f"stream {stream}: is gone") from error
        return True

    def _note(self, what: str, subject: str, person: Person) -> None:
        self._ledger.note(what, subject, person.reason, id=self._ambient.new_id(), who=person.who)

    def _now_ms(self) -> int:
        return self._ambient.wall_ns() // 1_000_000
