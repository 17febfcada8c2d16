"""Console: results go to stdout, talk goes to stderr, and styles are for terminals only."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import track

from headgate.store import JsonObject

# Keys and bodies are any Unicode text: what would move a terminal's cursor is shown, not obeyed.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


T = TypeVar("T")


def results() -> Console:
    return Console(soft_wrap=True, highlight=False, markup=False, emoji=False)


def talk() -> Console:
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def tracked(things: Sequence[T], words: str) -> Iterable[T]:
    """With a bar on a terminal; elsewhere nothing."""
    out = talk()
    return track(things, words, console=out, transient=True, disable=not out.is_terminal)


def json_line(value: JsonObject) -> str:
    """One line of ASCII, whatever is in it."""
    return json.dumps(value)


def printable(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def pretty(body: JsonObject) -> str:
    """JSON for eyes; still JSON."""
    lines = json.dumps(body, indent=2, ensure_ascii=False, sort_keys=True).split("\n")
    return "\n".join(printable(line) for line in lines)
