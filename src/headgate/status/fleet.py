"""Fleet: nodes and tasks as they are now. Values, read-only.

Nothing is closed, claimed or repaired by looking: a session that is overdue is shown as such, and
it is the nodes who close it. Documents are read before sessions, so that every holder that still is
a member has its name; who came and went in between shows as free.

Ages count from what a holder's wall clock said; the store's clock says what time it is.

A node that was killed says nothing. Its session lasts for the rest of its term; once it missed a
renewal it is silent: it seems to be gone, and what it holds is free when its session ends.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from headgate.ambient import Ambient
from headgate.cluster import session as sessions
from headgate.cluster.picture import Picture, condition, read_picture
from headgate.cluster.session import LEFT_MIN, TERM_MS, TERM_MS_MAX, Seen
from headgate.cluster.store_clock import StoreClock
from headgate.cluster.tasks import KeptTask, shown
from headgate.errors import Corrupt
from headgate.store import Damaged, DocumentStore, JsonObject
from headgate.store.names import parts
from headgate.store.pages import pages

CLOCK_OFF_MS_MAX = 1_000
SESSION_LETTERS = 8  # of a session's id, for people
NAMES_MAX = 5  # in one sentence


@dataclass(frozen=True, slots=True)
class LeaderStatus:
    node: str | None  # None: nobody knows any more who that was
    session: str
    epoch: int
    age_ms: int
    is_live: bool
    is_silent: bool = False  # it missed a renewal, and seems to be gone


@dataclass(frozen=True, slots=True)
class MemberStatus:
    number: int
    node: str
    session: str
    workers: int
    labels: tuple[str, ...]
    kinds: tuple[str, ...]  # of tasks that it can do; none: any
    held_count: int
    is_draining: bool
    is_leader: bool
    left_ms: int  # until its session may be closed; negative: overdue since then
    term_ms: int = TERM_MS

    @property
    def silent_ms(self) -> int:
        """Since its last renewal."""
        return max(0, self.term_ms - self.left_ms)

    @property
    def is_silent(self) -> bool:
        """It missed a renewal: it seems to be gone."""
        return self.left_ms < LEFT_MIN * self.term_ms

    @property
    def is_overdue(self) -> bool:
        return self.left_ms <= 0

    @property
    def is_able(self) -> bool:
        """It may take tasks."""
        return not self.is_overdue and not self.is_draining and self.workers > 0

    def knows(self, kind: str) -> bool:
        return not self.kinds or kind in self.kinds


@dataclass(frozen=True, slots=True)
class TaskError:
    words: str
    node: str
    age_ms: int


@dataclass(frozen=True, slots=True)
class TaskStatus:
    name: str  # FEED/NUMBER
    key: str
    kind: str
    condition: str  # in progress, free, set aside
    node: str | None  # of its holder
    session: str
    epoch: int
    held_ms: int | None
    tries: int
    labels: tuple[str, ...]
    is_stranded: bool  # nodes are there, and none of them may take it
    is_known: bool  # no node is there, or one of them can do this kind
    error: TaskError | None
    set_aside: TaskError | None
    is_silent: bool = False  # whoever holds it missed a renewal, and seems to be gone
    left_ms: int | None = None  # until its holder's session may be closed, if that is live
    silent_ms: int | None = None  # since its holder's last renewal, if that is live


@dataclass(frozen=True, slots=True)
class FeedStatus:
    name: str
    created: int
    done: int
    removed: int  # done, and its document is gone


@dataclass(frozen=True, slots=True)
class LastSeen:
    """A member of the last roster, when nobody is there."""

    number: int
    node: str
    session: str
    workers: int
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    at_ms: int  # the store's clock; this machine's, if the store was not asked
    clock_off_ms: int | None  # this machine's clock is so far ahead of the store's
    leader: LeaderStatus | None
    members: tuple[MemberStatus, ...]  # by number
    last_seen: tuple[LastSeen, ...]
    tasks: tuple[TaskStatus, ...]  # all that are not done, by feed and number
    feeds: tuple[FeedStatus, ...]
    damaged: tuple[Damaged, ...]
    warnings: tuple[str, ...]
    is_at_rest: bool = False  # no node is there, and none is needed: nothing waits

    @property
    def is_anybody_able(self) -> bool:
        return any(member.is_able for member in self.members)

    @property
    def is_served(self) -> bool:
        """No task waits for a node that is not there."""
        return self.is_anybody_able or not self.tasks or self.is_at_rest

    @property
    def is_healthy(self) -> bool:
        """Nobody has to look."""
        is_well = not any(task.set_aside or task.is_stranded for task in self.tasks)
        return self.is_served and is_well and not self.damaged

    @property
    def counts(self) -> dict[str, int]:
        """Of tasks, by condition."""
        found = Counter(task.condition for task in self.tasks)
        done = sum(feed.done for feed in self.feeds)
        return {name: found[name] for name in ("in progress", "free", "set aside")} | {"done": done}


def read_status(store: DocumentStore, ambient: Ambient) -> ClusterStatus:
    """Raises Unavailable."""
    picture = read_picture(store)
    damaged = list(picture.damaged)
    live = _read_sessions(store, damaged)
    clock_off_ms = None
    at_ms = ambient.wall_ns() // 1_000_000
    if live:  # else nobody is judged by it, and who only looks leaves no trace
        clock = StoreClock(store, ambient)
        at_ms, clock_off_ms = clock.now_ms(), clock.off_ms()
    return compose(picture, live, damaged, at_ms, clock_off_ms)


def read_members(store: DocumentStore, at_ms: int) -> tuple[MemberStatus, ...]:
    """By number, at this moment of the store's clock. Raises Unavailable."""
    return tuple(_member(seen, "", at_ms) for seen in _read_sessions(store, []))


