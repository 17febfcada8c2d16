"""Origins: what a commit record keeps for its source, so that a lost store can be made anew.

    files   {"files": {lane: digests}}: the identity of every file that the commit read
    kafka   {"kafka": …}: which life of each topic it read, and where reading began (its document)

An identity is a digest of 16 bytes, so a commit of a thousand files keeps some twenty kilobytes. It
is enough to know a file again; its number is the position of its lane.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from headgate.errors import Halted
from headgate.sources import FilesSettings
from headgate.sources.book import lane_key
from headgate.sources.folder import Folder, digest_of
from headgate.sources.lanes import (
    KNOWN_FILES_MAX,
    Known,
    KnownBody,
    Lane,
    LaneCount,
    packed,
    unpacked,
)
from headgate.store.names import key

FILES = "files"


def files_origin(digests: Mapping[str, Sequence[bytes]]) -> dict[str, object]:
    """By lane, of the files that a plan reads."""
    found = {lane: packed(some) for lane, some in digests.items() if some}
    return {FILES: found} if found else {}


def digests_in(origin: Mapping[str, object]) -> Iterator[tuple[str, bytes]]:
    """Lane and identity. Raises ValueError: it is damaged."""
    found = origin.get(FILES, {})
    if not isinstance(found, Mapping):
        raise ValueError("the files of a commit are no object")
    for lane, text in found.items():
        for digest in unpacked(str(text)):
            yield str(lane), digest


@dataclass(frozen=True, slots=True)
class Read:
    """What the records of a stream say of its files."""

    positions: Mapping[str, str]  # by lane
    digests: Mapping[str, Sequence[bytes]]
    seen_ms: int  # the last commit's time: no arrival is earlier from now on


def lane_documents(
    stream: str, settings: FilesSettings, read: Read, folder: Folder
) -> Iterator[tuple[str, LaneCount | Lane | KnownBody]]:
    """Keys and documents of one folder as a source. What is kept there is known for good; what is
    taken away after the read is known only as far as it is still there. Raises Halted (the settings
    have another number of lanes), Unavailable."""
    lanes = {name for name in read.positions if _is_of(name, settings.prefix)}
    names = [f"{settings.prefix}-{number}" for number in range(settings.lanes)]
    if not lanes:
        return
    if not lanes <= set(names):
        raise Halted(
            f"stream {stream}: its commits read {len(lanes)} lanes, and the settings say "
            f"{settings.lanes}; files would get into other lanes and be read again; next: write "
            f"lanes: {len(lanes)}, as before"
        )
    yield key("sources", stream, settings.prefix), LaneCount(settings.lanes)
    there = None if settings.after_read == "keep" else _digests_there(folder)
    for name in sorted(lanes):
        every = {*read.digests.get(name, ())}
        digests = sorted(every if there is None else every & there)
        known: list[Known] = []
        for first in range(0, len(digests), KNOWN_FILES_MAX):
            some = digests[first : first + KNOWN_FILES_MAX]
            body = KnownBody(0, packed(some))
            id_ = sha256(body.digests.encode()).hexdigest()[:32]  # the same again, whoever does it
            yield f"{lane_key(stream, name)}/known/{id_}", body
            known.append(Known(id_, len(some)))
        position = int(read.positions[name] or 0)
        yield (
            lane_key(stream, name),
            Lane(0, "", position, read.seen_ms if position else 0, known=tuple(known)),
        )


def _is_of(partition: str, prefix: str) -> bool:
    head, dash, number = partition.rpartition("-")
    return bool(dash) and head == prefix and number.isdecimal()


def _digests_there(folder: Folder) -> frozenset[bytes]:
    if not folder.ident():
        return frozenset()
    return frozenset(digest_of(entry) for entry in folder.scan() if not entry.is_blind)
