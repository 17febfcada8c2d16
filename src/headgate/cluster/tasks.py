"""Task: a right with a payload, a state and its tries. One document each.

    outstanding ── a node claims it, starts it, finishes it ──▶ done ── the leader ──▶ removed
      │    ▲
      │    └── a person: release ──┐
      └── it failed 5 times ──▶ set aside

"In progress" is not a state: it is an outstanding task whose holder's session lives.

**Tries** are counted when the work starts, not when it fails: a task that takes its whole node down
can say nothing afterwards. Who gives a task back in good order takes its start back, and so does a
node that lost its session and lives: an outage of the store is no fault of the task. A task that
ran well for a while is forgiven all of them.

The pure functions here say what a document should become; `changes.change` writes it. Whoever is
not the holder any more gets Fenced (invariant 3).
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from shlex import quote
from typing import Literal, TypeAlias

from headgate.cluster import Order
from headgate.cluster.rights import check_held, claimed, is_held_by
from headgate.errors import Conflict, Corrupt, Invalid
from headgate.store.changes import Kept
from headgate.store.codec import Whole
from headgate.store.names import key, parts

TASKS = "cluster/tasks"
FAILED_TRIES_MAX = 5
NUMBER_MAX = 9_999_999_999
OPEN_TASKS_MAX = 50_000  # of one feed at a time
FOLDER_TASKS = 1_000  # no folder of a store grows with the number of tasks
WORDS_MAX = 2_000  # of an error
UNUSABLE_MS = 60_000  # before a damaged task is looked at again
PAYLOAD_BYTES_MAX = 600_000  # 800,000 in base64, of the million that a document may have


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong, where and when."""

    words: str
    node: str
    at_ms: Whole  # wall time of that node


@dataclass(frozen=True, slots=True)
class Task:
    kind: str
    payload: str  # base64
    labels: tuple[str, ...] = ()
    state: Literal["outstanding", "done"] = "outstanding"
    holder: str = ""
    epoch: Whole = 0
    since_ms: Whole = 0  # wall time of its holder, when it claimed it: for people
    starts: tuple[str, ...] = ()  # that came to no good end, or to none yet: EPOCH/NUMBER
    start: str = ""  # the one of them that is under way
    error: Trouble | None = None  # of the last failure
    set_aside: Trouble | None = None
    format: Literal[1] = 1

    @property
    def tries(self) -> int:
        return len(self.starts)

    @property
    def is_claimable(self) -> bool:
        return self.state == "outstanding" and self.set_aside is None


KeptTask: TypeAlias = Kept[Task]


def task_key(feed: str, number: int) -> str:
    """Raises Invalid."""
    if not 0 <= number <= NUMBER_MAX:
        raise Invalid(f"feed {feed}: a task's number is 0 to {NUMBER_MAX:,}, not {number:,}")
    return f"{TASKS}/{key(feed, f'{number // FOLDER_TASKS:07}', f'{number:010}')}"


@lru_cache(maxsize=OPEN_TASKS_MAX)
def feed_and_number(task: str) -> tuple[str, int]:
    """The inverse of `task_key`. Raises Invalid."""
    found = parts(task)
    if len(found) == 5 and found[4].isdecimal() and task_key(found[2], int(found[4])) == task:
        return found[2], int(found[4])
    raise Invalid(f"{task}: is no key of a task; next: headgate status --store URL shows them")


def shown(task: str) -> str:
    """A task's name for people: its feed and number."""
    feed, number = feed_and_number(task)
    return f"{feed}/{number}"


def key_of_shown(name: str) -> str:
    """Raises Invalid."""
    feed, slash, number = name.rpartition("/")
    if not slash or not feed or not number.isascii() or not number.isdecimal():
        raise Invalid(
            f"{name}: a task is named FEED/NUMBER, for example demo/3; "
            "next: headgate status --store URL shows them"
        )
    return task_key(feed, int(number))


def release_command(name: str) -> str:
    """By which a person lets a task go on, if its kind has no other."""
    return f'headgate task release {quote(name)} --reason "…"'


