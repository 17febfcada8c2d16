"""Commits: from an intent to a journal, from a journal to files, from files to a fact.

    checkpoint   a shard's document: positions, watermarks, the journal; changed in one tenure
    record       what a commit is, in the lake, under its number
    steps        one verifiable effect each
    replay       does what is not done yet of a journal's commit, from whatever a crash left
    streams      a stream's document, on which its shards and whoever closes its hours agree
    roots        a root's document: its streams' seats, their frontiers, the journal of flags
    certificate  what an hour of a stream consists of, as a value and as bytes; where its flags lie
    merges       small files of an hour that became fewer large ones: the record, and their names

Deliberately absent: hours in a commit. For it a file is a name, a size and a checksum, and a period
is a word; the last four are what the stages above share.
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
