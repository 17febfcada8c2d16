"""Fleets: real nodes on a real store. Each reaches it by wires of its own, which a test may break.

A node here is what `headgate run` makes of its parts, in threads of the test; only its store lies
behind a stage that writes down what it began, and when.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headgate import open_store
from headgate.ambient import Ambient, SystemAmbient
from headgate.cluster import Order
from headgate.cluster.duties import Duties, NodeSettings
from headgate.cluster.ephemeral import open_presence
from headgate.cluster.picture import Picture, read_picture
from headgate.cluster.trust import Trust
from headgate.errors import Unavailable
from headgate.node import Ending, Node
from headgate.store import DocumentStore
from headgate.store.codec import parse
from headgate.testing.faults import Call, Sort, wrap
from headgate.testing.fleet import progress
from headgate.testing.racing import PATIENCE_S, eventually, in_background, until
from headgate.testing.steps import Progress, StepsFeed, StepsKind, find_faults
from tests.servers.cluster import Cluster
from tests.servers.toxiproxy import Proxy, Toxiproxy

TERM_MS = 2_000
STEPS = 30
PAUSE_MS = 80


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is: servers with their addresses, or a folder without any."""

    url: str  # HOSTS stands for the servers' addresses
    cluster: Cluster | None = None
    chiefs: tuple[Callable[[], int], ...] = ()  # each says which server matters most just now

    @property
    def hosts(self) -> Sequence[str]:
        return () if self.cluster is None else self.cluster.hosts.split(",")

    def url_by(self, hosts: Sequence[str], options: str = "") -> str:
        return self.url.replace("HOSTS", ",".join(hosts)) + options


@dataclass(frozen=True, slots=True)
class Write:
    what: str
    started_ms: int  # on the boot clock
    over_ms: int  # from when on others may have closed the session


class WriteLog:
    """A stage that notes each write, with the trust its node had at that moment.

    A thread may be held up between asking for trust and coming here. What that may cost is the
    margin between the end of trust and the end of the session; so the latter is what counts.
    """

    def __init__(self, ambient: Ambient, hold_ms: Callable[[], int]) -> None:
        self.writes: list[Write] = []
        self.on_write: Callable[[Call, Callable[[], object]], object] = lambda _, act: act()
        self._ambient = ambient
        self._hold_ms = hold_ms
        self._trust: Trust | None = None
        self._until_ms = 0

    def watch(self, trust: Trust) -> None:
        self._trust = trust

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if call.sort is not Sort.WRITE:
            return act()
        assert self._trust is not None
        started_ms = self._ambient.boot_ms()
        # 0: the session was ended just now, by another thread. What it had before is what counted.
        self._until_ms = self._trust.until_ms or self._until_ms
        over_ms = self._until_ms + self._hold_ms() // 10
        self.writes.append(Write(str(call), started_ms, over_ms))
        return self.on_write(call, act)

    def late(self) -> list[Write]:
        return [write for write in self.writes if write.started_ms >= write.over_ms]


class GrowingFeed:
    """`headgate.cluster.Feed` that a test gives more to do while nodes run."""

    def __init__(self, steps: int = STEPS, pause_ms: int = PAUSE_MS) -> None:
        self.now = StepsFeed("work", 0, steps, pause_ms)

    @property
    def name(self) -> str:
        return self.now.name

    def wanted(self, first: int, limit: int) -> tuple[Order, ...]:
        return self.now.wanted(first, limit)

    def grow(self, count: int) -> range:
        """The numbers of the new tasks."""
        before = self.now
        self.now = StepsFeed(
            before.name, before.count + count, before.steps, pause_ms=before.pause_ms
        )
        return range(before.count, self.now.count)


class RealNode:
    def __init__(
        self,
        name: str,
        url: str,
        namespace: str,
        wires: Sequence[Proxy],
        feed: GrowingFeed,
        *,
        term_ms: int,
    ) -> None:
        ambient = SystemAmbient()
        self.name = name
        self.wires = wires
        self.store = open_store(url, namespace, ambient=ambient)
        presence = open_presence(self.store, ambient, term_ms=term_ms)
        self.log = WriteLog(ambient, lambda: presence.hold_ms)
        staged = wrap(DocumentStore, self.store, self.log)
        self.duties = Duties(
            NodeSettings(name), staged, presence, ambient, [StepsKind(staged, ambient)], [feed]
        )
        self.log.watch(self.duties.trust)
        self._node = Node(self.duties, ambient, drain_ms=20_000)
        self._running: Future[Ending] = in_background(self._node.run)

    @property
    def session(self) -> str | None:
        return self.duties.trust.session

    @property
    def may_act(self) -> bool:
        session = self.session
        return session is not None and self.duties.trust.left_ms(session) > 0

    @property
    def sessions_lost(self) -> int:
        return self.duties.membership.lost

    @property
    def failures(self) -> int:
        return sum(worker.failures for worker in self.duties.workers)

    def cut(self) -> None:
        for wire in self.wires:
            wire.cut()

    def deafen(self) -> None:
        """What it says still arrives at one server; it hears nothing."""
        heard, *others = self.wires
        for wire in others:
            wire.cut()
        heard.lose_replies()

    def heal(self) -> None:
        for wire in self.wires:
            wire.heal()

    def stop(self) -> Ending:
        """Stopping twice is fine."""
        self._node.drain()
        ending = self._running.result(PATIENCE_S)
        self.store.close()
        return ending


