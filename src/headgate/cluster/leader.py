"""Leader: the node that holds the leader right creates and removes tasks, and tidies up.

    follower ── the right is free, or its holder is over: claim ──▶ leader
       ▲                                                              │
       └── fenced, drained, its session lost ─────────────────────────┘

A leader that was paused and goes on changes nothing: what it writes carries its epoch, or a version
that has moved, or a name that is the same whoever creates it (see `feeds`). It first writes its
epoch into the documents it leads, and acts on what they then contained.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

from headgate.ambient import Ambient
from headgate.cluster import Feed, Look, Order, Presence
from headgate.cluster.claims import FAR_MS
from headgate.cluster.feeds import (
    FeedState,
    feed_key,
    led,
    with_next,
    with_removed,
)
from headgate.cluster.picture import LEADER, Picture
from headgate.cluster.rights import Right, claimed, released
from headgate.cluster.roster import ROSTER, Roster, entries
from headgate.cluster.tasks import (
    OPEN_TASKS_MAX,
    KeptTask,
    Task,
    Trouble,
    feed_and_number,
    new_task,
    task_key,
)
from headgate.errors import Conflict, Corrupt, Fenced, Invalid
from headgate.store import DocumentStore
from headgate.store.changes import Kept, change, create_if_absent, read

BATCH = 25  # tasks created or removed between two looks: a leader claims its share, too
FEED_MS = 5_000  # between two questions to a feed

log = logging.getLogger(__name__)


class Leader:
    def __init__(self, presence: Presence, feeds: Sequence[Feed], ambient: Ambient) -> None:
        self._presence = presence
        self._feeds = feeds
        self._ambient = ambient
        self._epoch: int | None = None  # while this node is the leader, and has taken office
        self._states: dict[str, Kept[FeedState]] = {}  # by feed
        self._failed: dict[str, str] = {}  # chores, with why
        self._asked_ms: dict[str, int] = {}  # when to ask a feed again
        self._over_since_ms: dict[str, int] = {}
        self._is_removing = True  # more than a batch at the last step, or never looked

    @property
    def epoch(self) -> int | None:
        return self._epoch

    def step(
        self,
        store: DocumentStore,
        session: str,
        picture: Picture,
        look: Look,
        *,
        is_new: bool,
        is_draining: bool,
        is_settled: bool = True,
    ) -> int:
        """A few chores, if this node is the leader or can become it. `is_new`: the picture differs
        from the last step's; `is_settled`: so many are there as will come, for now. Raises as the
        store does."""
        now_ms = self._ambient.monotonic_ms()
        if is_draining:
            self._resign(store, session, picture)
            return now_ms + FAR_MS
        if not self._is_leader(store, session, picture, look):
            return now_ms + FAR_MS
        epoch = self._epoch
        if epoch is None:
            return now_ms
        if is_settled:  # before, the last roster tells others whom to wait for
            self._spared("roster", lambda: self._keep_roster(store, epoch, picture, look))
        self._spared("tidying", lambda: self._tidy(store, picture, look, now_ms))
        is_new |= self._is_removing
        is_busy = False
        for feed in self._feeds:
            tend = partial(self._tend, store, feed, epoch, picture, is_new=is_new)
            is_busy |= bool(self._spared(f"feed {feed.name}", tend))
        self._is_removing = is_busy
        return now_ms if is_busy else now_ms + FEED_MS

    def _spared(self, what: str, chore: Callable[[], bool | None]) -> bool | None:
        """Something damaged or too large concerns only the chore that meets it."""
        try:
            return chore()
        except (Corrupt, Invalid) as error:
            if self._failed.get(what) != str(error):  # once, not at each look
                log.error("leader.chore_failed", extra={"what": what, "why": str(error)})
            self._failed[what] = str(error)
            return False

    def _tend(
        self, store: DocumentStore, feed: Feed, epoch: int, picture: Picture, *, is_new: bool
    ) -> bool:
        """Whether there is more to do at once."""
        if feed.name not in self._states:
            key = feed_key(feed.name)
            create_if_absent(store, key, FeedState())
            self._states[feed.name] = change(store, key, FeedState, partial(led, feed.name, epoch))
        is_busy = is_new and self._remove(store, feed, epoch, picture)
        return self._create(store, feed, epoch, picture) or is_busy

    def _is_leader(self, store: DocumentStore, session: str, picture: Picture, look: Look) -> bool:
        if picture.leader is None:
            create_if_absent(store, LEADER, Right())
            picture.leader = read(store, LEADER, Right)
        right = picture.leader
        if right is None:
            return False
        if right.value.holder != session:
            self._epoch = None
            live = {member.session for member in look.members}
            if right.value.holder in live:
                return False
            at_ms = self._ambient.wall_ns() // 1_000_000
            try:
                right = change(
                    store,
                    LEADER,
                    Right,
                    lambda found: claimed(found, session, self._presence.is_over, at_ms),
                    right,
                )
            except Conflict:
                picture.leader = read(store, LEADER, Right)
                return False
            picture.leader = right
        if right.value.epoch != self._epoch:
            self._take_office(right.value.epoch)
        return True

    def _take_office(self, epoch: int) -> None:
        self._states = {}  # each is taken over, with this epoch, before it is used
        self._asked_ms = {}
        self._epoch = epoch
        log.info("leader.elected", extra={"epoch": epoch})

    def _resign(self, store: DocumentStore, session: str, picture: Picture) -> None:
        right = picture.leader
        if right is not None and right.value.holder == session:
            epoch = right.value.epoch
            picture.leader = change(
                store, LEADER, Right, lambda found: released(found, session, epoch)
            )
            log.info("leader.resigned", extra={"epoch": epoch})
        self._epoch = None

    def _keep_roster(self, store: DocumentStore, epoch: int, picture: Picture, look: Look) -> None:
        wanted = Roster(epoch, entries(look.members))
        if picture.roster is None:
            create_if_absent(store, ROSTER, Roster())
        if picture.roster is not None and picture.roster.value == wanted:
            return

        def decide(found: Roster) -> Roster:
            if found.epoch > epoch:
                raise Fenced(f"{ROSTER}: leader {epoch} was followed by {found.epoch}; it stops")
            return wanted

        picture.roster = change(store, ROSTER, Roster, decide, picture.roster)

    def _tidy(self, store: DocumentStore, picture: Picture, look: Look, now_ms: int) -> None:
        """Sessions that are over for a while, and drains of sessions that are over, are removed."""
        over = set(look.over)
        self._over_since_ms = {s: self._over_since_ms.get(s, now_ms) for s in over}
        patience_ms = self._presence.hold_ms
        old = (s for s, since_ms in self._over_since_ms.items() if now_ms - since_ms >= patience_ms)
        for session in list(islice(old, BATCH)):
            self._presence.forget(session)
            del self._over_since_ms[session]
        for key, drain in list(picture.drains.items()):
            if key.rpartition("/")[2] in over:
                _delete(store, drain)
                del picture.drains[key]

    def _create(self, store: DocumentStore, feed: Feed, epoch: int, picture: Picture) -> bool:
        """Push, then mark: a crash in between creates the same name again, and finds it there."""
        state = self._states[feed.name]
        room = OPEN_TASKS_MAX - len(picture.tasks)
        orders = self._ask(feed, state.value.next, min(BATCH, room))
        if not orders:
            return False
        first = state.value.next
        for number, order in enumerate(orders, first):
            push(store, feed.name, number, self._task_of(order))
        self._states[feed.name] = change(
            store,
            state.key,
            FeedState,
            lambda found: with_next(feed.name, found, epoch, first + len(orders)),
            state,
        )
        return len(orders) >= BATCH

    def _ask(self, feed: Feed, first: int, limit: int) -> tuple[Order, ...]:
        """Not more often than is polite, once it has nothing."""
        now_ms = self._ambient.monotonic_ms()
        if limit <= 0 or now_ms < self._asked_ms.get(feed.name, now_ms):
            return ()
        try:
            orders = feed.wanted(first, limit)
        except Exception as error:  # noqa: BLE001 - somebody else's code: it fails for itself
            log.warning("feed.failed", extra={"feed": feed.name, "why": str(error)})
            orders = ()
        if not orders:
            self._asked_ms[feed.name] = now_ms + FEED_MS
        return orders

    def _task_of(self, order: Order) -> Task:
        """What cannot be a task takes its place, set aside: the inputs behind it must go on."""
        try:
            return new_task(order)
        except Invalid as error:
            at_ms = self._ambient.wall_ns() // 1_000_000
            return Task(
                order.kind, "", order.labels, set_aside=Trouble(str(error), "leader", at_ms)
            )

    def _remove(self, store: DocumentStore, feed: Feed, epoch: int, picture: Picture) -> bool:
        """Mark, then delete: a document that comes back late is known by its number."""
        state = self._states[feed.name]
        done: list[tuple[int, KeptTask]] = []
        for task in chain(picture.zombies.values(), picture.tasks.values()):
            name, number = feed_and_number(task.key)
            if name == feed.name and (task.value.state == "done" or task.key in picture.zombies):
                done.append((number, task))
                if len(done) == BATCH:
                    break
        # What is not marked as created yet could be created again.
        done = [(number, task) for number, task in done if number < state.value.next]
        if not done:
            return False
        state = self._states[feed.name] = change(
            store,
            state.key,
            FeedState,
            lambda found: with_removed(feed.name, found, epoch, (number for number, _ in done)),
            state,
        )
        picture.feeds[state.key] = state
        for _, task in done:
            _delete(store, task)
            picture.tasks.pop(task.key, None)
            picture.zombies.pop(task.key, None)
        return len(done) == BATCH


def push(store: DocumentStore, feed: str, number: int, task: object) -> None:
    create_if_absent(store, task_key(feed, number), task)


def _delete(store: DocumentStore, kept: Kept[Any]) -> None:
    try:
        store.delete(kept.key, kept.version)
    except Conflict:
        return  # it changed or is gone: the next look decides
