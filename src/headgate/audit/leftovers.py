"""Leftovers: staging that nobody will publish. It harms nobody; its shard's holder sweeps it."""

from collections.abc import Iterator

from headgate.audit import Finding
from headgate.audit.advice import look_again
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.errors import Corrupt
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import name_of
from headgate.landing.names import label_of, labels_of, shard_folder, staging_folder
from headgate.landing.sweeper import is_sweepable
from headgate.store import DocumentStore
from headgate.store.changes import read


def remark_leftovers(store: DocumentStore, lake: Lake, stream: str) -> Iterator[Finding]:
    """At most one remark. Raises Unavailable."""
    folders, example = 0, ""
    for entry in entries_of(lake, staging_folder(stream)):
        for shard, epoch in labels_of(name_of(entry.path)) or ():
            folder = shard_folder(entry.path, label_of(shard, epoch))
            if not lake.list(folder, limit=1).entries:
                continue
            # Afterwards: a journal that names it was written before, or never will be.
            checkpoint = _checkpoint(store, stream, shard)
            if checkpoint is not None and is_sweepable(checkpoint, entry.path, shard, epoch):
                folders += 1
                example = example or folder
    if folders:
        what = "1 folder" if folders == 1 else f"{folders:,} folders"
        yield Finding(
            None,
            stream,
            None,
            example,
            f"{what} of staging from an older epoch, and no journal names any of it",
            "it costs room and nothing else; a node that holds the shard sweeps it within ten "
            "minutes",
            look_again(stream),
        )


def _checkpoint(store: DocumentStore, stream: str, shard: int) -> Checkpoint | None:
    try:
        kept = read(store, checkpoint_key(stream, shard), Checkpoint)
    except Corrupt:
        return None  # a finding of its own
    return None if kept is None else kept.value
