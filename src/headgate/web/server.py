"""Server: the socket behind the page. One thread a connection, one connection a request.

It listens on localhost unless it is told otherwise: there is no password, and whoever reaches it
may read everything that `headgate status` shows.
"""

import logging
import socket
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from headgate.errors import Invalid
from headgate.web.answers import Request, Site

log = logging.getLogger(__name__)

REQUEST_WITHIN_S = 10  # a client that is silent for so long is dropped


class PageServer(ThreadingHTTPServer):
    daemon_threads = True  # nobody waits for a slow reader at the end

    def __init__(self, host: str, port: int, site: Site) -> None:
        """Raises Invalid."""
        self.site = site
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise Invalid(
                f"cannot listen on {host}, port {port}: {error}; next: headgate web --port 0 takes "
                "any free port"
            ) from error

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer would ask the name server for this machine's name
        self.server_name, self.server_port = map_address(self.server_address)

    @property
    def url(self) -> str:
        host = f"[{self.server_name}]" if ":" in self.server_name else self.server_name
        return f"http://{host}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        if isinstance(sys.exception(), OSError):  # it went away in the middle
            log.debug("web.client_gone", exc_info=True)
            return
        super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_WITHIN_S
    server: PageServer

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Every method, known or not, gets its answer from the site."""
        if name.startswith("do_"):
            return self._respond
        raise AttributeError(name)

    def _respond(self) -> None:
        hosts = self.headers.get_all("Host") or ()
        found = self.server.site.answer(Request(self.command, self.path, tuple(hosts)))
        self.send_response(found.status)
        for name, value in found.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if found.is_body_wanted:
            self.wfile.write(found.body)

    def version_string(self) -> str:
        return "headgate"

    def log_message(self, format: str, *args: Any) -> None:
        log.debug("web.request said=%r", format % args)


def map_address(address: Any) -> tuple[str, int]:
    """Of a bound socket, with or without what IPv6 adds."""
    return str(address[0]), int(address[1])
