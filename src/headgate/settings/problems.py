"""Problem: what is wrong with the settings, in words, with its place in the file.

A place is the way of keys to a value: `streams.orders.shift`, `spark.conf["spark.ui.port"]`. What a
person typed is shown in ASCII escapes where it could not be printed; what may be a secret, never.
"""

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

Place = tuple[str | int, ...]

_PLAIN = re.compile(r"[^\W\d][\w-]*")
SHOWN_MAX = 60


@dataclass(frozen=True, slots=True)
class Problem:
    place: Place
    words: str
    line: int = 0  # 0: not from the file
    variable: str = ""  # that set the value

    @property
    def where(self) -> str:
        """Who said so: a variable, a line of the file, or neither."""
        return self.variable or (f"line {self.line}" if self.line else "")

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.where, shown(self.place), self.words)))


def shown(place: Place) -> str:
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=not step.isprintable())}]"
    return text


def quoted(value: object) -> str:
    """A value in a message: short, on one line."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like this one; there is always one if any is known."""
    spelled = {one.lower(): one for one in known}
    found = difflib.get_close_matches(word.lower(), spelled, n=1, cutoff=0)
    return spelled[found[0]] if found else ""
