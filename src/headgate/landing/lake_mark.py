"""Lake mark: which installation a lake belongs to, said on both sides.

    store: no mark, lake: none ──▶ store: an id ──▶ lake: `_headgate/lake.json` ──▶ store: marked

A disk that is not mounted leaves an empty folder in its place, and would take records that vanish
behind it when it comes back. A second installation on the same lake would sweep what the first one
staged. So nobody lands where the mark is not the store's own.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from headgate.ambient import Ambient
from headgate.commits.steps import PublishFile, carry_out
from headgate.errors import Conflict, Halted, Unavailable
from headgate.lake import Lake
from headgate.lake.paths import STAGING
from headgate.store import DocumentStore
from headgate.store.changes import change, create_if_absent, read
from headgate.store.codec import Truth

KEY = "lake"
PATH = "_headgate/lake.json"


@dataclass(frozen=True, slots=True)
class LakeMark:
    id: str
    is_marked: Truth = False  # the lake says it, too
    format: Literal[1] = 1


def check_mark(store: DocumentStore, lake: Lake, ambient: Ambient) -> str:
    """The id, known on both sides. Raises Unavailable (the lake is not there), Halted (it is that
    of another installation), OutcomeUnknown."""
    found = read(store, KEY, LakeMark)
    if found is None:
        raw = lake.read(PATH)
        found = read(store, KEY, LakeMark)  # again: a neighbour may have marked both meanwhile
        if raw is not None and found is None:
            raise _strange(lake, raw)
    if found is None:
        create_if_absent(store, KEY, LakeMark(ambient.new_id()))
        found = read(store, KEY, LakeMark)
        if found is None:
            raise Unavailable(f"{KEY}: was deleted just now; it is made again at the next try")
    if not found.value.is_marked:
        _mark(lake, found.value.id, ambient)
        change(store, KEY, LakeMark, lambda mark: replace(mark, is_marked=True))
    check_lake(lake, found.value.id)
    return found.value.id


def check_lake(lake: Lake, wanted: str) -> None:
    """One small read, before each intent. Raises Unavailable, Halted."""
    raw = lake.read(PATH)
    if raw is None:
        raise Unavailable(
            f"{lake.url}: has no {PATH}, and this store's lake has one: is a disk not mounted? "
            "Nothing is landed. Next: mount it; if the lake was moved, move all of it"
        )
    if _id_of(raw) != wanted:
        raise _strange(lake, raw)


def mark_id(lake: Lake) -> str | None:
    """Of the installation that a lake belongs to; None: it has no mark. Raises Unavailable."""
    raw = lake.read(PATH)
    return None if raw is None else _id_of(raw)


def _mark(lake: Lake, id_: str, ambient: Ambient) -> None:
    if lake.read(PATH) is None:
        staged = f"{STAGING}/_mark/{ambient.new_id()}.json"
        facts = lake.stage(staged, json.dumps({"format": 1, "id": id_}).encode())
        with suppress(Conflict):  # somebody was first
            carry_out(PublishFile("lake", staged, PATH, facts), lake)
    # Whoever put it there may have ended before this: once the store says that the lake has its
    # mark, no power cut may take it away.
    lake.settle(["_headgate"])


def _strange(lake: Lake, raw: bytes) -> Halted:
    return Halted(
        f"{lake.url}: belongs to another installation ({_id_of(raw)[:8]}), or its store was lost: "
        "two stores on one lake would destroy each other's work. Nothing is landed. Next: use the "
        "store that belongs to it, or another lake; if that store is lost: headgate store rebuild "
        '--reason "…"'
    )


def _id_of(raw: bytes) -> str:
    try:
        return str(json.loads(raw)["id"])
    except (ValueError, KeyError, TypeError):
        return "unreadable"
