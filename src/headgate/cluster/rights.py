"""Right: what at most one session holds: `{"holder": session, "epoch": n}`.

    free ── claim: epoch + 1 ──▶ held ── release: the epoch stays ──▶ free
                                  └── its session is over: another claims it, epoch + 1 ──▶ held

Every change is a compare-and-set of the one document, decided from what was read with its version.
A right's document is not deleted while its name can come back: an epoch that starts again would let
an old holder write (invariant 3).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, TypeVar

from headgate.errors import Conflict, Fenced, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore, Version
from headgate.store.codec import Whole, body_of, parse

TRIES_MAX = 5


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
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Kept(Generic[V]):
    """A value as it is in its document, and the version it was read or written with."""

    key: str
    value: V
    version: Version


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


def change(
    store: DocumentStore,
    key: str,
    kind: type[V],
    decide: Callable[[V], V],
    known: Kept[V] | None = None,
) -> Kept[V]:
    """Makes the document what `decide` wants: read, decide, compare-and-set; again if somebody was
    first.

    `decide` must want nothing of what it wanted already: after a lost answer it is asked again.
    `known` saves the first read; a stale one costs a Conflict. Raises what `decide` raises, Fenced
    (no such document), Unavailable, OutcomeUnknown.
    """
    is_unknown = False
    for _ in range(TRIES_MAX):
        kept = known or read(store, key, kind)
        known = None
        if kept is None:
            raise Fenced(f"{key}: is not there any more; whoever held it stops")
        wanted = decide(kept.value)
        if wanted == kept.value:
            return kept
        try:
            return Kept(key, wanted, write(store, kept, wanted))
        except Conflict:
            continue
        except OutcomeUnknown:
            is_unknown = True  # looked at in the next turn; if it lands still later, it is refused
    if is_unknown:
        raise OutcomeUnknown(f"{key}: {TRIES_MAX} tries, and an answer was lost")
    raise Unavailable(f"{key}: gave up after {TRIES_MAX} conflicts, nothing was written")


def write(store: DocumentStore, kept: Kept[V], wanted: V) -> Version:
    return store.replace(kept.key, body_of(wanted), kept.version)


def read(store: DocumentStore, key: str, kind: type[V]) -> Kept[V] | None:
    """Raises Unavailable, Corrupt."""
    found = store.get(key)
    return None if found is None else Kept(key, parse(found, kind), found.version)


def create_if_absent(store: DocumentStore, key: str, value: V) -> None:
    """Raises Unavailable, OutcomeUnknown (again is harmless)."""
    try:
        store.create(key, body_of(value))
    except Conflict:
        return  # somebody was first, and it is the same
