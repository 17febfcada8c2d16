"""What the lake contract needs beside each lake: careless hands, power cuts, outages."""

import base64
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from headgate.ambient import SystemAmbient
from headgate.lake import FileFacts, Lake, LakeSettings, folders, moves, syscalls
from headgate.lake.memory import MemoryLake
from headgate.lake.opening import open_lake
from tests.servers.s3 import S3Server
from tests.servers.toxiproxy import Proxy


def sha256_facts(content: bytes) -> FileFacts:
    return FileFacts(len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")


class MemoryLakeHarness:
    has_modes, folder_mode, is_lasting = True, 0o2750, False

    def __init__(self) -> None:
        self._lake = MemoryLake()

    def facts_of(self, content: bytes) -> FileFacts:
        return sha256_facts(content)

    def open(self, *, file_mode: int | None = None, folder_mode: int | None = None) -> Lake:
        if file_mode is not None:
            self._lake = MemoryLake(LakeSettings("memory", file_mode, folder_mode))
        return self._lake

    def put(self, path: str, content: bytes) -> None:
        self._lake.put(path, content)

    def files(self) -> Mapping[str, bytes]:
        return self._lake.files()

    def ways_out(self) -> Sequence[str]:
        return ["../x"]  # there are no links

    def mode_of(self, path: str) -> int:
        return self._lake.mode_of(path)

    def power_cut(self) -> None:
        self._lake.power_cut()

    @contextmanager
    def outage(self, name: str) -> Iterator[None]:
        self._lake.refuses = name
        yield
        self._lake.refuses = ""


class LocalLakeHarness:
    """`without` names the calls of Linux that this file system is to lack."""

    has_modes, folder_mode, is_lasting = True, 0o2750, False

    def __init__(self, folder: Path, without: Sequence[str] = ()) -> None:
        self._root = folder / "lake"
        self._root.mkdir()
        self._outside = folder / "outside"
        self._stack = ExitStack()
        self._power = self._stack.enter_context(PowerSupply(self._root))
        if "renameat2" in without:
            for module in (folders, moves):
                self._stack.enter_context(patch.object(module, "rename_new", lambda *_: False))
        if "openat2" in without:
            self._stack.enter_context(patch.object(syscalls, "_has_openat2", lambda: False))

    def close(self) -> None:
        self._stack.close()

    def open(self, *, file_mode: int | None = None, folder_mode: int | None = None) -> Lake:
        settings = LakeSettings(str(self._root), file_mode, folder_mode)
        return open_lake(settings, SystemAmbient())

    def facts_of(self, content: bytes) -> FileFacts:
        return sha256_facts(content)

    def put(self, path: str, content: bytes) -> None:
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("r+b" if file.exists() else "wb") as opened:
            opened.write(content)
            opened.truncate()

    def files(self) -> Mapping[str, bytes]:
        found = sorted(path for path in self._root.rglob("*") if not path.is_dir())
        return {
            str(path.relative_to(self._root)): os.readlink(path).encode()
            if path.is_symlink()
            else path.read_bytes()
            for path in found
        }

    def ways_out(self) -> Sequence[str]:
        self._outside.mkdir()
        (self._outside / "f").write_bytes(b"not ours")
        staging = self._root / "_headgate/staging"
        staging.mkdir(parents=True)
        for folder in (self._root, staging):
            (folder / "link").symlink_to(self._outside)
            (folder / "file").symlink_to(self._outside / "f")
            (folder / "nowhere").symlink_to(self._outside / "nowhere")
        return ["link/f", "link/new", "_headgate/staging/link/f", "_headgate/staging/link/new/f"]

    def mode_of(self, path: str) -> int:
        return stat.S_IMODE((self._root / path).stat().st_mode)

    def power_cut(self) -> None:
        self._power.cut()

    @contextmanager
    def outage(self, name: str) -> Iterator[None]:
        """Refused by the operating system, at the first call that would change something."""
        number, calls = OUTAGES[name]
        with ExitStack() as stack:
            for module, call in calls:
                real = getattr(module, call)
                stack.enter_context(patch.object(module, call, _refusing(number, real)))
            yield


class S3LakeHarness:
    """A bucket of its own on the server, reached through a wire that can be cut."""

    has_modes, folder_mode, is_lasting = False, 0, True

    def __init__(self, server: S3Server, wire: Proxy) -> None:
        self._server = server
        self._wire = wire
        self._bucket = server.new_bucket()
        self._scratch = server.client(server.new_bucket())

    def open(self, *, file_mode: int | None = None, folder_mode: int | None = None) -> Lake:
        plain = self._server.lake(self._bucket, address=self._wire.address)
        settings = replace(plain, file_mode=file_mode, folder_mode=folder_mode)
        return open_lake(settings, SystemAmbient())

    def facts_of(self, content: bytes) -> FileFacts:
        """As the server tells who puts it there, somewhere else."""
        answer = self._scratch.ask("PUT", "f", body=content, is_repeatable=True)
        told = base64.b64decode(answer.headers["x-amz-checksum-crc64nvme"]).hex()
        return FileFacts(len(content), f"crc64nvme:{told}")

    def put(self, path: str, content: bytes) -> None:
        client = self._server.client(self._bucket)
        answer = client.ask("PUT", f"the-lake/{path}", body=content, is_repeatable=True)
        assert answer.is_good, answer

    def files(self) -> Mapping[str, bytes]:
        return self._server.contents(self._bucket)

    def ways_out(self) -> Sequence[str]:
        return ["../x"]  # there are no links

    def mode_of(self, path: str) -> int:
        raise AssertionError(f"{path}: there are no modes")

    def power_cut(self) -> None:
        self._server.child.kill()
        self._server.start()

    @contextmanager
    def outage(self, name: str) -> Iterator[None]:
        if name == "the network is cut":
            with self._wire.cut():
                yield
        elif name == "the bucket is gone":
            place = self._server.place(self._bucket)
            place.rename(place.with_name("elsewhere"))
            try:
                yield
            finally:
                place.with_name("elsewhere").rename(place)
        else:
            raise AssertionError(name)


S3_OUTAGES = ("the network is cut", "the bucket is gone")

OUTAGES: dict[str, tuple[int, Sequence[tuple[Any, str]]]] = {
    "the disk is full": (errno.ENOSPC, [(os, "write"), (os, "mkdir")]),
    "the quota is used up": (errno.EDQUOT, [(os, "open"), (os, "mkdir")]),
    "the disk is read-only": (errno.EROFS, [(os, "open"), (os, "mkdir"), (moves, "rename_new")]),
    "nobody may write": (errno.EACCES, [(os, "open"), (os, "mkdir")]),
    "the disk is gone": (errno.EIO, [(folders, "open_plain"), (os, "open")]),
}


def _refusing(number: int, real: Callable[..., Any]) -> Callable[..., Any]:
    def refused(*args: Any, **named: Any) -> Any:
        if real is os.open and not args[1] & (os.O_WRONLY | os.O_RDWR):
            return real(*args, **named)
        raise OSError(number, os.strerror(number))

    return refused


class PowerSupply:
    """Knows what was made to last: contents and folders, each as it was at its last fsync."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._held: list[int] = []  # so that no inode gets a second life
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "PowerSupply":
        self._note_all()
        real_fsync, real_sync = os.fsync, syscalls.sync_whole

        def fsync(handle: int) -> None:
            real_fsync(handle)
            self._note(os.open(f"/proc/self/fd/{handle}", os.O_RDONLY))

        def sync(handle: int) -> None:
            real_sync(handle)
            self._note_all()

        self._stack.enter_context(patch.object(os, "fsync", fsync))
        self._stack.enter_context(patch.object(syscalls, "sync_whole", sync))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        for handle in self._held:
            os.close(handle)

    def cut(self) -> None:
        root = self._root.stat().st_ino
        kept = {**self._names}
        for child in self._root.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
        self._restore(self._root, root, kept)
        self._note_all()

    def _restore(self, folder: Path, inode: int, kept: dict[int, dict[str, int]]) -> None:
        for name, below in kept[inode].items():
            if below in kept:
                (folder / name).mkdir()
                self._restore(folder / name, below, kept)
            else:
                (folder / name).write_bytes(self._contents.get(below, b""))

    def _note_all(self) -> None:
        for path in [self._root, *self._root.rglob("*")]:
            self._note(os.open(path, os.O_RDONLY))

    def _note(self, handle: int) -> None:
        self._held.append(handle)
        found = os.fstat(handle)
        if not stat.S_ISDIR(found.st_mode):
            self._contents[found.st_ino] = os.pread(handle, found.st_size, 0)
            return
        names = {}
        with os.scandir(handle) as listing:
            for entry in listing:
                names[entry.name] = entry.inode()
                if entry.is_dir(follow_symlinks=False):
                    self._names.setdefault(entry.inode(), {})  # made, and as yet empty
        self._names[found.st_ino] = names
