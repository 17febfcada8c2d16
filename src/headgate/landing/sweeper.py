"""Sweeper: removes staging that nobody will publish.

A folder of an attempt says whose it is: `<id>.<shard>-<epoch>.…`. A shard's holder removes only its
own shard's part, only of an epoch older than its own, and never what the journal names. A holder of
an older epoch that wakes up may write there again; it cannot journal it, and the next sweep comes.
"""

import logging
from collections.abc import Callable

from headgate.commits.checkpoint import Checkpoint
from headgate.lake import Lake
from headgate.landing.names import label_of, labels_of, shard_folder, staging_folder

PAGES_MAX = 100

log = logging.getLogger(__name__)


def sweep(
    lake: Lake,
    stream: str,
    shard: int,
    checkpoint: Checkpoint,
    epoch_of: Callable[[int], int | None],
) -> int:
    """How many folders were removed. `epoch_of`: of another shard's checkpoint; None: not known.

    `checkpoint` is what an acknowledged write of this holder contained. Raises Unavailable.
    """
    removed = 0
    root, after = staging_folder(stream), ""
    for _ in range(PAGES_MAX):
        page = lake.list(root, after=after)
        for entry in page.entries:
            labels = labels_of(entry.path.rpartition("/")[2])
            if labels is not None and entry.is_folder:
                removed += _sweep_attempt(lake, shard, checkpoint, entry.path, labels, epoch_of)
        if page.next_after is None:
            break
        after = page.next_after
    return removed


def _sweep_attempt(
    lake: Lake,
    shard: int,
    checkpoint: Checkpoint,
    attempt: str,
    labels: list[tuple[int, int]],
    epoch_of: Callable[[int], int | None],
) -> int:
    mine = [epoch for number, epoch in labels if number == shard]
    if not mine or not is_sweepable(checkpoint, attempt, shard, mine[0]):
        return 0
    lake.remove_folder(shard_folder(attempt, label_of(shard, mine[0])))
    log.info("staging.swept", extra={"folder": attempt, "shard": shard})
    others = [(number, epoch) for number, epoch in labels if number != shard]
    if all(_is_over(epoch_of(number), epoch) for number, epoch in others):
        left = lake.list(attempt).entries
        if not any(entry.is_folder and "/shard=" in entry.path for entry in left):
            lake.remove_folder(attempt)  # what the job itself left there
    return 1


def is_sweepable(checkpoint: Checkpoint, attempt: str, shard: int, epoch: int) -> bool:
    """Pure: nobody of that epoch can journal it any more, and no journal names it."""
    journal = checkpoint.journal
    folder = shard_folder(attempt, label_of(shard, epoch))
    return epoch < checkpoint.epoch and (journal is None or journal.folder != folder)


def _is_over(current: int | None, epoch: int) -> bool:
    return current is not None and epoch < current
