"""Child process: a real server started on this machine, stopped exactly, never left behind.

    new ── start ──▶ running ◀── pause, resume ──▶ paused
                      │  ▲                          │
                      │  └── start ── stopped ◀── stop, kill

A child dies with the Python process that started it, even if that one is killed with -9 and even
if the child is paused. Its output goes to one log file over all its starts.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

STOP_WITHIN_S = 10
LOOK_EVERY_S = 0.05
TAIL_BYTES_MAX = 64_000

# Below Linux's range for outgoing connections: there, a client that keeps knocking at a dead
# server's port is in time given that very port, connects to itself, and blocks the restart.
PORTS = range(20_000, 32_000)

# Becomes the given command, after asking the kernel for SIGKILL when the parent dies. Not a
# preexec_fn: that runs Python between fork and exec, which is unsafe (and warned about since
# 3.12) once the parent has threads.
LAUNCHER = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""

# The kernel means the parent *thread*: children started by a thread that ends would end with it.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="servers")
_given_ports: set[int] = set()


class ServerFailed(Exception):
    """A server did not do what was asked of it; the message ends in the tail of its log."""


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on, each given out once per process."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(found) == count:
            return found
        if port in _given_ports:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given_ports.add(port)
        found.append(port)
    raise ServerFailed(f"no free ports on 127.0.0.1 between {PORTS.start} and {PORTS.stop}")


def bound_to_this_process(command: Sequence[str]) -> list[str]:
    """The same command, killed by the kernel when this process dies."""
    return [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()), *command]


def java(heap: str, classpath: Sequence[str | Path], *arguments: str) -> list[str]:
    """A JVM that starts fast and small: tests wait for its start more often than for its speed."""
    home = os.environ.get("JAVA_HOME")
    return [
        str(Path(home, "bin", "java")) if home else "java",
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.apache.logging.log4j.level=INFO",
        "-cp",
        os.pathsep.join(map(str, classpath)),
        *arguments,
    ]


class ChildProcess:
    """One server process. Stopping twice is fine, and so is stopping what died by itself."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = log
        self.is_paused = False
        self._command = list(command)
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Paused counts as running."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Raises ServerFailed while there is no process."""
        if self._process is None or self._process.poll() is not None:
            raise ServerFailed(f"{self.name} is not running\n{self.log_tail()}")
        return self._process.pid

    def start(self) -> None:
        """Returns at once; does nothing while it runs. Ready is what wait_until() finds out."""
        if self.is_running:
            return
        with self.log.open("ab") as log:
            self._process = _starter.submit(
                subprocess.Popen[bytes],
                bound_to_this_process(self._command),
                stdin=subprocess.PIPE,  # closes with us: the sign to end where there is no prctl
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._env,
                start_new_session=True,  # Ctrl-C is for pytest; it stops the servers in order
            ).result()
        self.is_paused = False

    def signal_stop(self) -> None:
        """Ask it to end, without waiting: for stopping several at once."""
        self.resume()
        self._send(signal.SIGTERM)

    def stop(self) -> None:
        self.signal_stop()
        try:
            self._wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """kill -9, and wait until it is gone. Works on a paused one, too."""
        self._send(signal.SIGKILL)
        self._wait(STOP_WITHIN_S)
        self.is_paused = False

    def pause(self) -> None:
        """Stops the clock for it: no answer, no heartbeat, connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        self._send(signal.SIGCONT)
        self.is_paused = False

    def tell(self, line: str) -> None:
        """On its standard input. Raises ServerFailed while there is no process."""
        if self._process is None or self._process.stdin is None or not self.is_running:
            raise ServerFailed(f"{self.name} is not running\n{self.log_tail()}")
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def log_tail(self, lines: int = 30) -> str:
        if not self.log.exists():
            return f"({self.log} was never written)"
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - TAIL_BYTES_MAX))
            text = log.read().decode(errors="replace")
        return f"--- {self.log}\n" + "\n".join(text.splitlines()[-lines:])

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)  # does nothing once it has ended

    def _wait(self, within_s: float) -> None:
        if self._process is not None:
            self._process.wait(within_s)
            if self._process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    self._process.stdin.close()


def wait_until(
    is_ready: Callable[[], bool], what: str, within_s: float, children: Sequence[ChildProcess] = ()
) -> None:
    """Raises ServerFailed when a child ends meanwhile, or nothing is ready within the time."""
    give_up_at_s = time.monotonic() + within_s
    while not is_ready():
        dead = [child.name for child in children if not child.is_running]
        if not dead and time.monotonic() < give_up_at_s:
            time.sleep(LOOK_EVERY_S)
            continue
        reason = f"{', '.join(dead)} ended" if dead else f"it did not happen in {within_s:g} s"
        tails = "\n".join(child.log_tail() for child in children)
        raise ServerFailed(f"waited for {what}, but {reason}\n{tails}")


def stop_all(children: Sequence[ChildProcess]) -> None:
    for child in children:
        child.signal_stop()
    for child in children:
        child.stop()


@contextlib.contextmanager
def working_folder(name: str, given: Path | None) -> Iterator[Path]:
    """A given folder is the caller's to keep; one of our own is removed unless something failed."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix=f"headgate-{name}-"))
    try:
        yield folder
    except BaseException:
        print(f"{name}: logs and data are kept in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder, ignore_errors=True)
