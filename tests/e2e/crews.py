"""Nodes as child processes that are killed and started again, for the tests with -9."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headgate import DocumentStore
from headgate.cluster.tasks import Task, task_key
from headgate.store.changes import read
from headgate.testing.drama.child import Child

WITHIN_S = 240.0  # a machine may be busy with much else
STOP_S = 60.0
TERM_S = "3"


@dataclass(slots=True)
class Crew:
    folder: Path  # with headgate.yaml
    store: DocumentStore
    command: Sequence[str]  # how `headgate` is started
    children: dict[str, Child] = field(default_factory=dict)
    starts: int = 0

    def start(self, name: str) -> None:
        self.starts += 1
        if name in self.children:
            self.children[name].close()
        options = ["run", "--config", str(self.folder / "headgate.yaml"), "--name", name]
        command = [*self.command, "--log-level", "info", *options, "--term-seconds", TERM_S]
        self.children[name] = Child(name, command, self.folder / f"{name}-{self.starts}.log")

    def holder(self, feed: str, number: int) -> Child | None:
        """Of a task; None: nobody who is here and alive."""
        task = read(self.store, task_key(feed, number), Task)
        for child in self.children.values():
            child.read()
            if task is not None and child.session == task.value.holder != "" and child.is_there:
                return child
        return None

    def kill(self, name: str) -> str:
        self.children[name].kill()
        print(f"{name}: killed")
        return name

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        ends_s = time.monotonic() + WITHIN_S
        while not is_so():
            assert time.monotonic() < ends_s, f"{what}: not within {WITHIN_S:.0f} s\n{self.logs()}"
            time.sleep(0.1)

    def stop(self) -> None:
        for child in self.children.values():
            child.ask_to_stop()
        for child in self.children.values():
            assert child.await_end(STOP_S), f"{child.name} does not stop\n{self.logs()}"

    def close(self) -> None:
        for child in self.children.values():
            child.close()

    def logs(self) -> str:
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text('utf-8')[-3_000:]}" for log in logs)
