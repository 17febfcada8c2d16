"""Meddler: a reverse proxy in front of an HTTP server that does to requests what a test asks for.

with Meddler(server.address) as between:
    between.act = lambda request: between.refuse(503) if request.method == "PUT" else None
    ...

An act is called for each request, before it is passed on; what it returns is answered instead, and
None lets it pass. `after` is called once the server has answered, before its answer is: raising
`Lost` there loses it. All requests are counted.
"""

import http.client
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


class Lost(Exception):
    """The answer does not reach who asked."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str  # as it was sent, with its query
    body: bytes

    @property
    def is_copy_part(self) -> bool:
        return self.method == "PUT" and "uploadId=" in self.path

    @property
    def is_completion(self) -> bool:
        return self.method == "POST" and "uploadId=" in self.path

    @property
    def is_deletion(self) -> bool:
        return self.method == "POST" and self.path.endswith("?delete=")


@dataclass(frozen=True, slots=True)
class Instead:
    status: int
    body: bytes


Act = Callable[[Request], Instead | None]


class Meddler:
    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.act: Act = lambda _: None
        self.after: Callable[[Request], None] = lambda _: None
        self.seen: Counter[str] = Counter()  # by method
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def heal(self) -> None:
        self.act, self.after = lambda _: None, lambda _: None

    @staticmethod
    def refuse(status: int, code: str = "SlowDown") -> Instead:
        said = f"<Error><Code>{code}</Code><Message>by the test</Message></Error>"
        return Instead(status, said.encode())


def _handler(meddler: Meddler) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, body)
            meddler.seen[self.command] += 1
            instead = meddler.act(request)
            if instead is not None:
                self._send(instead.status, instead.body, {})
                return
            # The same host: it is signed.
            connection = http.client.HTTPConnection(meddler.upstream, timeout=60)
            try:
                headers = dict(self.headers.items())
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException):
                self.close_connection = True
                return
            finally:
                connection.close()
            try:
                meddler.after(request)
            except Lost:
                self.close_connection = True
                return
            self._send(answer.status, content, dict(answer.getheaders()))

        def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            length = headers.get("Content-Length", "") if self.command == "HEAD" else ""
            for name, value in headers.items():
                if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length or str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: what matters is what the client is told."""

    return Handler
