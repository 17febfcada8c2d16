"""Archive: the certificates of all generations, in a folder that nobody tidies up.

A flag has the same bytes. What a flag was, who its children are and how often a period was flagged
is read here, so that a deleted flag changes no decision.
"""

from collections.abc import Callable
from dataclasses import dataclass

from headgate.commits.certificate import (
    Certificate,
    ParentCertificate,
    certificate_folder,
    certificate_name,
    from_bytes,
    parent_folder,
    parent_from_bytes,
)
from headgate.errors import Halted
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import join, name_of
from headgate.periods import Period


@dataclass(frozen=True, slots=True)
class Filed:
    path: str
    raw: bytes
    certificate: Certificate | ParentCertificate


def archive_path(period: Period, stream: str, generation: int) -> str:
    return join(certificate_folder(stream, period), certificate_name(generation))


def parent_archive_path(root: str, period: Period, generation: int) -> str:
    return join(parent_folder(root, period), certificate_name(generation))


def latest(lake: Lake, period: Period, stream: str) -> Filed | None:
    """Of the last generation. None: it was never flagged. Raises Corrupt, Unavailable."""
    return _latest(lake, certificate_folder(stream, period), from_bytes)


def latest_parent(lake: Lake, root: str, period: Period) -> Filed | None:
    """The same of a flag over all streams of a root."""
    return _latest(lake, parent_folder(root, period), parent_from_bytes)


def required(lake: Lake, period: Period, stream: str) -> Filed:
    """Of what has a flag. Raises Halted (it is gone), Corrupt, Unavailable."""
    return _required(latest(lake, period, stream), certificate_folder(stream, period))


def required_parent(lake: Lake, root: str, period: Period) -> Filed:
    return _required(latest_parent(lake, root, period), parent_folder(root, period))


def _latest(
    lake: Lake, folder: str, read: Callable[[bytes, str], Certificate | ParentCertificate]
) -> Filed | None:
    paths = [entry.path for entry in entries_of(lake, folder)]
    if not paths:
        return None
    path = max(paths, key=name_of)
    raw = lake.read(path)
    return None if raw is None else Filed(path, raw, read(raw, path))


def _required(found: Filed | None, folder: str) -> Filed:
    if found is None:
        raise Halted(
            f"{folder}: the certificate is gone, and flags that rest on it cannot be raised or "
            "withdrawn; next: restore it from a backup, then headgate audit"
        )
    return found
