"""A schema registry: the one call that is asked of it, and the ways in which it may fail.

GET /schemas/ids/{id}     the schema, or 404 with the code 40403
"""

import base64
import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.servers.process import free_ports


class RegistryServer:
    """Keeps its port over stop and start."""

    def __init__(self) -> None:
        (self._port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self._port}"
        self.schemas: dict[int, dict[str, Any]] = {}
        self.asked: list[int] = []
        self.password = ""  # of the user `reader`
        self.slow_s = 0.0  # before each answer
        self.answer: tuple[int, bytes] | None = None  # instead of the right one
        self._server: ThreadingHTTPServer | None = None

    def register(self, number: int, schema: object, **more: object) -> None:
        self.schemas[number] = {"schema": json.dumps(schema), **more}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                time.sleep(registry.slow_s)
                status, body = registry.answered(self.path, self.headers.get("Authorization", ""))
                with suppress(OSError):  # who waits no more has hung up
                    self.tell(status, body)

            def tell(self, status: int, body: bytes) -> None:
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{registry.url}/schemas/ids/1")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Not to stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def answered(self, path: str, who: str) -> tuple[int, bytes]:
        if self.answer is not None:
            return self.answer
        wanted = base64.b64encode(f"reader:{self.password}".encode()).decode()
        if self.password and who != f"Basic {wanted}":
            return 401, b'{"error_code":40101,"message":"Unauthorized"}'
        start, _, number = path.rpartition("/")
        if start != "/schemas/ids" or not number.isdecimal():
            return 404, b"<html>there is nothing here</html>"
        self.asked.append(int(number))
        found = self.schemas.get(int(number))
        if found is None:
            return 404, b'{"error_code":40403,"message":"Schema not found"}'
        return 200, json.dumps(found).encode()
