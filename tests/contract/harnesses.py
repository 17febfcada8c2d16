"""What the store contract needs of each backend beside the store: damage, outages, disturbances."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from headgate.ambient import Ambient, SystemAmbient
from headgate.store import DocumentStore
from headgate.store.file import STRIPES, FileStore
from headgate.store.memory import MemoryStore, Shelf
from headgate.store.names import parts


class MemoryHarness:
    def __init__(self) -> None:
        self._shelf = Shelf()

    def open(self, namespace: str, ambient: Ambient) -> DocumentStore:
        return MemoryStore(self._shelf, namespace, ambient)

    def damage(self, namespace: str, key: str) -> str:
        place = (namespace, *parts(key))
        raw, version = self._shelf.documents[place]
        self._shelf.documents[place] = (raw[: len(raw) // 2], version)
        return key

    @contextmanager
    def outage(self, name: str) -> Iterator[None]:
        assert name == "another thread holds it"
        is_over, is_held = threading.Event(), threading.Event()

        def hold() -> None:
            with self._shelf.changed:
                is_held.set()
                is_over.wait()

        holder = threading.Thread(target=hold, daemon=True)
        holder.start()
        is_held.wait()
        try:
            yield
        finally:
            is_over.set()
            holder.join()

    def disturbance(self, name: str) -> AbstractContextManager[None]:
        raise AssertionError(f"memory: has no disturbance {name}")


class FileHarness:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._namespaces: set[str] = set()

    def open(self, namespace: str, ambient: Ambient) -> DocumentStore:
        self._namespaces.add(namespace)
        return FileStore(self._folder, namespace, ambient)

    def damage(self, namespace: str, key: str) -> str:
        file = self._folder / namespace / f"{key}.json"
        content = bytearray(file.read_bytes())
        content[-5] ^= 1
        file.write_bytes(content)
        return str(file)

    @contextmanager
    def outage(self, name: str) -> Iterator[None]:
        start = {"a writer is stopped": self._stopped_writer, "the disk is full": self._full_disk}
        with ExitStack() as stack:
            for namespace in self._namespaces:
                stack.enter_context(start[name](self._folder / namespace))
            yield

    @contextmanager
    def _stopped_writer(self, root: Path) -> Iterator[None]:
        """As a process that was stopped in mid-write would: every stripe stays locked."""
        with ExitStack() as stack:
            for number in range(STRIPES):
                stripe = stack.enter_context((root / ".stripes" / f"{number:02x}").open("w"))
                fcntl.flock(stripe, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _full_disk(self, root: Path) -> Iterator[None]:
        """Whatever is written aside goes to a device that answers as a full disk does."""
        places = [root / ".writing" / f"{number:02x}" for number in range(STRIPES)]
        for place in places:
            place.unlink(missing_ok=True)
            place.symlink_to("/dev/full")
        try:
            yield
        finally:
            for place in places:
                place.unlink()

    @contextmanager
    def disturbance(self, name: str) -> Iterator[None]:
        """Processes that write to the same stripes die with -9, one after the other."""
        assert name == "writers are killed"
        (namespace,) = self._namespaces
        ambient = SystemAmbient()
        for _ in range(6):
            child = subprocess.Popen(
                [sys.executable, "-c", _VICTIM, str(self._folder), namespace],
                stdout=subprocess.PIPE,
            )
            assert child.stdout is not None
            child.stdout.readline()  # it is writing
            ambient.sleep_ms(30 * ambient.random())
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            child.stdout.close()
        yield


# Its own documents, in the same stripes as those of the tests: it dies with their locks in its hand
# and half a document aside.
_VICTIM = """
import sys
from pathlib import Path
from headgate.ambient import SystemAmbient
from headgate.store.file import STRIPES, FileStore, stripe_of

stripes = {stripe_of(key) for key in ("x", "y", "z", "tasks/1")}
keys = [key for key in (f"victim-{n}" for n in range(40 * STRIPES)) if stripe_of(key) in stripes]
store = FileStore(Path(sys.argv[1]), sys.argv[2], SystemAmbient())
body = {"format": 1, "filling": "x" * 300_000}
for n in range(100_000):
    key = keys[n % len(keys)]
    found = store.get(key)
    store.replace(key, body, found.version) if found else store.create(key, body)
    if n == 3:
        print("writing", flush=True)
"""
