"""Guarded: the lake for whoever acts under a right: every call asks for trust first (invariant 10).

Safety does not need it: what a late waker does to the lake has fixed names and consumes what was
staged.
"""

from collections.abc import Sequence
from typing import BinaryIO, Protocol

from headgate.lake import LIST_MAX, READ_BYTES_MAX, FileFacts, Lake, Listing, Move


class Permit(Protocol):
    def check(self) -> None:
        """Raises Fenced."""


class GuardedLake:
    """`headgate.lake.Lake`, for one holder."""

    def __init__(self, behind: Lake, permit: Permit) -> None:
        self._behind = behind
        self._permit = permit

    @property
    def url(self) -> str:
        return self._behind.url

    def stage(self, path: str, content: bytes) -> FileFacts:
        self._permit.check()
        return self._behind.stage(path, content)

    def seal(self, paths: Sequence[str]) -> tuple[FileFacts, ...]:
        self._permit.check()
        return self._behind.seal(paths)

    def facts(self, path: str) -> FileFacts | None:
        self._permit.check()
        return self._behind.facts(path)

    def publish(self, staged: str, published: str) -> None:
        self._permit.check()
        self._behind.publish(staged, published)

    def publish_all(self, moves: Sequence[Move]) -> tuple[bool, ...]:
        self._permit.check()
        return self._behind.publish_all(moves)

    def settle(self, folders: Sequence[str]) -> None:
        self._permit.check()
        self._behind.settle(folders)

    def read(self, path: str, size_bytes_max: int = READ_BYTES_MAX) -> bytes | None:
        self._permit.check()
        return self._behind.read(path, size_bytes_max)

    def open(self, path: str) -> BinaryIO:
        self._permit.check()
        return self._behind.open(path)

    def list(self, folder: str, *, after: str = "", limit: int = LIST_MAX) -> Listing:
        self._permit.check()
        return self._behind.list(folder, after=after, limit=limit)

    def remove(self, path: str, facts: FileFacts) -> None:
        self._permit.check()
        self._behind.remove(path, facts)

    def remove_folder(self, folder: str) -> None:
        self._permit.check()
        self._behind.remove_folder(folder)

    def append(self, path: str, lines: Sequence[str]) -> None:
        self._permit.check()
        self._behind.append(path, lines)
