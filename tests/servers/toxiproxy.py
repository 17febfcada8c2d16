"""Toxiproxy: a network between Headgate and a server that fails on demand.

with Toxiproxy() as network:
    wire = network.proxy(ensemble.hosts)  # connect to wire.address instead
    with wire.lose_replies():
        ...
    # healed here
"""

import json
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.servers.fetch import fetched
from tests.servers.process import ChildProcess, free_ports, stop_all, wait_until, working_folder

READY_WITHIN_S = 20
ANSWER_WITHIN_S = 5


@dataclass(frozen=True, slots=True)
class Fault:
    """In force since it was asked for; as a context manager it is healed at the end."""

    proxy: "Proxy"

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.proxy.heal()


class Proxy:
    """One address that leads to one server. Faults add up until heal()."""

    def __init__(self, network: "Toxiproxy", name: str, address: str, upstream: str) -> None:
        self.name = name
        self.address = address
        self.upstream = upstream
        self._network = network
        self._toxics: set[str] = set()

    def cut(self) -> Fault:
        """Open connections break, new ones are refused."""
        self._enable(False)
        return Fault(self)

    def slow(self, latency_ms: int) -> Fault:
        """Every answer comes that much later; connections live on through it and its healing."""
        return self._add("latency", {"latency": latency_ms})

    def lose_replies(self) -> Fault:
        """Requests arrive and are carried out, answers never come. Healing breaks connections."""
        return self._add("timeout", {"timeout": 0})

    def reset_peer(self) -> Fault:
        """As soon as an answer comes: new connections are reset, those already open closed."""
        return self._add("reset_peer", {"timeout": 0})

    def heal(self) -> None:
        """All faults off. Does nothing to a healthy one."""
        if "timeout" in self._toxics:
            self._enable(False)  # half an answer may be lost: nobody must read the other half
        for kind in self._toxics:
            self._network.call("DELETE", f"/proxies/{self.name}/toxics/{kind}")
        self._toxics.clear()
        self._enable(True)

    def close(self) -> None:
        """Gone for good, with its connections."""
        self._network.call("DELETE", f"/proxies/{self.name}")

    def _enable(self, is_enabled: bool) -> None:
        self._network.call("POST", f"/proxies/{self.name}", {"enabled": is_enabled})

    def _add(self, kind: str, attributes: dict[str, int]) -> Fault:
        # On the way down: what the server answers. Requests always pass.
        toxic = {"name": kind, "type": kind, "stream": "downstream", "attributes": attributes}
        existing = f"/{kind}" if kind in self._toxics else ""  # once more: with new attributes
        self._network.call("POST", f"/proxies/{self.name}/toxics{existing}", toxic)
        self._toxics.add(kind)
        return Fault(self)


class Toxiproxy:
    """The server behind all proxies of a test run; it and they end together."""

    def __init__(self, *, folder: Path | None = None) -> None:
        self.port = free_ports(1)[0]
        self._given_folder = folder
        self._exits = ExitStack()
        self._made = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exits.__exit__(kind, error, traceback)

    def start(self) -> None:
        """Raises ServerFailed, with everything stopped again."""
        with ExitStack() as exits:
            folder = exits.enter_context(working_folder("toxiproxy", self._given_folder))
            program = fetched("toxiproxy") / "server"
            command = [str(program), "-host", "127.0.0.1", "-port", str(self.port)]
            child = ChildProcess("toxiproxy", command, folder / "server.log")
            exits.callback(stop_all, [child])
            child.start()
            wait_until(self._answers, "toxiproxy", READY_WITHIN_S, [child])
            self._exits = exits.pop_all()

    def stop(self) -> None:
        self._exits.close()

    def proxy(self, upstream: str) -> Proxy:
        """A new address for `host:port`."""
        self._made += 1
        name, address = f"wire-{self._made}", f"127.0.0.1:{free_ports(1)[0]}"
        body = {"name": name, "listen": address, "upstream": upstream, "enabled": True}
        self.call("POST", "/proxies", body)
        return Proxy(self, name, address, upstream)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One request to toxiproxy's own API. Raises OSError."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
        )
        with urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S) as answer:
            raw = answer.read()
        return json.loads(raw) if raw else None

    def _answers(self) -> bool:
        try:
            self.call("GET", "/version")
        except (OSError, ValueError):
            return False
        return True
