"""Cluster: several processes of one server, killed, paused and healed by index.

A cluster is ready when every member serves. kill, pause, restart and resume return without waiting
for the others to notice; heal() brings everybody back and waits until the cluster is ready again.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.servers.process import (
    ChildProcess,
    ServerFailed,
    free_ports,
    stop_all,
    wait_until,
    working_folder,
)

READY_WITHIN_S = 90


class Cluster(ABC):
    """Members keep their ports and their data over kill and restart, until the cluster stops."""

    def __init__(self, name: str, size: int, folder: Path | None) -> None:
        self.name = name
        self.size = size
        self.children: Sequence[ChildProcess] = ()
        self.ports: Sequence[int] = free_ports(size)  # the ones clients use
        self._given_folder = folder
        self._exits = ExitStack()

    @property
    def hosts(self) -> str:
        """`127.0.0.1:p1,127.0.0.1:p2,…`"""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exits.__exit__(kind, error, traceback)

    def start(self) -> None:
        """Starts all members at once. Raises ServerFailed, with everything stopped again."""
        with ExitStack() as exits:
            folder = exits.enter_context(working_folder(self.name, self._given_folder))
            self.children = [self._prepare(index, folder) for index in range(self.size)]
            exits.callback(stop_all, self.children)
            self.heal()
            self._exits = exits.pop_all()

    def stop(self) -> None:
        self._exits.close()

    def kill(self, index: int) -> None:
        """kill -9"""
        self.children[index].kill()

    def restart(self, index: int) -> None:
        """Starts a dead member again; one that still lives is killed first."""
        self.children[index].kill()
        self.children[index].start()

    def pause(self, index: int) -> None:
        """SIGSTOP: connections stay open, nobody answers."""
        self.children[index].pause()

    def resume(self, index: int) -> None:
        self.children[index].resume()

    def heal(self) -> None:
        """Every member runs and serves, and all agree. Raises ServerFailed after 90 s."""
        for child in self.children:
            child.resume()
            child.start()
        wait_until(self._is_whole, f"all of {self.name}", READY_WITHIN_S, self.children)

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(child.log_tail(lines) for child in self.children)

    def _leader(self) -> int:
        """Waits out an election. Raises ServerFailed when too few live for one."""
        found: list[int] = []

        def one_leads() -> bool:
            found[:] = self._find_leaders()
            return len(found) == 1

        able = [self.children[index] for index in self._able()]
        if len(able) <= self.size // 2:
            raise ServerFailed(f"{self.name}: {len(able)} of {self.size} live, nobody can lead")
        wait_until(one_leads, f"a leader of {self.name}", READY_WITHIN_S, able)
        return found[0]

    def _able(self) -> list[int]:
        """Who could answer: asking a paused one would only cost a timeout."""
        return [
            index
            for index, child in enumerate(self.children)
            if child.is_running and not child.is_paused
        ]

    @abstractmethod
    def _prepare(self, index: int, folder: Path) -> ChildProcess:
        """The member's process, not started; what it needs on disk is written."""

    @abstractmethod
    def _is_whole(self) -> bool:
        """Every member serves and all agree on one leader."""

    @abstractmethod
    def _find_leaders(self) -> list[int]:
        """Whoever leads now; none during an election, two while an old one has not noticed."""
