"""Parquet: a table that is a folder, with a sub-folder for each run of a batch.

    _headgate/table.json                                    its mark: which table this is
    _headgate/staging/<epoch>-<id>/                         being prepared; no reader looks there
    headgate_batch=2026-11-01T13/headgate_run=42/*.parquet  a batch
    headgate_batch=2026-11-01T13/headgate_run=42/_headgate.json   its proof, hidden from readers

    rows moved ──▶ counted ──▶ sealed ──▶ proof staged ──▶ looked at again ──▶ one rename: in it

An empty batch is a folder with nothing but its proof: it takes the name, so a late rename of rows
to that name is refused. A version is the mark's id with the last batch that entered: it is in the
history while that very folder is there, and a table that was deleted, restored from an old copy or
is not mounted has it no more.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote

from headgate.ambient import Ambient
from headgate.engine.failure import JobFailed
from headgate.errors import Conflict, Corrupt, Fenced, Invalid, OutcomeUnknown, Unavailable
from headgate.lake import Entry, FileFacts, Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import OURS, STAGING, folder_of, join, name_of
from headgate.periods import escape_name
from headgate.store.codec import Whole, parse_text, text_of
from headgate.tables import Batch, Found, Identity, Mover, Seen, Taken
from headgate.tables.site import Site

MARK: Final = f"{OURS}/table.json"
PROOF: Final = "_headgate.json"
RUN: Final = "headgate_run="
REMOVING: Final = "removing-"  # below the staging folder: nobody publishes from there
MARK_TRIES: Final = 3
BATCH: Final = "headgate_batch="
RUNS_MAX: Final = 10_000  # of one batch: each is a person's decision
WRONG_MAX: Final = 20  # files of one run that are told

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Mark:
    table: str
    id: str
    format: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class ProofFile:
    name: str
    size_bytes: Whole
    checksum: str
    rows: Whole


@dataclass(frozen=True, slots=True)
class Proof:
    """What entered with one rename, and what it came after."""

    table: str
    batch: str
    run: Whole
    kind: Literal["rows", "empty"]
    after: str  # the version before
    manifest: str = ""
    rows: Whole = 0
    files: tuple[ProofFile, ...] = ()
    format: Literal[1] = 1


class ParquetTable:
    """`headgate.tables.Table`, for the holder of this epoch. `check` is asked before each effect,
    and raises Fenced."""

    def __init__(
        self,
        name: str,
        site: Site,
        mover: Mover,
        ambient: Ambient,
        epoch: int,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._site = site
        self._mover = mover
        self._ambient = ambient
        self._epoch = epoch
        self._check = check
        self._is_mark_settled = False

    def look(self, recorded: str, batch: str) -> Seen:
        self._check()
        mark = self._mark(is_new=not recorded)
        runs = self._runs(batch, "" if mark is None else mark.id)
        if mark is None:
            return Seen(False, "", runs)
        is_known = not recorded or self._is_known(mark, recorded)
        return Seen(is_known, recorded if recorded and is_known else mark.id, runs)

    def apply(self, batch: Batch, identity: Identity, base: str) -> str:
        staged = f"{STAGING}/{self._epoch:010}-{self._ambient.new_id()}"
        try:
            return self._apply(batch, identity, base, staged)
        except Exception:
            self._discard(staged)
            raise

    def _apply(self, batch: Batch, identity: Identity, base: str, staged: str) -> str:
        self._check()
        what = f"headgate: apply {batch.name} to {self._name}"
        moved: Mapping[str, int] = {}
        if batch.files:
            moved = self._mover.move(batch.files, f"{self._site.url}/{staged}", what)
        rows = sum(moved.values())
        if rows != batch.rows:
            raise JobFailed(
                f"{rows:,} rows were written of batch {batch.name}, and its manifest says "
                f"{batch.rows:,}; nothing entered the table"
            )
        self._check()
        names = sorted(moved)
        facts = self._site.seal([join(staged, name) for name in names]) if names else ()
        files = tuple(
            ProofFile(name, one.size_bytes, one.checksum, moved[name])
            for name, one in zip(names, facts, strict=True)
        )
        proof = Proof(
            self._name, batch.name, identity.run, "rows", base, batch.manifest, rows, files
        )
        self._stage(staged, proof)
        # If somebody took the folder away, staging the proof has made another, without rows.
        if self._data_files(staged) != {join(staged, one.name): one.size_bytes for one in files}:
            raise Unavailable(
                f"{staged}: what was prepared for {self._name} was taken away, and nothing was "
                "done; next: it is prepared again"
            )
        return self._publish(staged, identity, base)

    def commit_empty(self, identity: Identity, base: str) -> str:
        self._check()
        staged = f"{STAGING}/{self._epoch:010}-{self._ambient.new_id()}"
        proof = Proof(self._name, identity.batch, identity.run, "empty", base)
        try:
            self._stage(staged, proof)
            return self._publish(staged, identity, base)
        except Exception:
            self._discard(staged)
            raise

    def sweep(self) -> None:
        self._check()
        for entry in entries_of(self._site, STAGING):
            name = name_of(entry.path)
            if not entry.is_folder:
                continue
            if name.startswith(REMOVING):
                self._site.remove_folder(entry.path)
            elif (epoch := epoch_of(name)) is not None and epoch < self._epoch:
                self._take_away(entry.path)
                log.info("staging.swept", extra={"table": self._name, "folder": entry.path})

    # The mark, and what is known by it

    def _mark(self, *, is_new: bool) -> Mark | None:
        """`is_new`: nobody recorded a version yet, so one that has none gets its mark."""
        for _ in range(MARK_TRIES):
            raw = self._site.read(MARK)
            if raw is not None:
                mark = parse_text(raw, MARK, Mark)
                if mark.table != self._name:
                    raise Invalid(
                        f"{self._site.url}: is the folder of table {mark.table}, not of "
                        f"{self._name}; next: give {self._name} another path in the settings"
                    )
                if not self._is_mark_settled:
                    self._site.settle([OURS])
                    self._is_mark_settled = True
                return mark
            if not is_new:
                return None
            staged = f"{STAGING}/{self._epoch:010}-{self._ambient.new_id()}/table.json"
            self._check()
            self._site.stage(staged, text_of(Mark(self._name, self._ambient.new_id())))
            try:
                self._site.publish(staged, MARK)
            except Conflict:
                log.info("table.marked_by_another", extra={"table": self._name})
            self._discard(folder_of(staged))
        raise Unavailable(f"{self._site.url}/{MARK}: was removed again and again; next: try again")

    def _is_known(self, mark: Mark, version: str) -> bool:
        if version == mark.id:
            return True
        folder = folder_of_version(mark.id, version)
        if folder is None:
            return False
        raw = self._site.read(join(folder, PROOF))
        return raw is not None

    def _runs(self, batch: str, mark_id: str) -> Mapping[int, Found]:
        found: dict[int, Found] = {}
        for entry in entries_of(self._site, folder_of_batch(batch)):
            name = name_of(entry.path)
            number = name.removeprefix(RUN)
            if not name.startswith(RUN) or not number.isdecimal():
                continue
            found[int(number)] = self._found(Identity(batch, int(number)), mark_id)
        return found

    def _found(self, identity: Identity, mark_id: str) -> Found:
        folder, version = folder_of_run(identity), version_of(mark_id, identity)
        raw = self._site.read(join(folder, PROOF))
        try:
            proof = parse_text(raw or b"", join(folder, PROOF), Proof)
        except Corrupt:
            return Found("damaged", version)
        self._site.settle([folder_of(folder), folder])  # its maker may have died before it lasted
        return Found(proof.kind, version, proof.manifest, proof.rows)

    # From staged to published

    def _data_files(self, folder: str) -> dict[str, int]:
        return {
            entry.path: entry.size_bytes
            for entry in entries_of(self._site, folder)
            if not entry.is_folder and not name_of(entry.path).startswith(("_", "."))
        }

    def _stage(self, staged: str, proof: Proof) -> None:
        self._check()
        self._site.stage(join(staged, PROOF), text_of(proof))

    def _publish(self, staged: str, identity: Identity, base: str) -> str:
        folder = folder_of_run(identity)
        self._check()
        self._site.publish_folder(staged, folder)
        self._check()
        self._site.settle([folder_of(folder), folder])
        return version_of(base.partition("/")[0], identity)

    def _discard(self, staged: str) -> None:
        """If it fails, the next holder's sweep comes."""
        with suppress(Unavailable, OutcomeUnknown, Conflict, Fenced):
            self._check()
            self._take_away(staged)

    def _take_away(self, staged: str) -> None:
        aside = f"{STAGING}/{REMOVING}{self._ambient.new_id()}"
        with suppress(Unavailable):  # somebody else did, or it is published by now
            self._site.publish_folder(staged, aside)
        self._site.remove_folder(aside)


