import logging
import sys

from headgate.cli.logs import EventFormatter


def line(message: str, **fields: object) -> str:
    record = logging.makeLogRecord({"msg": message, "levelname": "WARNING", "created": 0, **fields})
    return EventFormatter().format(record)


def test_an_event_is_one_line_with_its_fields() -> None:
    found = line("store.slow", key="a b", took_ms=70, reason='"no"\nanswer', empty="")

    assert found == (
        "1970-01-01T00:00:00Z warning store.slow "
        'key="a b" took_ms=70 reason="\\"no\\"\\nanswer" empty=""'
    )


def test_a_library_that_logs_several_lines_gets_one() -> None:
    assert line("first\nsecond") == "1970-01-01T00:00:00Z warning first\\nsecond"


def test_only_an_exception_takes_more_lines() -> None:
    try:
        raise ValueError("x")
    except ValueError:
        found = line("cli.failed", exc_info=sys.exc_info())

    assert found.startswith("1970-01-01T00:00:00Z warning cli.failed \nTraceback")
    assert found.endswith("ValueError: x")
