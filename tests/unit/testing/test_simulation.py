import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise

import pytest

from headgate.errors import Conflict, HeadgateError, Invalid, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore, JsonObject, Mark
from headgate.testing.faults import Crashed, Harm, wrap
from headgate.testing.simulation import (
    AtEffect,
    AtTime,
    Blow,
    Event,
    Fault,
    Happening,
    Machine,
    Simulation,
    reduce,
    tell,
)

ONE: JsonObject = {"format": 1, "value": 1}
STEADY = (1_000,) * 4_096  # 1 ms there, 1 ms back


def never(error: HeadgateError) -> int | None:
    raise AssertionError("no error was expected") from error


def store_of(simulation: Simulation, machine: Machine) -> DocumentStore:
    return wrap(DocumentStore, simulation.store(), machine.stage)


def told(call: Callable[[], object]) -> object:
    try:
        return call()
    except HeadgateError as error:
        return type(error)


def run_once(
    step: Callable[[DocumentStore, Machine], object],
    faults: Sequence[Fault] = (),
    *,
    seed: int = 1,
    setup: Callable[[Simulation], None] = lambda _: None,
) -> tuple[list[Event], Simulation]:
    """One machine does one thing, with latencies of 1 ms. The store outlives the simulation."""
    events: list[Event] = []
    with Simulation(seed, faults, STEADY) as simulation:
        simulation.observe(events.append)
        machine = simulation.boot("node")
        store = store_of(simulation, machine)
        machine.start("step", lambda: step(store, machine))
        setup(simulation)
        simulation.run(100_000)
    return events, simulation


def counting(seed: int, faults: Sequence[Fault] = ()) -> list[Event]:
    """Five machines add to four documents, one of them waits for a change now and then."""
    events: list[Event] = []

    def add(store: DocumentStore, machine: Machine) -> None:
        for _ in range(40):
            key = f"counts/{int(machine.ambient.random() * 4)}"
            try:
                found = store.get(key, timeout_ms=2_000)
                if found is None:
                    store.create(key, {"format": 1, "by": machine.ambient.new_id()})
                else:
                    body: JsonObject = {"format": 1, "by": machine.ambient.new_id()}
                    store.replace(key, body, found.version, timeout_ms=2_000)
                store.wait("counts", store.wait("counts", None, timeout_ms=0), timeout_ms=50)
            except HeadgateError:
                machine.ambient.sleep_ms(10)

    with Simulation(seed, faults) as simulation:
        simulation.observe(events.append)
        for number in range(5):
            machine = simulation.boot(f"node-{number}")
            store = store_of(simulation, machine)
            machine.start("add", lambda store=store, machine=machine: add(store, machine))  # type: ignore[misc]  # mypy does not infer it
        simulation.run(60_000)
    return events


FAULTS: list[Fault] = [
    AtTime("node-0", 300, Blow.PAUSE, 500),
    AtTime("node-1", 200, Blow.KILL),
    AtTime("node-2", 100, Blow.SLEEP, 200),
    AtTime("node-2", 400, Blow.SKEW, -5_000),
    AtEffect("node-3", 10, Harm.LOSE_REPLY),
    AtEffect("node-4", 20, Harm.SLOW_REQUEST, 10_000),
]


def in_words(events: Sequence[Event]) -> str:
    return "\n".join(repr(event) for event in events)


def test_a_seed_replays_in_another_process_with_other_hashes() -> None:
    program = (
        "from tests.unit.testing.test_simulation import FAULTS, counting, in_words;"
        "print(in_words(counting(7, FAULTS)))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hashes},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.rstrip("\n")
        for hashes in ("1", "2")
    ]
    assert printed[0] == printed[1] == in_words(counting(7, FAULTS))
    assert len(printed[0].splitlines()) > 1_000
    assert in_words(counting(8, FAULTS)) != printed[0]


def test_a_fault_taken_away_does_not_shift_the_luck_of_others() -> None:
    def requests(events: Sequence[Event]) -> dict[tuple[str, int], int]:
        """How long each request was under way. A wait acts late, so it does not count."""
        started = {(e.machine, e.number): e for e in events if e.happening is Happening.STARTED}
        return {
            (e.machine, e.number): e.time_us - started[e.machine, e.number].time_us
            for e in events
            if e.happening is Happening.ACTED and e.call is not None and e.call.method != "wait"
        }

    with_faults, without = requests(counting(7, FAULTS)), requests(counting(7))
    both = [call for call in with_faults if call in without and call[0] not in ("node-0", "node-2")]
    differing = [call for call in both if with_faults[call] != without[call]]
    assert len(both) > 100
    assert differing in ([], [("node-4", 20)])  # the slow one


