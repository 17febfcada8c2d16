"""Headgate lands every record exactly once, says when each hour is complete, applies in order."""

from importlib import import_module
from typing import TYPE_CHECKING

from headgate.errors import (
    Conflict,
    Corrupt,
    Fenced,
    Halted,
    HeadgateError,
    Invalid,
    OutcomeUnknown,
    Unavailable,
)
from headgate.store import Document, DocumentStore, JsonObject, Page, Version
from headgate.store.registry import open_store

if TYPE_CHECKING:
    from headgate.app.declared import Files, Kafka, Stream, Table
    from headgate.app.library import App, RunResult, StreamResult
    from headgate.commits import Announced, StepKind

__all__ = [
    "Announced",
    "App",
    "Conflict",
    "Corrupt",
    "Document",
    "DocumentStore",
    "Fenced",
    "Files",
    "Halted",
    "HeadgateError",
    "Invalid",
    "JsonObject",
    "Kafka",
    "OutcomeUnknown",
    "Page",
    "RunResult",
    "StepKind",
    "Stream",
    "StreamResult",
    "Table",
    "Unavailable",
    "Version",
    "open_store",
]

_LATER = {
    "Announced": "headgate.commits",
    "App": "headgate.app.library",
    "Files": "headgate.app.declared",
    "Kafka": "headgate.app.declared",
    "RunResult": "headgate.app.library",
    "StepKind": "headgate.commits",
    "Stream": "headgate.app.declared",
    "StreamResult": "headgate.app.library",
    "Table": "headgate.app.declared",
}


def __getattr__(name: str) -> object:
    """What needs Spark is imported when it is asked for: a store alone must not wait for it."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'headgate' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Also what is not imported yet."""
    return sorted({*globals(), *__all__})
