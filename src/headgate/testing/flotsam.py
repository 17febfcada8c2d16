"""Flotsam: small rules that watch a fleet which lands. Each looks at one thing.

They know what checkpoints and records look like from outside, and nothing of the code that writes
them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from headgate.commits.checkpoint import CHECKPOINTS
from headgate.commits.record import record_path
from headgate.periods import Period
from headgate.store.names import key
from headgate.testing.checkers import WRITES, Checker, body_of
from headgate.testing.estuary import Estuary
from headgate.testing.simulation import Event, Happening

Body = Mapping[str, Any]


def landing_checkers(estuary: Estuary) -> Sequence[Checker]:
    return (Checkpoints(estuary),)


class Checkpoints:
    """Of each checkpoint that takes effect, against the one before and the lake at that moment."""

    name = "checkpoint"
    sees = (Happening.ACTED,)

    def __init__(self, estuary: Estuary) -> None:
        self.violations: list[str] = []
        self.keys = (f"{CHECKPOINTS}/{key(estuary.settings.name)}/",)
        self._estuary = estuary
        self._seen: dict[str, Body] = {}

    def see(self, event: Event) -> None:
        call = event.call
        if isinstance(event.outcome, Exception) or call is None or call.method not in WRITES:
            return
        name, body = call.subject, cast(Body, body_of(call))
        before, self._seen[name] = self._seen.get(name, {}), body
        for words in self._wrong(name, before, body):
            self.violations.append(f"{event.machine} wrote {name}: {words}")

    def _wrong(self, name: str, before: Body, after: Body) -> list[str]:
        if not before:
            return []
        shard = int(name.rpartition("/")[2])
        return [
            *_backwards(before, after),
            *_unfinished(before, after),
            *self._unpublished(shard, before, after),
        ]

    def _unpublished(self, shard: int, before: Body, after: Body) -> list[str]:
        """Invariant 2: a position passes only what is in published files, or in a gap."""
        journal = before["journal"]
        if journal is None or after["journal"] is not None:
            moved = after["positions"].items() - before["positions"].items()
            is_moved = any(position for _, position in moved)
            return ["a position moves without a fact (invariant 2)"] if is_moved else []
        files = self._estuary.lake.files()
        raw = files.get(record_path(self._estuary.settings.name, shard, journal["number"]))
        if raw is None:
            return [f"the fact of commit {journal['number']} has no record"]
        record = json.loads(raw)
        missing = [file["published"] for file in record["files"] if file["published"] not in files]
        wrong = [f"{one} is not published, and the fact is there" for one in missing]
        return wrong + self._late(record, files)

    def _late(self, record: Body, files: Mapping[str, bytes]) -> list[str]:
        """Lateness is judged by the watermark that was committed before."""
        wrong = []
        for file in record["files"]:
            if file["kind"] != "data":
                continue
            end_ms = Period.parse(file["period"]).end_ms
            for line in files.get(file["published"], b"").decode().splitlines():
                partition = json.loads(line)["at"].partition("/")[0]
                mark = record["watermarks"].get(partition)
                before_ms = None if mark is None else mark["before_ms"]
                if before_ms is not None and end_ms <= before_ms:
                    wrong.append(f"a late record of {partition} is in {file['published']}")
        return wrong


def _backwards(before: Body, after: Body) -> list[str]:
    wrong = []
    if after["epoch"] < before["epoch"]:
        wrong.append(f"epoch {after['epoch']} over {before['epoch']} (invariant 3)")
    if after["number"] < before["number"]:
        wrong.append("its commit number moves back")
    for name, position in before["positions"].items():
        if int(after["positions"].get(name) or 0) < int(position or 0):
            wrong.append(f"the position of {name} moves back (invariant 2)")
    for name, mark in before["watermarks"].items():
        now = after["watermarks"].get(name)
        if mark is not None and (now is None or now < mark):
            wrong.append(f"the watermark of {name} moves back")
        if name not in after["watermarks"]:
            wrong.append(f"the watermark of {name} is gone")
    return wrong


def _unfinished(before: Body, after: Body) -> list[str]:
    """Invariant 4: while a journal is unfinished, nothing new is committed."""
    old, new = before["journal"], after["journal"]
    if old is None or new is None or old == new or new.get("replaces") == old["number"]:
        return []
    return [f"commit {new['number']} over the unfinished {old['number']} (invariant 4)"]