def test_calls_take_time_and_are_interleaved() -> None:
    events, _ = run_once(lambda store, _: told(lambda: store.create("doc", ONE)))
    assert [(e.time_us, e.happening) for e in events if e.call] == [
        (0, Happening.STARTED),
        (1_000, Happening.ACTED),
        (2_000, Happening.REPLIED),
    ]
    order = [event.machine for event in counting(1) if event.happening is Happening.ACTED]
    changes = sum(one != other for one, other in pairwise(order))
    assert changes > len(order) / 2


@pytest.mark.parametrize(
    ("harm", "answer", "is_there", "at_ms"),
    [
        (Harm.LOSE_REPLY, OutcomeUnknown, True, 500),
        (Harm.LOSE_REQUEST, OutcomeUnknown, False, 500),
        (Harm.REFUSE, Unavailable, False, 1),
        (Harm.SLOW_REPLY, OutcomeUnknown, True, 500),
        (Harm.SLOW_REQUEST, OutcomeUnknown, True, 500),
    ],
)
def test_a_harmed_write(harm: Harm, answer: object, is_there: bool, at_ms: int) -> None:
    answers: list[object] = []

    def step(store: DocumentStore, machine: Machine) -> None:
        answers.append(told(lambda: store.create("doc", ONE, timeout_ms=500)))
        answers.append(machine.timeline.now_ms)

    _, simulation = run_once(step, [AtEffect("node", 1, harm, 20_000)])

    assert answers == [answer, at_ms]
    assert (simulation.store().get("doc") is not None) == is_there


def test_a_slow_request_lands_long_after_its_caller_was_told_that_nobody_knows() -> None:
    seen: list[object] = []

    def step(store: DocumentStore, machine: Machine) -> None:
        seen.append(told(lambda: store.create("doc", ONE, timeout_ms=500)))
        seen.append(store.get("doc"))
        machine.ambient.sleep_ms(20_000)
        seen.append(store.get("doc") is not None)

    events, _ = run_once(step, [AtEffect("node", 1, Harm.SLOW_REQUEST, 10_000)])

    assert seen == [OutcomeUnknown, None, True]
    of_the_first = [event.happening for event in events if event.number == 1]
    assert of_the_first == [
        *(Happening.STARTED, Happening.HARMED, Happening.REPLIED, Happening.ACTED),
    ]


def test_a_repeated_request_acts_twice_and_the_first_answer_counts() -> None:
    answers: list[object] = []
    events, _ = run_once(
        lambda store, _: answers.append(store.create("doc", ONE)),
        [AtEffect("node", 1, Harm.DUPLICATE)],
    )
    acted = [event.outcome for event in events if event.happening is Happening.ACTED]
    assert acted[0] == answers[0]
    assert isinstance(acted[1], Conflict)


def test_nothing_of_a_paused_machine_runs_and_its_replies_wait() -> None:
    times: list[int] = []

    def step(store: DocumentStore, machine: Machine) -> None:
        store.create("doc", ONE)
        times.append(machine.timeline.now_ms)

    _, simulation = run_once(step, [AtEffect("node", 1, Harm.PAUSE_AFTER, 45_000)])
    assert times == [45_001]
    assert simulation.store().get("doc") is not None


@pytest.mark.parametrize("harm", [Harm.PAUSE_BEFORE, Harm.SLEEP_BEFORE])
def test_a_request_that_had_not_left_is_sent_after_the_pause(harm: Harm) -> None:
    events, _ = run_once(
        lambda store, _: told(lambda: store.create("doc", ONE)),
        [AtEffect("node", 1, harm, 45_000)],
    )
    acted = [event.time_us for event in events if event.happening is Happening.ACTED]
    assert acted == [45_001_000]


def test_the_seed_decides_what_becomes_of_a_request_under_way() -> None:
    def step(store: DocumentStore, _: Machine) -> None:
        store.create("doc", ONE)

    def kill(simulation: Simulation) -> None:
        simulation.at(0.5, simulation.machines["node"].kill)

    def pause(simulation: Simulation) -> None:
        simulation.at(0.5, lambda: simulation.machines["node"].pause(5_000))

    landed: set[bool] = set()
    paused: set[int] = set()
    for seed in range(20):
        _, simulation = run_once(step, seed=seed, setup=kill)
        landed.add(simulation.store().get("doc") is not None)
        events, _ = run_once(step, seed=seed, setup=pause)
        paused.update(e.time_us for e in events if e.happening is Happening.ACTED)
    assert landed == {True, False}
    assert paused == {1_000, 5_001_500}


