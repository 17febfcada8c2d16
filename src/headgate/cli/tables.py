"""Tables: rows as values, drawn on a terminal or aligned as text."""

from collections.abc import Sequence
from dataclasses import dataclass

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headgate.cli import console


@dataclass(frozen=True, slots=True)
class Rows:
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str] = frozenset()  # columns that are aligned to the right


Block = Text | Rows


def drawn(block: Block) -> RenderableType:
    if isinstance(block, Text):
        return block
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(block.head):
        right = name in block.numbers
        # The first column names the row: a name in two pieces cannot be copied.
        table.add_column(name, justify="right" if right else "left", no_wrap=place == 0)
    for row in block.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def lines_of(block: Block) -> list[str]:
    if isinstance(block, Text):
        return [block.plain]
    rows = [block.head, *block.rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(block.head))]
    return [
        "  ".join(
            cell.rjust(width) if name in block.numbers else cell.ljust(width)
            for name, cell, width in zip(block.head, row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def show(shown: Sequence[Block]) -> None:
    """To stdout."""
    out = console.results()
    for block in shown:
        if out.is_terminal:
            out.print(drawn(block))
        else:
            typer.echo("\n".join(lines_of(block)))
