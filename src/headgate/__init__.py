"""Headgate lands every record exactly once, says when each hour is complete, applies in order."""

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

__all__ = [
    "Conflict",
    "Corrupt",
    "Document",
    "DocumentStore",
    "Fenced",
    "Halted",
    "HeadgateError",
    "Invalid",
    "JsonObject",
    "OutcomeUnknown",
    "Page",
    "Unavailable",
    "Version",
    "open_store",
]
