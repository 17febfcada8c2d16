"""Root: one holder's time with a root's document.

It acts only on what its own last acknowledged write contained: after Conflict or OutcomeUnknown, or
once somebody else wrote (a stream that joined, a person's wish), it takes over again, by a write.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from headgate.commits.roots import RootDocument, ended, joined, root_key
from headgate.errors import Conflict, Corrupt, Fenced, OutcomeUnknown
from headgate.store import DocumentStore
from headgate.store.changes import Kept, create_if_absent, read
from headgate.store.codec import body_of

Lasts = Mapping[str, int | None]
"""The streams of a root by name, and the end of the last hour that each is expected in."""


def taken_over(name: str, found: RootDocument, epoch: int, lasts: Lasts) -> RootDocument:
    """In this holder's hand, with a seat for every stream that its settings have. A stream that
    they do not have keeps its seat: it is expected until a person retires it. Raises Fenced."""
    if found.epoch > epoch:
        raise Fenced(f"{name}: epoch {epoch} was followed by {found.epoch}; this holder stops")
    wanted = replace(found, epoch=epoch, turn=found.turn + 1)
    for stream, last_ms in lasts.items():
        wanted = ended(joined(wanted, stream), stream, last_ms)
    return wanted


class RootTenure:
    """`store` is guarded: it asks for trust at each call."""

    def __init__(self, store: DocumentStore, root: str, epoch: int) -> None:
        self.name = root_key(root)
        self._store = store
        self._epoch = epoch
        self._kept: Kept[RootDocument] | None = None

    @property
    def document(self) -> RootDocument:
        """As of the last acknowledged write of this tenure."""
        return self._known().value

    def lose(self) -> None:
        self._kept = None

    def is_current(self) -> bool:
        """Whether nobody wrote since. Raises Unavailable."""
        if self._kept is None:
            return False
        found = self._store.get(self.name)
        return found is not None and found.version == self._kept.version

    def take_over(self, lasts: Lasts) -> RootDocument:
        """By a write, always. Raises Fenced, Conflict, Unavailable, OutcomeUnknown, Corrupt."""
        self._kept = None
        found = read(self._store, self.name, RootDocument)
        if found is None:
            create_if_absent(self._store, self.name, RootDocument())
            found = read(self._store, self.name, RootDocument)
        if found is None:
            raise Corrupt(f"{self.name}: is gone, and root documents are never deleted")
        return self._write(found, taken_over(self.name, found.value, self._epoch, lasts))

    def change(self, decide: Callable[[RootDocument], RootDocument]) -> RootDocument:
        """Raises what `decide` raises, Conflict, Unavailable, OutcomeUnknown."""
        known = self._known()
        wanted = decide(known.value)
        return known.value if wanted == known.value else self._write(known, wanted)

    def _known(self) -> Kept[RootDocument]:
        if self._kept is None:
            raise Conflict(f"{self.name}: what it says is not known; it is taken over again")
        return self._kept

    def _write(self, found: Kept[RootDocument], wanted: RootDocument) -> RootDocument:
        try:
            version = self._store.replace(self.name, body_of(wanted), found.version)
        except (Conflict, OutcomeUnknown):
            self._kept = None
            raise
        self._kept = Kept(self.name, wanted, version)
        return wanted
