"""Landfall: three nodes land orders and payments, flag their hours and feed a table, in trouble.

    a first wave is dropped ──▶ a node is killed with -9 in the middle of a commit
      ──▶ others finish it; hours get their flags ──▶ a file of a ready hour is moved away
      ──▶ a second wave; a node is paused in the middle of a round, past its session, and woken
      ──▶ the table has halted at that hour: the file is put back, the printed command is run
      ──▶ late records come last ──▶ every hour is ready, and in the table ──▶ the count

Each arrow waits for what it says, with a bound.
"""

import os
import shlex
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.ambient import SystemAmbient
from headgate.errors import HeadgateError, Unavailable
from headgate.periods import HOUR_MS, Period, aligned, hours_between
from headgate.store.registry import open_store
from headgate.testing.drama.ambush import Ambush, Caught
from headgate.testing.drama.cargo import ORDERS, Cargo
from headgate.testing.drama.child import Child, Event, State
from headgate.testing.drama.home import Home
from headgate.testing.drama.jury import Judged, judge
from headgate.testing.drama.scene import Scene, look
from headgate.testing.drama.script import is_nobody_held_up
from headgate.testing.drama.tale import Tale

TABLE = "orders"
NODES = ("node-1", "node-2", "node-3")
HOURS = 12
LATENESS_MS = 60_000
BATCHES_BEFORE = 2  # that the table still has to take when an hour loses its file
MARGIN_MS = 120_000  # the last hour was over for so long
SHOW_S = 0.25
LOOK_S = 0.1
ACT_S_MAX = 240.0
ROUND_S_MAX = 15.0  # until the node that is to be paused reads something
STOP_S_MAX = 60.0
REASON = "the file is back"


@dataclass(frozen=True, slots=True)
class Plan:
    folder: Path  # an empty one
    command: tuple[str, ...]  # how `headgate` is started
    records: int = 200_000
    term_s: float = 4
    seed: int = 7
    goes_on: bool = False  # nodes and page stay when everything is proved


@dataclass(frozen=True, slots=True)
class NodeCell:
    name: str
    pid: int
    state: State
    holds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    elapsed_s: float
    page: str  # address of the status page; "": not known yet
    nodes: tuple[NodeCell, ...]
    scene: Scene
    news: tuple[str, ...]


@dataclass(slots=True)
class Story:
    """What happened, for people."""

    caught: Caught | None = None
    paused: str = ""
    paused_s: float = 0
    refused: int = 0  # late writes of it
    broken: Period | None = None  # the hour whose file was moved away
    notice: str = ""
    remedy: str = ""  # the command that was run, as it was printed
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    story: Story
    hours: tuple[Period, ...]
    judged: Judged
    faults: tuple[str, ...]
    elapsed_s: float
    page: str

    @property
    def is_proved(self) -> bool:
        return not self.faults


Show = Callable[[Picture], None]


