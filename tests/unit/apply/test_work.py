"""The work of one table, with everything behind it in memory."""

import pytest

from headgate.apply.intake import manifest_of
from headgate.apply.notice import notice
from headgate.apply.table_document import table_key
from headgate.backlog import Entry
from headgate.backlog.manifest import hash_of, manifest_path
from headgate.backlog.queue import queue
from headgate.errors import Corrupt, Fenced
from headgate.testing.faults import Calm
from tests.crash.apply_flows import HaltAtAFailure
from tests.crash.apply_world import ANN, TABLE, Process, World, name_of, person
from tests.unit.apply.histories import a_history_that_is_gone_halts, deleted


def applied(*rows: str) -> World:
    world = World()
    for number, row in enumerate(rows):
        world.flag(number, row)
    Process(world).until(lambda: world.is_over(len(rows) - 1))
    return world


def test_inv8_ready_hours_enter_in_order_and_wait_for_a_missing_one() -> None:
    world = World()
    for number in (0, 1, 3):
        world.flag(number, f"row{number}")
    process = Process(world)
    process.until(lambda: world.is_over(1))
    process.work.tick()
    assert [batch for batch, _ in world.rows()] == [name_of(0), name_of(1)]

    world.flag(2, "row2")
    process.until(lambda: world.is_over(3))
    assert [batch for batch, _ in world.rows()] == [name_of(n) for n in range(4)]
    after = {proof.batch: proof.after for proof in world.proofs()}
    assert all(name_of(n - 1) in after[name_of(n)] for n in (1, 2, 3))


def test_an_idle_table_rests_and_writes_nothing() -> None:
    world = applied("a")
    process = Process(world)
    process.work.tick()
    before = world.store.get(table_key(TABLE))
    world.ambient.pass_ms(60_000)
    due_ms = process.work.tick()
    assert due_ms is not None
    assert due_ms > world.ambient.monotonic_ms()
    assert world.store.get(table_key(TABLE)) == before


def test_b12_a_file_that_comes_after_the_flag_is_not_applied() -> None:
    world = World()
    world.flag(0, "a")
    world.lake.stage(f"data/{name_of(0)}/late.parquet", b"late\n")
    Process(world).until(lambda: world.is_over(0))
    assert world.rows() == [(name_of(0), "a")]


@pytest.mark.parametrize("content", [b"other\n", None], ids=["was changed", "is gone"])
def test_b12_a_file_that_is_not_what_was_certified_halts_the_table(content: bytes | None) -> None:
    world = World()
    path = world.flag(0, "a").files[0].path
    facts = world.lake.facts(path)
    assert facts is not None
    world.lake.remove(path, facts)
    if content is not None:
        world.lake.stage(path, content)
    Process(world).until(lambda: world.is_over(0))
    assert world.document().state == "halted"
    assert path in world.document().trouble
    assert world.rows() == []


def test_a_manifest_that_was_changed_is_never_applied() -> None:
    world = World()
    world.flag(0, "a")
    entry = queued_by_hand(world, world.flag(1, "b").generation)
    world.lake.stage(entry.manifest, b"{}")
    Process(world).until(lambda: world.document().state == "halted")
    assert [batch for batch, _ in world.rows()] == [name_of(0)]
    assert "changed since it was queued" in world.document().trouble


def queued_by_hand(world: World, generation: int) -> Entry:
    """The second hour, by a holder that goes no further."""
    world.ladle.poison = {name_of(0)}
    Process(world).until(lambda: world.document().queued == 2)
    world.ladle.poison = set()
    return next(one for one in world.entries() if one.generation == generation and one.number == 1)


def test_b3_a_batch_that_failed_goes_on_by_the_printed_command() -> None:
    world = HaltAtAFailure().fresh()
    Process(world).until(lambda: world.is_over(2))
    words = notice(TABLE, world.document(), len(world.entries()))
    assert 'headgate table retry orders_daily --reason "…"' in words
    assert world.rows() == [(name_of(0), "a")]

    world.ladle.poison = set()
    person(world, Calm()).retry(TABLE, ANN)
    Process(world).until(lambda: world.is_over(2))
    assert [batch for batch, _ in world.rows()] == [name_of(n) for n in range(3)]
    assert "table.retry" in world.ledger()


