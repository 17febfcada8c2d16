"""Switches: bugs that are put into the code for a while, so that a suite can show it catches them.

A bug is a few patches: each takes the place of one small decision, as a hasty change would.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

Patch = tuple[object, str, object]
"""Where, which name, and what stands there instead."""

Bug = Callable[[], Sequence[Patch]]


@contextmanager
def switched_on(bug: Bug) -> Iterator[None]:
    """While open, the code has that bug."""
    with ExitStack() as stack:
        for target, name, value in bug():
            stack.enter_context(patch.object(target, name, value))
        yield