class RealFleet:
    """Nodes of one namespace, and an eye that sees the store directly. Stopped at the end."""

    def __init__(self, place: Place, network: Toxiproxy | None, feed: GrowingFeed) -> None:
        self.place = place
        self.namespace = f"it-{SystemAmbient().new_id()[:12]}"
        self.feed = feed
        self.nodes: list[RealNode] = []
        self.eye = open_store(place.url_by(place.hosts), self.namespace)
        self._network = network

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for node in self.nodes:
            node.heal()
        stopping = [in_background(node.stop) for node in self.nodes]
        for one in stopping:
            one.result(2 * PATIENCE_S)
        for node in self.nodes:
            for wire in node.wires:
                wire.close()
        self.eye.close()

    def start(self, *names: str, term_ms: int = TERM_MS) -> list[RealNode]:
        for name in names:
            wires = (
                [] if self._network is None else list(map(self._network.proxy, self.place.hosts))
            )
            url = self.place.url_by([wire.address for wire in wires], session_option(self.place))
            node = RealNode(name, url, self.namespace, wires, self.feed, term_ms=term_ms)
            self.nodes.append(node)
        return self.nodes[-len(names) :]

    def grow(self, count: int) -> range:
        """More tasks, at once: a leader asks a feed every few seconds only, or when it wakes."""
        numbers = self.feed.grow(count)
        for node in self.nodes:
            node.duties.steward.nudge.give()
        return numbers

    def picture(self) -> Picture:
        return eventually(lambda: read_picture(self.eye))

    def progress(self) -> list[Progress]:
        return eventually(lambda: progress(self.eye))

    def held_by(self, node: RealNode) -> Mapping[str, int]:
        """Keys of tasks and their epochs."""
        tasks = self.picture().tasks.values()
        return {task.key: task.value.epoch for task in tasks if task.value.holder == node.session}

    def is_taken_over(self, before: Mapping[str, int]) -> bool:
        """Each of these has another holder by now, or was done since."""
        tasks = self.picture().tasks
        return all(
            tasks[key].value.epoch > epoch and tasks[key].value.holder != ""
            for key, epoch in before.items()
            if key in tasks and tasks[key].value.state != "done"
        )

    def has_worked(self, node: RealNode, on: range | None = None, steps: int = 1) -> bool:
        """Whether some task has so many steps of this node."""
        return any(
            sum(step.node == node.name for step in one.steps) >= steps
            for one in self.progress()
            if on is None or one.input in on
        )

    def steps_done(self) -> int:
        return sum(len(one.steps) for one in self.progress())

    def steps_of(self, key: str) -> int:
        """How many steps a task's progress document has."""
        found = eventually(lambda: self.eye.get(key))
        return 0 if found is None else len(parse(found, Progress).steps)

    def handed_over(self, name: str) -> list[Progress]:
        """Tasks that this node began and others went on with, under a higher epoch."""
        return [
            one
            for one in self.progress()
            if one.steps
            and one.steps[0].node == name
            and any(s.node != name and s.epoch > one.steps[0].epoch for s in one.steps)
        ]

    def is_done(self) -> bool:
        try:
            picture = read_picture(self.eye)
        except Unavailable:
            return False
        aside = [task for task in picture.tasks.values() if task.value.set_aside is not None]
        assert not aside, aside
        states = list(picture.feeds.values())
        return bool(states) and states[0].value.next == self.feed.now.count and not picture.tasks

    def finish(self) -> None:
        """Everything is done, once; nobody failed at it or acted without trust; all can stop."""
        assert until(self.is_done, within_s=2 * PATIENCE_S), self.picture().tasks
        assert find_faults(self.feed.now, self.progress()) == []
        for node in self.nodes:
            assert node.failures == 0
            assert node.log.writes, f"{node.name} has done something"
        stopping = [in_background(node.stop) for node in self.nodes]
        endings = [one.result(2 * PATIENCE_S) for one in stopping]
        assert endings == [Ending.DRAINED] * len(self.nodes)
        for node in self.nodes:
            assert node.log.late() == [], f"{node.name} began to write after its trust"


def session_option(place: Place, session_ms: int = TERM_MS) -> str:
    """ZooKeeper lets a silent client go after that; the others know nothing of clients."""
    return f"?session_ms={session_ms}" if place.url.startswith("zk:") else ""


class NodeProcess:
    """`headgate run`, as a process of its own that can be stopped and killed."""

    def __init__(
        self, name: str, url: str, namespace: str, feed: StepsFeed, *, term_ms: int = TERM_MS
    ) -> None:
        self.name = name
        program = Path(sys.executable).with_name("headgate")
        options = {
            "store": url,
            "namespace": namespace,
            "name": name,
            "term-seconds": term_ms / 1000,
            "demo-tasks": feed.count,
            "demo-steps": feed.steps,
            "demo-pause-ms": feed.pause_ms,
        }
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        self._child = subprocess.Popen(
            [program, "run", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._child.pid, number)

    def kill(self) -> None:
        """kill -9; killing a dead one is fine."""
        self._child.kill()
        self._child.wait()

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        self._child.terminate()
        return self._child.wait(PATIENCE_S)
