"""`headgate`, held in the middle of publishing a commit for as long as a file is there.

    python held.py <the file> <what headgate is told>…

Once some files of a commit are published and one is not, it writes `<the file>.caught`, with its
process id, and waits. Only commits whose files are published one by one are held; wherever the
lake is.
"""

import os
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

from headgate.app import equipment
from headgate.cli.main import main
from headgate.lake import Lake
from headgate.lake.opening import open_lake
from headgate.lake.paths import OURS

PUBLISHED_BEFORE = 3
WAIT_S_MAX = 60.0


def held(lake: Lake, path: Path) -> Lake:
    publish, begun, done = lake.publish, count(), count(1)
    has_some = threading.Event()

    def held_publish(staged: str, name: str) -> None:
        is_data = name.endswith(".parquet") and not name.startswith(f"{OURS}/")
        if is_data and next(begun) >= PUBLISHED_BEFORE and path.exists():
            has_some.wait(WAIT_S_MAX)  # other threads are still at it
            path.with_suffix(".caught").write_text(str(os.getpid()))
            ends_s = time.monotonic() + WAIT_S_MAX
            while path.exists() and time.monotonic() < ends_s:
                time.sleep(0.01)
        publish(staged, name)
        if is_data and next(done) == PUBLISHED_BEFORE:
            has_some.set()

    lake.publish = held_publish  # type: ignore[assignment, method-assign]  # of this one
    return lake


def hold(path: Path) -> None:
    def open_held(*settings: Any) -> Lake:
        return held(open_lake(*settings), path)

    equipment.open_lake = open_held  # type: ignore[assignment, attr-defined]


if __name__ == "__main__":
    hold(Path(sys.argv.pop(1)))
    main()