def compose(
    picture: Picture,
    live: Sequence[Seen],
    damaged: Sequence[Damaged],
    at_ms: int,
    clock_off_ms: int | None,
) -> ClusterStatus:
    """Values in, values out."""
    leading = "" if picture.leader is None else picture.leader.value.holder
    members = tuple(_member(seen, leading, at_ms) for seen in live)
    names = _names(picture, live)
    found = {shown(key): task for key, task in picture.tasks.items()}
    tasks = tuple(
        _task(name, task, names, members, at_ms)
        for name, task in found.items()
        if task.value.state != "done"
    )
    leader = None
    if picture.leader is not None and leading:
        right = picture.leader.value
        age_ms = max(0, at_ms - right.since_ms)
        own = next((member for member in members if member.is_leader), None)
        is_silent = own is not None and own.is_silent
        leader = LeaderStatus(
            names.get(leading), leading, right.epoch, age_ms, own is not None, is_silent
        )
    last_seen: tuple[LastSeen, ...] = ()
    if not members and picture.roster is not None:
        last_seen = tuple(
            LastSeen(e.number, e.node, e.session, e.workers, e.labels)
            for e in picture.roster.value.members
        )
    return ClusterStatus(
        at_ms=at_ms,
        clock_off_ms=clock_off_ms,
        leader=leader,
        members=members,
        last_seen=last_seen,
        tasks=tasks,
        feeds=_feeds(picture, found),
        damaged=tuple(damaged),
        warnings=_warnings(leader, members, tasks, damaged, clock_off_ms),
    )


def resting(status: ClusterStatus) -> ClusterStatus:
    """The same, by whoever knows that none of its tasks has anything to do."""
    clock = status.clock_off_ms
    told = _warnings(
        status.leader, status.members, status.tasks, status.damaged, clock, is_at_rest=True
    )
    return replace(status, is_at_rest=True, warnings=told)


