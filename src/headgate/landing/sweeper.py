"""Sweeper: removes staging that nobody will publish.

A folder of an attempt says whose it is: `<id>.<shard>-<epoch>.…`. A shard's holder removes only its
own shard's part, and never what the journal names: all of an epoch older than its own, and of its
own epoch what no job and no round of this node needs any more. A holder of an older epoch that
wakes up may write there again; it cannot journal it, and the next sweep comes.

Files whose removal somebody did not finish are nobody's in particular: any holder removes them.
"""

import logging
from collections.abc import Callable
from contextlib import suppress

from headgate.commits.checkpoint import Checkpoint
from headgate.errors import Conflict, Corrupt, Invalid
from headgate.lake import Lake
from headgate.lake.paths import REMOVING, removed_facts
from headgate.landing.names import label_of, labels_of, shard_folder, staging_folder

PAGES_MAX = 100

log = logging.getLogger(__name__)

IsNeeded = Callable[[str, str], bool]
"""Of an attempt and a label: whether this node still needs that part of what it staged there."""


def sweep(
    lake: Lake,
    stream: str,
    shard: int,
    checkpoint: Checkpoint,
    epoch_of: Callable[[int], int | None],
    is_needed: IsNeeded,
) -> int:
    """How many folders were removed. `epoch_of`: of another shard's checkpoint; None: not known.

    `checkpoint` is what an acknowledged write of this holder contained. `is_needed` is asked after
    the listing: a job says what it is going to write before it does. Raises Unavailable.
    """
    removed = 0
    root, after = staging_folder(stream), ""
    for _ in range(PAGES_MAX):
        page = lake.list(root, after=after)
        for entry in page.entries:
            labels = labels_of(entry.path.rpartition("/")[2])
            if labels is not None and entry.is_folder:
                removed += _sweep_attempt(
                    lake, shard, checkpoint, entry.path, labels, epoch_of, is_needed
                )
        if page.next_after is None:
            break
        after = page.next_after
    return removed


def sweep_removed(lake: Lake) -> int:
    """Files whose removal was interrupted: how many are gone now. Exactly those: another file that
    came in between stays. Raises Unavailable, OutcomeUnknown."""
    removed = 0
    for entry in lake.list(REMOVING).entries:  # what does not fit a page waits for the next sweep
        facts = removed_facts(entry.path)
        if facts is None or entry.size_bytes != facts.size_bytes:
            continue
        with suppress(Conflict, Corrupt, Invalid):  # it is something else, and stays
            lake.remove(entry.path, facts)
            removed += 1
    return removed


def _sweep_attempt(
    lake: Lake,
    shard: int,
    checkpoint: Checkpoint,
    attempt: str,
    labels: list[tuple[int, int]],
    epoch_of: Callable[[int], int | None],
    is_needed: IsNeeded,
) -> int:
    mine = [epoch for number, epoch in labels if number == shard]
    if not mine or not is_sweepable(checkpoint, attempt, shard, mine[0], is_needed):
        return 0
    lake.remove_folder(shard_folder(attempt, label_of(shard, mine[0])))
    log.info("staging.swept", extra={"folder": attempt, "shard": shard})
    is_ours = mine[0] == checkpoint.epoch  # this node ran that job: it knows who needs it

    def is_over(number: int, epoch: int) -> bool:
        if is_ours and not is_needed(attempt, label_of(number, epoch)):
            return True
        current = epoch_of(number)
        return current is not None and epoch < current

    if all(is_over(number, epoch) for number, epoch in labels if number != shard):
        left = lake.list(attempt).entries
        if not any(entry.is_folder and "/shard=" in entry.path for entry in left):
            lake.remove_folder(attempt)  # what the job itself left there
    return 1


def is_sweepable(
    checkpoint: Checkpoint,
    attempt: str,
    shard: int,
    epoch: int,
    is_needed: IsNeeded = lambda *_: True,
) -> bool:
    """Nobody can journal it any more, and no journal names it. Who cannot know what is needed
    leaves all of the epoch that is not over."""
    label = label_of(shard, epoch)
    journal = checkpoint.journal
    if journal is not None and journal.folder == shard_folder(attempt, label):
        return False
    is_own = epoch == checkpoint.epoch
    return epoch < checkpoint.epoch or (is_own and not is_needed(attempt, label))
