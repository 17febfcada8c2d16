"""What a shard's holder says of it: written if it says something new, and not too often."""

import pytest

from headgate.landing.report import REPORT_MS, Report, Reporter, report_key
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.memory import MemoryStore
from headgate.testing.faults import Calm, Harm, Point, Scripted, Stage, wrap
from headgate.testing.manual import ManualAmbient, manual_store

KEY = report_key("orders", 0)
WAITS, IDLE = Report("node", 1, "waits, and tries again"), Report("node", 1, "idle")


class Desk:
    def __init__(self, stage: Stage) -> None:
        self.ambient = ManualAmbient()
        self.store: MemoryStore = manual_store(self.ambient)
        store = wrap(DocumentStore, self.store, stage)
        self.reporter = Reporter(store, KEY, self.ambient, lambda: 7)

    def told(self) -> str:
        found = read(self.store, KEY, Report)
        return "" if found is None else found.value.doing


def test_what_is_told_already_is_not_told_again_and_news_not_too_often() -> None:
    calm = Calm()
    desk = Desk(calm)
    desk.reporter.tell(WAITS)
    desk.reporter.tell(IDLE)
    assert desk.told() == WAITS.doing
    desk.ambient.pass_ms(REPORT_MS)
    for _ in range(3):
        desk.reporter.tell(IDLE)
        desk.ambient.pass_ms(REPORT_MS)
    assert desk.told() == IDLE.doing
    assert len(calm.calls) == 2 * 2  # a look and a write of each


@pytest.mark.parametrize("effect", [3, 4])
@pytest.mark.parametrize("harm", [Harm.LOSE_REQUEST, Harm.REFUSE], ids=lambda harm: harm.name)
def test_a_report_that_did_not_get_through_is_told_again(harm: Harm, effect: int) -> None:
    """Else people would read what was true before, until something else becomes so."""
    desk = Desk(Scripted([Point(effect, harm)]))
    desk.reporter.tell(WAITS)
    desk.ambient.pass_ms(REPORT_MS)
    desk.reporter.tell(IDLE)
    assert desk.told() == WAITS.doing
    desk.ambient.pass_ms(REPORT_MS)
    desk.reporter.tell(IDLE)
    assert desk.told() == IDLE.doing