def as_json(status: ClusterStatus, release: Callable[[TaskStatus], str]) -> JsonObject:
    """Every field, for programs; `release` names the command that releases a task."""
    members = [
        asdict(member) | {"is_overdue": member.is_overdue, "is_silent": member.is_silent}
        for member in status.members
    ]
    tasks = [
        asdict(task) | {"next": None if task.set_aside is None else release(task)}
        for task in status.tasks
    ]
    return {
        **asdict(status),
        "members": members,
        "tasks": tasks,
        "is_healthy": status.is_healthy,
        "counts": {name.replace(" ", "_"): count for name, count in status.counts.items()},
    }


def exit_code(status: ClusterStatus) -> int:
    """4: damaged; 1: a person must look; 0."""
    if status.damaged:
        return 4
    return 0 if status.is_healthy else 1


def _read_sessions(store: DocumentStore, damaged: list[Damaged]) -> list[Seen]:
    """The live ones, by number."""
    live: list[Seen] = []
    for page in pages(store, sessions.FOLDER):
        damaged += page.damaged
        for document in page.documents:
            try:
                seen = sessions.read(document)
            except Corrupt as error:
                damaged.append(Damaged(document.key, document.key, str(error)))
            else:
                if seen.session.is_live:
                    live.append(seen)
    return sorted(live, key=lambda seen: (seen.session.number, seen.id))


def _names(picture: Picture, live: Sequence[Seen]) -> dict[str, str]:
    """Nodes by session, as far as anybody knows."""
    roster = () if picture.roster is None else picture.roster.value.members
    return {e.session: e.node for e in roster} | {seen.id: seen.session.node for seen in live}


def _member(seen: Seen, leading: str, at_ms: int) -> MemberStatus:
    said = seen.session
    return MemberStatus(
        number=said.number,
        node=said.node,
        session=seen.id,
        workers=said.workers,
        labels=said.labels,
        kinds=said.kinds,
        held_count=said.held_count,
        is_draining=said.is_draining,
        is_leader=seen.id == leading,
        left_ms=said.expire - at_ms,
        term_ms=min(said.term_ms, TERM_MS_MAX),
    )


def _task(
    name: str,
    kept: KeptTask,
    names: Mapping[str, str],
    members: Sequence[MemberStatus],
    at_ms: int,
) -> TaskStatus:
    task = kept.value
    is_now = condition(task, frozenset(member.session for member in members))
    holder = next((member for member in members if member.session == task.holder), None)
    able = [member for member in members if member.is_able]
    is_known = not able or any(member.knows(task.kind) for member in able)
    is_wanted = not task.labels or any(set(member.labels) & set(task.labels) for member in able)
    is_stranded = is_now == "free" and bool(able) and not (is_known and is_wanted)
    errors = [
        None
        if trouble is None
        else TaskError(trouble.words, trouble.node, max(0, at_ms - trouble.at_ms))
        for trouble in (task.error, task.set_aside)
    ]
    return TaskStatus(
        name=name,
        key=kept.key,
        kind=task.kind,
        condition=is_now,
        node=names.get(task.holder) if task.holder else None,
        session=task.holder,
        epoch=task.epoch,
        held_ms=max(0, at_ms - task.since_ms) if task.holder else None,
        tries=task.tries,
        labels=task.labels,
        is_stranded=is_stranded,
        is_known=is_known,
        error=errors[0],
        set_aside=errors[1],
        is_silent=holder is not None and holder.is_silent,
        left_ms=None if holder is None else holder.left_ms,
        silent_ms=None if holder is None else holder.silent_ms,
    )


def _feeds(picture: Picture, tasks: Mapping[str, KeptTask]) -> tuple[FeedStatus, ...]:
    done = Counter(
        name.rpartition("/")[0] for name, task in tasks.items() if task.value.state == "done"
    )
    found = []
    for key, state in picture.feeds.items():
        name = parts(key)[-1]
        removed = sum(end - first for first, end in state.value.removed)
        found.append(FeedStatus(name, state.value.next, removed + done[name], removed))
    return tuple(found)


