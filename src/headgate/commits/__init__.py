"""Commits: from an intent to a journal, from a journal to files, from files to a fact.

    checkpoint   a shard's document: positions, watermarks, the journal; changed in one tenure
    record       what a commit is, in the lake, under its number
    steps        one verifiable effect each
    replay       does what is not done yet of a journal's commit, from whatever a crash left

Deliberately absent: hours. For a commit a file is a name, a size and a checksum, and a period is a
word.
"""

from dataclasses import dataclass
from typing import Protocol

from headgate.store import JsonObject


@dataclass(frozen=True, slots=True)
class Announced:
    """What a step of the user's own is told of a commit, before it becomes an intent."""

    stream: str
    shard: int
    number: int
    published: tuple[str, ...]  # paths of data files below the root
    options: JsonObject  # of the step, from the settings


class StepKind(Protocol):
    """A step of the user's own, after a commit's files and before its fact.

    The body is fixed with the intent. `execute` may be called again with the same body after a
    crash, also by another node: `verify` says whether that is needed. The commit waits for it.
    """

    @property
    def name(self) -> str: ...

    def body(self, announced: Announced) -> JsonObject:
        """What to do, as JSON, the same each time. An empty one: nothing to do for this commit."""

    def verify(self, body: JsonObject) -> bool:
        """Whether it is done."""

    def execute(self, body: JsonObject) -> None:
        """Does it. Whatever it raises is a failed try of the shard."""
