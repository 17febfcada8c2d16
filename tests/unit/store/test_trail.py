from collections.abc import Sequence
from random import Random

import pytest

from headgate.errors import OutcomeUnknown
from headgate.store.trail import WRITERS_MAX, Entry, follow, judge


def written(writers: Sequence[str], start: Entry | None = None) -> Entry:
    """A document that these wrote one after the other; `a` writes `a-1`, then `a-2`, …"""
    entry = start
    for number, writer in enumerate(writers, start=0 if start is None else start.seq_no + 1):
        token = f"{writer}-{number + 1:x}"
        trail = f"{token},{token}" if entry is None else follow(entry, token)
        entry = Entry(number, 1, trail)
    assert entry is not None
    return entry


def test_a_write_that_is_current_is_found() -> None:
    base = written("a")
    ours = written("b", base)
    assert judge(ours.trail, base, ours) == ours.at


def test_a_write_that_others_followed_is_found_where_it_was() -> None:
    base = written("a")
    ours = written("b", base)
    assert judge(ours.trail, base, written("cde", ours)) == ours.at


def test_a_write_that_others_forestalled_never_was() -> None:
    base = written("a")
    ours = follow(base, "b-9")
    assert judge(ours, base, written("cd", base)) is None


def test_a_create_that_somebody_else_won_never_was() -> None:
    assert judge("b-9,b-9", None, written("acd")) is None


def test_after_too_many_writers_nobody_can_tell() -> None:
    base = written("a")
    ours = follow(base, "b-9")
    with pytest.raises(OutcomeUnknown, match="nobody can tell"):
        judge(ours, base, written("cdef0123456", base))


def test_one_writer_that_writes_often_hides_nobody() -> None:
    base = written("a")
    ours = written("b", base)
    assert judge(ours.trail, base, written("c" * 500, ours)) == ours.at


def test_a_trail_stays_short() -> None:
    random = Random(1)
    entry = written([f"{random.getrandbits(32):08x}" for _ in range(200)])
    assert len(entry.trail) < 220
    assert len(entry.writes) == WRITERS_MAX


@pytest.mark.parametrize("seed", range(50))
def test_the_judge_is_never_wrong(seed: int) -> None:
    """Random lives of a document: whenever it answers, the answer is the truth."""
    random = Random(seed)
    base = written(random.choices("abcdefgh", k=random.randint(1, 12)))
    took_effect = random.random() < 0.5
    ours = Entry(base.seq_no + 1, 1, follow(base, "f00-7"))
    current = ours if took_effect else base
    others = random.choices("abcdefgh", k=random.randint(0, 12))
    if others:
        current = written(others, current)
    elif not took_effect:
        current = written("a", base)
    try:
        place = judge(ours.trail, base, current)
    except OutcomeUnknown:
        assert len(set(others)) >= WRITERS_MAX - 1
    else:
        assert place == (ours.at if took_effect else None)
