"""What a request is answered with: headers, methods, hosts, and names that look like markup."""

import json
import re
from typing import Any

import pytest

from headgate.errors import Invalid, Unavailable
from headgate.periods import Period
from headgate.store import JsonObject
from headgate.web.answers import ASSETS, STATE, Answer, Request, Site, is_welcome

HOSTILE = "</script><script>alert(1)</script>\u2028"
LOCAL = ("127.0.0.1:8080",)


class Told:
    """A state that can be away; it remembers what it was asked for."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[Period | None] = []

    def __call__(self, until: Period | None) -> JsonObject:
        self.asked.append(until)
        if self.error is not None:
            raise self.error
        return {"name": HOSTILE}


def site(told: Told | None = None, name: str = "127.0.0.1") -> Site:
    return Site(name, told or Told(), lambda words: {"words": words})


def get(target: str, told: Told | None = None, method: str = "GET") -> Answer:
    return site(told).answer(Request(method, target, LOCAL))


def body(answer: Answer) -> Any:
    return json.loads(answer.body)


@pytest.mark.parametrize("path", [*ASSETS, STATE, "/nothing"])
def test_every_answer_forbids_all_that_the_page_does_not_need(path: str) -> None:
    headers = get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers[POLICY].split(";"))
    assert policy["default-src"] == "'none'"
    assert {policy[f"{kind}-src"] for kind in ("script", "style", "connect", "img")} == {"'self'"}
    assert policy["frame-ancestors"] == "'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers


POLICY = "Content-Security-Policy"


def test_the_page_names_no_other_host_and_has_no_script_or_style_inside() -> None:
    for path in ASSETS:
        text = get(path).body.decode()
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text), path
    page = get("/").body.decode()
    assert not re.findall(r"<style| style=| on[a-z]+=|<script(?! src=\"/page\.js\")", page)
    script = get("/page.js").body.decode()
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)


def test_a_name_that_looks_like_markup_comes_as_json_and_nothing_else() -> None:
    answer = get(STATE)
    assert answer.headers["Content-Type"] == "application/json"
    assert body(answer) == {"name": HOSTILE}
    assert answer.body.isascii()


def test_head_has_the_headers_of_get_and_no_body() -> None:
    told = get("/", method="HEAD")
    assert told.headers == get("/").headers
    assert not told.is_body_wanted


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get", "X"])
def test_whatever_could_change_something_is_refused(method: str) -> None:
    told = Told()
    answer = get(STATE, told, method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert told.asked == []


@pytest.mark.parametrize(
    "hosts",
    [
        (),
        ("",),
        ("evil.example",),
        ("localhost.evil.example",),
        ("127.0.0.1.evil.example:8080",),
        ("[::1",),
        ("localhost", "evil.example"),
        ("evil.example#localhost",),
    ],
)
def test_a_host_that_a_stranger_can_name_is_refused_before_anything_is_read(
    hosts: tuple[str, ...],
) -> None:
    told = Told()
    assert site(told).answer(Request("GET", STATE, hosts)).status == 403
    assert told.asked == []


@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost:9", "127.0.0.1:8080", "[::1]:80", "10.0.0.7", "box.lan:8080"]
)
def test_addresses_and_the_name_it_was_started_with_are_welcome(host: str) -> None:
    assert is_welcome((host,), "box.LAN")


def test_a_store_that_is_away_is_an_answer() -> None:
    answer = get(STATE, Told(Unavailable("nobody answers")))
    assert answer.status == 503
    assert body(answer) == {"words": "unavailable: nobody answers"}


def test_the_last_hour_can_be_chosen() -> None:
    told = Told()
    for asked in ("", "?until=", "?until=2026-11-01T13", "?until=2026-11-01"):
        assert get(f"{STATE}{asked}", told).status == 200
    hours = [Period.parse("2026-11-01T13"), Period.parse("2026-11-01T23")]
    assert told.asked == [None, None, *hours]


@pytest.mark.parametrize("until", ["x", "2026-11-31", "2026-11-01T24", "%00"])
def test_an_hour_that_is_none_is_refused_with_words(until: str) -> None:
    answer = get(f"{STATE}?until={until}")
    assert (answer.status, answer.body[:9]) == (400, b"invalid: ")


def test_a_window_that_is_refused_is_no_crash() -> None:
    assert get(f"{STATE}?until=0001-01-01T00", Told(Invalid("too early"))).status == 400


@pytest.mark.parametrize("target", ["/x", "/../headgate.yaml", "/page.html", "*", "//[", ""])
def test_there_is_nothing_else(target: str) -> None:
    assert get(target).status in (400, 404)
