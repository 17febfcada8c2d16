"""An audit while an hour is merged: at every moment of the merge, and with all of it in between."""

from collections.abc import Callable
from functools import partial

from headgate.audit import Finding
from headgate.audit.inspection import audit
from headgate.audit.verifying import verify
from headgate.engine import EventTime
from headgate.lake import Lake
from headgate.landing import StreamSettings
from headgate.sources import FilesSettings
from headgate.store import DocumentStore
from headgate.testing.faults import Call, Calm, Stage, wrap
from tests.crash.ready_flows import Merge
from tests.crash.ready_world import TEMPLATE, Process, World, run

SETTINGS = {
    name: StreamSettings(name, FilesSettings("/in"), EventTime("json", "$.at"), TEMPLATE)
    for name in ("orders", "bids")
}


def findings(world: World, stage: Stage | None = None) -> set[Finding]:
    """This world's commits are made by hand, so there are some from the start."""
    stage = stage or Calm()
    store, lake = wrap(DocumentStore, world.store, stage), wrap(Lake, world.lake, stage)
    return set(audit(store, lake, SETTINGS, is_deep=True).findings)


class Audited:
    """After each write there is an audit."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._before = findings(world)
        self.audits = 0

    def around(self, call: Call, act: Callable[[], object]) -> object:
        answer = act()
        if call.method in ("publish", "remove", "replace", "settle", "remove_folder"):
            assert findings(self._world) == self._before, call
            self.audits += 1
        return answer


class Meanwhile:
    """Before one call of an audit, all of the merge happens."""

    def __init__(self, number: int, happen: Callable[[], None]) -> None:
        self._left = number
        self._happen = happen

    def around(self, _call: Call, act: Callable[[], object]) -> object:
        self._left -= 1
        if self._left == 0:
            self._happen()
        return act()

    @property
    def has_happened(self) -> bool:
        return self._left <= 0


def test_inv1_no_moment_of_a_merge_is_a_finding() -> None:
    world = Merge().fresh()
    stage = Audited(world)
    Process(world, stage).run()
    assert stage.audits > 20
    assert verify(world.lake, dict.fromkeys(SETTINGS, TEMPLATE)).findings == []


def test_inv1_an_hour_that_is_merged_in_the_middle_of_an_audit_is_no_finding() -> None:
    before = findings(Merge().fresh())
    number = 0
    is_over = False
    while not is_over:
        number += 1
        world = Merge().fresh()
        stage = Meanwhile(number, partial(run, world))
        assert findings(world, stage) == before, number
        is_over = not stage.has_happened
    assert number > 20
