"""Anglers: persons at the water. They decide what only a person may, and take away what they should
not.

    visit ── at its time, an angler looks at what is there, picks something by luck, and acts
    calm ── whoever comes last sets right what can be: holds, wishes, lost flags, halted tables

Each acts by the product's own commands, over a network like everybody's, and tries again; or with
a shell, which asks nobody.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from random import Random

from headgate.ambient import Ambient
from headgate.app.acts import Acts, Person
from headgate.apply.remedies import Decision, Remedies, stopped_at
from headgate.apply.table_document import TableDocument, table_key
from headgate.cluster.tasks import Task, task_key
from headgate.commits.certificate import FLAG, hold_path
from headgate.commits.checkpoint import Checkpoint, Wish, checkpoint_key
from headgate.commits.roots import Repair, RootDocument, place_of, root_key, wished
from headgate.commits.streams import StreamDocument, stream_key
from headgate.errors import Conflict, Fenced, Halted, Invalid, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import STAGING, folder_of, name_of
from headgate.landing.kind import feed_name
from headgate.landing.names import commit_of
from headgate.periods import HOUR_MS, Period
from headgate.ready.freezing import READY_STAGING
from headgate.store import DocumentStore
from headgate.store.changes import change, read
from headgate.tables.parquet import MARK
from headgate.testing.confluence import FOLDER, ROOT, Waters
from headgate.testing.faults import wrap
from headgate.testing.simulation import Machine, Simulation

DESK = "desk"
WHO = "ann"
WHY = "seen at the water"
TRIES_MAX = 8
PAUSE_MS = 2_000


class Errand(Enum):
    HALT = "halts a table"
    DECIDE = "decides about a halted table"
    CURE = "mends what makes a batch fail"
    TAKE_FLAG = "deletes a flag"
    REPAIR = "asks for lost flags"
    WITHDRAW = "wants an hour withdrawn"
    HOLD = "puts a hold file"
    LET_GO = "removes hold files"
    TAKE_STAGED = "deletes something staged"
    TAKE_MARK = "deletes the mark of a table"
    TAKE_FILE = "deletes a published data file"
    PAUSE = "pauses a stream"
    RESUME = "resumes all streams"
    TRIP = "trips over the cable: no power"


@dataclass(frozen=True, slots=True)
class Visit:
    errand: Errand
    time_ms: int
    luck: int  # which of what is there

    def __str__(self) -> str:
        return f"{DESK}: {WHO} {self.errand.value} at {self.time_ms / 1000:.3f} s"


class Anglers:
    """All persons of a simulation, at one desk."""

    def __init__(self, simulation: Simulation, waters: Waters) -> None:
        self._simulation = simulation
        self._waters = waters
        self._store = simulation.store()  # as a person sees it who looks twice
        self._holds: set[str] = set()
        self._backup: dict[str, bytes] = {}  # staged things that were taken
        self._marks: dict[str, bytes] = {}  # of tables

    def come(self, visit: Visit) -> None:
        acts: dict[Errand, Callable[[Random], None]] = {
            Errand.HALT: self._halt,
            Errand.DECIDE: lambda random: self._decide(random.choice(["retry", "skip", "resume"])),
            Errand.CURE: lambda _: self._waters.ladle.poison.clear(),
            Errand.TAKE_FLAG: self._take_flag,
            Errand.REPAIR: lambda _: self.repair(),
            Errand.WITHDRAW: self._withdraw,
            Errand.HOLD: self._hold,
            Errand.LET_GO: lambda _: self.let_go(),
            Errand.TAKE_STAGED: self._take_staged,
            Errand.TAKE_MARK: self._take_mark,
            Errand.TAKE_FILE: self._take_file,
            Errand.PAUSE: self._pause,
            Errand.RESUME: lambda _: self._resume(),
            Errand.TRIP: lambda _: self._trip(),
        }
        self._simulation.tell(DESK, f"{WHO} {visit.errand.value}")
        acts[visit.errand](Random(visit.luck))

    def set_right(self, is_lost: bool) -> None:
        """Whatever waits for a person. `is_lost`: flags are missing that should be there."""
        self._waters.ladle.poison.clear()
        self.let_go()
        self._resume()
        self._restage()
        self._put_marks_back()
        self._put_files_back()
        self._decide("")
        if is_lost:
            self.repair()

    # Tables

    def _halt(self, random: Random) -> None:
        table = random.choice(sorted(self._waters.tables))
        self._remedy(lambda remedies: remedies.halt(table, Decision(WHO, WHY)))

    def _decide(self, how: str) -> None:
        """ "": what the case asks for."""
        for table in self._waters.tables:
            kept = read(self._store, table_key(table), TableDocument)
            if kept is not None and kept.value.state == "halted":
                self._remedy(partial(self._carry_out, table, how, kept.value))

    def _carry_out(
        self, table: str, how: str, found: TableDocument, remedies: Remedies
    ) -> TableDocument:
        by, batch = Decision(WHO, WHY), stopped_at(found)
        if how == "skip" or (not how and batch and self._is_hopeless(table, batch)):
            return remedies.skip(table, batch, by)
        if how == "retry" or (not how and batch and found.tries):
            return remedies.retry(table, by)
        return remedies.resume(table, by)

    def _is_hopeless(self, table: str, batch: str) -> bool:
        here = (self._waters.tables[table].stream, Period.parse(batch))
        return any(self._waters.place(path) == here for path in self._waters.gone)

    def _remedy(self, act: Callable[[Remedies], object]) -> None:
        self._at_the_desk(
            lambda store, lake: act(
                Remedies(store, Ledger(lake, DESK, self._ambient), self._ambient)
            )
        )

    def _take_mark(self, random: Random) -> None:
        table = random.choice(sorted(self._waters.pools))
        self._waters.unmarked.add(table)
        self._marks[table] = self._waters.pools[table].read(MARK) or self._marks.get(table, b"")
        _remove(self._waters.pools[table], MARK)

    def _put_marks_back(self) -> None:
        """Where a run cannot be closed without: a table is not halted while nobody knows it."""
        for table, content in self._marks.items():
            pool, kept = (
                self._waters.pools[table],
                read(self._store, table_key(table), TableDocument),
            )
            is_halting = kept is not None and kept.value.state == "halting"
            if is_halting and content and pool.facts(MARK) is None:
                pool.put(MARK, content)

    # Flags

    def _take_flag(self, random: Random) -> None:
        flags = [path for path in self._waters.lake.files() if name_of(path) == FLAG]
        if flags:
            path = random.choice(flags)
            self._waters.gone_flags.add(path)
            _remove(self._waters.lake, path)

    def repair(self) -> None:
        now_ms = self._simulation.shelf.now_ms()
        wanted = Repair(0, now_ms + HOUR_MS, Wish(WHY, WHO, now_ms))
        self._wish(lambda found: _with_repair(found, wanted))

    def _withdraw(self, random: Random) -> None:
        kept = read(self._store, root_key(ROOT), RootDocument)
        places = [
            place_of(Period(start_ms, "hour"), name)
            for name, seat in sorted(({} if kept is None else kept.value.streams).items())
            for start_ms in range(seat.first_ms or 0, seat.frontier_ms or 0, HOUR_MS)
        ]
        if places:
            place, wish = random.choice(places), Wish(WHY, WHO, self._simulation.shelf.now_ms())
            self._wish(lambda found: wished(found, place, wish))

    def _wish(self, decide: Callable[[RootDocument], RootDocument]) -> None:
        self._at_the_desk(lambda store, _: change(store, root_key(ROOT), RootDocument, decide))

    def _hold(self, random: Random) -> None:
        """An hour of these days: flagged, open, or still to come."""
        stream = random.choice(sorted(self._waters.streams))
        hour = Period.hour_of(self._simulation.shelf.now_ms() - random.randrange(5) * HOUR_MS)
        path = hold_path(FOLDER, hour, stream)
        self._waters.lake.put(path, b"")
        self._holds.add(path)

    def let_go(self) -> None:
        for path in sorted(self._holds):
            _remove(self._waters.lake, path)
        self._holds.clear()

    # Files

    def _take_staged(self, random: Random) -> None:
        """Rows, records, flags, batches: whatever is on its way. Not the archive's copy of a
        certificate: only a backup has another."""
        kept = read(self._store, root_key(ROOT), RootDocument)
        journal = None if kept is None else kept.value.journal
        flags = {
            move.staged: move.published
            for move in (() if journal is None or journal.kind == "withdraw" else journal.moves)
            if name_of(move.published) == FLAG
        }
        waters: list[MemoryLake] = [self._waters.lake, *self._waters.pools.values()]
        places = [
            (one, path)
            for one in waters
            for path in one.files()
            if path.startswith(f"{STAGING}/")
            and (path in flags or not path.startswith(f"{READY_STAGING}/"))
        ]
        if places:
            water, path = random.choice(places)
            self._waters.gone_flags.update({flags[path]} if path in flags else ())
            self._backup[path] = water.files()[path]
            if water is self._waters.lake:
                _remove(water, path)
            else:
                # As a whole: a folder that is emptied just while it is renamed enters half empty,
                # and only the audit can tell.
                water.remove_folder("/".join(path.split("/")[:3]))

    def _take_file(self, random: Random) -> None:
        """Of a commit that is a fact: of another one the shard itself would say so."""
        files = [path for path in self._waters.lake.files() if self._is_fact(path)]
        if files:
            path = random.choice(files)
            self._waters.gone[path] = self._waters.lake.files()[path]
            _remove(self._waters.lake, path)

    def _put_files_back(self) -> None:
        """From a backup, where an hour was withdrawn: without them it can never be flagged again,
        and status says so."""
        kept = read(self._store, root_key(ROOT), RootDocument)
        waiting = {} if kept is None else kept.value.reopened
        for path, content in list(self._waters.gone.items()):
            place = self._waters.place(path)
            if place is not None and place_of(place[1], place[0]) in waiting:
                self._waters.lake.put(path, content)
                self._waters.mended.add(path)
                del self._waters.gone[path]

    def _is_fact(self, path: str) -> bool:
        place, commit = self._waters.place(path), commit_of(name_of(path))
        if place is None or commit is None:
            return False
        shard, number = commit
        kept = read(self._store, checkpoint_key(place[0], shard), Checkpoint)
        if kept is None or number > kept.value.number:
            return False
        return kept.value.journal is None or kept.value.journal.number > number

    def _restage(self) -> None:
        """Shards that stand at a journal whose files are gone."""
        for name, estuary in self._waters.streams.items():
            for shard in range(estuary.settings.shards):
                task = read(self._store, task_key(feed_name(name), shard), Task)
                kept = read(self._store, checkpoint_key(name, shard), Checkpoint)
                if task is None or task.value.set_aside is None or kept is None:
                    continue
                journal = kept.value.journal
                if journal is not None and journal.record in self._backup:
                    # Nobody else knows what was to be published: it must come back.
                    self._waters.lake.put(journal.record, self._backup.pop(journal.record))
                elif journal is not None:
                    # Without a network: only nodes write to tasks by one, as the checkers know.
                    lake, ambient = self._waters.lake, self._ambient
                    acts = Acts(self._store, lake, Ledger(lake, DESK, ambient), ambient)
                    acts.restage(name, shard, Person(WHO, WHY))

    # The whole site

    def _pause(self, random: Random) -> None:
        stream = random.choice(sorted(self._waters.streams))
        self._act(lambda acts: acts.pause(stream, Person(WHO, WHY)))

    def _resume(self) -> None:
        for stream in self._waters.streams:
            kept = read(self._store, stream_key(stream), StreamDocument)
            if kept is not None and kept.value.paused is not None:
                self._act(partial(_resume, stream))

    def _act(self, act: Callable[[Acts], object]) -> None:
        ambient = self._ambient
        self._at_the_desk(
            lambda store, lake: act(Acts(store, lake, Ledger(lake, DESK, ambient), ambient))
        )

    def _trip(self) -> None:
        """Every disk forgets what was not made to last."""
        for machine in self._simulation.machines.values():
            machine.kill()
        for water in (self._waters.lake, *self._waters.pools.values()):
            water.power_cut()

    # The desk

    def _at_the_desk(self, act: Callable[[DocumentStore, Lake], object]) -> None:
        """Over a network, until it is done or there is nothing to do."""
        machine = self._machine
        store = wrap(DocumentStore, self._simulation.store(), machine.stage)
        lake: Lake = wrap(Lake, self._waters.lake, machine.stage)

        def insist() -> None:
            for _ in range(TRIES_MAX):
                try:
                    act(store, lake)
                except (Halted, Invalid, Fenced):
                    return  # it is not in a state for this, or nobody has begun it
                except (Conflict, Unavailable, OutcomeUnknown):
                    machine.ambient.sleep_ms(PAUSE_MS)
                else:
                    return

        machine.start("visit", insist)

    @property
    def _machine(self) -> Machine:
        found = self._simulation.machines.get(DESK)
        return self._simulation.boot(DESK) if found is None or found.is_dead else found

    @property
    def _ambient(self) -> Ambient:
        return self._machine.ambient


def _with_repair(found: RootDocument, wanted: Repair) -> RootDocument:
    return found if found.repair is not None else replace(found, repair=wanted)


def _resume(stream: str, acts: Acts) -> None:
    acts.resume(stream, Person(WHO, WHY))


def _remove(water: MemoryLake, path: str) -> None:
    """For good: no power cut brings it back."""
    facts = water.facts(path)
    if facts is not None:
        water.remove(path, facts)
        water.settle([folder_of(path)])