def _warnings(
    leader: LeaderStatus | None,
    members: Sequence[MemberStatus],
    tasks: Sequence[TaskStatus],
    damaged: Sequence[Damaged],
    clock_off_ms: int | None,
    *,
    is_at_rest: bool = False,
) -> tuple[str, ...]:
    found: list[str] = []
    is_anybody_able = any(member.is_able for member in members)
    # What was set aside waits for a person, and not for a node.
    open_ = [task for task in tasks if task.set_aside is None]
    waiting = f", and {_many(open_)} {_waits(open_)}" if open_ else ""
    if not members and tasks and not is_at_rest:
        found.append(f"no node is running{waiting}")
    elif members and not is_anybody_able:
        found.append(f"no node takes tasks: each one is overdue or draining{waiting}")
    for member in members:
        if member.is_overdue:
            found.append(
                f"node {member.node}, number {member.number}, is overdue by "
                f"{shown_ms(-member.left_ms)}: it was killed, is paused, or cannot reach the "
                "store; another node closes its session and takes over its tasks"
            )
        elif member.is_silent:
            found.append(
                f"node {member.node}, number {member.number}, seems to be gone: nothing was heard "
                f"of it for {shown_ms(member.silent_ms)}; its session ends in about "
                f"{shown_ms(member.left_ms)}, and another node takes over its tasks then"
            )
    if is_anybody_able and leader is None:
        found.append(
            "nobody is leader yet: no task is created or removed until a node takes the right"
        )
    elif is_anybody_able and leader is not None and not leader.is_live:
        who = leader.node or f"session {leader.session[:SESSION_LETTERS]}"
        found.append(
            f"the leader, {who}, is gone: no task is created or removed until another node "
            "takes the right"
        )
    stranded = [task for task in tasks if task.is_stranded]
    for kind in sorted({task.kind for task in stranded if not task.is_known}):
        stuck = [task for task in stranded if task.kind == kind]
        found.append(
            f"no node can do {_many(stuck)} ({_some(stuck)}): none of them knows the kind {kind}"
        )
    for labels in sorted({task.labels for task in stranded if task.is_known}):
        stuck = [task for task in stranded if task.is_known and task.labels == labels]
        found.append(
            f"no node may take {_many(stuck)} ({_some(stuck)}): they need one of the labels "
            f"{', '.join(labels)}, and no node has one"
        )
    aside = [task for task in tasks if task.set_aside is not None]
    if aside:
        found.append(
            f"{_many(aside)} {'was' if len(aside) == 1 else 'were'} set aside ({_some(aside)}): "
            "a person must look"
        )
    if damaged:
        documents = "1 document is" if len(damaged) == 1 else f"{len(damaged):,} documents are"
        found.append(f"{documents} damaged: what depends on them stands still")
    if clock_off_ms is not None and abs(clock_off_ms) > CLOCK_OFF_MS_MAX:
        side = "ahead of" if clock_off_ms > 0 else "behind"
        found.append(
            f"this machine's clock is {shown_ms(abs(clock_off_ms))} {side} the store's; "
            "ages shown here are by the store's clock"
        )
    return tuple(found)


def _many(tasks: Sequence[TaskStatus]) -> str:
    return "1 task" if len(tasks) == 1 else f"{len(tasks):,} tasks"


def _waits(tasks: Sequence[TaskStatus]) -> str:
    return "waits" if len(tasks) == 1 else "wait"


def _some(tasks: Sequence[TaskStatus]) -> str:
    more = f", and {len(tasks) - NAMES_MAX:,} more" if len(tasks) > NAMES_MAX else ""
    return ", ".join(task.name for task in tasks[:NAMES_MAX]) + more


def shown_ms(duration_ms: int) -> str:
    """`4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`"""
    seconds = duration_ms // 1000
    if seconds < 60:
        return f"{duration_ms / 1000:.1f} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if minutes < 60:
        return f"{minutes} min {seconds % 60} s"
    if hours < 24:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h"