def test_a_failing_batch_is_tried_three_times_and_rests_in_between() -> None:
    world = World()
    world.flag(0, "a")
    world.ladle.poison = {name_of(0)}
    process = Process(world)
    for tries in (1, 2):
        world.ambient.pass_ms(60_000)
        due_ms = process.work.tick()
        assert world.ladle.moves == tries
        assert due_ms is not None
        assert due_ms > world.ambient.monotonic_ms()
        process.work.tick()
        assert world.ladle.moves == tries
    process.until(lambda: world.is_over(0))
    assert (world.ladle.moves, world.document().tries) == (3, 3)
    assert "is poison" in world.document().trouble


def test_b4_a_history_that_is_gone_halts_the_table() -> None:
    world = a_history_that_is_gone_halts()
    halt = world.document().halt
    assert halt is not None
    assert "not in the table's history" in halt.words


def test_b4_a_table_restored_from_an_old_copy_halts() -> None:
    """Its mark is there, and what was recorded is not in its history."""
    world = World()
    world.flag(0, "a")
    world.flag(1, "b")
    world.ladle.poison = {name_of(1)}
    node = Process(world)
    node.until(lambda: world.document().tries > 0)
    for path in [one for one in world.basin.files() if name_of(0) in one]:
        facts = world.basin.facts(path)
        assert facts is not None
        world.basin.remove(path, facts)
    Process(world).until(lambda: world.document().state == "halted")
    halt = world.document().halt
    assert halt is not None
    assert "not in the table's history" in halt.words


def test_b4_a_table_that_vanished_between_two_batches_halts_and_resumes() -> None:
    world = applied("a")
    deleted(world)
    world.flag(1, "b")
    Process(world).until(lambda: world.is_over(1))
    assert world.document().state == "halted"
    assert [proof.kind for proof in world.proofs()] == []

    person(world, Calm()).resume(TABLE, ANN)
    Process(world).until(lambda: world.is_over(1))
    assert world.rows() == [(name_of(1), "b")]


def test_a_batch_that_is_in_the_table_already_is_never_doubled() -> None:
    """The store was lost, and the table was not."""
    world, other = applied("a"), World()
    other.lake, other.basin, other.ladle = world.lake, world.basin, world.ladle
    Process(other).until(lambda: other.is_over(0))
    assert other.rows() == [(name_of(0), "a")]
    halt = other.document().halt
    assert halt is not None
    assert "is in the table already, under run 1" in halt.words

    person(other, Calm()).mark_applied(TABLE, name_of(0), ANN)
    Process(other).until(lambda: other.is_over(0))
    other.flag(1, "b")
    Process(other).until(lambda: other.is_over(1))
    assert other.rows() == [(name_of(0), "a"), (name_of(1), "b")]


def test_an_entry_that_a_late_waker_brings_back_is_removed_and_not_applied() -> None:
    world = World()
    world.flag(0, "a")
    process = Process(world)
    process.until(lambda: world.document().queued == 1)
    certificate = world.flag(0, "a")
    manifest = manifest_of(TABLE, certificate)
    process.until(lambda: world.is_over(0))
    path = manifest_path(TABLE, name_of(0), 1)
    queue(world.store, TABLE, Entry(name_of(0), 0, "orders", 1, path, hash_of(manifest), 1, 1))
    process.until(lambda: not world.entries())
    assert world.rows() == [(name_of(0), "a")]
    assert world.asides() == []


