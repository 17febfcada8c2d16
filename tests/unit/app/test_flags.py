"""What a person asks of flags: noted before it is asked, and done by whoever holds the root."""

from typing import Any

import pytest

from headgate.app.flags import FlagActs
from headgate.commits.certificate import FLAG, certificate_folder
from headgate.errors import Halted, Invalid
from headgate.lake.ledger import Ledger, Line, read_ledger
from headgate.lake.pages import entries_of
from headgate.periods import HOUR_MS, Period
from headgate.ready.outlook import has_flags_to_come
from tests.crash.ready_flows import PERSON, delete, flag_acts, hold, let_go
from tests.crash.ready_world import DAY, World, hour, run, settings_of

STREAM_FLAG = f"2027-01-15/22/orders/{FLAG}"
DATA_FLAG = f"2027-01-15/22/orders/data/{FLAG}"
HOUR_FLAG = f"2027-01-15/22/{FLAG}"
DAY_FLAG = f"2027-01-15/{FLAG}"


def flagged(first: int = 22) -> World:
    """Two hours, both quiet, and their day."""
    world = World(settings_of("orders"))
    world.open("orders", hour(first))
    world.reach("orders", hour(24))
    run(world)
    assert DAY_FLAG in world.flags()
    return world


def told(world: World, what: str) -> list[Line]:
    return [line for line in read_ledger(world.lake, 0, 2**45) if line.what == what]


# ── repair ────────────────────────────────────────────────────────────────────────────────────────


def test_k15_a_deleted_quiet_hour_is_found_and_raised_again_with_its_bytes() -> None:
    world = flagged()
    before = dict(world.lake.files())
    gone = [STREAM_FLAG, DATA_FLAG, HOUR_FLAG]  # as a cleaner of empty folders does
    for path in gone:
        delete(world, path)
    acts = flag_acts(world)
    missing = acts.missing()
    assert sorted(one.path for one in missing) == sorted(gone)
    assert [(one.stream, one.path) for one in missing if one.path == HOUR_FLAG] == [
        (None, HOUR_FLAG)
    ]

    roots = acts.repair(missing, PERSON)
    assert acts.is_repairing(roots)
    assert has_flags_to_come(world.store, world.lake, world.settings)  # a run waits for it
    assert [words for _, words in acts.still_missing(missing)] == ["it is not raised yet"] * 3
    run(world)
    assert not acts.is_repairing(roots)
    assert acts.still_missing(missing) == []
    assert {path: world.lake.files()[path] for path in gone} == {
        path: before[path] for path in gone
    }
    (line,) = told(world, "flags.repair")
    assert (line.who, line.words) == (
        "ann",
        "the disk was replaced: of 2027-01-15T22 to 2027-01-15T22",
    )


def test_k10_writer_propagation_and_repair_use_one_name_also_a_changed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headgate.commits.certificate.FLAG", "_KAFKA_READY")
    world = World(settings_of("orders"))
    world.open("orders", hour(22))
    world.reach("orders", hour(24))
    run(world)
    flags = [path for path in world.lake.files() if "READY" in path]
    assert [path for path in flags if not path.endswith("/_KAFKA_READY")] == []
    assert len(flags) == 2 * 3 + 1

    day = "2027-01-15/_KAFKA_READY"
    for path in (day, "2027-01-15/23/orders/data/_KAFKA_READY"):
        delete(world, path)
    acts = flag_acts(world)
    acts.repair(acts.missing(), PERSON)
    run(world)
    assert sorted(path for path in world.lake.files() if "READY" in path) == sorted(flags)


def test_only_what_was_asked_for_is_looked_at() -> None:
    world = flagged()
    delete(world, STREAM_FLAG)
    delete(world, DAY_FLAG)
    acts = flag_acts(world)
    assert [one.path for one in acts.missing(hour(22), hour(22))] == [STREAM_FLAG]
    assert [one.path for one in acts.missing(hour(23))] == [DAY_FLAG]
    assert [one.path for one in acts.missing(DAY, DAY)] == [STREAM_FLAG, DAY_FLAG]
    assert acts.missing(Period.parse("2001-01-01"), Period.parse("2001-01-02")) == []
    assert told(world, "flags.repair") == []  # a look asks for nothing


