"""Sql: names, texts and conditions as Spark's SQL spells them.

Expressions are text: pure modules can make them, and they mean the same through Spark Connect.
"""

from collections.abc import Sequence


def text(value: str) -> str:
    """A literal, whatever is in it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    # Written out: some control characters end a literal or vanish in the parser.
    return "'" + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in escaped) + "'"


def name(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def case(branches: Sequence[tuple[str, str]], otherwise: str) -> str:
    """The first branch whose condition holds; later ones are not evaluated."""
    if not branches:
        return otherwise
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
    return f"CASE {whens} ELSE {otherwise} END"
