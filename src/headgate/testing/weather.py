"""Weather: from a seed to a whole watershed, with everything that can go wrong in it.

Everybody is awake around the ends of hours, and asleep in between. What happens is drawn in waking
time, and then told when it is on the clock.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from headgate.cluster.duties import NodeSettings
from headgate.cluster.session import TERM_MS
from headgate.lake.paths import STAGING
from headgate.periods import HOUR_MS, Period
from headgate.ready.freezing import READY_STAGING
from headgate.testing.anglers import Errand, Visit
from headgate.testing.brook import Speck
from headgate.testing.fleet import Act, Move
from headgate.testing.simulation import AtCall, AtEffect, AtTime, Blow, Fault
from headgate.testing.tide import START_MS
from headgate.testing.turmoil import LONG_HARMS, SHORT_HARMS, SLOW_HARMS, draw
from headgate.testing.watershed import (
    LATENESS_MS,
    Night,
    Poured,
    Tributary,
    WatershedScenario,
)

BEFORE_MS = 45_000  # awake before the end of an hour
AFTER_MS = 75_000  # and after it
DAY_MS = BEFORE_MS + AFTER_MS  # of those who wake
EFFECTS_MAX = 1_500  # of one node; a fault beyond its last effect strikes nobody
AIMS = (  # what is worth a fault: method, whose, and how often that is called in a watershed
    ("replace", "roots/", 25),
    ("replace", "streams/", 8),
    ("replace", "tables/", 25),
    ("replace", "checkpoints/", 80),
    ("get", "checkpoints/", 200),
    ("create", "backlog/", 6),
    ("delete", "backlog/", 6),
    ("stage", READY_STAGING, 30),
    ("publish", READY_STAGING, 30),
    ("publish_all", STAGING, 30),
    ("publish_all", "20", 4),  # flags that are withdrawn
    ("publish_folder", STAGING, 12),
    ("move", "", 12),
)
AIMED_HARMS = (*LONG_HARMS, *SLOW_HARMS, *SHORT_HARMS)


def watershed_of(seed: int) -> WatershedScenario:
    """The same for the same seed, on every machine."""
    random = Random(f"weather {seed}")
    names = [f"node-{number}" for number in range(1, random.randint(1, 3) + 1)]
    nodes = tuple(NodeSettings(name, workers=random.randint(2, 4)) for name in names)
    days = random.choice([1, 1, 2, 2, 3])
    awake_ms = days * DAY_MS
    streams = _streams(random, awake_ms)
    happenings: list[Fault | Move | Visit] = []
    for _ in range(random.randint(0, 8)):
        happenings += [_moved(random, one) for one in draw(random, names, awake_ms)]
    happenings += [_aimed(random) for _ in range(random.randint(0, 3))]
    for stream in streams:
        if stream.joins_ms:
            happenings += _told_of(random, names, stream.joins_ms)
    happenings += _visits(random, awake_ms)
    return WatershedScenario(
        seed,
        streams,
        nodes,
        clock_ms(0),
        tuple(sorted(_poured(random, streams, awake_ms), key=lambda one: one.time_ms)),
        tuple(
            Night(clock_ms(day * DAY_MS) - HOUR_MS + DAY_MS, HOUR_MS - DAY_MS)
            for day in range(1, days)
        ),
        tuple(happenings),
        _poison(random, days),
        clock_ms(awake_ms - 1) + 1,
    )


def clock_ms(awake_ms: int) -> int:
    """When it is, on the clock of the simulation, after so much waking time."""
    day, rest_ms = divmod(awake_ms, DAY_MS)
    return (day + 1) * HOUR_MS - BEFORE_MS + rest_ms


def _streams(random: Random, awake_ms: int) -> tuple[Tributary, ...]:
    kinds = random.choice(["one", "two", "two", "late"])
    first = Tributary("orders", random.choice([1, 1, 2]), 0, table=True)
    if kinds == "one":
        return (first,)
    joins_ms = clock_ms(random.randrange(awake_ms // 2)) if kinds == "late" else 0
    second = Tributary("returns", random.choice([1, 2]), joins_ms, random.random() < 0.3)
    return first, second


def _told_of(random: Random, names: list[str], joins_ms: int) -> Iterator[Fault | Move]:
    """One node after the other is started again, with the settings that have the new stream."""
    for name in names:
        at_ms = joins_ms + random.randrange(1, 20_000)
        yield AtTime(name, at_ms, Blow.KILL)
        yield Move(Act.BOOT, at_ms + 1, name)


def _moved(random: Random, one: Fault | Move) -> Fault | Move:
    if isinstance(one, AtEffect):
        return replace(one, effect=random.randint(1, EFFECTS_MAX))
    if isinstance(one, AtCall):
        return one
    return replace(one, time_ms=clock_ms(one.time_ms))


def _aimed(random: Random) -> Fault:
    method, about, most = random.choice(AIMS)
    harm = random.choice(AIMED_HARMS)
    is_slow = harm in SLOW_HARMS
    duration_ms = random.choice([3_000, 8_000] if is_slow else [10_000, TERM_MS, 2 * TERM_MS])
    return AtCall(method, about, random.randint(1, most), harm, duration_ms)


# Records


def _poured(random: Random, streams: tuple[Tributary, ...], awake_ms: int) -> Iterator[Poured]:
    ids = iter(range(1_000_000))
    for stream in streams:
        for number in range(random.choice([1, 2, 2, 3])):
            partition = f"{stream.name}-{number}"
            joins_ms = _joins_ms(random, stream, number, awake_ms)
            yield Poured(joins_ms, stream.name, partition, (), 0)
            if joins_ms < clock_ms(0):
                yield from _of_yesterday(random, ids, stream.name, partition)
            elif random.random() < 0.5:
                yield from _muddy(random, ids, stream.name, partition, joins_ms)
            for _ in range(random.randint(1, 5)):
                time_ms = max(joins_ms, clock_ms(random.randrange(awake_ms)))
                specks = tuple(
                    Speck(next(ids), _event_ms(random, START_MS + time_ms))
                    for _ in range(random.randint(1, 2))
                )
                yield Poured(time_ms, stream.name, partition, specks, START_MS + time_ms)
        # Without any record nobody would know its first hour.
        time_ms = max(stream.joins_ms, clock_ms(0)) + 1
        speck = Speck(next(ids), START_MS + time_ms)
        yield Poured(time_ms, stream.name, f"{stream.name}-0", (speck,), START_MS + time_ms)


def _joins_ms(random: Random, stream: Tributary, number: int, awake_ms: int) -> int:
    """Mostly there from the start; some join just when an hour is being closed."""
    if number == 0 or random.random() < 0.5:
        return stream.joins_ms
    day_ms = random.randrange(awake_ms // DAY_MS) * DAY_MS
    near_ms = day_ms + BEFORE_MS + LATENESS_MS + random.randrange(-10_000, 20_000)
    return max(stream.joins_ms, clock_ms(near_ms))


def _of_yesterday(
    random: Random, ids: Iterator[int], stream: str, partition: str
) -> Iterator[Poured]:
    """What waits when the nodes begin: some hours, in order."""
    at_ms = START_MS - random.randrange(4) * HOUR_MS
    for _ in range(random.randint(0, 4)):
        at_ms += random.randrange(HOUR_MS)
        if at_ms < START_MS + clock_ms(0):
            arrival_ms = at_ms + random.randrange(5_000)
            yield Poured(0, stream, partition, (Speck(next(ids), at_ms),), arrival_ms)


def _muddy(
    random: Random, ids: Iterator[int], stream: str, partition: str, joins_ms: int
) -> Iterator[Poured]:
    """So much that nobody can use that the first round promises nothing; then what is on time."""
    arrival_ms = START_MS + joins_ms
    for _ in range(random.randint(3, 7)):
        yield Poured(joins_ms, stream, partition, (Speck(next(ids), None),), arrival_ms)
    hour_ms = Period.hour_of(arrival_ms).start_ms
    for event_ms in (hour_ms - 1_000, hour_ms + 1):
        yield Poured(joins_ms, stream, partition, (Speck(next(ids), event_ms),), arrival_ms)


def _event_ms(random: Random, now_ms: int) -> int | None:
    """Mostly just now; sometimes long ago, unusable, far ahead, of 1970, or at an hour's very
    edge."""
    kind = random.randrange(24)
    hour_ms = Period.hour_of(now_ms).start_ms
    if kind == 0:
        return None
    if kind == 1:
        return now_ms + 40 * HOUR_MS
    if kind == 2:
        return 1_000
    if kind < 5:
        return now_ms - random.randrange(3 * HOUR_MS)
    if kind < 8:
        return hour_ms - 1
    if kind < 10:
        return hour_ms
    return now_ms - random.randrange(LATENESS_MS)


# Persons


def _visits(random: Random, awake_ms: int) -> Iterator[Visit]:
    for _ in range(random.choice([0, 1, 2, 3, 4])):
        errand = random.choice(list(Errand))
        if errand is Errand.TAKE_FILE and random.random() < 0.5:
            continue
        time_ms, luck = random.randrange(awake_ms), random.getrandbits(30)
        yield Visit(errand, clock_ms(time_ms), luck)
        after = {Errand.TAKE_FLAG: Errand.REPAIR, Errand.HOLD: Errand.LET_GO}.get(errand)
        after = Errand.DECIDE if errand in (Errand.HALT, Errand.TAKE_MARK) else after
        after = Errand.RESUME if errand is Errand.PAUSE else after
        if after is not None:
            later_ms = min(awake_ms - 1, time_ms + random.randrange(60_000))
            yield Visit(after, clock_ms(later_ms), luck)


def _poison(random: Random, days: int) -> frozenset[str]:
    """An hour whose batch fails, until somebody mends it."""
    if random.random() > 0.25:
        return frozenset()
    hour = Period.hour_of(START_MS + random.randrange(-2, days) * HOUR_MS)
    return frozenset({f"{str(hour)[:10]}/{str(hour)[11:]}/"})
