"""How much of each partition of a log is read next: nothing too much, nobody for ever behind."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from headgate.sources.kafka.planning import RISK_MS, Log, shares

NOW_MS = 1_800_000_000_000
ROOMY = 10**12

LOGS = st.builds(
    lambda first, waiting, behind, expires_ms, record_bytes: Log(
        first, first + waiting + behind, first + waiting, expires_ms, record_bytes
    ),
    st.integers(0, 10**6),
    st.integers(0, 10_000),
    st.integers(0, 3),
    st.none() | st.integers(NOW_MS - 10, NOW_MS + 2 * RISK_MS),
    st.integers(1, 5_000),
)
MANY = st.dictionaries(st.sampled_from([f"t/{n}" for n in range(12)]), LOGS)


def log(waiting: int, *, record_bytes: int = 1, expires_ms: int | None = None) -> Log:
    return Log(0, waiting, waiting, expires_ms, record_bytes)


def shared(
    logs: Mapping[str, Log], records_max: int = ROOMY, size_bytes_max: int = ROOMY, turn: int = 0
) -> dict[str, int]:
    return shares(
        logs, records_max=records_max, size_bytes_max=size_bytes_max, now_ms=NOW_MS, turn=turn
    )


def is_at_risk(one: Log) -> bool:
    return one.expires_ms is not None and one.expires_ms < NOW_MS + RISK_MS


@given(MANY, st.integers(1, 20_000), st.integers(1, 10**7), st.integers(0, 50))
def test_a_plan_keeps_to_its_bounds(
    logs: Mapping[str, Log], records_max: int, size_bytes_max: int, turn: int
) -> None:
    found = shared(logs, records_max, size_bytes_max, turn)

    assert all(0 < taken <= logs[name].waiting for name, taken in found.items())
    assert sum(found.values()) <= records_max
    sizes = {name: taken * logs[name].record_bytes for name, taken in found.items()}
    # One record may be larger than all that is left.
    largest = max((logs[name].record_bytes for name in found), default=0)
    assert sum(sizes.values()) < size_bytes_max + largest
    assert bool(found) == any(one.waiting for one in logs.values())


@given(MANY, st.integers(1, 20_000))
def test_no_room_is_left_while_something_waits(logs: Mapping[str, Log], records_max: int) -> None:
    found = shared(logs, records_max)
    waiting = sum(one.waiting for one in logs.values())
    assert sum(found.values()) == min(records_max, waiting)


@given(MANY, st.integers(1, 20_000), st.integers(1, 10**7))
def test_what_may_soon_expire_goes_first(
    logs: Mapping[str, Log], records_max: int, size_bytes_max: int
) -> None:
    found = shared(logs, records_max, size_bytes_max)
    at_risk = sorted(
        (one.expires_ms, name)
        for name, one in logs.items()
        if one.waiting and one.expires_ms is not None and is_at_risk(one)
    )
    for n, (_, name) in enumerate(at_risk):
        if found.get(name, 0) < logs[name].waiting:
            # Behind it only what its next record had no room in.
            behind = {*(later for _, later in at_risk[n + 1 :])}
            behind |= {other for other, one in logs.items() if not is_at_risk(one)}
            sizes = [found.get(other, 0) * logs[other].record_bytes for other in behind]
            largest = max((logs[other].record_bytes for other in behind & found.keys()), default=0)
            assert not sum(sizes) or sum(sizes) < logs[name].record_bytes + largest
            break


@given(MANY, st.integers(1, 12))
def test_nobody_waits_for_ever(logs: Mapping[str, Log], records_max: int) -> None:
    calm = {name: one for name, one in logs.items() if not is_at_risk(one) and one.waiting}
    served = set[str]()
    for turn in range(len(calm)):
        served |= shared(calm, records_max, turn=turn).keys()
    assert served == calm.keys()


@given(MANY, st.integers(12, 20_000))
def test_a_hot_one_does_not_starve_a_quiet_one(logs: Mapping[str, Log], records_max: int) -> None:
    calm = {name: one for name, one in logs.items() if not is_at_risk(one) and one.waiting}
    found = shared(calm, records_max)
    fair = records_max // max(1, len(calm))
    for name, one in calm.items():
        assert found[name] >= min(one.waiting, fair)


def test_what_one_does_not_need_goes_to_the_others() -> None:
    logs = {"t/0": log(10), "t/1": log(1_000), "t/2": log(1_000)}
    assert shared(logs, 100) == {"t/0": 10, "t/1": 45, "t/2": 45}


def test_sizes_count_as_well_as_records() -> None:
    logs = {"t/0": log(1_000, record_bytes=100), "t/1": log(1_000)}
    assert shared(logs, size_bytes_max=1_000) == {"t/0": 5, "t/1": 500}


def test_a_record_larger_than_a_round_is_read_all_the_same() -> None:
    assert shared({"t/0": log(3, record_bytes=10**9)}, size_bytes_max=1) == {"t/0": 1}


def test_an_open_transaction_is_no_proof_of_an_end() -> None:
    assert Log(0, 15, 15).is_proof
    assert not Log(0, 15, 10).is_proof
    assert not Log(10, 15, 10).is_proof
