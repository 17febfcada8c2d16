from headgate.periods import DAY_MS, HOUR_MS
from headgate.testing.drama.orders import busy, far_future, share

NOON_MS = 1_793_534_400_000


def test_the_share_of_what_has_happened_grows_from_nothing_to_all() -> None:
    until = [share(NOON_MS, NOON_MS + n * HOUR_MS, NOON_MS + 12 * HOUR_MS) for n in range(13)]

    assert (until[0], until[-1]) == (0, 1)
    assert until == sorted(until)


def test_most_happens_in_the_afternoon() -> None:
    hours = [busy(n * HOUR_MS) for n in range(24)]

    assert hours.index(max(hours)) == 16
    assert busy(NOON_MS) == busy(NOON_MS + DAY_MS)


def test_the_far_future_lies_beyond_every_skew() -> None:
    assert all(f'"at": {NOON_MS}' not in one for one in far_future(NOON_MS))
    assert len(set(far_future(NOON_MS))) == 2