def test_a_killed_machine_never_runs_again_whatever_its_code_would_catch() -> None:
    log: list[str] = []

    def step(store: DocumentStore, _: Machine) -> None:
        try:
            store.create("doc", ONE)
            log.append("went on")
        except Exception:  # noqa: BLE001  # what is tested
            log.append("caught")
        finally:
            try:
                store.create("other", ONE)
            except Crashed:
                log.append("dead")

    for harm in (Harm.CRASH_BEFORE, Harm.CRASH_AFTER):
        log.clear()
        _, simulation = run_once(step, [AtEffect("node", 1, harm)])
        assert log == ["dead"]
        assert (simulation.store().get("doc") is None) == (harm is Harm.CRASH_BEFORE)
        assert simulation.store().get("other") is None


def test_a_machine_may_be_booted_again_once_it_is_dead() -> None:
    with Simulation(1) as simulation:
        first = simulation.boot("node")
        with pytest.raises(Invalid, match="is running"):
            simulation.boot("node")
        store = store_of(simulation, first)
        first.start("step", lambda: told(lambda: store.get("doc")))
        simulation.run(10_000)
        first.kill()
        second = simulation.boot("node")
        store = store_of(simulation, second)
        second.start("step", lambda: told(lambda: store.get("doc")))
        simulation.run(20_000)
        assert simulation.effects("node") == 2
        assert first.ambient.new_id() != second.ambient.new_id()


def test_asleep_its_monotonic_clock_stands_still_and_the_others_go_on() -> None:
    with Simulation(1) as simulation:
        machine = simulation.boot("node")
        ambient = machine.ambient
        woke: list[int] = []

        def clocks() -> tuple[int, int, int]:
            return ambient.monotonic_ms(), ambient.boot_ms(), ambient.wall_ns() // 1_000_000

        def nap() -> None:
            ambient.sleep_ms(5_000)
            woke.append(simulation.now_ms)

        before = clocks()
        machine.start("nap", nap)
        simulation.at(1_000, lambda: machine.sleep(30_000))
        simulation.at(2_000, lambda: machine.pause(30_000))
        simulation.at(10_000, lambda: machine.set_wall_off(-7_000))
        simulation.run(100_000)
        after = clocks()
    passed = [now - then for now, then in zip(after, before, strict=True)]
    assert passed == [70_000, 100_000, 93_000]
    # Of 5 s, 1 s had passed; the sleep counts for nothing, the second of pause after it does.
    assert woke == [35_000]


def test_a_wait_returns_soon_after_a_write_below_its_prefix_or_when_its_time_is_over() -> None:
    times: list[int] = []

    def step(store: DocumentStore, machine: Machine) -> None:
        mark: Mark | None = store.wait("a", None, timeout_ms=0)
        for _ in range(2):
            mark = store.wait("a", mark, timeout_ms=10_000)
            times.append(machine.timeline.now_ms)

    def write(simulation: Simulation) -> None:
        bare = simulation.store()
        simulation.at(1_000, lambda: told(lambda: bare.create("b/doc", ONE)))
        simulation.at(2_000, lambda: told(lambda: bare.create("a/b/doc", ONE)))

    events, _ = run_once(step, setup=write)
    assert times == [2_001, 12_002]
    assert len(events) < 20

    times.clear()
    run_once(step, [AtEffect("node", 2, Harm.LOSE_WAKE_UP)], setup=write)
    assert times == [10_003, 20_004]


def test_a_loop_ticks_when_it_is_due_or_woken_and_errors_go_to_its_handler() -> None:
    ticks: list[int] = []
    errors: list[str] = []
    with Simulation(1) as simulation:
        machine = simulation.boot("node")
        clock = machine.ambient.monotonic_ms

        def tick() -> int | None:
            ticks.append(simulation.now_ms)
            if len(ticks) == 2:
                raise Conflict("again")
            return clock() + 10_000 if len(ticks) < 5 else None

        def on_error(error: HeadgateError) -> int:
            errors.append(str(error))
            return clock() + 500

        wake = machine.run_loop("loop", tick, on_error)
        simulation.at(15_000, wake)
        simulation.run(100_000)
    assert ticks == [0, 10_000, 10_500, 15_000, 25_000]
    assert errors == ["again"]


def test_a_loop_that_is_always_due_does_not_keep_time_from_going_on() -> None:
    ticks: list[int] = []
    with Simulation(1) as simulation:
        machine = simulation.boot("node")

        def tick() -> int:
            ticks.append(simulation.now_ms)
            return 0

        machine.run_loop("busy", tick, never)
        assert simulation.run(10_000, lambda: simulation.now_ms >= 100)
    assert 100 <= len(ticks) <= 3_000


def test_a_bug_in_a_machine_comes_out_of_run_and_says_where() -> None:
    def broken() -> None:
        raise KeyError("a bug")

    with Simulation(1) as simulation:
        simulation.boot("node").start("session", broken)
        with pytest.raises(KeyError) as caught:
            simulation.run(1_000)
    assert caught.value.__notes__ == ["in session of node, at 0.000000 s"]


