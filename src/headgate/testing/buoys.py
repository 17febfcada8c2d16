"""Buoys: small rules that watch flags and tables from outside, at the moment they change.

They know what files and documents look like, and what the brooks gave out; of the code that decides
they know nothing. A watermark is worked out anew: the most that anybody could honestly promise.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from headgate.apply.table_document import SYSTEM, TableDocument, is_done, table_key
from headgate.backlog.needs import TABLES
from headgate.backlog.queue import ASIDE, BACKLOG
from headgate.commits.certificate import FLAG, certificate_folder, flag_paths, parent_flag_path
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import ROOTS, RootDocument, place_of, root_key
from headgate.commits.streams import StreamDocument, stream_key
from headgate.lake.paths import folder_of, name_of
from headgate.periods import Period
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.names import parts
from headgate.testing.brook import Drop
from headgate.testing.checkers import WRITES, Checker, body_of
from headgate.testing.confluence import FOLDER, ROOT, Pool, Waters
from headgate.testing.simulation import Event, Happening

Body = Mapping[str, Any]


def water_checkers(
    waters: Waters, store: DocumentStore, now_ms: Callable[[], int], slack_ms: int
) -> Sequence[Checker]:
    """`now_ms`: true wall time; `slack_ms`: how wrong the store's clock may be."""
    flags = Flags(waters, store, now_ms, slack_ms)
    waters.lake.on_published.append(flags.heard)
    batches = []
    for table, pool in waters.pools.items():
        batches.append(Batches(table, pool, store))
        pool.on_published.append(batches[-1].heard)
    return (flags, *batches, Roots(), Documents(waters), Entries(store))


