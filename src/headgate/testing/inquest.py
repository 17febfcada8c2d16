"""Inquest: why a scenario is red. The fewest happenings that still make it so, and who did what.

python -m headgate.testing.inquest 42
python -m headgate.testing.inquest 42 --planted "epoch not raised"
python -m headgate.testing.inquest 42 --watershed
"""

import argparse
import logging
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from headgate.testing.checkers import WRITES, body_of
from headgate.testing.faults import Call
from headgate.testing.fleet import Outcome, Scenario, play
from headgate.testing.sabotage import BUGS, planted
from headgate.testing.simulation import reduce, tell
from headgate.testing.slips import SLIPS, planted_slip
from headgate.testing.spills import SPILLS, planted_spill
from headgate.testing.turmoil import scenario_of
from headgate.testing.watershed import WatershedScenario, play_watershed
from headgate.testing.weather import watershed_of

LINES_MAX = 60
RUNS_MAX = 200
WATERSHED_RUNS_MAX = 100
WATER = ("checkpoints/", "streams/", "roots/", "tables/", "backlog/", "aside/", "_headgate/staging")

_KEYS = re.compile(r"(?:cluster|steps|sessions)/[\w/-]+")
_TASK = re.compile(r"steps/(\w+)/(\d{10})")


def explain(scenario: Scenario, bug: str | None = None) -> str:
    """Words for a person. The scenario must be red; `bug` is what is planted just now."""
    happenings = reduce(
        scenario.happenings,
        lambda some: play(replace(scenario, happenings=tuple(some))).is_red,
        RUNS_MAX,
    )
    small = replace(scenario, happenings=tuple(happenings))
    outcome = play(small, with_events=True)
    feed = small.feed
    lines = [
        f"seed {small.seed} is red",
        f"  {len(small.nodes)} nodes, {feed.count} tasks of {feed.steps} steps, "
        f"{feed.pause_ms} ms apart",
        f"what happens ({len(happenings)} of {len(scenario.happenings)} matter)",
        *(f"  {one}" for one in happenings),
        "what is wrong",
        *(f"  {words}" for words in outcome.violations[:5]),
        "what they did",
        *_story(outcome),
        "again",
        f"  python -m headgate.testing.inquest {small.seed}"
        + (f' --planted "{bug}"' if bug else ""),
    ]
    return "\n".join(lines)


def explain_watershed(scenario: WatershedScenario, bug: str | None = None) -> str:
    """As `explain`, of a whole watershed."""
    happenings = reduce(
        scenario.happenings,
        lambda some: play_watershed(replace(scenario, happenings=tuple(some))).is_red,
        WATERSHED_RUNS_MAX,
    )
    small = replace(scenario, happenings=tuple(happenings))
    outcome = play_watershed(small, with_events=True)
    streams = ", ".join(f"{one.name} of {one.shards} shards" for one in small.streams)
    told = tell(outcome.events, WATER)
    lines = [
        f"watershed {small.seed} is red",
        f"  {len(small.nodes)} nodes, {streams}, {len(small.poured)} drops",
        f"what happens ({len(happenings)} of {len(scenario.happenings)} matter)",
        *(f"  {one}" for one in happenings),
        "what is wrong",
        *(f"  {words}" for words in outcome.violations[:5]),
        "what they did at last",
        *told[-LINES_MAX:],
        "again",
        f"  python -m headgate.testing.inquest {small.seed} --watershed"
        + (f' --planted "{bug}"' if bug else ""),
    ]
    return "\n".join(lines)


def _story(outcome: Outcome) -> list[str]:
    text = " ".join(outcome.violations[:5])
    about = set(_KEYS.findall(text))
    # A task and its steps are one story.
    for feed, number in _TASK.findall(text):
        about.add(f"cluster/tasks/{feed}/{int(number) // 1000:07}/{number}")
    owners = _owners(outcome)
    told = tell(
        outcome.events,
        sorted(about | {"sessions/"}) if about else (),
        describe=lambda call: _describe(call, owners),
    )
    left_out = len(told) - LINES_MAX
    head = [f"  … {left_out} earlier lines"] if left_out > 0 else []
    return [*head, *told[-LINES_MAX:]]


def _owners(outcome: Outcome) -> Mapping[str, str]:
    """Which node opened which session."""
    return {
        event.call.subject.partition("/")[2]: event.machine
        for event in outcome.events
        if event.call is not None
        and event.call.method == "create"
        and event.call.subject.startswith("sessions/")
    }


def _describe(call: Call, owners: Mapping[str, str]) -> str:
    """What of a body matters to a person."""
    if call.method not in WRITES:
        return ""
    body = body_of(call)
    if call.subject.startswith("sessions/"):
        why = body.get("why")
        owner = owners.get(call.subject.partition("/")[2], "?")
        return f"of {owner}, closed: {why}" if why else f"of {owner}"
    said = []
    if "holder" in body:
        holder = str(body["holder"])
        said.append(f"holder {owners.get(holder, 'nobody' if not holder else holder[:8])}")
    if "epoch" in body:
        said.append(f"epoch {body['epoch']}")
    steps = body.get("steps")
    if isinstance(steps, list):
        said.append(f"{len(steps)} steps")
    if body.get("start"):
        said.append(f"start {body['start']}")
    if body.get("state") == "done":
        said.append("done")
    if body.get("set_aside"):
        said.append("set aside")
    return ", ".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description="Replays a seed; if it is red, says why.")
    parser.add_argument("seed", type=int)
    parser.add_argument("--watershed", action="store_true", help="streams, flags and tables")
    bugs = sorted([*BUGS, *SLIPS, *SPILLS])
    parser.add_argument("--planted", choices=bugs, help="with this bug in the code")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with _planted(asked.planted):
        is_red, words = (_of_watershed if asked.watershed else _of_fleet)(asked.seed, asked.planted)
    print(words)
    if is_red:
        raise SystemExit(1)


def _planted(bug: str | None) -> AbstractContextManager[None]:
    if bug is None:
        return nullcontext()
    if bug in SLIPS:
        return planted_slip(bug)
    return planted_spill(bug) if bug in SPILLS else planted(bug)


def _of_fleet(seed: int, bug: str | None) -> tuple[bool, str]:
    scenario = scenario_of(seed)
    outcome = play(scenario)
    if outcome.is_red:
        return True, explain(scenario, bug)
    return False, f"seed {seed} is green: {outcome.effects} effects"


def _of_watershed(seed: int, bug: str | None) -> tuple[bool, str]:
    scenario = watershed_of(seed)
    outcome = play_watershed(scenario)
    if outcome.is_red:
        return True, explain_watershed(scenario, bug)
    return False, f"watershed {seed} is green: {outcome.effects} effects"


if __name__ == "__main__":
    main()
