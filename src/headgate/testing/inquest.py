"""Inquest: why a scenario is red. The fewest happenings that still make it so, and who did what.

python -m headgate.testing.inquest 42
python -m headgate.testing.inquest 42 --planted "epoch not raised"
"""

import argparse
import logging
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace

from headgate.testing.checkers import WRITES, body_of
from headgate.testing.faults import Call
from headgate.testing.fleet import Outcome, Scenario, play
from headgate.testing.sabotage import BUGS, planted
from headgate.testing.simulation import reduce, tell
from headgate.testing.turmoil import scenario_of

LINES_MAX = 60
RUNS_MAX = 200

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
    parser.add_argument("--planted", choices=sorted(BUGS), help="with this bug in the code")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with planted(asked.planted) if asked.planted else nullcontext():
        scenario = scenario_of(asked.seed)
        outcome = play(scenario)
        if outcome.is_red:
            print(explain(scenario, asked.planted))
            raise SystemExit(1)
        print(f"seed {asked.seed} is green: {outcome.effects} effects")


if __name__ == "__main__":
    main()
