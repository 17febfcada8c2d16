"""Identities: a set that knows what was seen."""

from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from headgate.sources.identities import Identities


def digest(n: int) -> bytes:
    return blake2b(str(n).encode(), digest_size=16).digest()


@given(st.sets(st.integers(0, 5_000), max_size=2_000), st.integers(0, 6_000))
def test_it_is_a_set(numbers: set[int], other: int) -> None:
    digests = Identities()
    for n in (*numbers, *numbers):
        digests.add(digest(n))
    assert len(digests) == len(numbers)
    assert set(digests) == {digest(n) for n in numbers}
    assert (digest(other) in digests) == (other in numbers)
    assert digests.see(digest(other)) == (other in numbers)


def test_what_was_seen_since_it_looked_away() -> None:
    digests = Identities()
    for n in range(100):
        digests.add(digest(n))
    assert digests.unseen() == 0
    digests.look_away()
    assert digests.unseen() == 100
    for n in range(50, 120):
        digests.see(digest(n))
    for n in range(1_000, 9_000):  # it grows, and remembers
        digests.add(digest(n))
    assert digests.unseen() == 50
    assert not digests.is_seen(digest(49))
    assert digests.is_seen(digest(50))
    assert not digests.is_seen(digest(119))


def test_equal_first_bytes_do_not_meet() -> None:
    digests = Identities()
    alike = [bytes(8) + n.to_bytes(8, "big") for n in range(1, 500)]
    for one in alike:
        digests.add(one)
    assert sorted(digests) == alike
    assert bytes(8) + (500).to_bytes(8, "big") not in digests
