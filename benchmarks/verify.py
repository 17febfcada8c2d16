"""What `headgate verify` takes against the bare SHA-256 of the same files, in the same run.

    python -m benchmarks.verify            all of these
    python -m benchmarks.verify small      10,000 files of 32 kB, over 240 hours
    python -m benchmarks.verify large      100 files of 10 MB, over 24 hours

Ours is the work of the command: every certificate is read and its own hash checked, both flags are
compared with it, every file is read for its checksum, and each folder is listed for files that came
later; with as many threads as the command has. The peer reads the same files one after the other,
and computes nothing but SHA-256, as Python's library does it fastest for files of that size. Both
take turns; what they read was read before, so that neither pays for the disk.
"""

import gc
import hashlib
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Number, publish
from headgate.ambient import SystemAmbient
from headgate.audit.verifying import verify
from headgate.commits.certificate import (
    Certificate,
    CertifiedFile,
    CertifiedPartition,
    certificate_folder,
    certificate_name,
    flag_paths,
    sealed,
    to_bytes,
)
from headgate.lake import LakeSettings
from headgate.lake.opening import open_lake
from headgate.node import Hands
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period

ROUNDS = 5
FIRST_HOUR_MS = 1_794_700_800_000  # a midnight
STREAM = "orders"
FOLDER = FolderTemplate.parse(DEFAULT_FOLDER)
ROWS = 1_000


@dataclass(frozen=True)
class Size:
    files: int
    file_bytes: int
    hours: int


SIZES = {
    "small": Size(10_000, 32_000, 240),
    "large": Size(100, 10_000_000, 24),
}


def write(root: Path, size: Size) -> list[Path]:
    """A lake in which every hour is flagged."""
    filling = os.urandom(size.file_bytes)
    found: list[Path] = []
    for number in range(size.hours):
        hour = Period(FIRST_HOUR_MS + number * HOUR_MS, "hour")
        folder = FOLDER.folder(hour, stream=STREAM)
        (root / folder).mkdir(parents=True)
        first, end = (size.files * n // size.hours for n in (number, number + 1))
        files = []
        for n in range(first, end):
            path = f"{folder}/shard0-commit{n + 1:010}-0.parquet"
            content = n.to_bytes(8, "big") + filling[8:]
            (root / path).write_bytes(content)
            found.append(root / path)
            checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
            files.append(CertifiedFile(path, len(content), checksum, ROWS))
        put_certificate(root, hour, tuple(files), (first + 1, end + 1))
    return found


def put_certificate(
    root: Path, hour: Period, files: tuple[CertifiedFile, ...], commits: tuple[int, int]
) -> None:
    partition = CertifiedPartition(str(commits[0]), str(commits[1]), hour.end_ms, "records")
    raw = to_bytes(
        sealed(
            Certificate(
                STREAM,
                str(hour),
                1,
                files,
                {"lane-0": partition},
                (),
                {"landed": ROWS * len(files), "late": 0, "dead": 0},
                (hour.start_ms, hour.end_ms - 1),
                {"0": (commits,)},
                hour.end_ms,
                "bench",
            )
        )
    )
    archived = f"{certificate_folder(STREAM, hour)}/{certificate_name(1)}"
    for path in (archived, *flag_paths(FOLDER, hour, STREAM)):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(raw)


def ours(root: Path, size: Size) -> None:
    with closing(Hands()) as hands:
        lake = open_lake(LakeSettings(str(root)), SystemAmbient(), hands.each)
        found = verify(lake, {STREAM: FOLDER}, each=hands.each)
    if not found.is_clean or (found.periods, found.files) != (size.hours, size.files):
        raise SystemExit(f"not verified: {found}")


def raw(files: list[Path]) -> list[str]:
    checksums = []
    for path in files:
        with open(path, "rb", buffering=0) as file:
            is_small = os.fstat(file.fileno()).st_size < 1_000_000
            one = hashlib.sha256(file.read()) if is_small else hashlib.file_digest(file, "sha256")
            checksums.append(one.hexdigest())
    return checksums


def timed(act: Callable[[], object]) -> float:
    gc.collect()
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def measure(name: str) -> Number:
    size = SIZES[name]
    times: dict[str, list[float]] = {"ours": [], "raw": []}
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        root = Path(folder) / "lake"
        files = write(root, size)
        raw(files)  # read before
        for _ in range(ROUNDS):
            times["ours"].append(timed(lambda: ours(root, size)))
            times["raw"].append(timed(lambda: raw(files)))
    found = {peer: statistics.median(all_) for peer, all_ in times.items()}
    size_bytes = size.files * size.file_bytes
    return Number(
        f"verify.{name}",
        size_bytes / found["ours"] / 1e6,
        "MB/s",
        found["raw"] / found["ours"],
        "SHA-256 of the same files, one after the other, in Python",
        {
            "files": size.files,
            "file_bytes": size.file_bytes,
            "hours": size.hours,
            **{f"{peer}_s": seconds for peer, seconds in found.items()},
            **{f"best_{peer}_s": min(all_) for peer, all_ in times.items()},
        },
    )


def main() -> None:
    logging.disable(logging.CRITICAL)
    publish("verify", [measure(name) for name in sys.argv[1:] or SIZES])


if __name__ == "__main__":
    main()
