from collections.abc import Callable

import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict, Corrupt, Fenced, OutcomeUnknown
from headgate.store import Document, DocumentStore
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.crashes import HARMS, check_every_crash, late_wakers
from headgate.testing.faults import Calm, Stage, wrap

Step = Callable[[DocumentStore], None]


class OnDocuments:
    """A flow of one function over a store, which both acts and recovers."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def fresh(self) -> MemoryStore:
        store = MemoryStore(Shelf(), "test", SystemAmbient())
        store.create("account", {"format": 1, "sum": 10, "last": 0})
        return store

    def act(self, world: MemoryStore, stage: Stage) -> None:
        self._step(wrap(DocumentStore, world, stage))

    def recover(self, world: MemoryStore, stage: Stage) -> None:
        self.act(world, stage)

    def state(self, world: MemoryStore) -> object:
        return {document.key: document.body for document in world.list().documents}


def account(store: DocumentStore) -> tuple[Document, int, int]:
    found = store.get("account")
    assert found is not None
    total, last = found.body["sum"], found.body["last"]
    assert isinstance(total, int)
    assert isinstance(last, int)
    return found, total, last


def careful(store: DocumentStore) -> None:
    """Intent, fact with the intent's number, intent removed: nothing can double it."""
    found, total, last = account(store)
    if last == 1:
        intent = store.get("intent")
        if intent is not None:
            store.delete("intent", intent.version)
        return
    if store.get("intent") is None:
        try:
            store.create("intent", {"format": 1, "number": 1, "add": 5})
        except Conflict:
            return
    store.replace("account", {"format": 1, "sum": total + 5, "last": 1}, found.version)
    intent = store.get("intent")
    if intent is not None:
        store.delete("intent", intent.version)


def sweeping(store: DocumentStore) -> None:
    """One document only: whoever comes second finds it done."""
    found, total, last = account(store)
    if last == 0:
        store.replace("account", {"format": 1, "sum": total + 5, "last": 1}, found.version)


def unchecked(store: DocumentStore) -> None:
    found, total, _ = account(store)
    store.replace("account", {"format": 1, "sum": total + 5, "last": 1}, found.version)


def test_a_flow_that_checks_survives_every_crash() -> None:
    flow = OnDocuments(careful)
    stage = Calm()
    flow.act(flow.fresh(), stage)

    checked = check_every_crash(flow)

    assert checked > len(HARMS) * len(stage.calls)  # and some more, during recovery
    assert check_every_crash(flow, again=()) == len(HARMS) * len(stage.calls)


def test_planted_a_counter_without_a_check_is_caught_with_its_crash_point() -> None:
    with pytest.raises(AssertionError) as caught:
        check_every_crash(OnDocuments(unchecked))
    assert str(caught.value) == (
        "crash after 2nd effect: DocumentStore.replace('account')\n"
        "  calm:  {'account': {'format': 1, 'last': 1, 'sum': 15}}\n"
        "  found: {'account': {'format': 1, 'last': 1, 'sum': 20}}"
    )


def test_planted_a_write_that_a_network_can_repeat_is_caught() -> None:
    """`create` under a new name each time: a repeated request makes a second document."""

    class Appending(MemoryStore):
        def create(self, key: str, *args: object, **named: object) -> object:  # type: ignore[override]
            return super().create(f"{key}-{len(self.list().documents)}", *args, **named)  # type: ignore[arg-type]

    class Flow(OnDocuments):
        def fresh(self) -> MemoryStore:
            return Appending(Shelf(), "test", SystemAmbient())

    def append(store: DocumentStore) -> None:
        if not store.list().documents:
            store.create("log", {"format": 1})

    with pytest.raises(AssertionError, match="request repeated of 2nd effect"):
        check_every_crash(Flow(append))


