"""Step: one verifiable effect of a commit.

    staged ── execute: publish ──▶ published, and staged is gone: done
       └── both are missing, or what is staged is not what the record says: a person decides

Done means *published with this size and checksum, and staged is gone*. So whoever wakes up late
finds nothing to publish, even if the published file was rightly removed since.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import cast

from headgate.commits import StepKind
from headgate.commits.record import OwnStep
from headgate.errors import Conflict, Corrupt, Halted, OutcomeUnknown, Unavailable
from headgate.lake import FileFacts, Lake
from headgate.store import JsonObject

TRIES_MAX = 3


class State(Enum):
    STAGED = "to be published"
    HALF = "published, and still staged"
    DONE = "published, and staged is gone"


@dataclass(frozen=True, slots=True)
class PublishFile:
    commit: str  # STREAM/SHARD: for the person who must decide
    staged: str
    published: str
    facts: FileFacts  # size and checksum, taken before the intent

    def state(self, lake: Lake) -> State:
        """Raises Corrupt if another file has the name, Halted if there is nothing to publish."""
        # Staged first: the other way round, a neighbour's move in between would look like a loss.
        staged = lake.facts(self.staged)
        found = lake.facts(self.published)
        if found not in (None, self.facts):
            raise Corrupt(
                f"{self.published}: the commit record says {shown(self.facts)}, the lake has "
                f"{shown(found)}; a file of another commit or installation has this name, and "
                "nothing is overwritten; next: headgate audit"
            )
        if found is not None:
            return State.DONE if staged is None else State.HALF
        if staged != self.facts:
            missing = "is missing" if staged is None else f"is damaged: {shown(staged)}"
            raise Halted(
                f"{self.published}: not published, and what was staged for it {missing}; its "
                "records are still in the source, and nothing else is committed; "
                f'next: headgate journal restage {self.commit} --reason "…"'
            )
        return State.STAGED

    def verify(self, lake: Lake) -> bool:
        """Raises as `state`."""
        return self.state(lake) is State.DONE

    def execute(self, lake: Lake, state: State) -> None:
        if state is State.HALF:
            lake.remove(self.staged, self.facts)  # a move of two effects was cut in half
        else:
            lake.publish(self.staged, self.published)


def carry_out(step: PublishFile, lake: Lake) -> bool:
    """Until it is done; whether anything was to do. Raises as `state`, and Unavailable."""
    for tries in range(TRIES_MAX + 1):
        state = step.state(lake)
        if state is State.DONE:
            return tries > 0
        if tries == TRIES_MAX:
            break
        with suppress(Conflict, OutcomeUnknown):  # somebody else does the same, or did: look again
            step.execute(lake, state)
    raise Unavailable(f"{step.published}: published {TRIES_MAX} times, and is {state.value}")


def carry_out_own(step: OwnStep, kinds: Callable[[str], StepKind]) -> None:
    """Raises whatever the user's code raises; Unavailable if it is not done."""
    kind, body = kinds(step.kind), cast(JsonObject, step.body)
    if kind.verify(body):
        return
    kind.execute(body)
    if not kind.verify(body):
        raise Unavailable(f"step {step.kind}: was executed, and verify() says it is not done")


def shown(facts: FileFacts | None) -> str:
    return "nothing" if facts is None else f"{facts.size_bytes:,} bytes, {facts.checksum[:19]}…"
