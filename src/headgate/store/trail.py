"""Trail: who wrote a document last, so that a write can tell whether it took effect.

When the node of the primary dies, OpenSearch repeats a write that it had handed there, and what
took effect the first time comes back to us as a conflict. So each write leaves a token,
`<writer>-<count>`. A writer makes one call at a time: it is enough to remember the last of each.

    <first creator's token>,<this write's token>[,<token>@<seq_no>.<primary_term>]…

Newest first, `WRITERS_MAX` at most. After a conflict the document is read, and `judge` says whether
our token is in it, cannot be, or whether so many wrote since that nobody can tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.errors import OutcomeUnknown

WRITERS_MAX = 6  # keeps a version under 250 characters
TOKEN = r"[0-9a-f]+-[0-9a-f]+"  # noqa: S105 - names a write, opens nothing
TRAIL = rf"{TOKEN},{TOKEN}(,{TOKEN}@[0-9]+\.[0-9]+)*"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a version says, and whether it is a tombstone's."""

    seq_no: int
    primary_term: int
    trail: str
    is_gone: bool = False

    @property
    def at(self) -> str:
        return f"{self.seq_no}.{self.primary_term}"

    @property
    def condition(self) -> dict[str, str]:
        return {"if_seq_no": str(self.seq_no), "if_primary_term": str(self.primary_term)}

    @property
    def creator(self) -> str:
        return self.trail.partition(",")[0]

    @property
    def writes(self) -> Sequence[str]:
        """`<token>@<seq_no>.<primary_term>`, the last write of each writer, newest first."""
        _, newest, *older = self.trail.split(",")
        return [f"{newest}@{self.at}", *older]


def follow(base: Entry, token: str) -> str:
    """The trail of a write on top of `base`."""
    others = [write for write in base.writes if not write.startswith(_writer(token))]
    return ",".join((base.creator, token, *others[: WRITERS_MAX - 1]))


def judge(trail: str, base: Entry | None, current: Entry) -> str | None:
    """Where the write with that trail is, `<seq_no>.<primary_term>`; None: it never was.

    `base` is what it was to replace (None: it was to be the first), `current` what is there.
    Raises OutcomeUnknown.
    """
    token, writes = trail.split(",")[1], current.writes
    for write in writes:
        if write.startswith(f"{token}@"):
            return write.partition("@")[2]
        if write.startswith(_writer(token)):
            return None  # ours would be this writer's last
    if base is None:
        is_all = current.creator != token
    else:
        # Whoever wrote after the oldest of these is among them.
        oldest_seq_no = int(writes[-1].partition("@")[2].partition(".")[0])
        is_all = len(writes) < WRITERS_MAX or base.seq_no >= oldest_seq_no
    if is_all:
        return None
    raise OutcomeUnknown(
        f"{len(writes)} others wrote to this document since; nobody can tell whether this write "
        "came before theirs. Next: read it again, then decide"
    )


def _writer(token: str) -> str:
    return token.partition("-")[0] + "-"
