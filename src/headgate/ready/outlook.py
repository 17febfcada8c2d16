"""Outlook: whether flags are still to come without anything else happening. Read-only."""

from headgate.commits.certificate import hold_path
from headgate.commits.roots import RootDocument, Seat, root_key
from headgate.lake import Lake
from headgate.periods import Period
from headgate.ready import ReadyStream, RootSettings
from headgate.ready.closing import begins_ms, closable
from headgate.ready.evidence import read_evidence
from headgate.ready.propagation import next_days, next_hours
from headgate.ready.removing import removal_subject
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.names import parts


def has_flags_to_come(store: DocumentStore, lake: Lake, root: RootSettings) -> bool:
    """Whether whoever holds this root has something to raise. What is in trouble or held back waits
    for a person. Raises Unavailable, Corrupt."""
    found = read(store, root_key(root.name), RootDocument)
    document = RootDocument() if found is None else found.value
    journal = document.journal
    if journal is not None and (journal.kind != "remove" or not document.troubles):
        return True
    if document.repair is not None:
        return True
    if any(place not in document.troubles for place in document.wishes):
        return True
    if any(removal_subject(one) not in document.troubles for one in document.removals):
        return True
    if any(_is_raised_again(lake, root, document, place) for place in document.reopened):
        return True
    for stream in root.streams:
        if stream.name in document.troubles:
            continue
        seat = document.streams.get(stream.name, Seat())
        if _has_hours_to_come(store, lake, stream, seat):
            return True
    return any(
        f"/{kind}" not in document.troubles
        and (next_hours if kind == "hour" else next_days)(document)
        for kind in root.folder.rolls_up
    )


def _is_raised_again(lake: Lake, root: RootSettings, document: RootDocument, place: str) -> bool:
    """Of an hour that was withdrawn: nothing keeps it back."""
    text, _, _ = place.partition("/")
    stream = root.stream(parts(place)[-1])
    if "/" not in place or stream is None or place in document.troubles:
        return False
    return lake.facts(hold_path(stream.folder, Period.parse(text), stream.name)) is None


def _has_hours_to_come(store: DocumentStore, lake: Lake, stream: ReadyStream, seat: Seat) -> bool:
    evidence = read_evidence(store, stream.name)
    if seat.first_ms is None:
        return begins_ms(seat, evidence.document) is not None
    hours = closable(seat, evidence, stream.allowed_lateness_ms, 1)
    return any(lake.facts(hold_path(stream.folder, hour, stream.name)) is None for hour in hours)
