"""The effects of a root's journal on one flag, from whatever is there."""

import pytest

from headgate.commits.roots import FlagMove
from headgate.errors import Corrupt
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import STAGING
from headgate.ready.flagging import raise_flag, withdraw_flag

STAGED, FLAG = f"{STAGING}/_ready/x/1-a/00000.json", "2027-01-15/13/orders/_READY"


def staged(lake: MemoryLake, content: bytes = b"certificate") -> FlagMove:
    facts = lake.stage(STAGED, content)
    return FlagMove(STAGED, FLAG, facts.size_bytes, facts.checksum)


def test_inv6_what_was_changed_after_it_was_frozen_is_no_flag() -> None:
    lake = MemoryLake()
    move = staged(lake)
    lake.stage(STAGED, b"Certificate")
    with pytest.raises(Corrupt, match="what is staged for it was changed"):
        raise_flag(lake, move)
    assert list(lake.files()) == [STAGED]


def test_a_flag_in_the_way_is_not_overwritten_and_one_that_is_half_raised_is_finished() -> None:
    lake = MemoryLake()
    move = staged(lake)
    lake.put(FLAG, b"another")
    with pytest.raises(Corrupt, match="nothing is overwritten"):
        raise_flag(lake, move)
    assert lake.files() == {STAGED: b"certificate", FLAG: b"another"}

    half = MemoryLake()
    raised = staged(half)
    half.put(FLAG, b"certificate")
    raise_flag(half, raised)
    assert half.files() == {FLAG: b"certificate"}


def test_inv6_a_late_withdrawal_leaves_the_next_generations_flag_alone() -> None:
    lake = MemoryLake()
    lake.put(FLAG, b"generation 1")
    facts = lake.facts(FLAG)
    assert facts is not None
    move = FlagMove(FLAG, f"{FLAG}.1", facts.size_bytes, facts.checksum)
    withdraw_flag(lake, move)
    assert lake.files() == {f"{FLAG}.1": b"generation 1"}

    lake.put(FLAG, b"generation 2")
    withdraw_flag(lake, move)
    assert lake.files()[FLAG] == b"generation 2"
