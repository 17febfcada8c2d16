"""What is left of a commit before its range is read again, and who wakes up late then."""

import pytest

from headgate.commits.record import record_path
from headgate.commits.replay import carry_out_journal
from headgate.errors import Corrupt, Halted
from headgate.lake import Lake
from headgate.lake.memory import MemoryLake
from headgate.landing.restaging import clear_commit
from headgate.testing.faults import Calm, wrap
from tests.unit.commits.test_replay import FOLDER, PLACES, STREAM, staged_commit

RECORD = record_path(STREAM, 0, 1)


@pytest.mark.parametrize("published", range(4))
def test_inv5_only_the_record_is_left_and_a_late_waker_finds_nothing_to_publish(
    published: int,
) -> None:
    calm, lake = Calm(), MemoryLake()
    journal = staged_commit(lake)
    for number in range(published):
        lake.publish(f"{FOLDER}/part-{number}", PLACES[number])

    clear_commit(wrap(Lake, lake, calm), STREAM, 0, journal)

    assert list(lake.files()) == [RECORD]
    removals = [call.method for call in calm.calls if call.method.startswith("remove")]
    assert removals[0] == "remove_folder"  # first what a late waker could publish
    with pytest.raises(Halted, match="not published, and what was staged for it is missing"):
        carry_out_journal(lake, STREAM, 0, journal, {})
    assert list(lake.files()) == [RECORD]


def test_a_file_that_is_not_this_commits_is_left_alone() -> None:
    lake = MemoryLake()
    journal = staged_commit(lake)
    lake.put(PLACES[1], b"of another commit")
    with pytest.raises(Corrupt, match="is left alone"):
        clear_commit(lake, STREAM, 0, journal)
    assert lake.files()[PLACES[1]] == b"of another commit"


def test_inv2_without_its_record_nothing_is_removed() -> None:
    lake = MemoryLake()
    journal = staged_commit(lake)
    lake.publish(f"{FOLDER}/part-0", PLACES[0])
    facts = lake.facts(journal.record)
    assert facts is not None
    lake.remove(journal.record, facts)
    before = lake.files()
    with pytest.raises(Halted, match="read again, records could be doubled"):
        clear_commit(lake, STREAM, 0, journal)
    assert lake.files() == before