class Flags:
    """Of each flag that is raised or withdrawn, and each data file that is published."""

    name = "flags"
    sees: tuple[Happening, ...] = ()
    keys: tuple[str, ...] = ()

    def __init__(
        self, waters: Waters, store: DocumentStore, now_ms: Callable[[], int], slack_ms: int
    ) -> None:
        self.violations: list[str] = []
        self._waters = waters
        self._store = store
        self._now_ms = now_ms
        self._slack_ms = slack_ms

    def see(self, event: Event) -> None:
        """It hears from the lake."""

    def heard(self, path: str) -> None:
        name = name_of(path)
        place = self._waters.place(path)
        if place is not None:
            self.violations += self._on_closed(path, *place)
        elif name == FLAG:
            self._waters.gone_flags.discard(path)
            self.violations += self._on_raised(path)
        elif name.startswith(f"{FLAG}."):
            self.violations += self._on_withdrawn(path, name)

    # Invariant 6

    def _on_closed(self, path: str, stream: str, hour: Period) -> Iterator[str]:
        if self._is_certified(stream, hour):
            yield f"{path}: is published into an hour that has its certificate (invariant 6)"

    def _is_certified(self, stream: str, hour: Period) -> bool:
        return bool(self._waters.lake.list(certificate_folder(stream, hour)).entries)

    # Raising

    def _on_raised(self, path: str) -> Iterator[str]:
        folder = folder_of(path)
        place = FOLDER.match(folder) or FOLDER.match_parent(folder)
        if place is None:
            yield f"{path}: is a flag of nothing"
            return
        if place.stream is not None:
            if FOLDER.match(folder) is not None:
                yield from self._files(path, place.stream, place.period)
            for why in self._incomplete(place.stream, place.period):
                yield f"{path}: is raised, and {why}"
        yield from self._family(place.period)

    def _files(self, path: str, stream: str, hour: Period) -> Iterator[str]:
        """The certificate names the files that are there, and no other."""
        waters = self._waters
        raw = waters.lake.read(path) or b"{}"
        named = {file["path"] for file in json.loads(raw)["files"]}
        every = (*waters.lake.files(), *waters.gone)
        there = {one for one in every if waters.place(one) == (stream, hour)}
        for one in sorted(named ^ there):
            what = "is not there" if one in named else "is not named"
            yield f"{path}: {one} {what}"

    def _incomplete(self, stream: str, hour: Period) -> Iterator[str]:
        """By what the brook gave out, and how far the checkpoints are at this moment."""
        estuary = self._waters.streams[stream]
        lateness_ms = estuary.settings.allowed_lateness_ms
        positions = self._positions(stream)
        now_ms = self._now_ms() + self._slack_ms
        if now_ms < hour.end_ms + lateness_ms:
            yield "the hour and its lateness are not over"
        for name, drops in estuary.brook.drops.items():
            joined_ms = self._waters.joined_ms[stream, name]
            if joined_ms >= hour.end_ms + lateness_ms - self._slack_ms:
                continue  # it may be late for this hour
            read_to, ahead_ms = positions.get(name, 0), estuary.settings.future_skew_ms
            most_ms = promise_ms(drops, read_to, now_ms, self._slack_ms, ahead_ms)
            if most_ms - lateness_ms < hour.end_ms:
                yield f"{name} can promise no more than {most_ms - lateness_ms} of {hour.end_ms}"

    def _positions(self, stream: str) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for shard in range(self._waters.streams[stream].settings.shards):
            kept = read(self._store, checkpoint_key(stream, shard), Checkpoint)
            if kept is not None:
                found |= {one: int(where or 0) for one, where in kept.value.positions.items()}
        return found

    # Invariant 7

    def _on_withdrawn(self, path: str, name: str) -> Iterator[str]:
        generation = json.loads(self._waters.lake.read(path) or b"{}").get("generation")
        if name != f"{FLAG}.{generation}":
            yield f"{path}: generation {generation} was withdrawn under another's name"
        folder = folder_of(path)
        place = FOLDER.match(folder) or FOLDER.match_parent(folder)
        if place is not None:
            yield from self._family(place.period)

    def _family(self, period: Period) -> Iterator[str]:
        """A parent's flag implies that of every expected child."""
        lake = self._waters.lake
        kept = read(self._store, root_key(ROOT), RootDocument)
        reopened = {} if kept is None else kept.value.reopened
        if period.kind == "hour":
            above = parent_flag_path(FOLDER, period) or ""
            if lake.facts(above) is not None:
                streams = self._expected(period)
                if streams is None or not streams:
                    yield f"{above}: stands, and nobody knows whose children there are"
                for stream in streams or ():
                    for flag in flag_paths(FOLDER, period, stream):
                        if not self._stands(flag, place_of(period, stream), reopened):
                            yield f"{above}: stands without {flag} (invariant 7)"
        above = parent_flag_path(FOLDER, period.day()) or ""
        if lake.facts(above) is not None:
            hours = [hour for hour in period.day().hours() if self._expected(hour)]
            if not hours:
                yield f"{above}: stands, and no hour of it is expected (invariant 7)"
            for hour in hours:
                flag = parent_flag_path(FOLDER, hour) or ""
                if not self._stands(flag, place_of(hour), reopened):
                    yield f"{above}: stands without {flag} (invariant 7)"

    def _stands(self, flag: str, place: str, reopened: Mapping[str, int]) -> bool:
        """What a person deleted counts as there, unless it was withdrawn since."""
        is_gone = flag in self._waters.gone_flags and place not in reopened
        return is_gone or self._waters.lake.facts(flag) is not None

    def _expected(self, hour: Period) -> list[str] | None:
        """None: of one stream nobody knows whether it is."""
        found = []
        for name in self._waters.streams:
            kept = read(self._store, stream_key(name), StreamDocument)
            if kept is None:
                continue  # it has not joined
            first_ms, floor_ms = kept.value.first_hour_ms, kept.value.floor_ms
            if first_ms is None:
                if floor_ms is None or floor_ms <= hour.start_ms:
                    return None
            elif max(first_ms, floor_ms or 0) <= hour.start_ms:
                found.append(name)
        return found


def promise_ms(
    drops: Sequence[Drop], position: int, now_ms: int, slack_ms: int, ahead_ms: int
) -> int:
    """The most that a source partition can promise that is read up to there: by the highest record
    that was read, unless it is too far ahead; or by the last moment at which nothing waited."""
    waiting = [drop.arrival_ms + slack_ms for drop in drops[position:]]
    seen = [
        min(speck.event_ms, drop.arrival_ms)
        for drop in drops[:position]
        for speck in drop.specks
        if speck.event_ms is not None and speck.event_ms <= drop.arrival_ms + ahead_ms
    ]
    return max(min([now_ms, *waiting]), *seen, 0)


