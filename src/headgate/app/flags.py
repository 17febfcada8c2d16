"""Flags: what a person asks of flags: raise those again that somebody deleted, withdraw those of an
hour. Each is in the ledger before it is asked; whoever holds the root does it, through the journal.

    repair     a look says which are missing ──▶ `repair` in the root's document ──▶ raised
    withdraw   `wishes` in the root's document ──▶ renamed, parents first ──▶ the next generation
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from headgate.ambient import Ambient
from headgate.app.acts import Person
from headgate.commits.certificate import HOLD, hold_path
from headgate.commits.checkpoint import Wish
from headgate.commits.removals import how_of
from headgate.commits.roots import Repair, RootDocument, place_of, root_key, wished
from headgate.errors import Halted, Invalid
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.periods import Period, hours_between
from headgate.ready import ReadyStream, RootSettings
from headgate.ready.archive import latest, latest_parent, required
from headgate.ready.repair import flags_of, repair_of, span_of
from headgate.store import DocumentStore
from headgate.store.changes import change, create_if_absent, read

REPAIR_REASON = "flags are missing"


@dataclass(frozen=True, slots=True)
class MissingFlag:
    """One that must be there by what the frontiers say, and is not."""

    root: str
    period: str
    stream: str | None  # None: over all streams
    path: str


@dataclass(frozen=True, slots=True)
class Withdrawal:
    root: str
    stream: str
    hour: Period
    generation: int  # that comes next
    hold: str  # a file of this name keeps it open
    is_changed: bool  # False: somebody asked for it already


class FlagActs:
    """For whoever has the store and the lake of an installation."""

    def __init__(
        self,
        store: DocumentStore,
        lake: Lake,
        ledger: Ledger,
        ambient: Ambient,
        roots: Sequence[RootSettings],
    ) -> None:
        self._store = store
        self._lake = lake
        self._ledger = ledger
        self._ambient = ambient
        self._roots = roots

    def missing(
        self,
        first: Period | None = None,
        last: Period | None = None,
        on_progress: Callable[[int, int, str], None] = lambda *_: None,
    ) -> list[MissingFlag]:
        """From the first period to the last, each with its hours; None: from the very first, up to
        now. Reads only. Raises Unavailable, Corrupt."""
        found: list[MissingFlag] = []
        for root in self._roots:
            document = self._read(root.name)
            from_ms, until_ms = span_of(document)
            from_ms = from_ms if first is None else max(from_ms, first.start_ms)
            until_ms = until_ms if last is None else min(until_ms, last.end_ms)
            hours = list(hours_between(from_ms, until_ms))
            for number, hour in enumerate(hours):
                on_progress(number, len(hours), f"flags of {root.name}")
                found += [
                    MissingFlag(root.name, str(period), stream, path)
                    for period, stream, paths in flags_of(document, root, hour)
                    for path in paths
                    if self._lake.facts(path) is None
                ]
        return found

    def repair(self, missing: Iterable[MissingFlag], person: Person) -> list[str]:
        """Those are to be raised again: the roots whose holders are asked. Raises Unavailable,
        OutcomeUnknown."""
        by_root: dict[str, list[Period]] = {}
        for one in missing:
            by_root.setdefault(one.root, []).append(Period.parse(one.period))
        for root, periods in by_root.items():
            words = f"{person.reason}: of {min(periods)} to {max(periods)}"
            self._ledger.note(
                "flags.repair", root, words, id=self._ambient.new_id(), who=person.who
            )
            wish = Wish(person.reason, person.who, self._ambient.wall_ns() // 1_000_000)
            whole = repair_of(
                min(periods, key=lambda one: one.start_ms),
                max(periods, key=lambda one: one.end_ms),
                wish,
            )
            self._change(root, partial(_with_repair, whole=whole))
        return list(by_root)

    def is_repairing(self, roots: Iterable[str]) -> bool:
        """Whether one of them still has to be looked at. Raises Unavailable, Corrupt."""
        return any(self._read(root).repair is not None for root in roots)

    def still_missing(self, missing: Iterable[MissingFlag]) -> list[tuple[MissingFlag, str]]:
        """After the repair; each with the reason. Raises Unavailable, Corrupt."""
        found = []
        for one in missing:
            if self._lake.facts(one.path) is not None:
                continue
            period = Period.parse(one.period)
            if place_of(period, one.stream) in self._read(one.root).reopened:
                continue  # withdrawn meanwhile
            if one.stream is None:
                is_kept = latest_parent(self._lake, one.root, period) is not None
            else:
                is_kept = latest(self._lake, period, one.stream) is not None
            found.append((one, "it is not raised yet" if is_kept else "its certificate is gone"))
        return found

    def withdraw(self, stream: str, hour: Period, person: Person) -> Withdrawal:
        """Raises Invalid (no such stream), Halted (it has no flag), Unavailable, OutcomeUnknown,
        Corrupt."""
        if hour.kind != "hour":
            raise Invalid(f"{hour} is a day; next: name an hour of it, {hour}T00 for one")
        root, own = self._stream_of(stream)
        place = place_of(hour, stream)
        document = self._read(root.name)
        _check_flagged(document, own, hour)
        generation = required(self._lake, hour, stream).certificate.generation + 1
        hold = hold_path(own.folder, hour, stream)
        if place in document.wishes:
            return Withdrawal(root.name, stream, hour, generation, hold, is_changed=False)
        self._ledger.note(
            "flags.withdraw", place, person.reason, id=self._ambient.new_id(), who=person.who
        )
        wish = Wish(person.reason, person.who, self._ambient.wall_ns() // 1_000_000)

        def decide(found: RootDocument) -> RootDocument:
            if place in found.wishes:
                return found
            _check_flagged(found, own, hour)
            return wished(found, place, wish)

        self._change(root.name, decide)
        return Withdrawal(root.name, stream, hour, generation, hold, is_changed=True)

    def is_withdrawing(self, asked: Withdrawal) -> bool:
        """Whether nobody has done it so far. Raises Unavailable, Corrupt."""
        return place_of(asked.hour, asked.stream) in self._read(asked.root).wishes

    def trouble(self, asked: Withdrawal) -> str:
        """Why it cannot be done; "": nothing is wrong."""
        return self._read(asked.root).troubles.get(place_of(asked.hour, asked.stream), "")

    def _stream_of(self, stream: str) -> tuple[RootSettings, ReadyStream]:
        for root in self._roots:
            own = root.stream(stream)
            if own is not None:
                return root, own
        raise Invalid(
            f"no stream {stream!r} in the settings: where its flags lie is not known; "
            "next: headgate stream ls"
        )

    def _read(self, root: str) -> RootDocument:
        found = read(self._store, root_key(root), RootDocument)
        return RootDocument() if found is None else found.value

    def _change(self, root: str, decide: Callable[[RootDocument], RootDocument]) -> None:
        create_if_absent(self._store, root_key(root), RootDocument())
        change(self._store, root_key(root), RootDocument, decide)


def _with_repair(found: RootDocument, whole: Repair) -> RootDocument:
    """What somebody asked for before, and is not done, is done as well."""
    if found.repair is not None:
        from_ms = min(found.repair.from_ms, whole.from_ms)
        until_ms = max(found.repair.until_ms, whole.until_ms)
        if (from_ms, until_ms) == (found.repair.from_ms, found.repair.until_ms):
            return found
        whole = replace(whole, from_ms=from_ms, until_ms=until_ms)
    return replace(found, repair=whole)


def _check_flagged(document: RootDocument, stream: ReadyStream, hour: Period) -> None:
    """Raises Halted."""
    seat = document.streams.get(stream.name)
    first_ms = None if seat is None else seat.first_ms
    frontier_ms = None if seat is None else seat.frontier_ms
    is_flagged = first_ms is not None and first_ms <= hour.start_ms
    if not is_flagged or frontier_ms is None or frontier_ms < hour.end_ms:
        raise Halted(
            f"{stream.name} {hour} has no flag, so there is none to withdraw; "
            f"next: headgate why {stream.name} {hour}"
        )
    how = None if seat is None else how_of(seat.removed, hour)
    if how is not None:
        raise Halted(
            f"{stream.name} {hour} was {how} on purpose: its flag stays, and says what was there; "
            "there is nothing that a next generation could certify; "
            f"next: headgate why {stream.name} {hour}"
        )
    generation = document.reopened.get(place_of(hour, stream.name))
    if generation is not None:
        raise Halted(
            f"{stream.name} {hour} was withdrawn already, and generation {generation} comes next, "
            f"once no file {HOLD} keeps it back; next: headgate why {stream.name} {hour}"
        )
