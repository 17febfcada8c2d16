"""Manual: a world whose clocks move only when told, and nodes whose loops tick only when told.

For tests that need no chance and no simulation: one thread, nothing waits, and what happens between
two ticks is what the test says.
"""

from collections.abc import Callable, Iterable, Sequence

from headgate.ambient import Ambient
from headgate.cluster import Feed, Kind
from headgate.cluster.duties import Duties, NodeSettings
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.session import TERM_MS
from headgate.errors import HeadgateError
from headgate.store import DocumentStore, Mark
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.planted import ForwardingStore

ROUNDS_MAX = 2_000
ROUND_MS = 100
AT_ONCE_MAX = 50


class ManualAmbient:
    """Implements `headgate.ambient.Ambient`. Chance is a number, ids are counted."""

    def __init__(self, start_ms: int = 1_800_000_000_000, chance: float = 0.5) -> None:
        self.chance = chance
        self.ids = 0
        self._wall_ms = start_ms
        self._monotonic_ms = self._boot_ms = 1_000_000

    def wall_ns(self) -> int:
        return self._wall_ms * 1_000_000

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def boot_ms(self) -> int:
        return self._boot_ms

    def random(self) -> float:
        return self.chance

    def new_id(self) -> str:
        self.ids += 1
        return f"{self.ids:032x}"

    def sleep_ms(self, duration_ms: float) -> None:
        self.pass_ms(max(0, int(duration_ms)))

    def pass_ms(self, duration_ms: int) -> None:
        """Time goes on, for everybody."""
        self.sleep_machine_ms(duration_ms)
        self._monotonic_ms += duration_ms

    def sleep_machine_ms(self, duration_ms: int) -> None:
        """The machine is asleep for so long: its monotonic clock stands still."""
        self._wall_ms += duration_ms
        self._boot_ms += duration_ms


def manual_store(ambient: Ambient) -> MemoryStore:
    """An empty one, whose clock is that world's."""
    return MemoryStore(Shelf(ambient), "test", ambient)


class WithoutWaiting(ForwardingStore):
    """A wait is a look: in one thread nobody else could end it."""

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        del timeout_ms
        return self.behind.wait(prefix, since, timeout_ms=0)


class ManualNode:
    """The loops of one node. As in `headgate.node`, an error ends a tick and nothing else."""

    def __init__(
        self,
        name: str,
        store: DocumentStore,
        ambient: Ambient,
        kinds: Sequence[Kind] = (),
        feeds: Sequence[Feed] = (),
        *,
        workers: int = 1,
        labels: tuple[str, ...] = (),
        term_ms: int = TERM_MS,
    ) -> None:
        self._ambient = ambient
        looking = WithoutWaiting(store)
        self.presence = DocumentPresence(looking, ambient, term_ms=term_ms)
        settings = NodeSettings(name, workers, labels)
        self.duties = Duties(settings, looking, self.presence, ambient, kinds, feeds)
        self.errors: list[HeadgateError] = []

    @property
    def session(self) -> str:
        """Of its membership; "" while it has none."""
        member = self.duties.membership.member
        return "" if member is None else member.session

    def tick(self) -> None:
        """Each loop, as often as it is due at once."""
        for loop in self.duties.loops().values():
            try:
                for _ in range(AT_ONCE_MAX):
                    if loop.tick() > self._ambient.monotonic_ms():
                        break
            except HeadgateError as error:
                self.errors.append(error)


def run_until(
    is_over: Callable[[], bool], nodes: Iterable[ManualNode], ambient: ManualAmbient
) -> None:
    """Ticks them in turn, a little time apart. Raises AssertionError if it takes for ever."""
    nodes = list(nodes)
    for _ in range(ROUNDS_MAX):
        if is_over():
            return
        for node in nodes:
            node.tick()
        ambient.pass_ms(ROUND_MS)
    errors = [str(error) for node in nodes for error in node.errors[-1:]]
    raise AssertionError(f"not over after {ROUNDS_MAX} rounds; last errors: {errors}")
