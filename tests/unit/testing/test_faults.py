from collections.abc import Callable
from functools import partial
from typing import Protocol

import pytest

from headgate.ambient import SystemAmbient
from headgate.cluster import Presence
from headgate.errors import Conflict, HeadgateError, Invalid, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore, JsonObject, Version
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.faults import (
    EFFECTS,
    Call,
    Calm,
    Crashed,
    Harm,
    Point,
    Scripted,
    SkewedAmbient,
    Sort,
    Stage,
    sorts_of,
    wrap,
)

OLD: JsonObject = {"format": 1, "value": "old"}
NEW: JsonObject = {"format": 1, "value": "new"}


@pytest.fixture
def behind() -> MemoryStore:
    store = MemoryStore(Shelf(), "test", SystemAmbient())
    store.create("doc", OLD)
    return store


def staged(behind: DocumentStore, stage: Stage) -> DocumentStore:
    return wrap(DocumentStore, behind, stage)


def value(store: DocumentStore) -> object:
    found = store.get("doc")
    assert found is not None
    return found.body["value"]


def version(store: DocumentStore) -> Version:
    found = store.get("doc")
    assert found is not None
    return found.version


@pytest.mark.parametrize("protocol", EFFECTS, ids=lambda protocol: protocol.__name__)
def test_every_method_of_every_protocol_has_a_sort(protocol: type[object]) -> None:
    assert sorts_of(protocol)


class Wider(DocumentStore, Protocol):
    def rename(self, key: str, to: str) -> None: ...


class WithAttribute(DocumentStore, Protocol):
    is_fast: bool


@pytest.mark.parametrize(("protocol", "extra"), [(Wider, "rename"), (WithAttribute, "is_fast")])
def test_planted_a_method_that_the_table_does_not_know_is_refused(
    protocol: type[object], extra: str, behind: MemoryStore
) -> None:
    table = {protocol: EFFECTS[DocumentStore]}
    with pytest.raises(Invalid, match=rf"{protocol.__name__}: {extra} differs"):
        sorts_of(protocol, table)
    with pytest.raises(Invalid, match=protocol.__name__):
        wrap(protocol, behind, Calm())


def test_planted_a_sort_for_a_method_that_is_gone_is_refused() -> None:
    table: dict[type[object], dict[str, Sort]] = {
        Presence: {**EFFECTS[Presence], "gone": Sort.READ}
    }
    with pytest.raises(Invalid, match="Presence: gone differs"):
        sorts_of(Presence, table)


def test_a_calm_stage_does_everything_and_remembers_it(behind: MemoryStore) -> None:
    stage = Calm()
    store = staged(behind, stage)

    store.replace("doc", NEW, version(store))
    store.close()

    assert value(behind) == "new"
    assert [str(call) for call in stage.calls] == [
        "DocumentStore.get('doc')",
        "DocumentStore.replace('doc')",
    ]
    assert stage.calls[1].sort is Sort.WRITE
    assert stage.calls[1].args[1] == NEW


def test_properties_and_errors_come_through(behind: MemoryStore) -> None:
    class Fixed:
        hold_ms = 7

        def __getattr__(self, name: str) -> Callable[..., object]:
            return lambda *_, **__: name

    presence: Presence = wrap(Presence, Fixed(), Calm())  # type: ignore[assignment]  # a stub
    assert presence.hold_ms == 7
    assert str(presence.look()) == "look"
    with pytest.raises(Conflict):
        staged(behind, Calm()).create("doc", NEW)


@pytest.mark.parametrize(
    ("harm", "error", "after"),
    [
        (Harm.CRASH_BEFORE, Crashed, "old"),
        (Harm.CRASH_AFTER, Crashed, "new"),
        (Harm.LOSE_REQUEST, OutcomeUnknown, "old"),
        (Harm.LOSE_REPLY, OutcomeUnknown, "new"),
        (Harm.REFUSE, Unavailable, "old"),
    ],
)
def test_a_harmed_write(
    harm: Harm, error: type[BaseException], after: str, behind: MemoryStore
) -> None:
    stage = Scripted([Point(2, harm)])
    store = staged(behind, stage)
    current = version(store)

    with pytest.raises(error, match=r"DocumentStore.replace\('doc'\)"):
        store.replace("doc", NEW, current)

    assert value(behind) == after
    assert stage.is_spent


