"""Nudge: how one loop of a node wakes another. It stays given until it is taken."""

from collections.abc import Callable


class Nudge:
    def __init__(self) -> None:
        self._is_given = False
        self._wakes: list[Callable[[], None]] = []

    def on_give(self, wake: Callable[[], None]) -> None:
        """Whoever runs the loop says here how it is woken."""
        self._wakes.append(wake)

    def give(self) -> None:
        self._is_given = True
        for wake in self._wakes:
            wake()

    def take(self) -> bool:
        """Whether it was given since it was last taken."""
        if not self._is_given:
            return False
        self._is_given = (
            False  # one that is given just now is lost, and what it asks for comes next
        )
        return True
