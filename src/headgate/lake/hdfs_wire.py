"""Hdfs wire: calls to HDFS, each of which ends, and what an answer that is none means.

    answered yes   the value
    answered no    Refused: nothing was done (Absent, Taken: the two that callers act on)
    no answer      NoAnswer: it may have been done, or may be done later

Measured with hdfs-native 0.14.7 and a name node 3.5.0:
- A connection that breaks before the answer to a `rename` came is told as an error, and the rename
  is not sent again. So a no is the answer to the one request that was made.
- A server that is silent is waited for without end: so there is a limit here. The client is then
  given up with its connection; what it has sent may still arrive.
- For a server that cannot be reached it tries for 15 s; told to try once, for half a second.
- Its asynchronous client panics where it would pause before it tries again (`no reactor running`).
  So the other one is called, each call in a thread of its own, which is left behind if nobody
  answers: it would not come back for minutes, and no program may wait for it before it ends.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from hdfs_native import Client, FileReader, FileStatus, FileWriter, WriteOptions

__all__ = [  # the door to hdfs-native, for the other files of this lake
    "Absent",
    "FileReader",
    "FileStatus",
    "FileWriter",
    "NoAnswer",
    "Refused",
    "Taken",
    "Wire",
    "WriteOptions",
]

T = TypeVar("T")

_RPC: Final = re.compile(r'(?:Fatal)?RPCError\("([^"]*)", "(.*)', re.DOTALL)
_ONCE: Final = {"dfs.client.failover.max.attempts": "1"}


class Refused(Exception):
    """The server said no: nothing was done."""

    def __init__(self, said: str, kind: str = "") -> None:
        super().__init__(said)
        self.said = said
        self.kind = kind  # of Java: the last part of the name of its class


class Absent(Refused):
    """There is no such file or folder."""


class Taken(Refused):
    """Something is there already, or somebody is writing it."""


class NoAnswer(Exception):
    """Nobody knows whether it was done."""


class Wire:
    """To one name node, or to those of one name service. Several threads may call."""

    def __init__(self, url: str, *, is_one_host: bool, answer_within_ms: int) -> None:
        """Raises NoAnswer: the address leads nowhere."""
        self._url = url
        self._config = dict(_ONCE) if is_one_host else {}
        self._within_ms = answer_within_ms
        self._client = self._opened()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Not to be called where an event loop runs."""
        return asyncio.run(work)

    async def ask(self, call: Callable[[Client], T]) -> T:
        """Raises Refused, NoAnswer."""
        client = self._client
        try:
            answer = asyncio.wrap_future(_begun(call, client))
            return await asyncio.wait_for(answer, self._within_ms / 1_000)
        except TimeoutError:
            if self._client is client:
                self._client = self._opened()  # that connection is dead, and says so to nobody
            raise NoAnswer(f"no answer within {self._within_ms:,} ms") from None
        except FileNotFoundError as error:
            raise Absent(_first_line(str(error))) from error
        except FileExistsError as error:
            raise Taken(_first_line(str(error))) from error
        except (OSError, RuntimeError, NotImplementedError) as error:
            matched = _RPC.match(str(error))
            if matched is None:
                raise NoAnswer(_first_line(str(error))) from error
            raise Refused(_first_line(matched[2]), matched[1].rpartition(".")[2]) from error

    def _opened(self) -> Client:
        try:
            return Client(self._url, self._config)
        except (OSError, RuntimeError) as error:
            raise NoAnswer(f"{self._url}: {_first_line(str(error))}") from error


def _begun(call: Callable[[Client], T], client: Client) -> "Future[T]":
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from now on nobody can call it off

    def work() -> None:
        try:
            future.set_result(call(client))
        except BaseException as error:  # noqa: BLE001 - for whoever waits, a panic of Rust included
            future.set_exception(error)

    # A daemon: an executor's threads are waited for when the program ends.
    threading.Thread(target=work, name="hdfs", daemon=True).start()  # noqa: TID251 - see above
    return future


def _first_line(text: str) -> str:
    """Without the stack of the server."""
    return text.partition("\n")[0].partition("\\n")[0].strip()
