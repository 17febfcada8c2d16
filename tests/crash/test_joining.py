"""A lane or a stream that joins at any moment of a pass that closes an hour: it is waited for, or
it is late; never is a file in a flagged hour that its certificate does not name."""

import threading

from headgate.landing.names import LATE
from headgate.periods import HOUR_MS
from headgate.testing.faults import Call, Calm
from tests.crash.landing_world import Process, Watching
from tests.crash.together_world import MINUTE_MS, Shore

PATIENCE_S = 60
PAUSE_STEP = 5  # effects of the one that is paused: all of them take twenty seconds


class Paused:
    """A node that lands, and stands still before its nth effect until it may go on. It and whoever
    waits for it are never at work at once."""

    def __init__(self, shore: Shore, effect: int) -> None:
        self.has_paused = False
        self._left = effect
        self._still, self._go = threading.Event(), threading.Event()
        self._process = Process(shore.worlds["orders"], Watching(self._look))
        self._thread = threading.Thread(target=self._work)

    def start(self) -> None:
        self._thread.start()
        assert self._still.wait(PATIENCE_S)

    def go_on(self) -> None:
        self._go.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _look(self, _call: Call) -> None:
        self._left -= 1
        if self._left == 0:
            self.has_paused = True
            self._still.set()
            assert self._go.wait(PATIENCE_S)

    def _work(self) -> None:
        try:
            for _ in range(3):
                self._process.turn()
        finally:
            self._still.set()


def closing_hour() -> Shore:
    """An hour is over, and nobody has looked at it yet."""
    shore = Shore()
    shore.drop(shore.hour(0).start_ms + 5)
    shore.land()
    shore.pass_ms(HOUR_MS + 5 * MINUTE_MS)
    shore.land()
    return shore


def paused_while_it_closes(effect: int, pause: int) -> Shore | None:
    """Before that effect of the pass a node finds a new lane, and stands still before one of its
    own; it goes on after the pass. None: there is no such effect of one of them."""
    shore = closing_hour()
    shore.drop(shore.hour(-1).start_ms + 7, lane=1)
    node = Paused(shore, pause)
    seen = [0]

    def look(_call: Call) -> None:
        seen[0] += 1
        if seen[0] == effect:
            node.start()

    shore.flag(shore.holder(Watching(look)))
    if seen[0] < effect:
        return None
    node.go_on()
    return shore if node.has_paused else None


def joined_before(effect: int, *, is_stream: bool) -> Shore | None:
    """A lane, or a stream, whose records are of the hour that is being closed, joins before that
    effect of the pass; then everything goes on. None: the pass has no such effect."""
    shore = closing_hour()
    hour = shore.hour(-1)
    seen = [0]

    def look(_call: Call) -> None:
        seen[0] += 1
        if seen[0] != effect:
            return
        if is_stream:
            shore.add("clicks", 0 if effect % 2 else None)
            shore.drop(hour.start_ms + 7, shore.now_ms - 5, stream="clicks")
        else:
            shore.drop(hour.start_ms + 7, lane=1)
        process = Process(shore.worlds["clicks" if is_stream else "orders"], Calm())
        process.turn()
        process.turn()

    holder = shore.holder(Watching(look))
    shore.flag(holder)
    if seen[0] < effect:
        return None
    shore.land()
    shore.flag()
    shore.pass_ms(2 * HOUR_MS)
    shore.land()
    shore.flag()
    assert hour in shore.flagged(), effect
    return shore


def test_inv6_kf13_a_lane_that_joins_while_an_hour_closes_is_waited_for_or_late() -> None:
    effect, late = 0, set[bool]()
    while (shore := joined_before(effect + 1, is_stream=False)) is not None:
        effect += 1
        assert shore.faults() == [], effect
        paths = shore.base.estuary.published()
        late.add(any(path.startswith(f"{LATE}/") for path in paths))
    assert effect > 20
    assert late == {True, False}  # before `closing` it is in time, after it is late


def test_inv6_a_lane_that_joined_before_closing_is_waited_for_while_its_node_is_paused() -> None:
    pauses = 0
    while paused_while_it_closes(1, pauses * PAUSE_STEP + 1) is not None:
        effect = 0
        while (shore := paused_while_it_closes(effect + 1, pauses * PAUSE_STEP + 1)) is not None:
            effect += 1
            assert shore.faults() == [], (effect, pauses)
        assert effect > 20
        pauses += 1
    assert pauses > 5


def test_inv7_k11_a_stream_that_joins_while_an_hour_closes_is_expected_from_some_hour_on() -> None:
    effect, firsts = 0, set[int | None]()
    while (shore := joined_before(effect + 1, is_stream=True)) is not None:
        effect += 1
        assert shore.faults() == [], effect
        seat = shore.root().streams["clicks"]
        firsts.add(None if seat.first_ms is None else seat.first_ms - shore.hour(0).start_ms)
        flagged = [str(hour) for hour in shore.flagged("clicks")]
        over_all = [one.replace("/", "T") for one in shore.over_all()]
        first = shore.flagged("clicks")[0]
        assert shore.children(first) == {"orders", "clicks"}, effect
        assert [one for one in over_all if one >= str(first)] == flagged, effect
    assert effect > 20
    assert len(firsts) > 1  # with its root's hour still open, and after its flag
