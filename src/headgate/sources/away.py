"""Away: what was read is moved or deleted; exactly that, and nothing else.

    open the drawer ── am I still the holder? ── take each file ── is it the one that was read?
        ├── yes: remove it, or put it into the archive ──┐
        └── no: put it back ─────────────────────────────┴── close the drawer ── write: dealt with

The drawer's name says which files it is for, so that whoever goes on after a crash finds what was
taken. Between the question and the taking a holder may be paused and followed by another. That one
deals with the same files, and closes the drawer before it writes that they are dealt with: the
paused one finds no drawer, and takes nothing that was dropped under the same name since.
"""

import logging
from collections.abc import Iterable
from contextlib import suppress
from posixpath import splitext

from headgate.errors import Conflict, HeadgateError, Invalid, Unavailable
from headgate.sources import FilesSettings
from headgate.sources.book import Book
from headgate.sources.folder import DRAWER_PREFIX, Entry, Folder, digest_of
from headgate.sources.lanes import Batch

CLOSE_TRIES = 3
NAMES_MAX = 100
UNTOUCHED_BATCHES_MAX = 200  # in a folder in which nothing can be changed; then they are kept

log = logging.getLogger(__name__)


class Away:
    """Of one lane."""

    def __init__(self, settings: FilesSettings, lane: str, book: Book, folder: Folder) -> None:
        self._settings = settings
        self._lane = lane
        self._book = book
        self._folder = folder

    def settle(self, position: int) -> None:
        """Raises Fenced, Unavailable, OutcomeUnknown."""
        for batch in self._book.lane.batches:
            if batch.start >= position:
                return
            try:
                self._settle(batch, min(position, batch.end))
            except Conflict as error:  # another instance of this holder
                raise Unavailable(str(error)) from error
            except Invalid as error:
                log.warning("source.folder_cannot_be_changed", extra={"reason": str(error)})
                self._book.fold(position, UNTOUCHED_BATCHES_MAX)
                return

    def _settle(self, batch: Batch, end: int) -> None:
        drawer = f"{DRAWER_PREFIX}{batch.id}-{batch.done}"
        body, lost = self._book.files_of(batch), set(self._book.lane.lost)
        files = {
            number: body.entry(number - batch.first)
            for number in range(batch.start, end)
            if number not in lost
        }
        self._folder.open_drawer(drawer)
        try:
            self._book.check()
        except HeadgateError:
            with suppress(HeadgateError):  # the next holder may be using it
                self._folder.close_drawer(drawer)
            raise
        stuck: list[bytes] = []
        refusal: Invalid | None = None
        for number, read in files.items():
            try:
                if not self._is_taken(drawer, number, read):
                    stuck.append(digest_of(read))
                self._finish(drawer, number, read)
            except Invalid as error:  # the archive: it is tried again, from here on
                refusal, end = error, number
                self._put_somewhere(drawer, str(number), read.path, number)
                break
        self._close(drawer, batch, files)
        self._book.remember(stuck)
        if end > batch.start:
            self._book.deal_with(batch, end)
        if refusal is not None:
            raise refusal

    def _is_taken(self, drawer: str, number: int, read: Entry) -> bool:
        """False: it may not be touched, and stays. It counts as kept from now on."""
        is_in = self._folder.stat(f"{drawer}/{number}") is not None
        if is_in or self._folder.stat(read.path) != read:
            return True  # else somebody removed it, or dropped another one: nothing is to be done
        try:
            self._folder.take(read.path, drawer, str(number))
        except Invalid as error:
            log.warning("source.file_stays", extra={"path": read.path, "reason": str(error)})
            return False
        return True

    def _finish(self, drawer: str, number: int, read: Entry) -> None:
        name = str(number)
        found = self._folder.stat(f"{drawer}/{name}")
        if found is None:
            return
        if found[1:3] != read[1:3]:  # changed between the look and the taking
            self._put_somewhere(drawer, name, read.path, number)
        elif self._settings.after_read == "delete":
            self._folder.remove(drawer, name)
        else:
            self._put_somewhere(drawer, name, f"{self._settings.move_to}/{read.path}", number)

    def _close(self, drawer: str, batch: Batch, files: dict[int, Entry]) -> None:
        """Raises Unavailable."""
        for _ in range(CLOSE_TRIES):
            try:
                self._folder.close_drawer(drawer)
            except Conflict:
                self._empty(drawer, batch, files)
            else:
                return
        raise Unavailable(f"{drawer}: somebody keeps putting files into it; next: try again")

    def _empty(self, drawer: str, batch: Batch, files: dict[int, Entry]) -> None:
        """What a former holder took while this one was at work, or for a later position."""
        body = self._book.files_of(batch)
        for name in self._folder.names(drawer):
            number = int(name) if name.isdecimal() else -1
            if number in files:
                self._finish(drawer, number, files[number])
            elif batch.first <= number < batch.end:
                path = body.entry(number - batch.first).path
                self._put_somewhere(drawer, name, path, number)
            else:
                self._put_somewhere(drawer, name, f"from-drawer-{name}", 0)

    def _put_somewhere(self, drawer: str, name: str, target: str, number: int) -> None:
        """There, or beside it under a name that says which number it had. Raises Invalid."""
        for place in _places(target, f"{self._lane}-{number}"):
            try:
                self._folder.put(drawer, name, place)
            except Conflict:
                continue
            return
        raise Invalid(f"{target}: {NAMES_MAX} files of that name are there; next: clear them away")


def _places(target: str, mark: str) -> Iterable[str]:
    stem, suffix = splitext(target)
    yield target
    yield f"{stem}.{mark}{suffix}"
    for again in range(2, NAMES_MAX):
        yield f"{stem}.{mark}-{again}{suffix}"
