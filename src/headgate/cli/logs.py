"""Logs: one event a line on stderr, a dotted name and its fields. Only here are they configured."""

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class EventFormatter(logging.Formatter):
    """`2026-11-01T13:05:00Z warning store.slow key="a b" took_ms=70`"""

    _usual = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        words = [
            f"{at:%Y-%m-%dT%H:%M:%SZ}",
            record.levelname.lower(),
            _one_line(record.getMessage()),
        ]
        for name, value in vars(record).items():
            if name not in self._usual:
                words.append(f"{name}={_field(value)}")
        if record.exc_info:
            words.append("\n" + self.formatException(record.exc_info))
        return " ".join(words)


class StderrHandler(logging.StreamHandler[TextIO]):
    """Looks up stderr for each event: a live table puts itself in between to stay in one piece."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setStream(sys.stderr)
        super().emit(record)


def configure(level: LogLevel) -> None:
    """Ours from that level on; the client libraries' one step stricter, they talk a lot."""
    ours = logging.getLevelNamesMapping()[level.upper()]
    handler = StderrHandler()
    handler.setFormatter(EventFormatter())
    logging.basicConfig(level=min(ours + 10, logging.ERROR), handlers=[handler], force=True)
    logging.getLogger("headgate").setLevel(ours)


def _one_line(text: str) -> str:
    return "\\n".join(text.splitlines())


def _field(value: object) -> str:
    text = str(value)
    is_plain = text.isascii() and text.isprintable() and not any(mark in text for mark in ' "=')
    return text if is_plain and text else json.dumps(text)
