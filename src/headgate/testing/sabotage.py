"""Sabotage: known bugs of a fleet, one switch each. A suite that misses one of them proves nothing.

Each takes the place of one small decision in `headgate.cluster`, as a hasty change would. The first
nine are the faults that earlier systems had; the others are guards of our own, taken away.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from headgate.cluster import (
    claims,
    desk,
    leader,
    membership,
    planner,
    presence,
    rights,
    steward,
    tasks,
)
from headgate.cluster import picture as pictures
from headgate.cluster import session as sessions
from headgate.cluster import worker as workers
from headgate.cluster.picture import LEADER, Picture
from headgate.cluster.planner import Seat
from headgate.cluster.rights import HasHolder
from headgate.errors import Conflict
from headgate.store import DocumentStore, Version, changes
from headgate.store.changes import Kept
from headgate.store.codec import body_of
from headgate.testing.switches import Bug, Patch, switched_on


def planted(bug: str) -> AbstractContextManager[None]:
    """While open, the code has that bug."""
    return switched_on(BUGS[bug])


def _epoch_not_raised() -> Sequence[Patch]:
    return [(rights, "raised", lambda epoch: max(epoch, 1))]


def _release_without_version() -> Sequence[Patch]:
    def given_back(task: tasks.Task, _session: str, _epoch: int) -> tasks.Task:
        return replace(task, holder="")

    def resign(_self: object, store: DocumentStore, _session: str, picture: Picture) -> None:
        if picture.leader is not None:  # whoever it is
            changes.change(store, LEADER, rights.Right, lambda right: replace(right, holder=""))

    return [
        (claims, "given_back", given_back),
        (workers, "given_back", given_back),
        (leader.Leader, "_resign", resign),
    ]


def _trust_counted_from_the_reply() -> Sequence[Patch]:
    honest = membership.Membership._trusted  # noqa: SLF001 - a switch is inside

    def trusted(self: Any, member: object, _start_ms: int, now_ms: int) -> None:
        honest(self, member, self._ambient.boot_ms(), now_ms)  # type: ignore[arg-type]

    return [(membership.Membership, "_trusted", trusted)]


def _session_closed_without_compare_and_set() -> Sequence[Patch]:
    def close_over(store: DocumentStore, seen: Any, why: str, **limit: int) -> Version | None:
        key = sessions.session_key(seen.id)
        current = store.get(key, **limit)
        if current is None:
            return None
        body = body_of(sessions.closed(seen.session, why))
        return store.replace(key, body, current.version, **limit)

    return [(presence, "close_over", close_over)]


def _share_rounded_down() -> Sequence[Patch]:
    def deal_class(
        count: int, seats: Sequence[Seat], _held: object, _dealt: object
    ) -> Mapping[str, int]:
        total = sum(seat.workers for seat in seats)
        return {seat.session: count * seat.workers // total for seat in seats}

    return [(planner, "_deal_class", deal_class)]


def _owner_taken_as_mine() -> Sequence[Patch]:
    def claimed(right: Any, session: str, is_over: Callable[[str], bool], at_ms: int) -> Any:
        return right if right.holder else rights.claimed(right, session, is_over, at_ms)

    def is_held_by(right: HasHolder, _session: str, epoch: int) -> bool:
        return right.epoch == epoch

    def is_same(task: tasks.Task, _session: str, epoch: int) -> bool:
        return task.epoch == epoch

    return [
        (tasks, "claimed", claimed),
        (tasks, "is_held_by", is_held_by),
        (rights, "is_held_by", is_held_by),
        (claims, "_is_same", is_same),
    ]


def _deposed_leader_goes_on() -> Sequence[Patch]:
    return [(steward, "GuardedStore", lambda store, _permit: store)]


def _push_and_mark_as_two_writes() -> Sequence[Patch]:
    numbers: dict[int, int] = {}

    def push(store: DocumentStore, feed: str, number: int, task: tasks.Task) -> None:
        """Under the next free name, whatever the input is."""
        del number
        found = store.list(f"{tasks.TASKS}/{feed}").documents
        taken = [tasks.feed_and_number(document.key)[1] for document in found]
        numbers[id(store)] = max([*taken, numbers.get(id(store), -1)]) + 1
        store.create(tasks.task_key(feed, numbers[id(store)]), body_of(task))

    return [(leader, "push", push)]


def _failing_task_taken_by_node_after_node() -> Sequence[Patch]:
    return [(tasks, "FAILED_TRIES_MAX", 1_000), (workers, "FAILED_TRIES_MAX", 1_000)]


def _removed_task_not_recognised() -> Sequence[Patch]:
    return [
        (workers, "is_zombie_now", lambda *_: False),
        (pictures, "is_zombie", lambda *_: False),
    ]


def _trust_asked_once_a_tick() -> Sequence[Patch]:
    def guard(_assigned: object, store: DocumentStore) -> DocumentStore:
        return store

    return [(workers.Assigned, "guard", guard)]


def _start_of_the_dead_erased() -> Sequence[Patch]:
    def given_back(task: tasks.Task, session: str, epoch: int) -> tasks.Task:
        if not rights.is_held_by(task, session, epoch):
            return task
        return replace(tasks.taken_back(task, task.start), holder="")

    return [(claims, "given_back", given_back), (workers, "given_back", given_back)]


def _task_in_two_hands() -> Sequence[Patch]:
    def take_due(self: Any, now_ms: int) -> object:
        due = [held for held in self._held.values() if held.due_ms <= now_ms]
        return min(due, key=lambda held: held.due_ms, default=None)

    return [(desk.Desk, "take_due", take_due)]


def _conflict_taken_as_success() -> Sequence[Patch]:
    honest = changes.write

    def write(store: DocumentStore, kept: Kept[Any], wanted: object) -> Version:
        try:
            return honest(store, kept, wanted)
        except Conflict:
            return kept.version

    return [(changes, "write", write)]


BUGS: Mapping[str, Bug] = {
    "epoch not raised": _epoch_not_raised,
    "release without version": _release_without_version,
    "trust counted from the reply": _trust_counted_from_the_reply,
    "session closed without compare-and-set": _session_closed_without_compare_and_set,
    "share rounded down": _share_rounded_down,
    "owner taken as mine": _owner_taken_as_mine,
    "deposed leader goes on": _deposed_leader_goes_on,
    "push and mark as two writes": _push_and_mark_as_two_writes,
    "failing task taken by node after node": _failing_task_taken_by_node_after_node,
    "removed task not recognised": _removed_task_not_recognised,
    "trust asked once a tick": _trust_asked_once_a_tick,
    "conflict taken as success": _conflict_taken_as_success,
    "start of the dead erased": _start_of_the_dead_erased,
    "task in two hands": _task_in_two_hands,
}
