"""Every snippet in the docs is run, page by page, in an empty folder.

```python   is run as a program. `# prints: …` at the end of a line says what is printed.
```console  lines with `$` are run by a shell; what follows must come out, `…` is anything. A here
            document goes on to its END. A last line `[exit 1]` says how the command ends; without
            it, it ends with 0.
```text     and other kinds are only shown.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.servers.s3 import ACCESS_KEY, SECRET_KEY

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SNIPPET = re.compile(r"^```(python|console|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(page: Path) -> list[tuple[str, str]]:
    return SNIPPET.findall(page.read_text("utf-8"))


WITH_SNIPPETS = [page for page in PAGES if snippets(page)]


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_snippet_runs(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if "KAFKA" in page.read_text("utf-8"):  # where the brokers are
        os.environ["KAFKA"] = request.getfixturevalue("kafka").address
    if "$HDFS" in page.read_text("utf-8"):  # where the name node is
        os.environ["HDFS"] = request.getfixturevalue("hdfs").url
    if "S3_ENDPOINT" in page.read_text("utf-8"):
        server = request.getfixturevalue("s3")
        os.environ["S3_ENDPOINT"] = f"http://{server.address}"
        os.environ["BUCKET"] = server.new_bucket()
        os.environ["AWS_ACCESS_KEY_ID"] = ACCESS_KEY
        os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET_KEY
    for kind, text in snippets(page):
        if kind == "python":
            check_python(text, tmp_path)
        elif kind == "bash":
            check_command(f"set -e\n{text}", [], 0, tmp_path)
        else:
            for command, expected, code in commands(text):
                check_command(command, expected, code, tmp_path)


def test_the_docs_have_snippets() -> None:
    assert ROOT / "README.md" in WITH_SNIPPETS


def check_python(text: str, folder: Path) -> None:
    (folder / "snippet.py").write_text(text, "utf-8")
    done = run([sys.executable, "snippet.py"], folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"# prints: (.*)$", text, re.MULTILINE)


def commands(text: str) -> list[tuple[str, list[str], int]]:
    found: list[tuple[str, list[str], int]] = []
    here = False  # inside a here document
    for line in text.splitlines():
        if here:
            found[-1] = (f"{found[-1][0]}\n{line}", *found[-1][1:])
            here = line != "END"
        elif line.startswith("$ "):
            found.append((line[2:], [], 0))
            here = line.endswith("<<END")
        elif ended := re.fullmatch(r"\[exit (\d+)\]", line):
            found[-1] = (*found[-1][:2], int(ended[1]))
        elif line:
            found[-1][1].append(line)
    return found


def check_command(command: str, expected: Sequence[str], code: int, folder: Path) -> None:
    done = run(["bash", "-c", command], folder)
    shown = f"$ {command}\n{done.stdout}{done.stderr}"
    assert done.returncode == code, shown
    lines = (done.stdout + done.stderr).splitlines()
    for wanted in expected:
        pattern = ".*".join(map(re.escape, wanted.rstrip().split("…")))
        assert any(re.fullmatch(pattern, line.rstrip()) for line in lines), f"{wanted}\n\n{shown}"


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )
