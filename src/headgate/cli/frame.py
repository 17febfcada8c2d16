"""Frame: what demo, fleet and hammer have in common: a folder for the time being, a picture that
changes while people watch, and the end: proved or not, in numbers, and what to do next.
"""

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Protocol, TypeVar

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from headgate.cli import console

HEADGATE = (sys.executable, "-P", "-c", "from headgate.cli.main import main; main()")
FAULTS_SHOWN = 10


class Moment(Protocol):
    """What a picture has to say besides what is drawn."""

    @property
    def elapsed_s(self) -> float: ...

    @property
    def news(self) -> Sequence[str]:
        """Since the last picture."""


Shown = TypeVar("Shown", bound=Moment)


@dataclass(slots=True)
class Scratch:
    folder: Path
    is_kept: bool


@contextmanager
def scratch(name: str, *, is_kept: bool) -> Iterator[Scratch]:
    """A folder that is removed at the end, unless it says otherwise by then."""
    found = Scratch(Path(tempfile.mkdtemp(prefix=f"headgate-{name}-")), is_kept)
    try:
        yield found
    finally:
        if not found.is_kept:
            rmtree(found.folder, ignore_errors=True)


@contextmanager
def shown(
    drawn: Callable[[Shown], RenderableType], line: Callable[[Shown], str], every_s: float = 1
) -> Iterator[Callable[[Shown], None]]:
    """A live picture on a terminal; elsewhere a line now and then; and the news on both."""
    talk = console.talk()
    if not talk.is_terminal:
        yield _lines(line, every_s, talk)
        return
    with Live(console=talk, auto_refresh=False) as live:

        def show(picture: Shown) -> None:
            for words in picture.news:
                live.console.print(_news(picture, words))
            live.update(drawn(picture), refresh=True)

        yield show


def _lines(line: Callable[[Shown], str], every_s: float, talk: Console) -> Callable[[Shown], None]:
    said_s = -every_s

    def show(picture: Shown) -> None:
        nonlocal said_s
        for words in picture.news:
            talk.print(_news(picture, words))
        if picture.elapsed_s - said_s >= every_s:
            said_s = picture.elapsed_s // every_s * every_s
            talk.print(line(picture))

    return show


def _news(picture: Moment, words: str) -> Text:
    return Text.assemble((f"{picture.elapsed_s:>4.0f} s  ", "dim"), console.printable(words))


def tell_verdict(proved: str, not_proved: str, faults: Sequence[str]) -> None:
    """Without a fault it is proved."""
    out = console.results()
    if not faults:
        out.print(proved, style="bold green")
        return
    out.print(not_proved, style="bold red")
    for fault in faults[:FAULTS_SHOWN]:
        out.print(f"  {console.printable(fault)}", style="red")
    if len(faults) > FAULTS_SHOWN:
        out.print(f"  and {len(faults) - FAULTS_SHOWN:,} more", style="red")


def tell_numbers(numbers: Iterable[tuple[float, str]]) -> None:
    out = console.results()
    for number, words in numbers:
        out.print(Text.assemble((f"{number:>9,.0f}", "cyan"), f"  {words}"))


def tell_next(lines: Sequence[tuple[str, str]]) -> None:
    out = console.results()
    out.print("\nnext", style="bold")
    width = max(len(line) for line, _ in lines)
    for line, words in lines:
        out.print(Text.assemble((f"  {line:{width}}", "cyan"), f"  {words}"))