def new_task(order: Order) -> Task:
    """Raises Invalid: with a holder and an error it would not fit every store."""
    if len(order.payload) > PAYLOAD_BYTES_MAX:
        raise Invalid(
            f"a payload of {len(order.payload):,} bytes, at most {PAYLOAD_BYTES_MAX:,} fit a task; "
            "next: keep large things elsewhere and their place in the payload"
        )
    return Task(order.kind, base64.b64encode(order.payload).decode("ascii"), order.labels)


def payload_of(task: KeptTask) -> bytes:
    """Raises Corrupt."""
    try:
        return base64.b64decode(task.value.payload, validate=True)
    except binascii.Error as error:
        raise Corrupt(f"{task.key}: its payload is not base64: {error}") from error


def claimed_task(task: Task, session: str, is_over: Callable[[str], bool], at_ms: int) -> Task:
    """Raises Conflict: it is done, set aside or held."""
    if not task.is_claimable:
        raise Conflict("it is done or set aside")
    return claimed(task, session, is_over, at_ms)


def given_back(task: Task, session: str, epoch: int) -> Task:
    """Free again, in good order: the start under way does not count."""
    if not is_held_by(task, session, epoch):
        return task
    ours = task.start if is_start_of(task.start, epoch) else ""  # else it is of one who died by it
    return replace(taken_back(task, ours), holder="")


def taken_back(task: Task, start: str) -> Task:
    """Without that start: its node lost the session, but did not end by it. Whoever holds the task
    by now is not concerned."""
    left = tuple(one for one in task.starts if one != start)
    return replace(task, starts=left, start="" if task.start == start else task.start)


def started(key: str, task: Task, session: str, epoch: int) -> Task:
    """With this start counted, once for each holder and failure. Raises Fenced."""
    check_held(key, task, session, epoch)
    if is_start_of(task.start, epoch):
        return task
    number = 1 + sum(is_start_of(one, epoch) for one in task.starts)
    start = f"{epoch}/{number}"
    return replace(task, starts=(*task.starts, start), start=start)


def is_start_of(start: str, epoch: int) -> bool:
    return start.startswith(f"{epoch}/")


def proved_well(key: str, task: Task, session: str, epoch: int) -> Task:
    """Forgiven its earlier tries. Raises Fenced."""
    check_held(key, task, session, epoch)
    return replace(task, starts=(), start="", error=None)


def finished(key: str, task: Task, session: str, epoch: int) -> Task:
    """Done, and free. Raises Fenced."""
    if task.state == "done" and task.epoch == epoch:
        return task
    check_held(key, task, session, epoch)
    return replace(task, state="done", holder="", starts=(), start="")


def failed(key: str, task: Task, session: str, epoch: int, trouble: Trouble) -> Task:
    """With its error; set aside once it has failed often enough. Raises Fenced."""
    if task.set_aside == trouble:
        return task
    check_held(key, task, session, epoch)
    if task.tries < FAILED_TRIES_MAX:
        return replace(task, error=trouble, start="")
    return put_aside(key, replace(task, error=trouble), session, epoch, trouble)


def put_aside(key: str, task: Task, session: str, epoch: int, trouble: Trouble) -> Task:
    """Left out of the automatic flow, until a person releases it. Raises Fenced."""
    if task.set_aside == trouble:
        return task
    check_held(key, task, session, epoch)
    return replace(task, holder="", start="", set_aside=trouble)


def closed_by_person(task: Task) -> Task:
    """What it is about is over. Whoever still holds it finds that it does not any more."""
    if task.state == "done":
        return task
    return replace(task, state="done", holder="", starts=(), start="", set_aside=None)


def released_by_person(task: Task, said: Trouble | None = None) -> Task:
    """Given back to the automatic flow, with all its tries; what the person said stays with it."""
    if task.set_aside is None:
        return task
    return replace(task, set_aside=None, starts=(), start="", error=said or task.error)
