"""A world in memory in which processes apply the hours of a stream to a table: what they share, one
process of them, and a person."""

from collections.abc import Callable
from dataclasses import dataclass, field

from headgate.apply import TableSettings
from headgate.apply.remedies import Decision, Remedies
from headgate.apply.table_document import TableDocument, is_done, table_key
from headgate.apply.work import TableTools, TableWork
from headgate.audit import Finding
from headgate.audit.inspection import audit
from headgate.backlog import Aside, Entry
from headgate.backlog.queue import asides, entries
from headgate.commits.certificate import Certificate, CertifiedFile, flag_paths, sealed, to_bytes
from headgate.errors import Conflict, Corrupt, Fenced, Halted, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.ledger import Ledger, read_ledger
from headgate.lake.memory import MemoryLake
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.codec import parse_text
from headgate.store.memory import MemoryStore
from headgate.tables import Mover, Table
from headgate.tables.parquet import PROOF, ParquetTable, Proof
from headgate.tables.site import Site
from headgate.testing.basin import Basin, Ladle
from headgate.testing.faults import Call, Calm, Stage, wrap
from headgate.testing.manual import ManualAmbient, manual_store
from tests.crash.landing_world import Held

START_MS = 1_793_491_200_000  # 2026-11-01T00 in UTC
TURNS_MAX = 200
TURN_MS = 70_000  # longer than any rest
STREAM, TABLE = "orders", "orders_daily"
ANN = Decision("ann", "the disk was replaced")

SETTINGS = TableSettings(TABLE, STREAM, FolderTemplate.parse(DEFAULT_FOLDER), "/srv/orders_daily")


def hour(number: int) -> Period:
    return Period.hour_of(START_MS + number * HOUR_MS)


def name_of(number: int) -> str:
    return str(hour(number))


class World:
    """What all processes share. `cries` are the calls for a person that somebody made."""

    def __init__(self) -> None:
        self.ambient = ManualAmbient()
        self.store: MemoryStore = manual_store(self.ambient)
        self.lake = MemoryLake()
        self.basin = Basin()
        self.ladle = Ladle(self.lake.read, self.basin.put_at)
        self.epoch = 0
        self.cries: list[str] = []

    def flag(self, number: int, *rows: str, generation: int = 1) -> Certificate:
        """An hour is ready, with one file for each row."""
        files = []
        for place, row in enumerate(rows):
            path = f"data/{name_of(number)}/{generation}-{place}.parquet"
            facts = self.lake.stage(path, f"{row}\n".encode())
            files.append(CertifiedFile(path, facts.size_bytes, facts.checksum, 1))
        certificate = sealed(
            Certificate(
                STREAM, name_of(number), generation, tuple(files), {}, (), {}, None, {}, 0, "n"
            )
        )
        self.lake.stage(self.flag_path(number), to_bytes(certificate))
        return certificate

    def flag_path(self, number: int) -> str:
        return flag_paths(SETTINGS.folder, hour(number), STREAM)[0]

    def document(self) -> TableDocument:
        found = read(self.store, table_key(TABLE), TableDocument)
        return TableDocument() if found is None else found.value

    def entries(self) -> list[Entry]:
        return list(entries(self.store, TABLE))

    def asides(self) -> list[Aside]:
        return list(asides(self.store, TABLE))

    def proofs(self) -> list[Proof]:
        return [
            parse_text(content, path, Proof)
            for path, content in self.basin.files().items()
            if path.startswith("headgate_batch=") and path.endswith(PROOF)
        ]

    def rows(self) -> list[tuple[str, str]]:
        """Batch and row, as a reader finds them."""
        found = []
        for path, content in self.basin.files().items():
            if path.startswith("headgate_batch=") and not path.endswith(PROOF):
                batch = path.partition("/")[0].partition("=")[2]
                found += [(batch, row) for row in content.decode().split()]
        return sorted(found)

    def ledger(self) -> list[str]:
        return [line.what for line in read_ledger(self.lake, 0, 2 * START_MS)]

    def is_over(self, last: int) -> bool:
        """Everything up to that hour is applied or passed, and nothing waits; or it is halted."""
        document = self.document()
        if document.state == "halted":
            return True
        is_there = document.applied_up_to == name_of(last) and document.current is None
        return is_there and document.state == "running" and not self.entries()

    def faults(self) -> list[str]:
        """Invariants 8 and 9, in what a reader and the store can see, and whatever the audit
        finds."""
        document = self.document()
        found = [f"{one.subject} {one.words}" for one in self.findings()]
        by_batch: dict[str, int] = {}
        for proof in self.proofs():
            by_batch[proof.batch] = by_batch.get(proof.batch, 0) + (proof.kind == "rows")
        found += [f"{batch} is in it {n} times" for batch, n in by_batch.items() if n > 1]
        passed = {one.batch for one in document.passed}
        taken = {batch for batch, n in by_batch.items() if n} | passed
        names = [name_of(number) for number in range(len(taken))]
        if sorted(taken) != names:
            found.append(f"no prefix: {sorted(taken)}")
        if taken and document.current is None and document.applied_up_to != max(taken):
            found.append(f"applied up to {document.applied_up_to}, and has {max(taken)}")
        return found

    def findings(self, stage: Stage | None = None) -> list[Finding]:
        """Of the audit."""
        stage = stage or Calm()
        store, lake = wrap(DocumentStore, self.store, stage), wrap(Lake, self.lake, stage)
        site = wrap(Site, self.basin, stage)
        found = audit(store, lake, {}, tables=[SETTINGS], open_site=lambda _: site)
        return list(found.findings)

    def state(self) -> dict[str, object]:
        document = self.document()
        return {
            "faults": self.faults(),
            "rows": self.rows(),
            "state": document.state,
            "applied up to": document.applied_up_to,
            "is current": document.current is not None,
            "passed": [(one.batch, one.how) for one in document.passed],
            # What a late waker queued again is done by its number: the holder removes it.
            "waiting": [one.batch for one in self.entries() if not is_done(document, one.number)],
            "aside": [(one.batch, one.generation) for one in self.asides()],
            "cries": list(self.cries),
        }


