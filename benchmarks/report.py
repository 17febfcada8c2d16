"""One line for people, one JSON file for the record: a number with its machine and versions."""

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("headgate", "kazoo", "opensearch-py", "pyspark")


@dataclass(frozen=True, slots=True)
class Number:
    name: str
    value: float
    unit: str
    ratio: float  # against the peer of the same run
    peer: str
    detail: dict[str, float]

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4g} {self.unit} ratio={self.ratio:.3f}"


def publish(file: str, numbers: list[Number]) -> None:
    """Writes `results/<file>.json`; numbers of that file that were not measured now are kept."""
    path = RESULTS / f"{file}.json"
    kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for number in numbers:
        kept[number.name] = {**asdict(number), "on": machine(), "versions": versions()}
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
    for number in numbers:
        print(number, flush=True)


def machine() -> dict[str, object]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