def test_what_an_observer_raises_cannot_be_caught_by_what_it_observes() -> None:
    def check(event: Event) -> None:
        assert event.happening is not Happening.STARTED, "broken rule"

    def careless(store: DocumentStore) -> None:
        with suppress(Exception):
            store.get("doc")

    with Simulation(1) as simulation:
        simulation.observe(check)
        machine = simulation.boot("node")
        store = store_of(simulation, machine)
        machine.start("careless", lambda: careless(store))
        with pytest.raises(AssertionError, match="broken rule"):
            simulation.run(1_000)


def test_what_would_escape_the_simulation_is_refused() -> None:
    with Simulation(1) as simulation:
        machine, other = simulation.boot("node"), simulation.boot("other")
        store = store_of(simulation, machine)
        with pytest.raises(Invalid, match="not called by a strand of node"):
            store.get("doc")
        with pytest.raises(Invalid, match="only its own strands"):
            machine.ambient.sleep_ms(1)
        other.start("thief", lambda: told(lambda: store.get("doc")))
        simulation.run(100)
        assert simulation.effects("node") == 0


def test_the_clock_of_the_store_may_jump() -> None:
    with Simulation(1) as simulation:
        store = simulation.store()
        before = store.now_ms()
        simulation.run(5_000)
        simulation.shelf.clock_off_ms = -60_000
        assert store.now_ms() - before == -55_000


def test_a_story_is_short_and_says_what_matters() -> None:
    def step(store: DocumentStore, machine: Machine) -> None:
        version = store.create("cluster/leader", ONE)
        for _ in range(5):
            machine.ambient.sleep_ms(1_000)
            version = store.replace("cluster/leader", ONE, version)
        told(lambda: store.create("cluster/leader", ONE))
        told(lambda: store.create("other", ONE, timeout_ms=500))
        store.get("other")

    faults: list[Fault] = [AtEffect("node", 8, Harm.LOSE_REPLY), AtTime("node", 20_000, Blow.KILL)]
    events, _ = run_once(step, faults)

    assert tell(events) == [
        "     0.000 s  node  booted",
        "     0.001 s  node  create cluster/leader … done",
        "     1.003 s  node  replace cluster/leader … done  (5 times until 5.011 s)",
        "     5.013 s  node  create cluster/leader … conflict",
        "     5.014 s  node  reply lost of create other",
        "     5.015 s  node  create other … done",
        "     5.514 s  node  create other … is told: outcome unknown",
        "    20.000 s  node  killed",
    ]
    assert len(tell(events, about=["cluster"])) == 5
    assert len(tell(events, about=["node"])) == 8
    assert "get other … done" in tell(events, with_reads=True)[-2]


@pytest.mark.parametrize("guilty", [{3}, {0, 99}, {10, 11, 50}, set()])
def test_reduction_finds_the_faults_that_matter(guilty: set[int]) -> None:
    runs: list[int] = []

    def fails(faults: Sequence[int]) -> bool:
        runs.append(1)
        return guilty <= set(faults)

    assert list(reduce(range(100), fails)) == sorted(guilty)
    assert len(runs) < 150
    assert guilty <= set(reduce(range(100), fails, runs_max=3))


def test_planted_a_lost_update_is_found_and_reduced_to_its_one_fault() -> None:
    """A writer that takes OutcomeUnknown for a failure and adds once more."""

    def total(faults: Sequence[Fault]) -> object:
        def add(store: DocumentStore, _: Machine) -> None:
            for _round in range(20):
                found = store.get("sum")
                value = 0 if found is None else found.body["value"]
                assert isinstance(value, int)
                body: JsonObject = {"format": 1, "value": value + 1}
                try:
                    if found is None:
                        store.create("sum", body)
                    else:
                        store.replace("sum", body, found.version)
                except OutcomeUnknown:
                    add_again(store)

        def add_again(store: DocumentStore) -> None:
            found = store.get("sum")
            assert found is not None
            value = found.body["value"]
            assert isinstance(value, int)
            store.replace("sum", {"format": 1, "value": value + 1}, found.version)

        found = run_once(add, faults)[1].store().get("sum")
        return None if found is None else found.body["value"]

    faults: list[Fault] = [
        *(AtTime("node", 10 * number, Blow.PAUSE, 3) for number in range(10)),
        AtEffect("node", 20, Harm.LOSE_REPLY),
        *(AtEffect("node", number, Harm.SLOW_REPLY, 50) for number in range(25, 35)),
    ]
    assert total([]) == 20
    assert total(faults) == 21
    assert reduce(faults, lambda some: total(some) != 20) == [AtEffect("node", 20, Harm.LOSE_REPLY)]