def folder_of_batch(batch: str) -> str:
    return f"{BATCH}{escape_name(batch)}"


def folder_of_run(identity: Identity) -> str:
    return f"{folder_of_batch(identity.batch)}/{RUN}{identity.run}"


def version_of(mark_id: str, identity: Identity) -> str:
    return f"{mark_id}/{folder_of_run(identity)}"


def folder_of_version(mark_id: str, version: str) -> str | None:
    """None: it is of another table, or of none."""
    prefix = f"{mark_id}/"
    return version.removeprefix(prefix) if version.startswith(prefix) else None


def epoch_of(name: str) -> int | None:
    """Of the holder that prepares in a folder of this name; None: it is no such folder."""
    epoch, dash, _ = name.partition("-")
    return int(epoch) if dash and epoch.isdecimal() else None


# For whoever only looks, and holds nothing


def mark_of(site: Lake) -> Mark | None:
    """Raises Corrupt, Unavailable."""
    raw = site.read(MARK)
    return None if raw is None else parse_text(raw, MARK, Mark)


def taken_in(
    site: Lake, table: str, mark_id: str, *, is_deep: bool = False
) -> Iterator[Taken | Entry]:
    """Everything that readers of the table find, batch by batch in order: its runs, and what is
    none. `is_deep`: every file is read. Raises Unavailable."""
    for entry in entries_of(site, ""):
        name = name_of(entry.path)
        if name.startswith(("_", ".")):
            continue
        batch = unquote(name.removeprefix(BATCH))
        if not entry.is_folder or not batch or folder_of_batch(batch) != name:
            yield entry
            continue
        numbers: list[int] = []
        for run in entries_of(site, entry.path):
            text = name_of(run.path).removeprefix(RUN)
            is_run = run.is_folder and text.isdecimal() and name_of(run.path) == f"{RUN}{text}"
            if is_run and len(numbers) < RUNS_MAX:
                numbers.append(int(text))
            elif not name_of(run.path).startswith(("_", ".")):
                yield run
        for number in sorted(numbers):
            yield _taken(site, table, Identity(batch, number), mark_id, is_deep=is_deep)


