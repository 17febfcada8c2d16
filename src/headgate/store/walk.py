"""Walk: the documents of a tree in the order of their keys, a page at a time.

For stores whose folders give the names below them, sorted by nothing. A walk goes depth-first and
asks the store about many things at once, no further ahead than the page needs: in memory are the
names on the way, those of the folders looked into for this page, and the page.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from headgate.store import Damaged, Document, Page
from headgate.store.names import Parts

PAGE_BYTES_MAX = 16_000_000  # a page of large documents ends early


@dataclass(frozen=True, slots=True)
class Name:
    """Something is there; not known yet is what."""

    place: Parts


@dataclass(frozen=True, slots=True)
class Folder:
    """There are about so many names below, not known yet."""

    place: Parts
    count: int
    is_document: bool


@dataclass(frozen=True, slots=True)
class Found:
    document: Document | Damaged
    size_bytes: int


Thing: TypeAlias = Name | Folder | Found

Look: TypeAlias = Callable[[Sequence[Name | Folder]], Iterable[Iterator[Thing]]]
"""What each of these turns out to be: nothing, or things at or below its place, in order."""


class Walk:
    def __init__(self, look: Look, batch: int) -> None:
        """`look` is asked about `batch` things at once, at most."""
        self._look = look
        self._batch = batch
        self._levels: list[Iterator[Thing]] = []  # the last one comes first

    def enter(self, things: Iterator[Thing]) -> None:
        """These come before all that is still ahead."""
        self._levels.append(things)

    def page(self, limit: int) -> Page:
        """Raises what `look` raises."""
        found: list[Document | Damaged] = []
        size_bytes = 0
        is_last = False
        # One more than a page: only then is it known whether this is the last one.
        while len(found) <= limit and size_bytes < PAGE_BYTES_MAX and not is_last:
            thing = self._next()
            if thing is None:
                is_last = True
            elif isinstance(thing, Found):
                found.append(thing.document)
                size_bytes += thing.size_bytes
            else:
                self.enter(iter([thing]))
                self._look_ahead(limit + 1 - len(found))
        page = found[:limit]
        return Page(
            tuple(one for one in page if isinstance(one, Document)),
            tuple(one for one in page if isinstance(one, Damaged)),
            None if is_last else page[-1].key,
        )

    def _look_ahead(self, room: int) -> None:
        """Looks at what comes next, about `room` documents of it, and puts it in its place."""
        things: list[Thing] = []
        unknown: list[Name | Folder] = []
        while room > 0 and len(unknown) < self._batch and (thing := self._next()) is not None:
            things.append(thing)
            if not isinstance(thing, Found):
                unknown.append(thing)
            room -= thing.count if isinstance(thing, Folder) else 1
        looked = iter(self._look(unknown))
        self.enter(
            chain.from_iterable(
                iter([thing]) if isinstance(thing, Found) else next(looked) for thing in things
            )
        )

    def _next(self) -> Thing | None:
        while self._levels:  # ends: each turn removes a level
            for thing in self._levels[-1]:
                return thing
            self._levels.pop()
        return None