def test_another_generation_of_a_queued_hour_is_set_aside() -> None:
    world = World()
    world.flag(0, "a")
    world.flag(1, "b")
    world.ladle.poison = {name_of(0)}
    Process(world).until(lambda: world.document().state == "halted")
    world.flag(1, "b", "late", generation=2)
    world.ladle.poison = set()
    person(world, Calm()).retry(TABLE, ANN)
    Process(world).until(lambda: world.is_over(1))
    assert world.rows() == [(name_of(0), "a"), (name_of(1), "b")]
    (aside,) = world.asides()
    assert (aside.batch, aside.generation) == (name_of(1), 2)
    assert "generation 2" in aside.reason


def test_a_flag_that_was_edited_stops_what_comes_after_it_and_nothing_else() -> None:
    world = World()
    world.flag(0, "a")
    world.flag(1, "b")
    raw = world.lake.read(world.flag_path(1))
    assert raw is not None
    world.lake.stage(world.flag_path(1), raw.replace(b'"rows":1', b'"rows":2'))
    process = Process(world)
    with pytest.raises(Corrupt, match="was changed"):
        process.until(lambda: world.is_over(1))
    assert world.rows() == [(name_of(0), "a")]


def test_a_proof_that_cannot_be_read_halts_the_table_and_nothing_enters_beside_it() -> None:
    world = World()
    world.flag(0, "a")
    world.basin.stage(f"headgate_batch={name_of(0)}/headgate_run=1/_headgate.json", b"?")
    Process(world).until(lambda: world.is_over(0))
    assert world.document().state == "halted"
    assert world.rows() == []


def test_a_document_of_a_later_holder_stops_an_earlier_one() -> None:
    world = applied("a")
    first, second = Process(world), Process(world)
    second.work.tick()
    with pytest.raises(Fenced, match="this holder stops"):
        first.work.tick()


def test_retry_takes_the_hour_as_it_is_flagged_now() -> None:
    flow = HaltAtAFailure()
    world = flow.fresh()
    flow.act(world, Calm())
    world.flag(1, "mended", generation=2)
    world.ladle.poison = {f"{name_of(1)}/1-"}  # files of the first generation
    Process(world).work.tick()

    person(world, Calm()).retry(TABLE, ANN)
    Process(world).until(lambda: world.is_over(2))

    assert [row for batch, row in world.rows() if batch == name_of(1)] == ["mended"]
    assert world.asides() == []
    assert not world.document().renews


def test_retry_of_an_hour_whose_flag_is_gone_takes_what_was_queued() -> None:
    flow = HaltAtAFailure()
    world = flow.fresh()
    flow.act(world, Calm())
    path = world.flag_path(1)
    facts = world.lake.facts(path)
    assert facts is not None
    world.lake.remove(path, facts)
    world.ladle.poison = set()

    person(world, Calm()).retry(TABLE, ANN)
    Process(world).until(lambda: world.is_over(2))

    assert [row for batch, row in world.rows() if batch == name_of(1)] == ["b"]


def test_retry_freezes_a_manifest_anew_that_somebody_deleted() -> None:
    world = World()
    world.flag(0, "a")
    entry = queued_by_hand(world, world.flag(1, "b").generation)
    raw = world.lake.files()[entry.manifest]
    facts = world.lake.facts(entry.manifest)
    assert facts is not None
    world.lake.remove(entry.manifest, facts)
    Process(world).until(lambda: world.document().state == "halted")
    assert "the manifest is gone" in world.document().trouble

    person(world, Calm()).retry(TABLE, ANN)
    Process(world).until(lambda: world.is_over(1))

    assert [row for _, row in world.rows()] == ["a", "b"]
    assert world.lake.files()[entry.manifest] == raw


def test_retry_with_a_manifest_that_was_changed_halts_again_and_says_so() -> None:
    world = World()
    world.flag(0, "a")
    entry = queued_by_hand(world, world.flag(1, "b").generation)
    world.lake.stage(entry.manifest, b"{}")
    Process(world).until(lambda: world.document().state == "halted")

    person(world, Calm()).retry(TABLE, ANN)
    runs = world.document().run
    Process(world).until(lambda: world.document().state == "halted")

    assert world.document().run == runs + 1
    assert "changed since it was queued" in world.document().trouble
    assert world.cries == []