def _taken(site: Lake, table: str, identity: Identity, mark_id: str, *, is_deep: bool) -> Taken:
    folder, version = folder_of_run(identity), version_of(mark_id, identity)
    path = join(folder, PROOF)
    try:
        proof = parse_text(site.read(path) or b"", path, Proof)
    except Corrupt as error:
        return Taken(identity, Found("damaged", version), wrong=((path, str(error)),))
    if (proof.table, proof.batch, proof.run) != (table, identity.batch, identity.run):
        words = f"is the proof of run {proof.run} of batch {proof.batch} of table {proof.table}"
        return Taken(identity, Found("damaged", version), wrong=((path, words),))
    wrong = tuple(_wrong_files(site, folder, proof, is_deep=is_deep))[:WRONG_MAX]
    found = Found(proof.kind, version, proof.manifest, proof.rows)
    return Taken(identity, found, proof.after, wrong)


def _wrong_files(
    site: Lake, folder: str, proof: Proof, *, is_deep: bool
) -> Iterator[tuple[str, str]]:
    listed = {
        name_of(entry.path): entry
        for entry in entries_of(site, folder)
        if not name_of(entry.path).startswith(("_", "."))
    }
    for file in proof.files:
        entry, path = listed.pop(file.name, None), join(folder, file.name)
        if entry is None or entry.is_folder:
            yield path, f"is not there: {file.rows:,} rows"
        elif entry.size_bytes != file.size_bytes:
            yield path, f"has {entry.size_bytes:,} bytes, and its proof says {file.size_bytes:,}"
        elif is_deep and site.facts(path) != FileFacts(file.size_bytes, file.checksum):
            yield path, "was changed: its checksum is not the one of its proof"
    for name in sorted(listed):
        yield join(folder, name), "is not in the proof of its batch, and readers take it for rows"