class Batches:
    """Of each batch that enters a table (invariants 8 and 9)."""

    sees: tuple[Happening, ...] = ()
    keys: tuple[str, ...] = ()

    def __init__(self, table: str, pool: Pool, store: DocumentStore) -> None:
        self.name = f"table {table}"
        self.violations: list[str] = []
        self._table = table
        self._pool = pool
        self._store = store

    def see(self, event: Event) -> None:
        """It hears from the pool."""

    def heard(self, folder: str) -> None:
        proofs = dict(self._pool.proofs())
        if folder not in proofs or proofs[folder].kind != "rows":
            return
        kept = read(self._store, table_key(self._table), TableDocument)
        document = TableDocument() if kept is None else kept.value
        batch = proofs[folder].batch
        others = [one.batch for at, one in proofs.items() if at != folder and one.kind == "rows"]
        if document.state == "halted":
            self.violations.append(f"{folder}: enters a halted table (invariant 9)")
        if batch in others:
            self.violations.append(f"{folder}: its batch is in the table already (invariant 8)")
        last = max([*others, *(one.batch for one in document.passed)], default=None)
        if last is not None and str(Period.parse(last).next()) != batch:
            self.violations.append(f"{folder}: enters after {last} (invariant 8)")


class Roots:
    """Of each write of a root: nothing in it moves back."""

    name = "root"
    sees = (Happening.ACTED,)
    keys = (f"{ROOTS}/",)

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._before: dict[str, Body] = {}

    def see(self, event: Event) -> None:
        call = event.call
        if isinstance(event.outcome, Exception) or call is None or call.method not in WRITES:
            return
        body = cast(Body, body_of(call))
        before, self._before[call.subject] = self._before.get(call.subject, {}), body
        old, new = _heights(before), _heights(body)
        for what, height in old.items():
            if height is not None and (new.get(what) is None or new[what] < height):
                self.violations.append(f"{event.machine}: {what} of {call.subject} moves back")
        if before.get("journal") and body["journal"] not in (None, before["journal"]):
            self.violations.append(f"{event.machine}: a journal over an unfinished one")


def _heights(body: Body) -> Mapping[str, Any]:
    found = {name: body.get(name) for name in ("epoch", "turn", "hours_ms", "days_ms")}
    for stream, seat in body.get("streams", {}).items():
        found |= {f"{name} of {stream}": seat[name] for name in ("first_ms", "frontier_ms")}
    return found


class Documents:
    """Of each write of a table's document: it stops only for a reason, and is halted only once its
    run is closed."""

    name = "table document"
    sees = (Happening.ACTED,)
    keys = (f"{TABLES}/",)

    def __init__(self, waters: Waters) -> None:
        self.violations: list[str] = []
        self._waters = waters
        self._before: dict[str, Body] = {}

    def see(self, event: Event) -> None:
        call = event.call
        if isinstance(event.outcome, Exception) or call is None or call.method not in WRITES:
            return
        body = cast(Body, body_of(call))
        before, self._before[call.subject] = self._before.get(call.subject, {}), body
        for what in ("epoch", "turn", "run", "queued", "applied_up_to", "queued_up_to"):
            if before and body[what] < before[what]:
                self.violations.append(f"{event.machine}: {what} of {call.subject} moves back")
        table, current, halt = parts(call.subject)[-1], body["current"], body["halt"]
        is_new = halt is not None and halt["who"] == SYSTEM and not before.get("halt")
        if is_new and not self._waters.may_halt(table, halt["batch"]):
            why = f"{event.machine}: {table} stops at {halt['batch']} for nothing"
            self.violations.append(f"{why}: {halt['words']}")
        if body["state"] == "halted" and current is not None:
            pool = self._waters.pools[table]
            runs = [(one.batch, one.run) for _, one in pool.proofs() if one.kind == "empty"]
            if (current["entry"]["batch"], current["run"]) not in runs:
                self.violations.append(
                    f"{event.machine}: {call.subject} is halted, and run {current['run']} is open "
                    "(invariant 9)"
                )


class Entries:
    """Of each entry that leaves a backlog: it was applied, passed, or is set aside."""

    name = "backlog"
    sees = (Happening.ACTED,)
    keys = (f"{BACKLOG}/", f"{ASIDE}/")

    def __init__(self, store: DocumentStore) -> None:
        self.violations: list[str] = []
        self._store = store
        self._numbers: dict[str, int] = {}
        self._aside: set[str] = set()

    def see(self, event: Event) -> None:
        call = event.call
        if isinstance(event.outcome, Exception) or call is None:
            return
        table, batch = parts(call.subject)[1:3]
        if call.subject.startswith(f"{ASIDE}/"):
            self._aside.add(f"{BACKLOG}/{'/'.join(call.subject.split('/')[1:3])}")
        elif call.method in WRITES:
            self._numbers[call.subject] = int(cast(Body, body_of(call))["number"])
        elif call.method == "delete" and call.subject not in self._aside:
            kept = read(self._store, table_key(table), TableDocument)
            number = self._numbers[call.subject]
            if kept is None or not is_done(kept.value, number):
                self.violations.append(f"{event.machine} removed {batch}, which is not done")
