"""Every number on the page about costs is the one that was measured last."""

import json
import re
from pathlib import Path

from benchmarks.plot import IMAGE, picture

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `([a-z_.]+)` \| ([0-9.]+) \|", re.M)


def test_the_page_says_what_was_measured() -> None:
    told = dict(ROW.findall((ROOT / "docs/why/performance.md").read_text("utf-8")))
    measured = dict[str, float]()
    for file in (ROOT / "benchmarks/results").glob("*.json"):
        found = json.loads(file.read_text("utf-8"))
        measured |= {name: one["ratio"] for name, one in found.items() if "ratio" in one}

    assert len(told) == 20
    assert {name: f"{measured[name]:.2f}" for name in told} == told


def test_the_picture_shows_what_was_measured() -> None:
    assert IMAGE.read_text("utf-8") == picture()
