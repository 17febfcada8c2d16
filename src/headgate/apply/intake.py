"""Intake: ready hours of a stream become entries of a table's backlog, one after the other.

    the hour behind the last queued one ── its flag is up ──▶ manifest frozen ──▶ entry ──▶ cursor

An hour whose files are gone on purpose is queued without files: what is left of it is nothing.

Each effect may be repeated: the manifest is the same bytes, the entry the same number. The cursor
moves last, so a crash repeats an hour and never leaves one out. The same generation again changes
nothing; another one of an hour that was queued is set aside, until a person retries the hour.
"""

import logging
from contextlib import suppress
from dataclasses import replace
from typing import Final

from headgate.apply import TableSettings
from headgate.apply.table_document import TableTenure, queued
from headgate.backlog import Aside, Entry
from headgate.backlog.manifest import Manifest, ManifestFile, freeze, hash_of, manifest_path
from headgate.backlog.queue import put_aside, queue, requeue, take_back
from headgate.commits.certificate import Certificate, flag_paths, from_bytes
from headgate.commits.removals import statements_of
from headgate.errors import Corrupt
from headgate.lake import Lake
from headgate.periods import Period
from headgate.store import DocumentStore

HOURS_MAX: Final = 50  # that are queued in one pass

log = logging.getLogger(__name__)


class Intake:
    """For the holder of a table."""

    def __init__(
        self, settings: TableSettings, store: DocumentStore, lake: Lake, tenure: TableTenure
    ) -> None:
        """`store` and `lake` are guarded: they ask for trust at each call."""
        self._settings = settings
        self._store = store
        self._lake = lake
        self._tenure = tenure

    def take_in(self, first_hour_ms: int | None, at_ms: int) -> int:
        """How many hours were queued; as many as a pass may: there may be more. `first_hour_ms`:
        of the stream; None: not known yet. Raises Corrupt, Conflict, Unavailable,
        OutcomeUnknown."""
        taken = 0
        for _ in range(HOURS_MAX):
            hour = self._next_hour(first_hour_ms)
            certificate = None if hour is None else self.certificate(hour)
            if certificate is None:
                break
            self._queue(certificate, at_ms)
            taken += 1
        return taken

    def look_again(self, hour: Period, at_ms: int) -> None:
        """Whether an hour that was queued was flagged again since. What cannot be read changes
        nothing: the manifest is frozen. Raises Unavailable, OutcomeUnknown."""
        with suppress(Corrupt):
            certificate = self.certificate(hour)
            if certificate is not None:
                self.offer(certificate, at_ms)

    def offer(self, certificate: Certificate, at_ms: int) -> bool:
        """Of an hour that was queued before: nothing, or set aside if it is another generation;
        whether it was. Raises Unavailable, OutcomeUnknown, Corrupt."""
        name, batch = self._settings.name, certificate.period
        if self._lake.read(manifest_path(name, batch, certificate.generation)) is not None:
            return False
        manifest = manifest_of(name, certificate)
        reason = (
            f"generation {certificate.generation} of {batch} came after the hour was queued; the "
            "table keeps what was queued"
        )
        aside = Aside(batch, certificate.generation, hash_of(manifest), reason, at_ms)
        put_aside(self._store, name, aside)
        log.warning("batch.set_aside", extra={"table": name, "batch": batch, "why": reason})
        return True

    def renewed(self, entry: Entry) -> Entry:
        """As its hour is flagged now: a person mended it and retries. The same number and place;
        what was set aside of that generation is so no more. What cannot be read changes nothing; a
        manifest that somebody deleted is there again, as the same bytes. Raises Conflict,
        Unavailable, OutcomeUnknown (again is harmless)."""
        name, manifest, path = self._settings.name, None, ""
        with suppress(Corrupt):
            certificate = self.certificate(Period.parse(entry.batch))
            if certificate is not None:
                manifest = manifest_of(name, certificate)
                path = freeze(self._lake, manifest)
        if manifest is None or not path:
            return entry
        if hash_of(manifest) != entry.manifest_hash:
            entry = replace(
                entry,
                generation=manifest.generation,
                manifest=path,
                manifest_hash=hash_of(manifest),
                files=len(manifest.files),
                rows=manifest.rows,
            )
            requeue(self._store, name, entry)
        take_back(self._store, name, entry.batch, entry.generation)
        return entry

    def certificate(self, hour: Period) -> Certificate | None:
        """Of a ready hour; None: it is not ready. Raises Corrupt, Unavailable."""
        path = flag_paths(self._settings.folder, hour, self._settings.stream)[0]
        raw = self._lake.read(path)
        if raw is None:
            return None
        found = from_bytes(raw, path)
        if (found.stream, found.period) != (self._settings.stream, str(hour)):
            raise Corrupt(f"{path}: is the certificate of {found.stream} {found.period}")
        return found

    def _next_hour(self, first_hour_ms: int | None) -> Period | None:
        last = self._tenure.document.queued_up_to
        if not last:
            return None if first_hour_ms is None else Period.hour_of(first_hour_ms)
        following = Period.parse(last).next()
        if first_hour_ms is not None and following.start_ms < first_hour_ms:
            first = Period.hour_of(first_hour_ms)
            raise Corrupt(
                f"hour {following} of stream {self._settings.stream} gets no flag in the folder "
                f"of the settings: that was changed, and begins with {first}; the table takes "
                "nothing behind what it lacks; next: write the folder of before until the table "
                "has those hours"
            )
        return following

    def _queue(self, certificate: Certificate, at_ms: int) -> None:
        name = self._settings.name
        manifest = manifest_of(name, certificate)
        # After this table's own document is there: who removes an hour says so first, and asks for
        # the tables then. So one of both sees the other.
        if statements_of(self._lake, certificate.stream, certificate.period):
            manifest = replace(manifest, files=())
            log.warning("batch.without_files", extra={"table": name, "batch": manifest.batch})
        path = freeze(self._lake, manifest)
        wanted = Entry(
            certificate.period,
            self._tenure.document.queued,
            certificate.stream,
            certificate.generation,
            path,
            hash_of(manifest),
            len(manifest.files),
            manifest.rows,
        )
        entry = queue(self._store, name, wanted)
        if entry.manifest_hash != wanted.manifest_hash:
            # It was queued by somebody who died before the cursor moved, and flagged again since.
            reason = f"generation {entry.generation} of {entry.batch} was queued before it"
            aside = Aside(wanted.batch, wanted.generation, wanted.manifest_hash, reason, at_ms)
            put_aside(self._store, name, aside)
        self._tenure.write(lambda found: queued(found, entry))
        log.info("batch.queued", extra={"table": name, "batch": entry.batch, "rows": entry.rows})


def manifest_of(table: str, certificate: Certificate) -> Manifest:
    return Manifest(
        table,
        certificate.period,
        certificate.stream,
        certificate.generation,
        certificate.hash,
        tuple(
            ManifestFile(file.path, file.size_bytes, file.checksum, file.rows)
            for file in certificate.files
        ),
    )
