"""Answers: from a request to an answer. Pure, but for the look.

GET and HEAD only. The Host header must be an address, `localhost` or the name that the page was
started with: another site's name that was made to lead here (DNS rebinding) is refused, because its
scripts could read the answer. The browser may fetch from here and from nowhere else.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from headgate.errors import Invalid, Unavailable
from headgate.periods import Period
from headgate.store import JsonObject

STATE = "/state.json"
ASSETS = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
TEXT, JSON = "text/plain; charset=utf-8", "application/json"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str  # path and query, as they came
    hosts: Sequence[str]  # every Host header


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    kind: str
    body: bytes
    is_body_wanted: bool = True

    @property
    def headers(self) -> dict[str, str]:
        found = {"Content-Type": self.kind, "Content-Length": str(len(self.body)), **HEADERS}
        return found | ({"Allow": "GET, HEAD"} if self.status == 405 else {})


@dataclass(frozen=True, slots=True)
class Site:
    """`state` is asked with the last hour of the map, or None; raises Unavailable, Invalid."""

    name: str  # that the page was started with
    state: Callable[[Period | None], JsonObject]
    away: Callable[[str], JsonObject]

    def answer(self, request: Request) -> Answer:
        found = self._answer(request)
        is_head = request.method == "HEAD"
        return Answer(found.status, found.kind, found.body, is_body_wanted=not is_head)

    def _answer(self, request: Request) -> Answer:
        if not is_welcome(request.hosts, self.name):
            return _said(403, "refused: this page answers to localhost and to addresses only")
        if request.method not in ("GET", "HEAD"):
            return _said(405, "refused: this page changes nothing, so there is only GET and HEAD")
        try:
            asked = urlsplit(request.target)
        except ValueError:
            return _said(400, "invalid: this is no path")
        if asked.path == STATE:
            return self._state(asked.query)
        if asked.path not in ASSETS:
            return _said(404, f"there is no such page; next: / or {STATE}")
        name, kind = ASSETS[asked.path]
        return Answer(200, kind, files("headgate.web").joinpath("assets", name).read_bytes())

    def _state(self, query: str) -> Answer:
        until = parse_qs(query).get("until", [""])[-1]
        try:
            last = Period.parse(until) if until else None
            if last is not None and last.kind == "day":
                last = last.hours()[-1]
            return _json(200, self.state(last))
        except Invalid as error:
            return _said(400, f"invalid: {error}")
        except Unavailable as error:
            return _json(503, self.away(f"unavailable: {error}"))


def is_welcome(hosts: Sequence[str], name: str) -> bool:
    """Whichever the port: a tunnel may have another."""
    if len(hosts) != 1:
        return False
    try:
        host = urlsplit(f"//{hosts[0]}").hostname or ""
    except ValueError:
        return False
    if host in ("localhost", name.lower()):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True  # nobody can make an address lead elsewhere


def _said(status: int, words: str) -> Answer:
    return Answer(status, TEXT, f"{words}\n".encode())


def _json(status: int, body: JsonObject) -> Answer:
    return Answer(status, JSON, json.dumps(body, allow_nan=False).encode())