class Landfall:
    """The processes of one play. They are all ended by `close`, and with whoever started them."""

    def __init__(self, plan: Plan, show: Show) -> None:
        self._plan = plan
        self._show = show
        self._ambient = SystemAmbient()
        self._began_s = time.monotonic()
        now_ms = self._now_ms()
        end_ms = aligned(now_ms - LATENESS_MS - MARGIN_MS, HOUR_MS)
        self._hours = tuple(hours_between(end_ms - HOURS * HOUR_MS, end_ms))
        self._home = Home(plan.folder, plan.command, self._hours[0])
        settings = self._home.settings
        self._store = open_store(settings.store, settings.namespace)
        self._children: list[Child] = []
        self._page: Child | None = None
        self._address = ""
        self._tale = Tale()
        self._news: list[str] = []
        self._scene = Scene()
        self._shown_s = 0.0
        self._cargo = Cargo(plan.folder, plan.records, self._hours, plan.seed)
        self._story = Story()
        self._faults: list[str] = []

    # The play

    def play(self) -> Outcome:
        """Raises what the store raises; Unavailable if a step of the story does not come."""
        cargo = self._cargo
        cargo.begin()
        self._page = self._home.start("page", "web", "--port", "0")
        for name in NODES:
            options = ["--name", name, "--term-seconds", str(self._plan.term_s)]
            self._children.append(self._home.start(name, "run", *options))
        cargo.load()
        first, second = cargo.rows_of("first"), cargo.rows_of("first", "second")
        self._say(*cargo.drop("first"))
        self._kill_one(first)
        taken = self._break_an_hour(lambda: self._scene.rows >= first and self._is_table_idle)
        self._until(lambda: self._scene.rows >= first, "the first wave has landed")
        self._say(*cargo.drop("second"))
        if self._story.caught is None:
            self._kill_one(second)
        taken = taken or self._break_an_hour(lambda: False)
        self._pause_one()
        self._mend(taken)
        self._until(lambda: self._scene.rows >= second, "the second wave has landed")
        self._say(*cargo.drop_late())
        self._until(lambda: self._is_all_there, "every hour is ready, and in the table")
        if not self._plan.goes_on:
            self.stop()
        return self._proved()

    def stop(self) -> None:
        """The nodes, in good order."""
        self._say("the nodes that are left are asked to stop")
        left = [child for child in self._children if child.is_there]
        for child in left:
            child.ask_to_stop()
        for child in left:
            if not child.await_end(STOP_S_MAX) or child.code != 0:
                self._faults.append(f"{child.name} ended with {child.code}; its log: {child.log}")
        self._look()

    def close(self) -> None:
        for child in [*self._children, *([] if self._page is None else [self._page])]:
            child.close()
        self._store.close()

    # What happens

    def _kill_one(self, rows: int) -> None:
        """Before so many rows have landed."""
        shards = {own.name: own.shards for own in self._home.settings.streams.values()}
        ambush = Ambush(self._store, self._home.lake, shards, self._children)
        ends_s = time.monotonic() + ACT_S_MAX

        def is_over() -> bool:
            self._look_sometimes()
            return self._scene.rows >= rows or time.monotonic() > ends_s

        caught = self._story.caught = ambush.lie_in_wait(is_over)
        if caught is None:
            self._say("no node could be caught in the middle of a commit")
            return
        self._say(
            f"{caught.node} is killed with -9 in the middle of commit {caught.shard}/"
            f"{caught.number}: {caught.published} of {caught.files} files are published, and no "
            "position has moved"
        )

    def _break_an_hour(self, is_over: Callable[[], bool]) -> Path | None:
        """The last ready hour loses a file, before the table comes to it; None: it was faster."""
        place = self._home.settings.streams[ORDERS].folder
        self._until(
            lambda: self._breakable is not None or is_over(), "hours wait for the table", must=False
        )
        hour = self._breakable
        if hour is None:
            return None
        file = sorted((self._home.lake / place.folder(hour, stream=ORDERS)).glob("*.parquet"))[0]
        os.rename(file, self._plan.folder / file.name)
        self._story.broken = hour
        self._say(f"somebody moves {file.relative_to(self._plan.folder)} away; the hour is ready")
        return file

    @property
    def _breakable(self) -> Period | None:
        """The last ready hour, if the table has so much to do before it that it comes too late."""
        if not self._scene.tables:
            return None
        applied_up_to, ready = self._scene.tables[0].applied_up_to, self._scene.streams[0].ready
        before = [hour for hour in self._hours[:ready] if str(hour) > applied_up_to]
        return before[-1] if len(before) > BATCHES_BEFORE else None

    def _pause_one(self) -> None:
        """In the middle of a round; who holds the table goes on, if there is a choice."""
        self._until(self._may_pause, "two nodes are at work", ROUND_S_MAX, must=False)
        there = [child for child in self._children if child.is_there]
        busy = [child for child in there if self._is_in_a_round(child)]
        idle = [child for child in there if f"table {TABLE}" not in self._holds(child)]
        child = next(iter([one for one in busy if one in idle] or busy or idle or there))
        doing = "in the middle of a round" if child in busy else "while it waits"
        held = ", ".join(self._holds(child)) or "nothing"
        began_s = time.monotonic()
        if not child.pause(lambda: is_nobody_held_up(self._store)):
            raise Unavailable(f"{child.name}: could not be paused without holding others up")
        words = f"{child.name} is paused (SIGSTOP) {doing}, for longer than its session lives"
        self._say(f"{words}; it holds {held}")
        self._until(lambda: not self._holds(child), f"all that {child.name} held is taken over")
        self._story.paused, self._story.paused_s = child.name, time.monotonic() - began_s
        self._tale.wake(child.name)
        child.wake()
        self._say(f"{child.name} is woken (SIGCONT), and does not know that time has passed")
        self._until(lambda: child.state == "running", f"{child.name} has joined again")

    def _may_pause(self) -> bool:
        there = [child for child in self._children if child.is_there]
        return len(there) > 1 and any(self._is_in_a_round(child) for child in there)

    def _mend(self, file: Path | None) -> None:
        """As a person would: reads the notice, removes the cause, runs the command it names."""
        if file is None:
            raise Unavailable("the table was never behind; next: headgate demo, once more")
        self._until(lambda: self._scene.tables[0].state == "halted", f"the table {TABLE} halted")
        notice = self._story.notice = self._scene.tables[0].notice
        for line in notice.split("\n"):
            self._say(f"  {line}")
        os.rename(self._plan.folder / file.name, file)
        remedy = self._story.remedy = remedy_of(notice, REASON)
        self._say(f"the file is put back; $ {remedy}")
        done = self._home.run(*shlex.split(remedy)[1:])
        self._story.answer = done.stderr.strip()
        self._say(f"  {self._story.answer}")
        if done.returncode != 0:
            raise Unavailable(f"{remedy}: ended with {done.returncode}: {done.stderr.strip()}")

    # The proof

    def _proved(self) -> Outcome:
        self._say("now every file of lake and table is read, and every record counted")
        judged = judge(self._home, TABLE, self._cargo.dropped, self._hours)
        self._story.refused = self._tale.refused
        faults = (*judged.faults, *self._story_faults(), *self._faults)
        elapsed_s = time.monotonic() - self._began_s
        return Outcome(self._story, self._hours, judged, faults, elapsed_s, self._address)

    def _story_faults(self) -> list[str]:
        """What did not happen proves nothing."""
        caught = self._story.caught
        is_caught = caught is not None and caught.is_in_the_middle
        return [
            *([] if is_caught else ["no node was killed in the middle of a commit"]),
            *([] if self._tale.takeovers else ["nobody had to take over anything"]),
            *([] if self._tale.lost else ["the paused node did not lose its session"]),
        ]

    # Looking

    @property
    def _is_table_idle(self) -> bool:
        """It has all that is ready."""
        (table, *_), (orders, *_) = self._scene.tables, self._scene.streams
        last = str(self._hours[orders.ready - 1]) if orders.ready else "no hour"
        return not table.waiting and table.applied_up_to >= last

    @property
    def _is_all_there(self) -> bool:
        is_ready = all(one.ready == len(one.hours) for one in self._scene.streams)
        is_landed = self._scene.rows >= self._cargo.rows_of("first", "second", "late")
        is_applied = all(
            one.applied_up_to >= str(self._hours[-1]) and not one.waiting
            for one in self._scene.tables
        )
        return is_ready and is_landed and is_applied

    def _holds(self, child: Child) -> tuple[str, ...]:
        return self._scene.holds(child.session)

    def _is_in_a_round(self, child: Child) -> bool:
        held = self._holds(child)
        return any(one.name in held and one.is_in_a_round for one in self._scene.shards)

    def _until(
        self, is_so: Callable[[], bool], what: str, s_max: float = ACT_S_MAX, *, must: bool = True
    ) -> None:
        ends_s = time.monotonic() + s_max
        self._look()
        while not is_so():
            if time.monotonic() > ends_s:
                if must:
                    raise Unavailable(
                        f"after {s_max:.0f} s it is not so that {what}; next: see the logs in "
                        f"{self._plan.folder}"
                    )
                return
            if not any(child.is_there for child in self._children):
                raise Unavailable(f"no node is left; next: see the logs in {self._plan.folder}")
            time.sleep(LOOK_S)
            self._look()
        if must:
            self._say(what)

    def _look_sometimes(self) -> None:
        if time.monotonic() - self._shown_s > SHOW_S:
            self._look()

    def _look(self) -> None:
        events = [event for child in self._children for event in child.read()]
        now_s = time.monotonic()
        self._news += self._tale.hear(events, now_s)
        self._news += self._tale.flush(now_s)
        self._news += [words for event in events for words in _told(event)]
        with suppress(HeadgateError):  # the next look tells
            self._scene = look(
                self._store, self._home.lake, self._home.settings, self._hours, self._ambient
            )
        if not self._address and self._page is not None:
            self._address = _address_in(self._page.log)
            if self._address:
                self._news.append(f"watch it in a browser, too: {self._address}")
        if now_s - self._shown_s > SHOW_S or self._news:
            self._shown_s = now_s
            self._draw()

    def _say(self, *words: str) -> None:
        self._news += words
        self._draw()

    def _draw(self) -> None:
        nodes = tuple(
            NodeCell(one.name, one.pid, one.state, self._holds(one)) for one in self._children
        )
        news, self._news = tuple(self._news), []
        elapsed_s = time.monotonic() - self._began_s
        self._show(Picture(elapsed_s, self._address, nodes, self._scene, news))

    def _now_ms(self) -> int:
        return self._ambient.wall_ns() // 1_000_000


def remedy_of(notice: str, reason: str) -> str:
    """The first command that a notice names, with the reason filled in."""
    line = next(line for line in notice.split("\n") if line.startswith("  next "))
    command = line.removeprefix("  next ").strip().partition("   ")[0]
    return command.replace('"…"', shlex.quote(reason))


def _address_in(log: Path) -> str:
    """What the page printed; "": nothing so far."""
    lines = log.read_text("utf-8", "replace").split("\n")
    return next((line for line in lines[:-1] if line.startswith("http://")), "")


def _told(event: Event) -> list[str]:
    node, fields = event.node, event.fields
    if event.name == "spark.started":
        return [f"{node} started Spark, now that there is something to do for it"]
    if event.name == "journal.found":
        shard, number = fields["shard"], fields["commit"]
        return [f"{node} took {shard} over and finishes commit {number} from its journal"]
    if event.name == "batch.failed":
        return [f"{node} could not apply {fields['batch']} to the table {fields['table']}"]
    return []