@dataclass
class Process:
    """One node that holds the table, with an epoch of its own."""

    world: World
    stage: Stage = field(default_factory=Calm)
    tools: TableTools = field(init=False)
    work: TableWork = field(init=False)

    def __post_init__(self) -> None:
        world, stage = self.world, self.stage
        world.epoch += 1
        lake = wrap(Lake, world.lake, stage)

        def open_table(settings: TableSettings, epoch: int, check: Callable[[], None]) -> Table:
            site, mover = wrap(Site, world.basin, stage), wrap(Mover, world.ladle, stage)
            return ParquetTable(settings.name, site, mover, world.ambient, epoch, check)

        self.tools = tools = TableTools(
            wrap(DocumentStore, world.store, stage),
            lake,
            open_table,
            lambda _: START_MS,
            Ledger(lake, "node", world.ambient),
            world.ambient,
        )
        self.work = TableWork(Held(world.epoch, "cluster/tasks/apply"), SETTINGS, tools)

    def until(self, is_over: Callable[[], bool]) -> None:
        """As in a node: only Fenced ends it; whatever calls for a person is heard."""
        for _ in range(TURNS_MAX):
            if is_over():
                return
            self.world.ambient.pass_ms(TURN_MS)
            try:
                self.work.tick()
            except (Unavailable, OutcomeUnknown, Conflict):
                continue
            except Fenced:
                raise
            except (Halted, Corrupt) as error:
                self.world.cries.append(str(error))
                raise
        raise AssertionError(f"it does not come to an end: {self.world.state()}")


def person(world: World, stage: Stage) -> Remedies:
    store = wrap(DocumentStore, world.store, stage)
    return Remedies(
        store, Ledger(wrap(Lake, world.lake, stage), "desk", world.ambient), world.ambient
    )


class AtEffect:
    """Something happens before the nth effect, while this process stands still."""

    def __init__(self, number: int, happen: Callable[[], None]) -> None:
        self.calls: list[Call] = []
        self.is_spent = False
        self._left = number
        self._happen = happen

    def around(self, call: Call, act: Callable[[], object]) -> object:
        self._left -= 1
        if self._left == 0:
            self.is_spent = True
            self._happen()
        self.calls.append(call)
        return act()
