"""The programs in examples/ run as they are, and use public names only."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headgate

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PRINTED = {
    "land_orders.py": ["landed 1000, late 0, dead 1", "once more: landed 0", "the audit is clean"],
    "announce_step.py": ["orders/0/1: 1 file"],
}

pytestmark = pytest.mark.spark


def test_every_example_is_run() -> None:
    others = {"check_certificate.py"}  # has tests of its own: it takes a flag that is there
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED) | others


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_an_example_runs_and_prints_what_it_should(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), "here"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
        timeout=240,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == PRINTED[name]


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_an_example_uses_public_names_only(name: str) -> None:
    tree = ast.parse((EXAMPLES / name).read_text("utf-8"))

    found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    ours = {
        (node.module, alias.name)
        for node in found
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headgate")
        for alias in node.names
    }
    assert ours
    assert ours <= {("headgate", name) for name in headgate.__all__}
