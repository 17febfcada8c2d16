"""Strands: functions that can be parked in the middle and go on later. The only door to greenlet.

A strand runs on the stack of whoever switches to it, and gives back to its `parent`: many of them
are one thread, and what runs when is nobody's choice but ours.

    new ── switch ──▶ running ── park ──▶ parked ── switch ──▶ running ── returns ──▶ over
                                            └── throw ──▶ running, with an exception ──▶ over
"""

from collections.abc import Callable

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]  # has no types

__all__ = ["Strand", "getcurrent"]


class Strand(greenlet):  # type: ignore[misc]  # greenlet has no types
    """`switch()` runs it until it parks or returns; an exception it raises comes out there."""

    def __init__(self, function: Callable[[], None], parent: object = None) -> None:
        super().__init__(function, parent or getcurrent())

    @property
    def is_over(self) -> bool:
        return bool(self.dead)

    @property
    def is_parked(self) -> bool:
        """It was begun and is not over."""
        return bool(self)

    def park(self) -> None:
        """Gives back to the parent. Only from inside this strand."""
        self.parent.switch()
