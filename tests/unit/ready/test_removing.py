"""Files of ready hours go on purpose: what stays, what waits, and what nobody calls damage."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.app.acts import Person
from headgate.apply.table_document import TableDocument, table_key
from headgate.audit import Finding
from headgate.audit.inspection import audit
from headgate.audit.verifying import Verified, verify
from headgate.commits.certificate import FLAG
from headgate.commits.checkpoint import Checkpoint, Journal, checkpoint_key
from headgate.commits.removals import How, Removed, how_of, with_removed
from headgate.commits.roots import RootDocument, removal_asked
from headgate.errors import Halted, Invalid
from headgate.periods import Period
from headgate.ready.outlook import has_flags_to_come
from headgate.store.changes import change, create_if_absent, read
from headgate.testing.faults import Call, Calm, Crashed, Harm, Point, Scripted
from tests.crash.landing_world import Watching
from tests.crash.ready_flows import (
    PERSON,
    Close,
    delete,
    flag_acts,
    retention_acts,
    wish_repaired,
    wish_withdrawn,
)
from tests.crash.ready_world import DAY, Process, World, hour, landing_of, run

HOUR = hour(23)


def ready() -> World:
    world = Close().fresh()
    run(world)
    return world


def erase(world: World, period: Period = HOUR, stream: str = "orders", *without: str) -> None:
    acts = retention_acts(world)
    acts.ask(acts.erasing(period, PERSON, stream, without))
    run(world)


def every_finding(world: World) -> list[Finding]:
    streams = {one.name: landing_of(one) for one in world.settings.streams}
    return list(audit(world.store, world.lake, streams).findings)


def verified(world: World) -> Verified:
    return verify(world.lake, {one.name: one.folder for one in world.settings.streams})


def files_of(world: World, stream: str) -> list[str]:
    return [path for path in world.data() if f"/{stream}/" in path]


def test_flag_certificate_and_parents_stay_and_the_files_are_gone() -> None:
    world = ready()
    flags, told = world.bodies(), every_finding(world)
    erase(world)
    assert files_of(world, "orders") == []
    assert files_of(world, "bids") != []
    assert world.bodies() == flags
    marks = [path for path in world.lake.files() if path.endswith("_ERASED")]
    assert marks == ["2027-01-15/23/orders/_ERASED", "2027-01-15/23/orders/data/_ERASED"]
    assert every_finding(world) == told
    assert (verified(world).findings, verified(world).removed) == ([], 1)
    assert world.root().removals == ()


def test_an_hour_that_is_not_ready_is_refused() -> None:
    world = ready()
    with pytest.raises(Halted, match=r"orders 2027-01-16T01 is not ready.*headgate why orders"):
        retention_acts(world).erasing(hour(25), PERSON)
    with pytest.raises(Halted, match="nothing to erase"):
        retention_acts(world).erasing(hour(3), PERSON)
    with pytest.raises(Invalid, match="no stream 'nobody'"):
        retention_acts(world).erasing(HOUR, PERSON, "nobody")
    assert world.root().removals == ()


def test_only_ready_hours_that_are_old_enough_expire() -> None:
    world = ready()
    now_ms = world.store.now_ms()
    assert retention_acts(world).expiring(now_ms - hour(23).start_ms, PERSON) == []
    (first, second) = retention_acts(world).expiring(now_ms - hour(24).start_ms, PERSON)
    assert {one.removal.stream for one in (first, second)} == {"orders", "bids"}
    assert first.removal.until_ms == hour(24).start_ms
    assert retention_acts(world).expiring(0, PERSON)[0].removal.until_ms == hour(25).start_ms


def test_a_look_says_what_would_go_and_changes_nothing() -> None:
    world = ready()
    world.land("orders", HOUR, 2, kind="late")
    before = world.state()
    acts = retention_acts(world)
    (going,) = acts.outlook(acts.erasing(HOUR, PERSON, "orders"))
    assert (going.files, going.late, going.rows, going.obstacle) == (1, 1, 5, "")
    assert world.state() == before


def test_inv4_late_files_of_a_commit_that_is_not_finished_are_waited_for() -> None:
    """Whoever finishes it would find them lost, and call for a person."""
    world = ready()
    world.land("orders", HOUR, 2, kind="late")
    (late,) = world.late()
    number = checkpoint_of(world).number
    standing = Journal(number, 1, "", "", 0, "", {}, {}, {}, (), 0)
    world.put("orders", journal=standing)
    erase(world)
    assert world.late() == [late]
    assert files_of(world, "orders") != []
    (told,) = world.root().troubles.values()
    assert f"commit orders/0/{number}" in told
    assert "headgate status" in told

    world.put("orders", journal=None)
    run(world)
    assert world.late() == files_of(world, "orders") == []
    assert world.root().troubles == {}


def checkpoint_of(world: World) -> Checkpoint:
    found = read(world.store, checkpoint_key("orders", 0), Checkpoint)
    assert found is not None
    return found.value


def put_table(world: World, applied_up_to: str, stream: str = "orders") -> None:
    document = TableDocument(applied_up_to=applied_up_to, stream=stream)
    create_if_absent(world.store, table_key("daily"), document)


def test_b2_files_stay_until_the_table_that_is_behind_has_taken_them() -> None:
    world = ready()
    put_table(world, str(hour(22)))
    erase(world)
    assert files_of(world, "orders") != []
    (told,) = world.root().troubles.values()
    assert "table daily has batches up to 2027-01-15T22" in told
    assert "headgate status" in told
    assert not has_flags_to_come(world.store, world.lake, world.settings)

    taken = TableDocument(applied_up_to=str(HOUR), stream="orders")
    change(world.store, table_key("daily"), TableDocument, lambda _: taken)
    run(world)
    assert files_of(world, "orders") == []
    assert world.root().troubles == {}


def test_a_halted_table_is_passed_by_its_own_command() -> None:
    world = ready()
    document = TableDocument(state="halted", stream="orders")
    create_if_absent(world.store, table_key("daily"), document)
    erase(world)
    (told,) = world.root().troubles.values()
    assert 'headgate table skip daily --batch 2027-01-15T23 --reason "…"' in told


def test_a_table_of_another_stream_or_one_that_a_person_leaves_out_is_not_asked() -> None:
    world = ready()
    put_table(world, "", "bids")
    erase(world)
    assert files_of(world, "orders") == []
    erase(world, HOUR, "bids")
    assert files_of(world, "bids") != []
    erase(world, HOUR, "bids", "daily")
    assert files_of(world, "bids") == []


def test_a_table_that_comes_while_an_hour_is_stated_as_removed_is_waited_for() -> None:
    world = ready()
    acts = retention_acts(world)
    acts.ask(acts.erasing(HOUR, PERSON, "orders"))
    calm = Calm()
    probe = ready()
    retention_acts(probe).ask(retention_acts(probe).erasing(HOUR, PERSON, "orders"))
    Process(probe, calm).run()
    stated = next(
        number
        for number, call in enumerate(calm.calls, 1)
        if call.method == "publish" and "removals" in str(call.args)
    )
    with pytest.raises(Crashed):
        Process(world, Scripted([Point(stated, Harm.CRASH_AFTER)])).run()
    put_table(world, "")
    run(world)
    assert files_of(world, "orders") != []
    assert world.root().journal is not None

    taken = TableDocument(applied_up_to=str(HOUR), stream="orders")
    change(world.store, table_key("daily"), TableDocument, lambda _: taken)
    run(world)
    assert files_of(world, "orders") == []
    assert world.root().journal is None


def test_inv4_nothing_else_is_begun_while_a_removal_waits_for_a_table() -> None:
    """The table came in the very pass that stated it; a flag is to be raised again, too."""
    world = ready()
    acts = retention_acts(world)
    acts.ask(acts.erasing(HOUR, PERSON, "orders"))
    delete(world, f"2027-01-15/23/bids/{FLAG}")
    wish_repaired(world, 23, 23)

    def look(call: Call) -> None:
        if call.method == "publish" and "removals" in str(call.args):
            put_table(world, "")

    Process(world, Watching(look)).run()
    journal = world.root().journal
    assert journal is not None
    assert journal.kind == "remove"
    assert files_of(world, "orders") != []


def test_inv6_a_file_that_somebody_puts_back_is_a_finding() -> None:
    world = ready()
    (path,) = files_of(world, "orders")
    raw = world.data()[path]
    erase(world)
    world.lake.put(path, raw)
    assert any("is there again" in one.words for one in every_finding(world))
    (found,) = verified(world).findings
    assert (found.subject, found.invariant) == (path, 6)


def test_inv6_a_mark_that_somebody_deletes_is_a_finding_of_the_audit() -> None:
    world = ready()
    erase(world)
    delete(world, "2027-01-15/23/orders/_ERASED")
    assert any("the mark is gone" in one.words for one in every_finding(world))


def test_inv2_a_file_that_is_lost_beside_one_that_was_erased_is_found() -> None:
    world = ready()
    erase(world)
    (path,) = files_of(world, "bids")
    delete(world, path)
    assert any(one.subject == path for one in every_finding(world))
    assert [one.subject for one in verified(world).findings] == [path]


def test_records_that_come_after_it_stay_late_and_the_same_command_takes_them() -> None:
    world = ready()
    erase(world)
    told = every_finding(world)
    world.land("orders", HOUR, 4, kind="late")
    assert files_of(world, "orders") == []
    (path,) = world.late()
    assert path.startswith("_late/2027-01-15/23/orders/")
    erase(world)
    assert world.late() == []
    assert [name[-10:] for name in world.removals() if "removals" in name] == [
        "00001.json",
        "00002.json",
    ]
    assert [one for one in every_finding(world) if one.subject == path] == []
    assert (verified(world).findings, [one for one in told if one.invariant == 6]) == ([], [])


def test_the_flags_of_a_removed_hour_are_not_withdrawn() -> None:
    world = ready()
    erase(world)
    with pytest.raises(Halted, match="was erased on purpose"):
        flag_acts(world).withdraw("orders", HOUR, PERSON)
    wish_withdrawn(world, "orders", 23)  # by somebody who looked before
    run(world)
    assert (world.root().reopened, dict(world.root().wishes)) == ({}, {})


def test_a_withdrawn_hour_waits_and_a_deleted_flag_of_a_removed_one_is_raised_again() -> None:
    world = ready()
    erase(world)
    path = f"2027-01-15/23/orders/{FLAG}"
    delete(world, path)
    wish_repaired(world, 0, 24)
    run(world)
    assert path in world.flags()
    assert files_of(world, "orders") == []


def test_two_persons_who_ask_at_once_are_one_removal() -> None:
    world = ready()
    acts = retention_acts(world)
    first = acts.erasing(DAY, PERSON, "orders")
    second = acts.erasing(HOUR, Person("bob", "it is mine"), "orders")
    acts.ask(first)
    acts.ask(second)
    assert len(world.root().removals) == 1
    run(world)
    assert files_of(world, "orders") == []


def test_more_than_fit_the_document_are_refused() -> None:
    removal = retention_acts(ready()).erasing(HOUR, PERSON, "orders")[0].removal
    document = RootDocument(removals=(removal,) * 200)
    other = retention_acts(ready()).erasing(HOUR, PERSON, "bids")[0].removal
    with pytest.raises(Halted, match="do not fit its document"):
        removal_asked("roots/x", document, other)


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["expired", "erased"]))))
def test_spans_say_of_each_hour_what_was_said_of_it(said: list[tuple[int, How]]) -> None:
    spans: tuple[Removed, ...] = ()
    known: dict[int, str] = {}
    for number, how in said:
        spans = with_removed(spans, hour(number), how)
        known[number] = "erased" if known.get(number) == "erased" else how
    assert {n: how_of(spans, hour(n)) for n in range(13)} == {n: known.get(n) for n in range(13)}
    for before, after in pairwise(spans):
        assert before.until_ms < after.from_ms or before.how != after.how
