"""Bars: how far long work is, on a terminal; elsewhere nothing."""

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from headgate.cli import console


class PartsBar:
    """A bar for each part of the way."""

    def __init__(self) -> None:
        talk = console.talk()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._bar = Progress(*columns, console=talk, transient=True, disable=not talk.is_terminal)
        self._part: tuple[str, TaskID] | None = None

    def __enter__(self) -> "PartsBar":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, done: int, total: int | None, words: str) -> None:
        if self._part is None or self._part[0] != words:
            if self._part is not None:
                self._bar.remove_task(self._part[1])
            self._part = (words, self._bar.add_task(console.printable(words), total=total))
        self._bar.update(self._part[1], completed=done, total=total)
