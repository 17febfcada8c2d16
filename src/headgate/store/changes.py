"""Changes: a shared document becomes another by compare-and-set, and by nothing else.

read ──▶ decide: a pure function ──▶ replace, if the version is still that one ──▶ kept
  ▲                                      └── somebody was first, or the answer was lost ─┐
  └──────────────────────────────────────────────────────────────────────────────────────┘
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from headgate.errors import Conflict, Fenced, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore, Version
from headgate.store.codec import body_of, parse

TRIES_MAX = 5

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Kept(Generic[V]):
    """A value as it is in its document, and the version it was read or written with."""

    key: str
    value: V
    version: Version


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
