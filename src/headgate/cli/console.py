"""Console: results go to stdout, talk goes to stderr, and styles are for terminals only."""

import json
import re

from rich.console import Console

from headgate.store import JsonObject

# Keys and bodies are any Unicode text: what would move a terminal's cursor is shown, not obeyed.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def results() -> Console:
    return Console(soft_wrap=True, highlight=False, markup=False, emoji=False)


def talk() -> Console:
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def json_line(value: JsonObject) -> str:
    """One line of ASCII, whatever is in it."""
    return json.dumps(value)


def printable(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def pretty(body: JsonObject) -> str:
    """JSON for eyes; still JSON."""
    lines = json.dumps(body, indent=2, ensure_ascii=False, sort_keys=True).split("\n")
    return "\n".join(printable(line) for line in lines)
