"""Trust: how long a node may act, on which clock, and what that does to its calls."""

from collections.abc import Callable

import pytest

from headgate.cluster.trust import GuardedStore, SessionPermit, Trust, trusted_until_ms
from headgate.errors import Fenced
from headgate.store import TIMEOUT_MS, DocumentStore
from headgate.testing.faults import Calm, wrap
from headgate.testing.manual import ManualAmbient, manual_store

HOLD = 30_000


def granted(ambient: ManualAmbient) -> Trust:
    trust = Trust(ambient)
    trust.grant("mine", trusted_until_ms(ambient.boot_ms(), HOLD))
    return trust


def test_inv10_it_ends_a_tenth_before_the_hold_counted_from_the_start() -> None:
    assert trusted_until_ms(1_000, HOLD) == 1_000 + 27_000
    ambient = ManualAmbient()
    trust = granted(ambient)
    assert trust.left_ms("mine") == 27_000
    ambient.pass_ms(26_999)
    trust.check("mine")
    ambient.pass_ms(1)
    assert trust.left_ms("mine") == 0
    with pytest.raises(Fenced, match="was not renewed in time"):
        trust.check("mine")
    ambient.pass_ms(10_000)
    assert trust.left_ms("mine") == 0
    assert trust.session == "mine"  # a renewal of the same session brings it back


def test_inv10_a_machine_that_slept_has_lost_the_time_it_slept() -> None:
    ambient = ManualAmbient()
    trust = granted(ambient)
    before_ms = ambient.monotonic_ms()
    ambient.sleep_machine_ms(27_000)
    assert ambient.monotonic_ms() == before_ms
    with pytest.raises(Fenced):
        trust.check("mine")


def test_another_session_is_never_trusted() -> None:
    trust = granted(ManualAmbient())
    assert trust.left_ms("other") == 0
    with pytest.raises(Fenced, match="no longer this node's"):
        trust.check("other")
    trust.grant("other", trust.until_ms)
    with pytest.raises(Fenced, match="no longer this node's"):
        trust.check("mine")


def test_without_a_session_nothing_may_be_done() -> None:
    trust = Trust(ManualAmbient())
    assert (trust.session, trust.until_ms, trust.left_ms("mine")) == (None, 0, 0)
    granted_before = granted(ManualAmbient())
    granted_before.end()
    with pytest.raises(Fenced):
        granted_before.check("mine")


def test_a_session_that_ends_in_the_middle_of_a_question_is_over_and_no_error() -> None:
    """Another thread drops it between two looks at the same value."""

    class Fading(Trust):
        @property
        def _granted(self) -> tuple[str, int] | None:
            return self.answers.pop(0) if self.answers else None

        @_granted.setter
        def _granted(self, value: tuple[str, int] | None) -> None:
            self.answers = [value]

    questions: list[Callable[[Trust], object]] = [
        lambda trust: trust.left_ms("mine"),
        lambda trust: trust.session,
        lambda trust: trust.until_ms,
    ]
    for ask in questions:
        trust = Fading(ManualAmbient())
        trust.grant("mine", 10**12)
        assert ask(trust)
    trust = Fading(ManualAmbient())
    trust.grant("mine", 10**12)
    trust.check("mine")


def test_a_guarded_call_takes_no_longer_than_trust_is_left() -> None:
    ambient = ManualAmbient()
    trust, calm = granted(ambient), Calm()
    store = GuardedStore(
        wrap(DocumentStore, manual_store(ambient), calm), SessionPermit(trust, "mine")
    )
    store.get("doc")
    ambient.pass_ms(25_000)
    version = store.create("doc", {"format": 1})
    version = store.replace("doc", {"format": 1}, version, timeout_ms=50)
    store.list("", limit=3)
    store.now_ms()
    store.delete("doc", version)
    store.wait("", None, timeout_ms=60_000)
    assert [call.kwargs["timeout_ms"] for call in calm.calls] == [
        *(TIMEOUT_MS, 2_000, 50, 2_000, 2_000, 2_000, 2_000),
    ]


def test_inv10_a_guarded_store_is_not_called_once_trust_is_over() -> None:
    ambient = ManualAmbient()
    trust, calm = granted(ambient), Calm()
    store = GuardedStore(
        wrap(DocumentStore, manual_store(ambient), calm), SessionPermit(trust, "mine")
    )
    version = store.create("doc", {"format": 1})
    ambient.pass_ms(27_000)
    before = len(calm.calls)
    for call in (
        lambda: store.get("doc"),
        lambda: store.create("new", {"format": 1}),
        lambda: store.replace("doc", {"format": 1}, version),
        lambda: store.delete("doc", version),
        lambda: store.list(),
        lambda: store.wait("", None, timeout_ms=0),
        lambda: store.now_ms(),
    ):
        with pytest.raises(Fenced):
            call()
    store.close()
    assert len(calm.calls) == before