@pytest.mark.parametrize("harm", [Harm.LOSE_REQUEST, Harm.LOSE_REPLY, Harm.REFUSE])
def test_a_harmed_read_is_unavailable(harm: Harm, behind: MemoryStore) -> None:
    store = staged(behind, Scripted([Point(1, harm)]))
    with pytest.raises(Unavailable):
        store.get("doc")
    assert value(store) == "old"


def test_after_a_crash_the_process_is_dead_for_everything(behind: MemoryStore) -> None:
    stage = Scripted([Point(1, Harm.CRASH_AFTER)])
    one, other = staged(behind, stage), staged(behind, stage)
    with pytest.raises(Crashed):
        one.create("more", NEW)

    for call in (partial(one.get, "doc"), partial(other.create, "x", NEW), other.close):
        with pytest.raises(Crashed):
            call()
    assert not issubclass(Crashed, Exception)
    assert behind.get("x") is None


def test_a_refused_effect_has_an_afterwards_too(behind: MemoryStore) -> None:
    with pytest.raises(Crashed):
        staged(behind, Scripted([Point(1, Harm.CRASH_AFTER)])).create("doc", NEW)
    with pytest.raises(OutcomeUnknown):
        staged(behind, Scripted([Point(1, Harm.LOSE_REPLY)])).create("doc", NEW)
    with pytest.raises(Invalid):
        staged(behind, Scripted([Point(1, Harm.LOSE_REPLY)])).create("", NEW)


def test_of_a_repeated_request_the_first_answer_counts() -> None:
    made = []

    class Counting(MemoryStore):
        def create(self, key: str, body: JsonObject, *, timeout_ms: int = 0) -> Version:
            made.append(key)
            return super().create(key, body)

    counting = Counting(Shelf(), "test", SystemAmbient())
    store = staged(counting, Scripted([Point(1, Harm.DUPLICATE), Point(2, Harm.DUPLICATE)]))

    first = store.create("doc", NEW)
    with pytest.raises(Conflict):
        store.create("doc", OLD)

    assert first == version(counting)
    assert made == ["doc", "doc", "doc"]  # what was refused is not repeated


class Still:
    """Time goes on only by sleeping."""

    def __init__(self) -> None:
        self.slept_ms = 0.0

    def wall_ns(self) -> int:
        return int(self.slept_ms * 1_000_000)

    def monotonic_ms(self) -> int:
        return int(self.slept_ms)

    def boot_ms(self) -> int:
        return int(self.slept_ms)

    def random(self) -> float:
        return 0.5

    def new_id(self) -> str:
        return "0" * 32

    def sleep_ms(self, duration_ms: float) -> None:
        self.slept_ms += duration_ms


@pytest.mark.parametrize("harm", [Harm.PAUSE_BEFORE, Harm.PAUSE_AFTER])
def test_a_pause_moves_time_on(harm: Harm, behind: MemoryStore) -> None:
    ambient = Still()
    store = staged(behind, Scripted([Point(1, harm, 5_000)], ambient))
    store.create("more", NEW)
    assert ambient.monotonic_ms() == 5_000
    with pytest.raises(Invalid, match="ambient"):
        Scripted([Point(1, harm, 5_000)])


def test_what_needs_a_simulation_is_refused() -> None:
    with pytest.raises(Invalid, match="only a simulation"):
        Scripted([Point(1, Harm.SLOW_REPLY)])


def test_skewed_clocks() -> None:
    true = Still()
    skewed = SkewedAmbient(true, wall_off_ms=-2_000, drift_ppm=1_000)
    true.sleep_ms(1_000_000)
    assert skewed.wall_ns() == (1_001_000 - 2_000) * 1_000_000
    assert skewed.monotonic_ms() == skewed.boot_ms() == 1_001_000
    skewed.wall_off_ms = 500
    assert skewed.wall_ns() == (1_001_000 + 500) * 1_000_000
    skewed.sleep_ms(1_001)
    assert true.monotonic_ms() == 1_001_000
    assert (skewed.random(), skewed.new_id()) == (0.5, "0" * 32)


def test_a_call_in_words() -> None:
    assert str(Call("Presence", "look", (), {}, Sort.READ)) == "Presence.look()"
    long = Call("Presence", "renew", ("x" * 100,), {}, Sort.WRITE)
    assert len(long.subject) == 80
    assert issubclass(OutcomeUnknown, HeadgateError)
