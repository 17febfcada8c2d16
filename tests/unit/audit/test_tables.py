"""Invariants 8 and 9: a table that nodes made is clean; each way of breaking a rule is found."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from headgate.apply.table_document import PASSED_MAX, Passed, TableDocument, table_key
from headgate.audit.inspection import audit
from headgate.backlog import Entry
from headgate.backlog.queue import entry_key
from headgate.commits.roots import RootDocument, Seat, root_key, root_name
from headgate.errors import Unavailable
from headgate.lake.ledger import LEDGER
from headgate.store.changes import change, create_if_absent, read
from headgate.tables.parquet import MARK, PROOF
from headgate.testing.faults import Calm, Stage
from tests.crash.apply_flows import FLOWS, REMEDIES, Apply, HaltAtAFailure, Remedy
from tests.crash.apply_world import (
    ANN,
    SETTINGS,
    START_MS,
    STREAM,
    TABLE,
    Process,
    World,
    hour,
    name_of,
    person,
)
from tests.unit.audit.busy import Beside, Busy, effects

CALLS_MAX = 1_000
STRIDE = 5  # of the calls of an audit, those at which work goes on
KEY = table_key(TABLE)


@pytest.fixture
def world() -> World:
    """Three hours are in the table, a fourth waits."""
    found = World()
    for number, rows in enumerate(("ab", "", "c")):
        found.flag(number, *rows)
    Process(found).until(lambda: found.is_over(2))
    found.ladle.poison = {name_of(3)}
    found.flag(3, "d")
    process = Process(found)
    process.work.tick()
    assert found.document().queued == 4
    return found


@pytest.fixture
def halted() -> World:
    flow = HaltAtAFailure()
    found = flow.fresh()
    flow.act(found, Calm())
    assert found.document().state == "halted"
    return found


def told(world: World) -> list[tuple[int | None, str]]:
    return [(one.invariant, one.subject) for one in world.findings()]


def change_table(world: World, **fields: Any) -> None:
    change(world.store, KEY, TableDocument, lambda found: replace(found, **fields))


def folder(number: int, run: int) -> str:
    return f"headgate_batch={name_of(number)}/headgate_run={run}"


def run_of(world: World, number: int) -> int:
    return next(one.run for one in world.proofs() if one.batch == name_of(number))


def copy(world: World, number: int, to: str, **fields: Any) -> None:
    """A batch once more, under another name."""
    own = folder(number, run_of(world, number))
    for path, content in list(world.basin.files().items()):
        if path == f"{own}/{PROOF}":
            body = json.loads(content)
            world.basin.put(f"{to}/{PROOF}", json.dumps({**body, **fields}).encode())
        elif path.startswith(f"{own}/"):
            world.basin.put(to + path.removeprefix(own), content)


def take_out(world: World, number: int) -> None:
    for path in list(world.basin.files()):
        if path.startswith(f"headgate_batch={name_of(number)}/"):
            facts = world.basin.facts(path)
            assert facts is not None
            world.basin.remove(path, facts)


def remove_entry(world: World, number: int) -> None:
    found = read(world.store, entry_key(TABLE, name_of(number)), Entry)
    assert found is not None
    world.store.delete(found.key, found.version)


# What is sound


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_inv8_inv9_what_nodes_and_persons_leave_is_clean(flow: Apply) -> None:
    found = flow.fresh()
    assert told(found) == []
    flow.act(found, Calm())
    assert told(found) == []


def test_a_table_on_which_nobody_has_worked_is_clean() -> None:
    assert told(World()) == []


def test_inv8_the_passed_ones_that_the_document_forgot_are_in_the_ledger() -> None:
    flow = Remedy(lambda one: one.skip(TABLE, name_of(1), ANN), is_healed=False, name="Skip")
    world = flow.fresh()
    flow.act(world, Calm())
    others = tuple(Passed(name_of(50 + n), "skipped", "", "", 0) for n in range(PASSED_MAX))
    change_table(world, passed=others, batches=0)
    assert [one for one in world.findings() if "entries are done" not in one.words] == []

    for path in [path for path in world.lake.files() if path.startswith(LEDGER)]:
        facts = world.lake.facts(path)
        assert facts is not None
        world.lake.remove(path, facts)

    (finding,) = [one for one in world.findings() if "entries are done" not in one.words]
    assert (finding.invariant, finding.subject) == (8, f"{TABLE} {name_of(1)}")


# Invariant 8


def test_planted_inv8_a_batch_that_is_not_in_the_table(world: World) -> None:
    take_out(world, 0)

    found = world.findings()

    assert [(one.invariant, one.subject) for one in found] == [
        (8, f"{TABLE} {name_of(1)}"),  # it entered behind what is not there
        (8, f"{TABLE} {name_of(0)}"),
    ]
    assert found[1].words == f"is not in the table, and it is applied up to {name_of(2)}"
    assert found[1].next.endswith("headgate audit")


def test_planted_inv8_the_last_batch_that_is_not_in_the_table(world: World) -> None:
    take_out(world, 2)

    assert told(world) == [(8, f"{TABLE} {name_of(2)}")]


def test_planted_b24_inv8_an_entry_that_is_gone_before_its_batch_is_in(world: World) -> None:
    remove_entry(world, 3)

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (8, f"{TABLE} {name_of(3)}")
    assert "does not wait" in finding.words
    assert finding.next.startswith(f"headgate table halt {TABLE} --reason")


def test_inv8_a_batch_that_the_document_does_not_know_of(world: World) -> None:
    copy(world, 2, folder(7, 3), batch=name_of(7))

    found = world.findings()

    assert {(one.invariant, one.subject) for one in found} == {(8, f"{TABLE} {name_of(7)}")}
    assert any(f"applied up to {name_of(2)}" in one.words for one in found)


def test_planted_inv8_a_batch_that_entered_out_of_order(world: World) -> None:
    path = f"{folder(2, run_of(world, 2))}/{PROOF}"
    body = json.loads(world.basin.files()[path])
    first = next(one for one in world.proofs() if one.batch == name_of(1)).after
    world.basin.put(path, json.dumps({**body, "after": first}).encode())

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (8, f"{TABLE} {name_of(2)}")
    assert "out of order" in finding.meaning


def test_inv8_an_hour_between_first_and_last_that_was_never_queued(world: World) -> None:
    seats = {STREAM: Seat(None, START_MS - 3_600_000, hour(9).start_ms)}
    key = root_key(root_name(SETTINGS.folder))
    create_if_absent(world.store, key, RootDocument(streams=seats))

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (8, KEY)
    assert "the first hour of orders is 2026-10-31T23" in finding.words


def test_inv8_a_batch_that_was_queued_without_a_flag(world: World) -> None:
    seats = {STREAM: Seat(None, START_MS, hour(3).start_ms)}
    key = root_key(root_name(SETTINGS.folder))
    create_if_absent(world.store, key, RootDocument(streams=seats))

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (8, f"{TABLE} {name_of(3)}")
    assert f"flags of orders go up to {name_of(3)}" in finding.words


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"applied_up_to": name_of(1)}, "entries up to 3 are done"),
        ({"applied_up_to": name_of(8)}, "and queued up to"),
        ({"done": ((0, 2),)}, "entries up to 2 are done"),
        ({"batches": 9}, "9 batches were applied"),
        ({"rows": 99}, "counts 99 rows"),
        ({"queued_up_to": "yesterday"}, "which is no hour"),
        ({"queued": 10**15}, "which is no hour"),
    ],
    ids=str,
)
def test_inv8_a_document_that_does_not_agree_with_itself(
    world: World, fields: dict[str, object], words: str
) -> None:
    change_table(world, **fields)

    found = world.findings()

    assert any(one.invariant == 8 and words in one.words for one in found), found


def test_planted_inv8_a_current_batch_that_overtook_another(world: World) -> None:
    current = world.document().current
    assert current is not None
    entry = replace(current.entry, batch=name_of(4), number=4)
    overtakes = replace(current, entry=entry)
    change_table(world, current=overtakes, queued=5, queued_up_to=name_of(4))

    assert any(f"{name_of(3)} before it is not done" in one.words for one in world.findings())


def test_inv8_an_entry_under_the_number_of_another(world: World) -> None:
    found = read(world.store, entry_key(TABLE, name_of(3)), Entry)
    assert found is not None
    change(world.store, found.key, Entry, lambda one: replace(one, number=9))

    assert {one.invariant for one in world.findings()} == {8}
    assert any("waits as number 9" in one.words for one in world.findings())


def test_a_manifest_that_is_gone_is_damage(world: World) -> None:
    (entry,) = world.entries()
    facts = world.lake.facts(entry.manifest)
    assert facts is not None
    world.lake.remove(entry.manifest, facts)

    assert told(world) == [(None, entry.manifest)]


def test_a_damaged_entry_is_damage(world: World) -> None:
    key = entry_key(TABLE, name_of(3))
    found = world.store.get(key)
    assert found is not None
    world.store.replace(key, {**found.body, "number": "three"}, found.version)

    assert [invariant for invariant, _ in told(world)] == [None]


def test_a_damaged_document_of_a_table_is_damage(world: World) -> None:
    found = world.store.get(KEY)
    assert found is not None
    world.store.replace(KEY, {**found.body, "state": "asleep"}, found.version)

    assert told(world) == [(None, KEY)]


# The table itself


@pytest.mark.parametrize("how", ["gone", "cut", "more"])
def test_a_file_of_a_batch_that_is_not_what_its_proof_says(world: World, how: str) -> None:
    own = folder(0, run_of(world, 0))
    file = next(path for path in world.basin.files() if path.startswith(own) and PROOF not in path)
    facts = world.basin.facts(file)
    assert facts is not None
    if how == "gone":
        world.basin.remove(file, facts)
    elif how == "cut":
        world.basin.put(file, b"")
    else:
        file = f"{own}/extra.parquet"
        world.basin.put(file, b"x")

    assert told(world) == [(None, file)]


def test_a_changed_file_of_a_batch_is_seen_by_a_deep_audit(world: World) -> None:
    own = folder(0, run_of(world, 0))
    file = next(path for path in world.basin.files() if path.startswith(own) and PROOF not in path)
    world.basin.put(file, world.basin.files()[file][::-1])
    assert told(world) == []

    found = audit(
        world.store,
        world.lake,
        {},
        tables=[SETTINGS],
        open_site=lambda _: world.basin,
        is_deep=True,
    )

    assert [(one.invariant, one.subject) for one in found.findings] == [(None, file)]


def test_a_proof_that_cannot_be_read_is_damage(world: World) -> None:
    path = f"{folder(1, run_of(world, 1))}/{PROOF}"
    world.basin.put(path, b"{")

    assert (None, path) in told(world)


@pytest.mark.parametrize("name", ["part-0.parquet", "headgate_batch=x/part-0.parquet"])
def test_inv8_what_belongs_to_no_batch(world: World, name: str) -> None:
    world.basin.put(name, b"x")

    assert told(world) == [(8, f"{SETTINGS.path}/{name}")]


def test_inv8_a_folder_that_is_not_mounted_is_told_in_words(world: World) -> None:
    found = audit(world.store, world.lake, {}, tables=[SETTINGS], open_site=lambda _: None)

    (finding,) = found.findings
    assert (finding.invariant, finding.subject) == (8, SETTINGS.path)
    assert "there is no such folder, and table orders_daily has 3 batches" in finding.words
    assert finding.next.startswith("mount it")


def test_inv8_a_folder_without_its_mark(world: World) -> None:
    facts = world.basin.facts(MARK)
    assert facts is not None
    world.basin.remove(MARK, facts)

    assert told(world) == [(8, SETTINGS.path)]


def test_a_folder_of_another_table(world: World) -> None:
    body = json.loads(world.basin.files()[MARK])
    world.basin.put(MARK, json.dumps({**body, "table": "bids"}).encode())

    assert "is the folder of table bids" in world.findings()[0].words


def test_a_folder_that_cannot_be_read_is_told_in_words(world: World) -> None:
    def refuse(_: object) -> None:
        raise Unavailable("/srv/orders_daily: permission denied")

    found = audit(world.store, world.lake, {}, tables=[SETTINGS], open_site=refuse)

    (finding,) = found.findings
    assert "permission denied" in finding.words


# Invariant 9


def test_planted_inv9_a_batch_that_is_in_the_table_twice(world: World) -> None:
    copy(world, 0, folder(0, 2), run=2)

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (9, f"{TABLE} {name_of(0)}")
    assert "twice" in finding.words


def test_planted_inv9_a_halted_table_whose_run_is_not_closed(halted: World) -> None:
    take_out(halted, 1)

    (finding,) = halted.findings()

    assert (finding.invariant, finding.subject) == (9, f"{TABLE} {name_of(1)}")
    assert "is not closed" in finding.words


def test_planted_inv9_a_halted_table_that_has_the_rows_of_its_run(halted: World) -> None:
    current = halted.document().current
    assert current is not None
    take_out(halted, 1)
    after = next(one for one in halted.proofs() if one.batch == name_of(0))
    manifest = current.entry.manifest_hash
    version = f"{after.after.partition('/')[0]}/{folder(0, after.run)}"
    copy(halted, 0, folder(1, current.run), batch=name_of(1), run=current.run,
         manifest=manifest, after=version)  # fmt: skip

    found = halted.findings()

    assert {(one.invariant, one.subject) for one in found} == {(9, f"{TABLE} {name_of(1)}")}
    assert any("the table is halted, and the rows of its run" in one.words for one in found)


def test_inv9_a_run_that_nobody_began(halted: World) -> None:
    empty = f"{folder(1, 2)}/{PROOF}"
    body = json.loads(halted.basin.files()[empty])
    halted.basin.put(f"{folder(1, 40)}/{PROOF}", json.dumps({**body, "run": 40}).encode())

    (finding,) = halted.findings()

    assert (finding.invariant, finding.subject) == (9, KEY)
    assert "run 40 is in the table" in finding.words


def test_inv9_a_current_run_that_is_not_the_last_one(world: World) -> None:
    current = world.document().current
    assert current is not None
    change_table(world, run=current.run + 3)

    assert [invariant for invariant, _ in told(world)] == [9]


# Nodes work meanwhile


def work_of(flow: Apply) -> Callable[[World, Stage], None]:
    def act(world: World, stage: Stage) -> None:
        flow.act(world, stage)
        world.flag(3, "e")
        world.flag(4, "f")
        if world.document().state == "halted":
            person(world, stage).skip(TABLE, name_of(1), ANN)
        Process(world, stage).until(lambda: world.is_over(4))

    return act


@pytest.mark.parametrize("at_once", [1, 200])
@pytest.mark.parametrize("flow", [Apply(), HaltAtAFailure(), REMEDIES[0]], ids=str)
def test_inv8_inv9_batches_that_enter_meanwhile_are_no_finding(flow: Apply, at_once: int) -> None:
    act = work_of(flow)
    fresh = flow.fresh()
    steps = sum(1 for _ in effects(lambda stage: act(fresh, stage)))
    assert steps > 30
    for begun in range(0, steps, 5):
        for first in range(begun % STRIDE, CALLS_MAX, STRIDE):
            world = flow.fresh()
            work = effects(lambda stage, world=world: act(world, stage))  # type: ignore[misc]
            for _ in islice(work, begun):
                pass
            busy = Busy(work, first, at_once)
            assert world.findings(Beside(busy)) == [], (begun, first)
            if busy.calls <= 0:
                break
        else:
            raise AssertionError(f"an audit of this world makes {CALLS_MAX} calls")
