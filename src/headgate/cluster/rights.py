"""Right: what at most one session holds: `{"holder": session, "epoch": n}`.

    free ── claim: epoch + 1 ──▶ held ── release: the epoch stays ──▶ free
                                  └── its session is over: another claims it, epoch + 1 ──▶ held

Every change is a compare-and-set of the one document (`store.changes`), decided from what was read
with its version.
A right's document is not deleted while its name can come back: an epoch that starts again would let
an old holder write (invariant 3).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

from headgate.errors import Conflict, Fenced
from headgate.store.codec import Whole


@dataclass(frozen=True, slots=True)
class Right:
    """A right with nothing else in its document: the leader's."""

    format: Literal[1] = 1
    holder: str = ""
    epoch: Whole = 0
    since_ms: Whole = 0  # wall time of its holder, when it claimed it: for people


class HasHolder(Protocol):
    @property
    def holder(self) -> str: ...

    @property
    def epoch(self) -> int: ...


R = TypeVar("R", bound=HasHolder)


def raised(epoch: int) -> int:
    """The epoch of the next holder."""
    return epoch + 1


def is_held_by(right: HasHolder, session: str, epoch: int) -> bool:
    return right.holder == session and right.epoch == epoch


def claimed(right: R, session: str, is_over: Callable[[str], bool], at_ms: int) -> R:
    """The right in this session's hand. Raises Conflict while a live session holds it."""
    if right.holder == session:
        return right  # an earlier claim whose answer was lost
    if right.holder and not is_over(right.holder):
        raise Conflict(f"session {right.holder[:8]} holds it, and is not over")
    taken = {"holder": session, "epoch": raised(right.epoch), "since_ms": at_ms}
    return replace(right, **taken)  # type: ignore[type-var]


def released(right: R, session: str, epoch: int) -> R:
    """The right free again, if it still was this holder's."""
    if not is_held_by(right, session, epoch):
        return right
    return replace(right, holder="")  # type: ignore[type-var]


def check_held(key: str, right: HasHolder, session: str, epoch: int) -> None:
    """Raises Fenced."""
    if not is_held_by(right, session, epoch):
        raise Fenced(
            f"{key}: epoch {epoch} is over, session {right.holder[:8] or 'nobody'} has epoch "
            f"{right.epoch} now; this holder stops"
        )