def test_planted_a_recovery_that_cannot_be_repeated_is_caught() -> None:
    def forgetful(store: DocumentStore) -> None:
        """Marks the recovery as done before it did it."""
        found, total, last = account(store)
        if last == 0 and store.get("recovering") is None:
            store.create("recovering", {"format": 1})
            store.replace("account", {"format": 1, "sum": total + 5, "last": 1}, found.version)

    class Flow(OnDocuments):
        def __init__(self) -> None:
            super().__init__(sweeping)

        def recover(self, world: MemoryStore, stage: Stage) -> None:
            forgetful(wrap(DocumentStore, world, stage))

        def state(self, world: MemoryStore) -> object:
            return account(world)[1]

    with pytest.raises(AssertionError, match="then, during recovery, crash after 3rd effect"):
        check_every_crash(Flow())


def test_a_process_may_be_its_own_recovery_after_a_lost_reply() -> None:
    recovered: list[str] = []

    def stubborn(store: DocumentStore) -> None:
        for _ in range(3):
            try:
                return sweeping(store)
            except (OutcomeUnknown, Conflict):
                continue
        return None

    class Flow(OnDocuments):
        def recover(self, world: MemoryStore, stage: Stage) -> None:
            recovered.append("recovered")
            super().recover(world, stage)

    lossy = [harm for harm in HARMS if "lost" in harm.value]
    assert check_every_crash(Flow(stubborn), lossy, again=()) == 4
    assert len(recovered) == 2  # for the lost read only


def test_an_error_that_is_no_crash_comes_out_and_says_where() -> None:
    def rotten(store: DocumentStore) -> None:
        if account(store)[2] == 1:
            raise Corrupt("rotten")
        sweeping(store)

    with pytest.raises(Corrupt, match="rotten") as caught:
        check_every_crash(OnDocuments(rotten))
    assert "crash after 3rd effect: DocumentStore.replace('account')" in caught.value.__notes__


def test_a_flow_without_effects_and_a_flow_that_differs_are_refused() -> None:
    with pytest.raises(AssertionError, match="no effect"):
        check_every_crash(OnDocuments(lambda _: None))

    runs: list[int] = []

    def moody(store: DocumentStore) -> None:
        runs.append(1)
        for _ in range(2 if len(runs) == 1 else 1):
            store.get("account")

    with pytest.raises(AssertionError, match="is the flow the same each time"):
        check_every_crash(OnDocuments(moody))
    runs.clear()
    with pytest.raises(AssertionError, match="is the flow the same each time"):
        late_wakers(OnDocuments(moody))


def test_a_late_waker_is_refused_by_the_version_it_read_before_its_pause() -> None:
    assert late_wakers(OnDocuments(sweeping)) == 2


def test_planted_a_late_waker_that_reads_the_version_again_is_caught() -> None:
    def rereading(store: DocumentStore) -> None:
        _, total, last = account(store)
        if last == 0:
            fresh, total, _ = account(store)
            store.replace("account", {"format": 1, "sum": total + 5, "last": 1}, fresh.version)

    with pytest.raises(AssertionError, match=r"paused before 2nd effect: DocumentStore.get"):
        late_wakers(OnDocuments(rereading))


def test_planted_an_intent_written_by_a_late_waker_stays_behind() -> None:
    """`careful` is careful about crashes, not about pauses: the matrix alone does not see that."""
    with pytest.raises(
        AssertionError, match=r"paused before 2nd effect: DocumentStore.get\('intent"
    ):
        late_wakers(OnDocuments(careful))


def test_what_a_late_waker_raises_of_ours_is_its_own_matter() -> None:
    def fenced(store: DocumentStore) -> None:
        found, total, last = account(store)
        if last == 1:
            return
        try:
            store.replace("account", {"format": 1, "sum": total + 5, "last": 1}, found.version)
        except Conflict as error:
            raise Fenced("somebody else did it") from error

    assert late_wakers(OnDocuments(fenced)) == 2

    def broken(store: DocumentStore) -> None:
        try:
            fenced(store)
        except Fenced:
            raise KeyError("a bug") from None

    with pytest.raises(KeyError) as caught:
        late_wakers(OnDocuments(broken))
    assert "paused before 2nd effect" in caught.value.__notes__[0]
