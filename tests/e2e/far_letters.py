"""Dead letters of a lake that is no disk: shown, driven in again, landed once."""

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

MENDED = 1_000  # its id
STREAMS = ("orders", "lines")  # one lands as Parquet, the other as lines
NOT_DATA = ("_headgate/", "_dead/", "_redriven/")

Ask = Callable[..., Any]
Contents = Callable[[], Mapping[str, bytes]]


def spoiled(at_ms: int) -> str:
    """Two records without an event time, of which one says it under another name."""
    return f"no json\n{json.dumps({'id': MENDED, 'when': at_ms})}\n"


def check_redriving(folder: Path, ask: Ask, contents: Contents) -> None:
    for stream in STREAMS:
        shown = ask("deadletter", "show", stream)
        assert shown.returncode == 0, shown.stderr
        assert "no json" in shown.stdout
        assert f'"id": {MENDED}' in shown.stdout

    _land_again(folder, ask, contents)

    files = contents()
    assert [path for path in files if path.startswith("_redrive/")] == []
    assert len([path for path in files if path.startswith("_redriven/")]) == len(STREAMS)
    for stream in STREAMS:
        values = [one for path, content in files.items() for one in _values(stream, path, content)]
        assert [one["id"] for one in values].count(MENDED) == 1
        left = ask("deadletter", "show", stream, "--json").stdout.splitlines()
        assert [json.loads(line)["raw"] for line in left] == ["no json"]
    for command in (("verify", "--all"), ("audit",)):
        done = ask(*command)
        assert done.returncode == 0, done.stdout + done.stderr


def _land_again(folder: Path, ask: Ask, contents: Contents) -> None:
    file = folder / "headgate.yaml"
    before = file.read_text("utf-8")
    file.write_text(before.replace("$.at", "$.when"), "utf-8")
    try:
        for stream in STREAMS:
            driven = ask("deadletter", "redrive", stream, "--all", "--reason", "it is called when")
            assert driven.returncode == 0, driven.stderr
        waiting = [path for path in contents() if path.startswith("_redrive/")]
        assert len(waiting) == len(STREAMS)
        done = ask("run", "--until", "idle")
        assert done.returncode == 0, done.stderr
    finally:
        file.write_text(before, "utf-8")


def _values(stream: str, path: str, content: bytes) -> list[dict[str, Any]]:
    if path.startswith(NOT_DATA) or f"/{stream}/" not in path:
        return []
    if path.endswith(".parquet"):
        table = pq.ParquetFile(io.BytesIO(content)).read(columns=["value"])
        return [json.loads(text) for text in table.column(0).to_pylist()]
    is_lines = path.endswith(".json")
    return [json.loads(line) for line in content.splitlines()] if is_lines else []
