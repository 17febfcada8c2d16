"""Evidence: what the store says of a stream, read at one moment; an hour is closed by nothing else.

Order matters: whoever writes `closing` reads the evidence again afterwards. A source partition that
joined before that read is in it, and one that joins later reads `closing` first.
"""

from dataclasses import dataclass

from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.streams import StreamDocument, stream_key
from headgate.store import DocumentStore
from headgate.store.changes import read


@dataclass(frozen=True, slots=True)
class Evidence:
    document: StreamDocument | None  # None: nobody has opened the stream
    checkpoints: tuple[Checkpoint | None, ...] = ()  # by shard; None: nobody has held it


def read_evidence(store: DocumentStore, stream: str) -> Evidence:
    """Raises Unavailable, Corrupt."""
    document = read(store, stream_key(stream), StreamDocument)
    if document is None:
        return Evidence(None)
    found = (
        read(store, checkpoint_key(stream, shard), Checkpoint)
        for shard in range(document.value.shards)
    )
    return Evidence(document.value, tuple(None if one is None else one.value for one in found))
