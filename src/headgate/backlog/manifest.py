"""Manifest: what a batch consists of, frozen when it is queued.

    _headgate/manifests/<table>/<batch>.<generation>.json      staged, then published; never changed

Whoever freezes the same thing again writes the same bytes, and finds them there. A file that comes
later is in no manifest, and so in no table.
"""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from headgate.errors import Conflict, Corrupt, OutcomeUnknown, Unavailable
from headgate.lake import FileFacts, Lake
from headgate.lake.paths import OURS, STAGING, folder_of
from headgate.periods import escape_name
from headgate.store.codec import Whole, parse_text, text_of

MANIFESTS: Final = f"{OURS}/manifests"
STAGED: Final = f"{STAGING}/_manifests"  # no stream has such a folder: names are escaped


@dataclass(frozen=True, slots=True)
class ManifestFile:
    path: str
    size_bytes: Whole
    checksum: str
    rows: Whole


@dataclass(frozen=True, slots=True)
class Manifest:
    table: str
    batch: str
    stream: str
    generation: Whole
    certificate: str  # its hash
    files: tuple[ManifestFile, ...]
    format: Literal[1] = 1

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


def manifest_path(table: str, batch: str, generation: int) -> str:
    return f"{MANIFESTS}/{escape_name(table)}/{escape_name(batch)}.{generation}.json"


def hash_of(manifest: Manifest) -> str:
    return f"sha256:{hashlib.sha256(text_of(manifest)).hexdigest()}"


def freeze(lake: Lake, manifest: Manifest) -> str:
    """Its path; again is harmless. Raises Corrupt (another one has the name), Unavailable,
    OutcomeUnknown."""
    path = manifest_path(manifest.table, manifest.batch, manifest.generation)
    raw = text_of(manifest)
    if lake.read(path) is None:
        staged = f"{STAGED}/{path.removeprefix(MANIFESTS + '/')}"
        lake.stage(staged, raw)
        with suppress(Conflict, Unavailable, OutcomeUnknown):  # the look below tells
            lake.publish(staged, path)
    found = lake.read(path)
    if found is None:
        raise Unavailable(f"{path}: was not published; next: it is tried again")
    if found != raw:
        raise Corrupt(
            f"{path}: another manifest has this name: the store was rolled back, or another one "
            "writes to this lake; nothing is overwritten; next: headgate audit"
        )
    lake.settle([folder_of(path)])
    return path


def read_manifest(lake: Lake, path: str, wanted: str) -> Manifest:
    """Raises Corrupt (it is gone, or is not what was queued), Unavailable."""
    raw = lake.read(path)
    if raw is None:
        raise Corrupt(f"{path}: the manifest is gone; next: restore it from a backup")
    if f"sha256:{hashlib.sha256(raw).hexdigest()}" != wanted:
        raise Corrupt(
            f"{path}: the manifest was changed since it was queued; next: restore it from a backup"
        )
    return parse_text(raw, path, Manifest)


def check_files(lake: Lake, manifest: Manifest) -> None:
    """They are what they were when they were frozen. Raises Corrupt, naming one; Unavailable."""
    for file in manifest.files:
        found = lake.facts(file.path)
        if found != FileFacts(file.size_bytes, file.checksum):
            state = "is gone" if found is None else "was changed"
            raise Corrupt(f"{file.path}: {state} since its hour was certified")
