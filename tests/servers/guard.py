"""Guard: TLS and a password in front of a real server that has neither.

Our OpenSearch comes without its security plugin. What a client must do (trust an authority, say who
it is, be refused) is the same here: a reverse proxy that lets through only who is known.
"""

import base64
import http.client
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

import trustme


class Guard:
    """`known` are the values of the Authorization header that may pass."""

    def __init__(self, upstream: str, known: set[str], folder: Path) -> None:
        authority = trustme.CA()
        self.ca = folder / "ca.pem"
        authority.cert_pem.write_to_path(str(self.ca))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(upstream, known))
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
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


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _handler(upstream: str, known: set[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") not in known:
                said = {"error": {"type": "security_exception", "reason": "who are you?"}}
                self._send(401, json.dumps({**said, "status": 401}).encode(), "application/json")
                return
            connection = http.client.HTTPConnection(upstream, timeout=60)
            kind = self.headers.get("Content-Type", "application/json")
            connection.request(self.command, self.path, body or None, {"Content-Type": kind})
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            self._send(answer.status, content, answer.getheader("Content-Type", ""))

        def _send(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: what matters is what the client is told."""

    return Handler
