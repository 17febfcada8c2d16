"""Relocation: a published file goes to another name; exactly that file, and never onto something.

Cut in half, by a kill between the two effects that some lakes need, it has both names; done again,
it loses the first. Whoever wakes up late finds another file under the first name, or none, and
leaves that alone.
"""

from contextlib import suppress
from dataclasses import dataclass

from headgate.errors import Conflict, OutcomeUnknown, Unavailable
from headgate.lake import FileFacts, Lake, Move

TRIES_MAX = 3


@dataclass(frozen=True, slots=True)
class Relocation:
    """`headgate.lake.Move`."""

    staged: str  # where it lies
    published: str
    facts: FileFacts

    @property
    def size_bytes(self) -> int:
        return self.facts.size_bytes

    @property
    def checksum(self) -> str:
        return self.facts.checksum


def relocate(lake: Lake, move: Move) -> None:
    """Afterwards this very file is not there any more; whether it is at the other name, `facts`
    tells. Raises Unavailable: it is still there, perhaps because something has that name."""
    facts = FileFacts(move.size_bytes, move.checksum)
    for _ in range(TRIES_MAX):
        if lake.facts(move.staged) != facts:
            return
        with suppress(Conflict, OutcomeUnknown, Unavailable):
            # Moves only a file of this size and checksum, and never onto something.
            lake.publish_all([move])
            if lake.facts(move.published) == facts:
                lake.remove(move.staged, facts)
    if lake.facts(move.staged) == facts:
        raise Unavailable(f"{move.staged}: moved away {TRIES_MAX} times, and is still there")