def test_a_flag_whose_certificate_is_gone_is_named_and_stops_no_other() -> None:
    world = flagged()
    for path in (STREAM_FLAG, f"2027-01-15/23/orders/{FLAG}"):
        delete(world, path)
    for entry in list(entries_of(world.lake, certificate_folder("orders", hour(22)))):
        delete(world, entry.path)
    acts = flag_acts(world)
    missing = acts.missing()
    acts.repair(missing, PERSON)
    run(world)
    ((one, words),) = acts.still_missing(missing)
    assert (one.path, words) == (STREAM_FLAG, "its certificate is gone")


def test_two_who_ask_at_once_get_both_what_they_want() -> None:
    world = flagged(first=20)
    for path in (f"2027-01-15/20/{FLAG}", f"2027-01-15/23/{FLAG}"):
        delete(world, path)
    acts = flag_acts(world)
    acts.repair(acts.missing(hour(23)), PERSON)
    acts.repair(acts.missing(None, hour(20)), PERSON)
    repair = world.root().repair
    assert repair is not None
    assert (repair.from_ms, repair.until_ms) == (hour(20).start_ms, hour(24).start_ms)
    run(world)
    assert acts.missing() == []


def test_a_stream_that_nobody_flagged_has_nothing_missing() -> None:
    assert flag_acts(World()).missing() == []


# ── withdraw ──────────────────────────────────────────────────────────────────────────────────────


def test_inv6_an_hour_is_withdrawn_with_its_parents_and_follows_as_the_next_generation() -> None:
    world = flagged()
    hold(world, "orders", 22)
    acts = flag_acts(world)
    asked = acts.withdraw("orders", hour(22), PERSON)
    assert (asked.generation, asked.is_changed) == (2, True)
    assert asked.hold == "2027-01-15/22/orders/working"
    assert acts.is_withdrawing(asked)
    assert acts.withdraw("orders", hour(22), PERSON).is_changed is False  # once is enough
    assert has_flags_to_come(world.store, world.lake, world.settings)
    run(world)
    assert not acts.is_withdrawing(asked)
    assert {STREAM_FLAG, DATA_FLAG, HOUR_FLAG, DAY_FLAG}.isdisjoint(world.flags())
    assert not has_flags_to_come(world.store, world.lake, world.settings)  # a person holds it
    with pytest.raises(Halted, match="was withdrawn already, and generation 2 comes next"):
        acts.withdraw("orders", hour(22), PERSON)

    let_go(world, "orders", 22)
    assert has_flags_to_come(world.store, world.lake, world.settings)
    run(world)
    assert world.certificate("orders", hour(22)).generation == 2
    assert DAY_FLAG in world.flags()
    assert len(told(world, "flags.withdraw")) == 1


def test_what_has_no_flag_cannot_be_withdrawn() -> None:
    world = flagged()
    acts = flag_acts(world)
    for number in (21, 24, 400):
        with pytest.raises(Halted, match="has no flag, so there is none to withdraw"):
            acts.withdraw("orders", hour(number), PERSON)
    with pytest.raises(Invalid, match="no stream 'odd' in the settings"):
        acts.withdraw("odd", hour(22), PERSON)
    with pytest.raises(Invalid, match="is a day"):
        acts.withdraw("orders", DAY, PERSON)
    assert told(world, "flags.withdraw") == []
    assert world.root().wishes == {}


def test_withdrawn_just_before_the_wish_is_written_it_is_not_withdrawn_twice() -> None:
    world = flagged()
    hold(world, "orders", 22)

    class Slow(Ledger):
        """Somebody else is faster."""

        def note(self, *args: Any, **kwargs: Any) -> Line:
            flag_acts(world).withdraw("orders", hour(22), PERSON)
            run(world)
            return super().note(*args, **kwargs)

    acts = FlagActs(
        world.store,
        world.lake,
        Slow(world.lake, "here", world.ambient),
        world.ambient,
        [world.settings],
    )
    with pytest.raises(Halted, match="was withdrawn already"):
        acts.withdraw("orders", hour(22), PERSON)
    assert world.root().reopened[f"{hour(22)}/orders"] == 2


def test_the_hours_of_a_day_are_all_looked_at_once() -> None:
    world = flagged(first=0)
    seen: list[tuple[int, int]] = []
    flag_acts(world).missing(on_progress=lambda done, total, _: seen.append((done, total)))
    assert seen == [(n, 24) for n in range(24)]
    assert (hour(24).start_ms - hour(0).start_ms) // HOUR_MS == 24
