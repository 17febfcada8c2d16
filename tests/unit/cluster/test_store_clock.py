"""The store's time as a node knows it, in spite of its own clock and of slow answers."""

from headgate.ambient import SystemAmbient
from headgate.cluster.store_clock import RESYNC_MS, StoreClock
from headgate.store import TIMEOUT_MS
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.planted import ForwardingStore


class Hands(SystemAmbient):
    """Clocks set by hand: the node's, or the store's."""

    def __init__(self, wall_ms: int = 0, boot_ms: int = 0) -> None:
        self.wall_ms = wall_ms
        self.ms = boot_ms

    def wall_ns(self) -> int:
        return self.wall_ms * 1_000_000

    def monotonic_ms(self) -> int:
        return self.ms

    def boot_ms(self) -> int:
        return self.ms

    def pass_ms(self, ms: int) -> None:
        self.ms += ms
        self.wall_ms += ms


class SlowClock(ForwardingStore):
    """The request takes 30 ms on its way there, and 50 on its way back."""

    def __init__(self, node: Hands, store: Hands) -> None:
        super().__init__(MemoryStore(Shelf(store), "test", node))
        self.hands = (node, store)
        self.asked = 0

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        self.asked += 1
        self._pass_ms(30)
        told = super().now_ms(timeout_ms=timeout_ms)
        self._pass_ms(50)
        return told

    def _pass_ms(self, ms: int) -> None:
        for hand in self.hands:
            hand.pass_ms(ms)


def test_p9_a_slow_answer_judges_nobody_early_and_promises_nothing_short() -> None:
    node, there = Hands(), Hands(wall_ms=5_000_000)
    store = SlowClock(node, there)
    clock = StoreClock(store, node)
    now_ms, latest_ms = clock.now_ms(), clock.latest_ms()
    assert there.wall_ms - 50 == now_ms
    assert there.wall_ms + 30 < latest_ms <= there.wall_ms + 31
    assert store.asked == 1


def test_l12_the_nodes_wall_clock_does_not_matter_and_it_says_how_far_it_is_off() -> None:
    node, there = Hands(), Hands(wall_ms=5_000_000)
    clock = StoreClock(SlowClock(node, there), node)
    clock.now_ms()
    before_ms = clock.now_ms()
    node.wall_ms = there.wall_ms + 10**12
    assert clock.now_ms() == before_ms
    assert abs(clock.off_ms() - 10**12) <= 100


def test_it_is_compared_again_after_a_while_or_when_asked() -> None:
    node, there = Hands(), Hands(wall_ms=5_000_000)
    store = SlowClock(node, there)
    clock = StoreClock(store, node)
    for _ in range(3):
        clock.now_ms()
    assert store.asked == 1
    there.wall_ms += 7_000  # it was set
    node.pass_ms(1_000)
    assert clock.now_ms() < there.wall_ms - 5_000
    clock.now_ms(age_ms_max=500)
    assert store.asked == 2
    clock.resync()
    assert store.asked == 3
    node.pass_ms(RESYNC_MS + 1)
    clock.latest_ms()
    assert store.asked == 4
