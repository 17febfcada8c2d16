"""Invariants 6 and 7: a world with sound flags is clean, and each way of breaking one is found."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest

from headgate.audit.inspection import audit
from headgate.commits.certificate import (
    FLAG,
    Certificate,
    CertifiedFile,
    ParentCertificate,
    flag_paths,
    parent_flag_path,
    sealed,
    to_bytes,
)
from headgate.commits.roots import RootDocument, Seat, place_of, root_key, root_name
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import OURS
from headgate.periods import FolderTemplate, Period
from headgate.ready import ReadyStream
from headgate.ready.archive import (
    archive_path,
    parent_archive_path,
    required,
    required_parent,
)
from headgate.store.changes import change
from headgate.store.codec import body_of
from headgate.testing.faults import Calm, Stage
from headgate.testing.manual import ManualAmbient, manual_store
from tests.crash.ready_flows import (
    FLOWS,
    Close,
    Mend,
    Withdraw,
    WithdrawAndHold,
    delete,
    hold,
    let_go,
    wish_withdrawn,
)
from tests.crash.ready_world import DAY, TEMPLATE, Process, World, hour, landing_of, run
from tests.unit.audit.busy import Beside, Busy, effects

HOUR = hour(23)
DATA = TEMPLATE.folder(HOUR, stream="orders")
FILE = f"{DATA}/shard0-commit0000000001-0.json"
ARCHIVE = archive_path(HOUR, "orders", 1)
CALLS_MAX = 2_000
STRIDE = 23  # of the calls of an audit, those at which work goes on


@pytest.fixture
def world() -> World:
    """Two streams, whose last hour of a day has records and flags; the hour after it is empty."""
    found = Close().fresh()
    run(found)
    return found


def told(world: World) -> list[tuple[int | None, str]]:
    return [(one.invariant, one.subject) for one in world.findings()]


def change_root(world: World, decide: Callable[[RootDocument], RootDocument]) -> None:
    change(world.store, root_key(world.settings.name), RootDocument, decide)


def seat_of(world: World, stream: str, seat: Seat) -> None:
    change_root(world, lambda found: replace(found, streams={**found.streams, stream: seat}))


def certificate(world: World, period: Period = HOUR, stream: str = "orders") -> Certificate:
    found = required(world.lake, period, stream).certificate
    assert isinstance(found, Certificate)
    return found


def parent(world: World, period: Period) -> ParentCertificate:
    found = required_parent(world.lake, world.settings.name, period).certificate
    assert isinstance(found, ParentCertificate)
    return found


def forge(world: World, made: Certificate) -> None:
    """Another certificate in all its places, with everything above it resting on it."""
    made = sealed(made)
    period = Period.parse(made.period)
    for path in (
        archive_path(period, made.stream, made.generation),
        *flag_paths(TEMPLATE, period, made.stream),
    ):
        world.lake.put(path, to_bytes(made))
    above = parent(world, period)
    forge_parent(world, replace(above, children={**above.children, made.stream: made.hash}))


def forge_parent(world: World, made: ParentCertificate, *, is_alone: bool = False) -> None:
    made = sealed(made)
    period = Period.parse(made.period)
    flag = parent_flag_path(TEMPLATE, period)
    assert flag is not None
    for path in (parent_archive_path(world.settings.name, period, made.generation), flag):
        world.lake.put(path, to_bytes(made))
    if period.kind == "hour" and not is_alone:
        above = parent(world, period.day())
        forge_parent(world, replace(above, children={**above.children, str(period): made.hash}))


# What is sound


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_inv6_inv7_what_nodes_leave_is_clean(flow: Close) -> None:
    found = flow.fresh()
    flow.act(found, Calm())
    run(found)
    assert told(found) == []


def test_inv6_an_hour_with_merged_files_is_judged_by_its_certificate(world: World) -> None:
    merged = f"{DATA}/merged-0000000001.parquet"
    world.lake.put(merged, b"all rows")
    facts = world.lake.facts(merged)
    assert facts is not None
    file = CertifiedFile(merged, facts.size_bytes, facts.checksum, 3)
    forge(world, replace(certificate(world), files=(file,)))
    delete(world, FILE)

    assert told(world) == []

    forge(world, replace(certificate(world), files=(replace(file, rows=2),)))
    (finding,) = world.findings()
    assert (finding.invariant, finding.subject) == (6, ARCHIVE)
    assert "its files hold 2 rows, it counts 3, and the commits that it names landed 3" in (
        finding.words
    )


# Invariant 6


def test_inv6_a_file_that_came_after_the_certificate(world: World) -> None:
    late = f"{DATA}/shard0-commit0000000007-0.json"
    world.lake.put(late, b"row\n")

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (6, late)
    assert finding.next.endswith("headgate audit --stream orders")


def test_inv6_a_file_in_the_folder_of_a_shard_that_has_none_in_the_certificate() -> None:
    template = FolderTemplate.parse("{yyyy}-{MM}-{dd}/{HH}/{stream}/{shard}")
    stream = landing_of(ReadyStream("orders", template))
    key = root_key(root_name(template))
    store, lake = manual_store(ManualAmbient()), MemoryLake()
    seat = Seat(None, HOUR.start_ms, HOUR.end_ms)
    store.create(key, body_of(RootDocument(streams={"orders": seat})))
    found = Certificate("orders", str(HOUR), 1, (), {}, (), {"landed": 0}, None, {}, 0, "node")
    for path in (ARCHIVE, *flag_paths(template, HOUR, "orders")):
        lake.put(path, to_bytes(sealed(found)))
    late = template.folder(HOUR, stream="orders", shard=1) + "/shard1-commit0000000001-0.json"
    lake.put(late, b"row")

    told = audit(store, lake, {"orders": stream}).findings

    assert (6, late) in [(one.invariant, one.subject) for one in told]


def test_inv6_a_commit_that_came_after_the_certificate(world: World) -> None:
    world.land("orders", HOUR)

    assert told(world) == [
        (6, f"{OURS}/commits/orders/0/0000000002.json"),
        (6, f"{DATA}/shard0-commit0000000002-0.json"),
    ]


def test_inv6_a_commit_into_a_closed_hour_that_was_empty(world: World) -> None:
    world.land("bids", hour(24))

    assert [invariant for invariant, _ in told(world)] == [6, 6]


def test_inv6_a_certificate_that_leaves_out_a_file(world: World) -> None:
    forge(world, replace(certificate(world), files=()))

    assert told(world) == [(6, FILE), (6, ARCHIVE)]


def test_inv6_a_certificate_of_other_files(world: World) -> None:
    (file,) = certificate(world).files
    forge(world, replace(certificate(world), files=(replace(file, checksum="sha256:0"),)))

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (6, ARCHIVE)
    assert "names 1 files that its commits do not have, and leaves out 1" in finding.words


def test_inv6_a_certificate_that_is_gone(world: World) -> None:
    delete(world, ARCHIVE)

    found = world.findings()

    assert (6, ARCHIVE) in [(one.invariant, one.subject) for one in found]
    assert any("there is no certificate of it" in one.words for one in found)


def test_inv6_a_certificate_that_lies_where_another_one_should(world: World) -> None:
    world.lake.put(ARCHIVE, to_bytes(certificate(world, stream="bids")))

    assert "is the certificate of bids" in world.findings()[0].words


def test_a_certificate_that_was_edited_is_damage(world: World) -> None:
    world.lake.put(ARCHIVE, world.lake.files()[ARCHIVE].replace(b'"landed":3', b'"landed":4'))

    (finding,) = world.findings()

    assert finding.invariant is None
    assert ARCHIVE in finding.words


def test_inv6_a_frontier_that_is_ahead_of_certificates_and_of_closing(world: World) -> None:
    seat = world.root().streams["orders"]
    seat_of(world, "orders", replace(seat, frontier_ms=hour(26).start_ms))

    assert told(world) == [
        (6, "streams/orders"),
        (6, "orders/0"),
        (6, archive_path(hour(25), "orders", 1)),
    ]


def test_inv6_a_watermark_that_has_not_passed_a_closed_hour(world: World) -> None:
    world.put("orders", watermarks={"lane-0": HOUR.end_ms, "lane-1": None})

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject, finding.shard) == (6, "orders/0", 0)


def test_inv6_a_flag_of_a_withdrawn_hour_that_is_up() -> None:
    world = WithdrawAndHold().fresh()
    run(world)
    raw = world.lake.files()[f"{DATA}/{FLAG}.1"]
    for path in (f"{DATA}/{FLAG}", f"2027-01-15/23/{FLAG}", f"2027-01-15/{FLAG}"):
        world.lake.put(path, raw)

    assert sorted(told(world), key=str) == [
        (6, "2027-01-15/23/_READY"),
        (6, "2027-01-15/23/orders/data/_READY"),
        (6, "2027-01-15/_READY"),
    ]


def test_inv6_a_flag_that_is_not_its_certificate(world: World) -> None:
    world.lake.put(f"{DATA}/{FLAG}", b"{}")

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (6, f"{DATA}/{FLAG}")


def test_inv6_a_root_without_its_document_is_one_finding(world: World) -> None:
    key = root_key(world.settings.name)
    found = world.store.get(key)
    assert found is not None
    world.store.delete(key, found.version)

    assert told(world) == [(6, key)]


def test_a_damaged_document_of_a_root_is_damage(world: World) -> None:
    key = root_key(world.settings.name)
    found = world.store.get(key)
    assert found is not None
    world.store.replace(key, {**found.body, "epoch": "seven"}, found.version)

    assert told(world) == [(None, key)]


# Invariant 7


@pytest.mark.parametrize("folder", [DATA, "2027-01-15/23/orders"])
def test_inv7_a_child_whose_flag_is_gone_below_a_flag(world: World, folder: str) -> None:
    delete(world, f"{folder}/{FLAG}")

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (7, f"{folder}/{FLAG}")
    assert finding.next.startswith("headgate flags repair --from 2027-01-15T23 ")


def test_a_flag_that_is_gone_with_none_above_it_is_damage() -> None:
    world = WithdrawAndHold().fresh()
    run(world)
    delete(world, f"2027-01-15/23/bids/{FLAG}")

    assert told(world) == [(None, f"2027-01-15/23/bids/{FLAG}")]


@pytest.mark.parametrize("folder", ["2027-01-15/23", "2027-01-15"])
def test_a_parents_flag_that_is_gone_is_damage(world: World, folder: str) -> None:
    delete(world, f"{folder}/{FLAG}")

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (None, f"{folder}/{FLAG}")
    assert finding.next.startswith("headgate flags repair --from 2027-01-15")


def test_inv7_a_parents_flag_that_is_not_its_certificate(world: World) -> None:
    world.lake.put(f"2027-01-15/{FLAG}", b"{}")

    assert told(world) == [(7, f"2027-01-15/{FLAG}")]


def test_inv7_a_parent_that_names_another_generation_of_its_child(world: World) -> None:
    above = parent(world, HOUR)
    forge_parent(world, replace(above, children={**above.children, "orders": "sha256:0"}))

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (
        7,
        parent_archive_path(world.settings.name, HOUR, 1),
    )
    assert "another certificate of orders" in finding.words


def test_inv7_a_parent_that_does_not_name_an_expected_child(world: World) -> None:
    above = parent(world, HOUR)
    forge_parent(world, replace(above, children={"orders": above.children["orders"]}))

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (
        7,
        parent_archive_path(world.settings.name, HOUR, 1),
    )
    assert "does not name bids, which was expected" in finding.words


def test_inv7_k7_a_parent_without_children_is_never_ready(world: World) -> None:
    forge_parent(world, replace(parent(world, HOUR), children={}))

    assert "it names no children" in world.findings()[0].words
    assert {invariant for invariant, _ in told(world)} == {7}


def test_inv7_a_day_that_does_not_name_an_hour(world: World) -> None:
    forge_parent(world, replace(parent(world, DAY), children={"2027-01-15T22": "sha256:0"}))

    found = world.findings()

    assert [one.words for one in found] == [
        "2027-01-15T22 has no certificate",
        "it does not name 2027-01-15T23, which was expected",
    ]


def test_inv7_a_flag_over_an_unknown_set_of_children(world: World) -> None:
    change_root(world, lambda found: replace(found, streams={**found.streams, "clicks": Seat()}))

    found = world.findings()

    assert {one.invariant for one in found} == {7}
    assert "nobody knows whether it is expected" in found[0].words


def test_inv7_a_frontier_over_streams_that_is_ahead_of_one_of_them(world: World) -> None:
    change_root(world, lambda found: replace(found, hours_ms=hour(26).start_ms))

    found = world.findings()

    assert {one.invariant for one in found} == {7}
    assert found[0].subject == root_key(world.settings.name)
    assert found[0].words == "2027-01-16T01 has its flag, and bids has none there"


def test_inv7_a_parent_that_stands_above_a_withdrawn_child() -> None:
    world = WithdrawAndHold().fresh()
    run(world)
    kept = {place_of(HOUR, "orders"): 2}
    change_root(world, lambda found: replace(found, reopened=kept))

    found = world.findings()

    assert [one.words for one in found if one.subject == root_key(world.settings.name)] == [
        "2027-01-15T23/orders was withdrawn, and 2027-01-15 above it was not",
        "2027-01-15T23/orders was withdrawn, and 2027-01-15T23 above it was not",
    ]
    assert {one.invariant for one in found} <= {7, None}


@pytest.mark.parametrize(
    "folder",
    [
        "2027-01-16/05/orders/data",
        "2027-01-16/05/orders",
        "2027-01-16/05",
        "2027-01-16",
        "2027-03-01",
        "2027-01-15/22",
    ],
)
def test_planted_k6_inv7_a_flag_that_no_document_stands_behind(world: World, folder: str) -> None:
    world.lake.put(f"{folder}/{FLAG}", b"")

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (7, f"{folder}/{FLAG}")
    assert "no document stands behind it" in finding.words


# Nodes work meanwhile


def work_of(flow: Close) -> Callable[[World, Stage], None]:
    def act(world: World, stage: Stage) -> None:
        flow.act(world, stage)
        wish_withdrawn(world, "orders", 23)
        hold(world, "orders", 23)
        flow.act(world, stage)
        let_go(world, "orders", 23)
        flow.act(world, stage)

    return act


@pytest.mark.parametrize("at_once", [1, 200])
@pytest.mark.parametrize("flow", [Close(), Withdraw()], ids=str)
def test_inv6_inv7_flags_that_move_meanwhile_are_no_finding(flow: Close, at_once: int) -> None:
    act = work_of(flow)
    fresh = flow.fresh()
    steps = sum(1 for _ in effects(lambda stage: act(fresh, stage)))
    assert steps > 50
    for begun in range(0, steps, 5):
        for first in range(begun % STRIDE, CALLS_MAX, STRIDE):
            world = flow.fresh()
            work = effects(lambda stage, world=world: act(world, stage))  # type: ignore[misc]
            for _ in islice(work, begun):
                pass
            busy = Busy(work, first, at_once)
            found = world.findings(Beside(busy))
            assert found == [], (begun, first)
            if busy.calls <= 0:
                break
        else:
            raise AssertionError(f"an audit of this world makes {CALLS_MAX} calls")


def test_inv7_flags_that_a_person_deleted_are_found_until_they_are_repaired() -> None:
    world = Mend().fresh()
    assert [invariant for invariant, _ in told(world)] == [7, None, None]
    Process(world).run()
    assert told(world) == []


def test_planted_inv6_a_file_that_comes_while_flags_move_is_still_found() -> None:
    flow = Close()
    world = flow.fresh()
    run(world)
    late = f"{DATA}/shard0-commit0000000007-0.json"
    world.lake.put(late, b"row\n")
    wish_withdrawn(world, "bids", 23)
    work = effects(lambda stage: flow.act(world, stage))

    found = world.findings(Beside(Busy(work, 20, 1)))

    assert [(one.invariant, one.subject) for one in found] == [(6, late)]
