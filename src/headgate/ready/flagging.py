"""Flagging: the effects of a root's journal, one flag after the other, from whatever a crash left.

    raise      staged ── publish ──▶ flag                  done: nothing is staged any more
    withdraw   flag ── renamed, onto nothing ──▶ flag.<n>  done: this very flag is gone

Raising consumes what was staged: whoever wakes up late finds nothing, even if the flag was
withdrawn since. Withdrawing takes only the file that it knows by size and checksum: whoever wakes
up late leaves the next generation's flag alone. A flag that somebody deleted by hand is no matter
of a journal: `repair` raises it again.
"""

from contextlib import suppress

from headgate.commits.roots import FlagMove, RootJournal
from headgate.errors import Conflict, Corrupt, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.paths import folder_of
from headgate.lake.relocation import relocate

TRIES_MAX = 3


def carry_out_flags(lake: Lake, journal: RootJournal) -> None:
    """Afterwards every flag is raised, or withdrawn, and that lasts. Raises Corrupt, Unavailable,
    OutcomeUnknown."""
    step = raise_flag if journal.kind == "raise" else withdraw_flag
    for move in journal.moves:
        step(lake, move)
        if journal.kind == "withdraw":
            lake.settle([folder_of(move.staged)])  # no power cut brings a parent back for a child
    if journal.kind == "raise":
        lake.settle(sorted({folder_of(move.published) for move in journal.moves}))


def raise_flag(lake: Lake, move: FlagMove) -> None:
    for _ in range(TRIES_MAX):
        # Staged first: the other way round, a neighbour's move in between would look like none.
        staged = lake.facts(move.staged)
        if staged is None:
            return
        found = lake.facts(move.published)
        if found not in (None, move.facts) or staged != move.facts:
            raise Corrupt(
                f"{move.published}: somebody else's file has this name, or what is staged for it "
                "was changed; nothing is overwritten, and no other flag of this root is raised; "
                "next: move it away, then headgate audit"
            )
        with suppress(Conflict, OutcomeUnknown, Unavailable):  # look again
            if found is None:
                lake.publish(move.staged, move.published)
            else:
                lake.remove(move.staged, move.facts)  # a move of two effects was cut in half
    if lake.facts(move.staged) is not None:
        raise Unavailable(f"{move.published}: raised {TRIES_MAX} times, and is still staged")


def withdraw_flag(lake: Lake, move: FlagMove) -> None:
    relocate(lake, move)
