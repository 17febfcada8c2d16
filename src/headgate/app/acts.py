"""Acts: what a person asks of streams and shards. Each is in the ledger before it is done."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headgate.ambient import Ambient
from headgate.app.nodes import release_task
from headgate.cluster.tasks import Task
from headgate.commits.checkpoint import Checkpoint, Wish, add_wish, checkpoint_key
from headgate.commits.record import Record
from headgate.commits.replay import read_record
from headgate.errors import Conflict, Fenced, Halted, Invalid
from headgate.lake import Entry, Lake
from headgate.lake.ledger import Ledger
from headgate.landing.kind import feed_name
from headgate.landing.names import DEAD, REDRIVE
from headgate.landing.stream_document import Pause, StreamDocument, stream_key
from headgate.periods import escape_name
from headgate.store import DocumentStore
from headgate.store.changes import change, read

DEPTH_MAX = 4  # of folders below the dead letters of a stream


@dataclass(frozen=True, slots=True)
class Person:
    """Who asks, and why."""

    who: str
    reason: str


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

    def release(self, stream: str, shard: int, person: Person) -> Task | None:
        """A shard that was set aside goes on. What its task was before; None: there is none."""
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
            raise Halted(f"{stream}/{shard}: no journal stands, so there is nothing to restage")
        self._note("journal.restage", f"{stream}/{shard}/{found.value.journal.number}", person)
        wish = Wish(person.reason, person.who, self._now_ms())
        key = checkpoint_key(stream, shard)
        after = change(self._store, key, Checkpoint, lambda value: add_wish(value, wish))
        self.release(stream, shard, person)
        return after.value

    def journal(self, stream: str, shard: int) -> tuple[Checkpoint, Record | None] | None:
        """The checkpoint, and the record of its standing journal or of its last commit."""
        found = read(self._store, checkpoint_key(stream, shard), Checkpoint)
        if found is None:
            return None
        return found.value, read_record(self._lake, stream, shard, found.value.number)

    def dead_letters(self, stream: str) -> Iterator[Entry]:
        """Files of dead letters that were not driven in again, in order."""
        yield from self._files(f"{DEAD}/{escape_name(stream)}", DEPTH_MAX)

    def redrive(self, stream: str, path: str, person: Person) -> bool:
        """One file of dead letters waits to be driven in; False: it is not there any more. Its
        move is one effect: done twice, by several at once, it ends the same."""
        prefix = f"{DEAD}/{escape_name(stream)}/"
        if not path.startswith(prefix):
            raise Invalid(
                f"{path}: is no dead letter of {stream}; next: headgate deadletter ls {stream}"
            )
        facts = self._lake.facts(path)
        if facts is None:
            return False
        target = f"{REDRIVE}/{escape_name(stream)}/{path.removeprefix(prefix)}"
        self._note("deadletter.redriven", path, person)
        try:
            self._lake.publish(path, target)
        except Conflict as error:
            raise Halted(
                f"{target}: an earlier letter of this name still waits to be driven in; "
                "next: headgate status, and again once it has landed"
            ) from error
        self._lake.settle([path.rpartition("/")[0], target.rpartition("/")[0]])
        return True

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
