"""`headgate`, held in the middle of publishing a commit for as long as a file is there.

    python held.py <the file> <what headgate is told>…

Once some files of a commit are published and one is not, it writes `<the file>.caught`, with its
process id, and waits.
"""

import os
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

from headgate.cli.main import main
from headgate.lake import hauls, local
from headgate.lake.moves import move_new

PUBLISHED_BEFORE = 3
WAIT_S_MAX = 60.0


def hold(path: Path) -> None:
    numbers = count()

    def move(from_folder: int, name: str, *more: Any) -> None:
        if name.endswith(".parquet") and next(numbers) >= PUBLISHED_BEFORE and path.exists():
            path.with_suffix(".caught").write_text(str(os.getpid()))
            ends_s = time.monotonic() + WAIT_S_MAX
            while path.exists() and time.monotonic() < ends_s:
                time.sleep(0.01)
        move_new(from_folder, name, *more)

    for module in (local, hauls):
        module.move_new = move  # type: ignore[attr-defined]


if __name__ == "__main__":
    hold(Path(sys.argv.pop(1)))
    main()
