"""Reduction: from many faults to the few that matter, by leaving out ever smaller parts.

What remains is locally minimal: without any one of them the failure is gone. Unless the runs ended
before: then it is merely smaller.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

RUNS_MAX = 400

One = TypeVar("One")


def reduce(
    faults: Sequence[One],
    fails: Callable[[Sequence[One]], bool],
    runs_max: int = RUNS_MAX,
) -> Sequence[One]:
    """Faults that still fail, in their order. `faults` themselves must fail; that is not tried."""
    left = list(faults)
    size = max(1, len(left) // 2)
    runs = 0
    while left:
        is_smaller = False
        start = 0
        while start < len(left):
            if runs == runs_max:
                return left
            fewer = left[:start] + left[start + size :]
            runs += 1
            if fails(fewer):
                left, is_smaller = fewer, True
            else:
                start += size
        if size == 1 and not is_smaller:
            return left
        size = max(1, size // 2)
    return left
