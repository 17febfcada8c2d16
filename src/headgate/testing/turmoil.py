"""Turmoil: from a seed to a scenario, with everything that can go wrong in a fleet."""

from random import Random

from headgate.cluster.duties import NodeSettings
from headgate.cluster.session import TERM_MS
from headgate.testing.faults import Harm
from headgate.testing.fleet import Act, Move, Scenario
from headgate.testing.simulation import AtEffect, AtTime, Blow, Fault
from headgate.testing.steps import StepsFeed

HAPPENINGS_MAX = 14
EFFECTS_MAX = 300  # of one node; a fault beyond its last effect strikes nobody
LONG_HARMS = (Harm.PAUSE_BEFORE, Harm.PAUSE_AFTER, Harm.SLEEP_BEFORE, Harm.SLEEP_AFTER)
SLOW_HARMS = (Harm.SLOW_REQUEST, Harm.SLOW_REPLY)
SHORT_HARMS = (
    *(Harm.CRASH_BEFORE, Harm.CRASH_AFTER, Harm.LOSE_REQUEST, Harm.LOSE_REPLY),
    *(Harm.DUPLICATE, Harm.REFUSE, Harm.LOSE_WAKE_UP),
)


def scenario_of(seed: int) -> Scenario:
    """The same for the same seed, on every machine."""
    random = Random(f"turmoil {seed}")
    names = [f"node-{number}" for number in range(1, random.randint(2, 6) + 1)]
    nodes = {name: NodeSettings(name, workers=random.randint(1, 3)) for name in names}
    feed = StepsFeed(
        "demo",
        count=random.choice([0, 1, 3, 8, 15, 24]),
        steps=random.randint(1, 6),
        pause_ms=random.choice([100, 1_000, 10_000]),
        poison=frozenset({0} if random.random() < 0.15 else ()),
        killers=frozenset({1} if random.random() < 0.1 else ()),
    )
    turmoil_ms = random.choice([60_000, 120_000, 240_000])
    happenings: list[Fault | Move] = []
    for _ in range(random.randint(1, HAPPENINGS_MAX)):
        happenings += draw(random, names, turmoil_ms)
    slowness = 400 if random.random() < 0.1 else 1
    return Scenario(seed, feed, nodes, tuple(happenings), turmoil_ms, slowness)


def draw(random: Random, names: list[str], turmoil_ms: int) -> list[Fault | Move]:
    name = random.choice(names)
    time_ms = random.randrange(turmoil_ms)
    long_ms = random.choice([TERM_MS // 2, TERM_MS, 2 * TERM_MS, 3 * TERM_MS])
    later_ms = time_ms + random.choice([100, 5_000, 2 * TERM_MS])
    skew_ms = random.choice([-1, 1]) * random.choice([1, 3, 10, 1_000_000]) * TERM_MS
    effect = random.randint(1, EFFECTS_MAX)
    kind = random.randrange(13)
    if kind == 0:
        return [AtTime(name, time_ms, Blow.KILL), Move(Act.BOOT, later_ms, name)]
    if kind == 1:
        return [AtTime(name, time_ms, Blow.PAUSE, long_ms)]
    if kind == 2:
        return [AtTime(name, time_ms, Blow.SLEEP, long_ms)]
    if kind == 3:
        return [AtTime(name, time_ms, Blow.SKEW, skew_ms)]
    if kind == 4:
        return [Move(Act.DRAIN, time_ms, name), Move(Act.BOOT, later_ms, name)]
    if kind == 5:
        return [Move(Act.CLOCK, time_ms, amount_ms=random.choice([-1, 1]) * long_ms)]
    if kind == 6:
        return [Move(Act.BOOT, time_ms, f"guest-{random.randint(1, 3)}")]
    if kind == 7:
        return [AtTime(name, time_ms, Blow.CUT, long_ms)]
    if kind in (8, 9):
        return [AtEffect(name, effect, random.choice(LONG_HARMS), long_ms)]
    if kind == 10:
        return [AtEffect(name, effect, random.choice(SLOW_HARMS), random.choice([5_000, long_ms]))]
    return [AtEffect(name, effect, random.choice(SHORT_HARMS)), Move(Act.BOOT, later_ms, name)]
