"""Announce: a step of your own in each commit tells somebody which files were published.

python announce_step.py FOLDER      a folder for everything: what is dropped, the lake, the state

The commit waits for it. It may be asked again after a crash, also on another node, with the same
body: so it looks first whether it is done, and what it writes is the same each time.
"""

import json
import sys
from pathlib import Path

from headgate import Announced, App, Files, JsonObject, Stream


class AnnounceKind:
    """Writes a line for each commit that published something. Here the board is a file; a queue or
    a web service that takes an idempotency key does as well."""

    name = "announce"

    def body(self, announced: Announced) -> JsonObject:
        if not announced.published:
            return {}
        return {
            "board": announced.options["board"],
            "key": f"{announced.stream}/{announced.shard}/{announced.number}",
            "files": list(announced.published),
        }

    def verify(self, body: JsonObject) -> bool:
        board = Path(str(body["board"]))
        lines = board.read_text().splitlines() if board.exists() else []
        return any(json.loads(line)["key"] == body["key"] for line in lines)

    def execute(self, body: JsonObject) -> None:
        with Path(str(body["board"])).open("a") as board:
            board.write(json.dumps({"key": body["key"], "files": body["files"]}) + "\n")


def main(folder: Path) -> None:
    incoming, board = folder / "incoming", folder / "board.jsonl"
    incoming.mkdir(parents=True, exist_ok=True)
    app = App(f"file:{folder}/state", str(folder / "lake"), spark={"master": "local[2]"})
    app.add_step_kind(AnnounceKind())
    steps = [{"kind": "announce", "board": str(board)}]
    app.add(Stream("orders", Files(incoming), event_time="$.at", steps=steps))

    (incoming / "orders.json").write_text('{"order": 1, "at": 1793534400000}')
    app.run(until="idle")
    app.run(until="idle")  # nothing new: nothing is announced

    for line in board.read_text().splitlines():
        found = json.loads(line)
        print(f"{found['key']}: {len(found['files'])} file")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
