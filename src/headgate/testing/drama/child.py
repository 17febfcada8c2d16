"""Child: a node as a child process, and its log read as events.

    starting ── joined ──▶ running ── kill -9 ──▶ killed
                            │  ▲ ╲── asked to stop ──▶ ended
                     SIGSTOP│  │joined again
                            ▼  │
                          paused ── SIGCONT ──▶ woken

It ends with its parent, however that ends, where the kernel can see to it (Linux).
"""

import ctypes
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

State: TypeAlias = Literal["starting", "running", "killed", "paused", "woken", "ended"]

PAUSE_TRIES_MAX = 50
STOPPED_S = 0.05  # until all its threads stand still
_EVENT = re.compile(r"\S+Z \w+ ([a-z_]+\.[a-z_.]+)(.*)")
_FIELD = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|\S*)')
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Event:
    node: str
    name: str
    fields: Mapping[str, str]


class Child:
    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.state: State = "starting"
        self.number = ""  # of its last session, as the next
        self.session = ""
        self.log = log
        with log.open("wb") as errors:
            self._popen = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for the parent, which then ends its children
                preexec_fn=_ender(os.getpid()),
            )
        self._file = log.open("rb")
        self._rest = b""  # of a line that is still being written

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def is_there(self) -> bool:
        return self._popen.poll() is None

    @property
    def code(self) -> int | None:
        return self._popen.poll()

    def kill(self) -> None:
        if self.is_there:
            self.state = "killed"
            self._popen.kill()
        self._popen.wait()

    def freeze(self) -> None:
        """For a moment: its state does not change."""
        self._popen.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._popen.send_signal(signal.SIGCONT)

    def pause(self, is_harmless: Callable[[], bool]) -> bool:
        """Stops it in a moment that is harmless for others; False: there was none."""
        for _ in range(PAUSE_TRIES_MAX):
            self._popen.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED_S)
            if is_harmless():
                self.state = "paused"
                return True
            self._popen.send_signal(signal.SIGCONT)
            time.sleep(STOPPED_S)
        return False

    def wake(self) -> None:
        self.state = "woken"
        self._popen.send_signal(signal.SIGCONT)

    def ask_to_stop(self) -> None:
        self._popen.send_signal(signal.SIGTERM)  # does nothing once it has ended

    def await_end(self, timeout_s: float) -> bool:
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        if self.state != "killed":
            self.state = "ended"
        return True

    def read(self) -> list[Event]:
        """Since the last call."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        events = [
            event
            for line in lines
            if (event := event_of(self.name, line.decode("utf-8", "replace"))) is not None
        ]
        for event in events:
            if event.name == "member.joined":
                self.number, self.session = event.fields["number"], event.fields["session"]
                if self.state in ("starting", "woken"):
                    self.state = "running"
        return events

    def close(self) -> None:
        self.kill()
        self._file.close()


def event_of(node: str, line: str) -> Event | None:
    """An event of the log; None: talk."""
    found = _EVENT.fullmatch(line)
    if found is None:
        return None
    fields = {
        name: json.loads(value) if value.startswith('"') else value
        for name, value in _FIELD.findall(found[2])
    }
    return Event(node, found[1], fields)


def _ender(parent: int) -> Callable[[], None] | None:
    """Makes the kernel kill a child whose parent ends: a paused one could not do it itself."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return None

    def end_with_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was faster
            os._exit(1)

    return end_with_parent
