"""Land orders: files dropped into a folder land exactly once in folders of their hours.

python land_orders.py FOLDER      a folder for everything: what is dropped, the lake, the state
"""

import json
import sys
import time
from pathlib import Path

from headgate import App, Files, Stream

DAY_MS = 86_400_000
NOON_MS = int(time.time() * 1_000) // DAY_MS * DAY_MS - DAY_MS // 2  # of yesterday, in UTC


def main(folder: Path) -> None:
    incoming = folder / "incoming"
    incoming.mkdir(parents=True, exist_ok=True)
    orders = [{"order": n, "at": NOON_MS + n * 15_000, "cents": n * 100} for n in range(1_000)]
    lines = [json.dumps(order) for order in orders]
    lines.append('{"order": 1000}')  # without an event time: a dead letter

    # Under a name that is left alone first: then nobody reads half of it.
    unfinished = incoming / ".orders.json"
    unfinished.write_text("\n".join(lines))
    unfinished.rename(incoming / "orders.json")

    app = App(f"file:{folder}/state", str(folder / "lake"), spark={"master": "local[2]"})
    app.add(Stream("orders", Files(str(incoming)), event_time="$.at"))

    result = app.run(until="idle").streams["orders"]
    print(f"landed {result.landed}, late {result.late}, dead {result.dead}")

    again = app.run(until="idle").streams["orders"]
    print(f"once more: landed {again.landed}")

    findings = app.audit().findings
    print("the audit is clean" if not findings else "\n".join(one.words for one in findings))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
