"""Check an hour without Headgate: python check_certificate.py LAKE LAKE/2026-11-01/13/orders/_READY

The flag holds a certificate: canonical JSON, whose `hash` is the SHA-256 of everything else in it.
"""

import hashlib
import json
import sys
from datetime import datetime, timedelta
from pathlib import Path


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def problems(lake: Path, flag: Path) -> list[str]:
    said = json.loads(flag.read_bytes())
    claimed = said.pop("hash")
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    found = [] if sha256(f"{canonical}\n".encode()) == claimed else [f"{flag}: was changed"]
    end = datetime.fromisoformat(f"{said['period']}:00+00:00") + timedelta(hours=1)
    for name, partition in said["partitions"].items():
        if partition["watermark_ms"] < end.timestamp() * 1000:
            found.append(f"{name}: more could have come")
    for file in said["files"]:
        path = lake / file["path"]
        if not path.exists():
            found.append(f"{path}: is gone")
        elif sha256(path.read_bytes()) != file["checksum"]:
            found.append(f"{path}: was changed")
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit("\n".join(problems(Path(sys.argv[1]), Path(sys.argv[2]))) or print("as certified"))
