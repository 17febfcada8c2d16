"""Disks that really refuse: full or read-only, for a child process, also if that is root's.

Best is a small file system of its own, in a mount namespace that ends with the child. Where nobody
may have one, the system refuses in other ways: files may not grow further, and the child gives up
its rights in a folder that it does not own.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOM_BYTES = 256 * 1024

_FULL = 'mount -t tmpfs -o size=256k tmpfs "$0"'
_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"'
_LESS_ROOM = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({ROOM_BYTES}, {ROOM_BYTES}))
"""
_LESS_RIGHTS = """
import os
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""


def may_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run([*_own_mounts(), "sh", "-c", _FULL, folder], capture_output=True)
    return tried.returncode == 0


def run_on_full_disk(program: str, folder: Path, *, with_mount: bool) -> str:
    """`program` finds its folder in `sys.argv[1]`, with ROOM_BYTES of room; what it prints."""
    return _run(program, folder, _FULL if with_mount else "", "" if with_mount else _LESS_ROOM)


def run_on_read_only_disk(program: str, folder: Path, *, with_mount: bool) -> str:
    """`program` finds its folder, with what is in it, in `sys.argv[1]`; what it prints."""
    if with_mount:
        return _run(program, folder, _READ_ONLY, "")
    with tempfile.TemporaryDirectory() as public:  # the way to pytest's own folders is closed
        os.chmod(public, 0o755)
        copy = Path(public, "lake")
        subprocess.run(["cp", "-a", str(folder), str(copy)], check=True)
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            return _run(program, copy, "", _LESS_RIGHTS)
        finally:
            for path in (copy, *copy.rglob("*")):
                path.chmod(0o755)


def _run(program: str, folder: Path, mount: str, limits: str) -> str:
    child = [sys.executable, "-c", _IMPORTS + limits + program, str(folder)]
    command = child
    if mount:
        command = [
            *_own_mounts(),
            "sh",
            "-c",
            f'{mount} && exec "$@"',
            str(folder),
            *child,
        ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _own_mounts() -> list[str]:
    return ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--mount"]


# Before the rights are given up: the sources may be out of reach afterwards.
_IMPORTS = """
import sys
from headgate.ambient import SystemAmbient
from headgate.errors import HeadgateError, Unavailable
from headgate.lake import FileFacts, LakeSettings
from headgate.lake.local import LocalLake
from headgate.lake.opening import open_lake

def told(call, *args):
    try:
        call(*args)
    except HeadgateError as error:
        print(type(error).__name__, str(error))
    else:
        print("done")
"""
