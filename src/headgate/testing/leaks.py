"""Leaks: known bugs of landing, one switch each: ways in which a record is lost, doubled or moved.

Each takes the place of one small decision in `headgate.commits` or `headgate.landing`.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from headgate.commits import checkpoint as checkpoints
from headgate.commits import steps
from headgate.commits.checkpoint import Checkpoint, Journal
from headgate.commits.replay import carry_out_journal
from headgate.commits.steps import PublishFile, State
from headgate.errors import Halted
from headgate.lake import Lake
from headgate.landing import jobs, shard, sweeper
from headgate.landing.committing import Prepared
from headgate.landing.names import Named, named
from headgate.store.changes import Kept, create_if_absent, read
from headgate.testing.switches import Bug, Patch, switched_on


def planted_leak(bug: str) -> AbstractContextManager[None]:
    """While open, the code has that bug."""
    return switched_on(LEAKS[bug])


def _position_before_publish() -> Sequence[Patch]:
    def finish(self: Any, journal: Journal, share: Any = None, _known: Any = None) -> None:
        checkpoint = self._tenure.conclude(journal, self._wall_ms())
        settings = self._settings
        carry_out_journal(self._lake, settings.name, self._shard, journal, self._tools.kinds)
        self._settle(checkpoint)
        if share is not None:
            self._let_go(share)

    return [(shard.ShardWork, "_finish", finish)]


def _something_there_is_done() -> Sequence[Patch]:
    honest = PublishFile.state

    def state(self: PublishFile, lake: Lake) -> State:
        return State.DONE if lake.facts(self.published) is not None else honest(self, lake)

    return [(PublishFile, "state", state)]


def _swept_while_journaled() -> Sequence[Patch]:
    def is_sweepable(
        checkpoint: Checkpoint, _attempt: str, _shard: int, epoch: int, _: Any
    ) -> bool:
        return epoch < checkpoint.epoch

    return [(sweeper, "is_sweepable", is_sweepable)]


def _swept_while_needed() -> Sequence[Patch]:
    return [(jobs.Jobs, "is_needed", lambda *_: False)]


def _staging_deleted_after_conflict() -> Sequence[Patch]:
    honest = shard.ShardWork._abandon  # noqa: SLF001 - a switch is inside

    def abandon(self: Any) -> None:
        if self._round is not None:
            self._round.is_intended = False
        honest(self)

    return [(shard.ShardWork, "_abandon", abandon)]


def _late_by_the_committed_watermark() -> Sequence[Patch]:
    honest = shard.ShardWork._next_round  # noqa: SLF001
    start = shard.ShardWork._start  # noqa: SLF001

    def next_round(self: Any, round_: Any, journal: Journal) -> Any:
        committed = checkpoints.base_of(self._tenure.checkpoint)

        def start_by_it(plan: Any, base: Any, *more: Any) -> Any:
            begun = start(self, plan, replace(base, watermarks=committed.watermarks), *more)
            begun.base = base
            return begun

        self._start = start_by_it
        try:
            return honest(self, round_, journal)
        finally:
            del self._start

    return [(shard.ShardWork, "_next_round", next_round)]


def _cleanup_of_the_whole_attempt() -> Sequence[Patch]:
    def let_go(self: Any, share: jobs.Share, _label: str) -> None:
        self._lake.remove_folder(share.attempt)

    return [(jobs.Jobs, "let_go", let_go)]


def _name_used_again() -> Sequence[Patch]:
    """The files of a commit that replaces another get the names of those that were removed."""
    honest = shard.ShardWork._intend  # noqa: SLF001
    replaced: list[Journal | None] = [None]

    def intend(self: Any, round_: Any, share: Any) -> Prepared:
        replaced[0] = round_.replaces
        return honest(self, round_, share)

    def name_again(settings: Any, of: int, number: int, *more: Any) -> list[Named]:
        old = replaced[0]
        return named(settings, of, number if old is None else old.number, *more)

    return [(shard.ShardWork, "_intend", intend), (shard, "named", name_again)]


def _published_looked_at_first() -> Sequence[Patch]:
    def state(self: PublishFile, lake: Lake) -> State:
        found = lake.facts(self.published)
        staged = lake.facts(self.staged)
        if found == self.facts:
            return State.DONE if staged is None else State.HALF
        if staged != self.facts:
            raise Halted(f"{self.published}: not published, and nothing is staged for it")
        return State.STAGED

    return [(steps.PublishFile, "state", state)]


def _fact_erases_who_joined() -> Sequence[Patch]:
    honest = checkpoints.concluded

    def concluded(name: str, found: Checkpoint, journal: Journal, at_ms: int) -> Checkpoint:
        return replace(honest(name, found, journal, at_ms), watermarks=journal.watermarks)

    return [(checkpoints, "concluded", concluded)]


def _restage_under_the_old_number() -> Sequence[Patch]:
    honest = shard.ShardWork._intend  # noqa: SLF001

    def intend(self: Any, round_: Any, share: Any) -> Prepared:
        if round_.replaces is not None:
            kept = self._tenure._kept  # noqa: SLF001
            old = replace(kept.value, number=round_.replaces.number - 1)
            self._tenure._kept = replace(kept, value=old)  # noqa: SLF001
        return honest(self, round_, share)

    return [(shard.ShardWork, "_intend", intend)]


def _acting_on_a_mere_read() -> Sequence[Patch]:
    def take_over(self: Any, partitions: Iterable[str]) -> Checkpoint:
        found = read(self._store, self._key, Checkpoint)
        if found is None:
            create_if_absent(self._store, self._key, Checkpoint())
            found = read(self._store, self._key, Checkpoint)
        assert found is not None
        value = checkpoints.taken_over(self._key, found.value, self._epoch, partitions)
        self._kept = Kept(self._key, value, found.version)
        return value

    return [(checkpoints.Tenure, "take_over", take_over)]


LEAKS: Mapping[str, Bug] = {
    "position before publish": _position_before_publish,
    "something there is done": _something_there_is_done,
    "swept while journaled": _swept_while_journaled,
    "swept while needed": _swept_while_needed,
    "staging deleted after conflict": _staging_deleted_after_conflict,
    "late by the committed watermark": _late_by_the_committed_watermark,
    "cleanup of the whole attempt": _cleanup_of_the_whole_attempt,
    "name used again": _name_used_again,
    "published looked at first": _published_looked_at_first,
    "fact erases who joined": _fact_erases_who_joined,
    "restage under the old number": _restage_under_the_old_number,
    "acting on a mere read": _acting_on_a_mere_read,
}
