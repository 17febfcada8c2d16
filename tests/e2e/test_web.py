"""The status page as people use it: the real command, over HTTP and in a real browser.

The world is made by hand, with the documents that nodes make, around the present hour.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from headgate.ambient import SystemAmbient
from headgate.apply.table_document import Halt, TableDocument, table_key
from headgate.backlog import Entry
from headgate.backlog.queue import entry_key
from headgate.cluster import Advert, Order
from headgate.cluster.picture import LEADER
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.rights import Right
from headgate.cluster.tasks import new_task, task_key
from headgate.commits.certificate import hold_path
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import RootDocument, Seat, place_of, root_key, root_name
from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.landing.kind import feed_name, kind_name
from headgate.landing.report import Report, report_key
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period
from headgate.store import DocumentStore
from headgate.store.changes import change
from headgate.store.codec import body_of
from headgate.store.registry import open_store
from tests.servers.chromium import Chromium, Page

HEADGATE = str(Path(sys.executable).with_name("headgate"))
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("HEADGATE")}
FOLDER = FolderTemplate.parse(DEFAULT_FOLDER)
ROOT = root_key(root_name(FOLDER))
LATENESS_MS = 600_000
PICTURE = "HEADGATE_PICTURE"  # where the picture of the documentation shall go, if anywhere

HOSTILE = "<script>alert(1)</script>"
ODD = "\"><img src=x onerror=alert(1)> 日本 &amp; 'é'"
TURNED = "\u202egnp.exe"  # settings refuse it; a store may have it


@dataclass(frozen=True, slots=True)
class Told:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.body)
        return told


class World:
    """A folder with settings and a store, and the page over it."""

    def __init__(self, folder: Path, streams: tuple[str, ...], tables: dict[str, str]) -> None:
        self.folder = folder
        stream = {
            "source": {"kind": "files", "path": "./incoming"},
            "event_time": {"json": "$.at"},
            "land_as": "parquet",
        }
        sources = {
            name: {**stream, "source": {"kind": "files", "path": f"./incoming/{number}"}}
            for number, name in enumerate(streams)
        }
        tree = {
            "store": "file:./state",
            "lake": "./lake",
            "streams": sources,
            "tables": {
                name: {"kind": "parquet", "feed": {"stream": of}, "path": f"./tables/{name}"}
                for name, of in tables.items()
            },
        }
        self.file = folder / "headgate.yaml"
        self.file.write_text(json.dumps(tree), "utf-8")
        self.ambient = SystemAmbient()
        self.now_ms = self.ambient.wall_ns() // 1_000_000
        self.this_ms = Period.hour_of(self.now_ms).start_ms
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def store(self) -> "closing[DocumentStore]":
        return closing(open_store(f"file:{self.folder / 'state'}", "default"))

    def put(self, key: str, value: object) -> None:
        with self.store() as store:
            store.create(key, body_of(value))

    def has_stream(
        self, name: str, *, reach_h: float, pause: Pause | None = None, **counts: int
    ) -> None:
        """Its watermark is so many hours before the present one's start."""
        first_ms = self.this_ms - 400 * HOUR_MS
        self.put(stream_key(name), StreamDocument(1, first_ms, paused=pause))
        mark_ms = self.this_ms - int(reach_h * HOUR_MS)
        checkpoint = Checkpoint(
            epoch=2,
            turn=2,
            number=310,
            positions={f"{name[:20]}-a.json": "812", f"{name[:20]}-b.json": "44"},
            watermarks={f"{name[:20]}-a.json": mark_ms, f"{name[:20]}-b.json": self.now_ms},
            counts=counts,
            committed_ms=self.now_ms - 4_000,
            discovered_ms=self.now_ms - 2_000,
        )
        self.put(checkpoint_key(name, 0), checkpoint)
        waits = int(reach_h * 3)
        report = Report("barge", 2, "waiting", waits, waits * 1_310_000, at_ms=self.now_ms)
        self.put(report_key(name, 0), report)

    def seat(self, first_h: int, frontier_h: int) -> Seat:
        first_ms = self.this_ms - first_h * HOUR_MS
        return Seat(None, first_ms, self.this_ms - frontier_h * HOUR_MS)

    def has_node(self, name: str, *streams: str) -> None:
        with self.store() as store:
            advert = Advert(name, 2, held_count=len(streams))
            # Nobody renews it: with a short term it would seem to be gone on a busy machine.
            presence = DocumentPresence(store, self.ambient, term_ms=600_000)
            presence.join(f"session-of-{name}", advert)
        for stream in streams:
            task = new_task(Order(kind_name(stream), b'{"shard": 0}'))
            held = replace(task, holder=f"session-of-{name}", epoch=2, since_ms=self.now_ms)
            self.put(task_key(feed_name(stream), 0), held)

    def start(self, *more: str) -> None:
        self._process = subprocess.Popen(
            [HEADGATE, "web", "--port", "0", *more],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        assert self._process.stdout is not None
        address = self._process.stdout.readline()
        if not address:
            pytest.fail(f"no address: {self._process.communicate()[1]}")
        self.port = int(address.rstrip("/\n").rpartition(":")[2])

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit code and talk; stopping twice is fine."""
        if self._process is None:
            return 0, ""
        process, self._process = self._process, None
        process.send_signal(number)
        try:
            talk = process.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            talk = process.communicate()[1]
        return process.returncode, talk

    def ask(self, path: str, method: str = "GET", **headers: str) -> Told:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as client:
            client.request(method, path, headers=headers)
            told = client.getresponse()
            return Told(told.status, dict(told.getheaders()), told.read())

    def everything(self) -> list[str]:
        return sorted(str(one.relative_to(self.folder)) for one in self.folder.rglob("*"))


@pytest.fixture
def exits() -> Iterator[ExitStack]:
    with ExitStack() as exits:
        yield exits


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.fixture
def plain(tmp_path: Path, exits: ExitStack) -> World:
    """Names that would be markup, one hour short."""
    world = World(tmp_path, (HOSTILE, ODD), {"<b>table": HOSTILE})
    for name in (HOSTILE, ODD, TURNED):
        world.has_stream(name, reach_h=1.5, data=12)
    seats = {HOSTILE: world.seat(30, 2), ODD: world.seat(10, 2)}
    world.put(ROOT, RootDocument(streams=seats))
    world.start()
    exits.callback(world.stop)
    return world


def test_the_page_and_its_parts_may_load_nothing_from_elsewhere(plain: World) -> None:
    for path in ("/", "/page.js", "/page.css", "/icon.svg", "/state.json"):
        told = plain.ask(path)
        assert told.status == 200, path
        policy = told.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert told.headers["X-Content-Type-Options"] == "nosniff"
        assert told.headers["Cache-Control"] == "no-store"
        head = plain.ask(path, "HEAD")
        assert (head.status, head.body) == (200, b"")
        assert head.headers["Content-Type"] == told.headers["Content-Type"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_there_is_nothing_to_change(plain: World, method: str) -> None:
    told = plain.ask("/state.json", method)
    assert told.status == 405
    assert told.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", "", "a b", "[::1"])
def test_a_name_that_was_made_to_lead_here_is_refused(plain: World, host: str) -> None:
    told = plain.ask("/state.json", Host=host)
    assert told.status == 403
    assert b"orders" not in told.body


def test_a_tunnel_with_another_port_is_welcome(plain: World) -> None:
    for host in ("localhost:9999", "127.0.0.1", "[::1]:8080", "LOCALHOST"):
        assert plain.ask("/state.json", Host=host).status == 200, host


def test_the_state_has_every_hour_of_every_stream(plain: World) -> None:
    told = plain.ask("/state.json").json()

    assert (told["is_reachable"], told["verdict"]["code"]) == (True, 0)
    assert [one["name"] for one in told["streams"]] == [HOSTILE, ODD, TURNED]
    assert len(told["hours"]) == 48
    assert told["hours"][-1] == str(Period.hour_of(told["at_ms"]))
    states = {one["hour"]: one["state"] for one in told["streams"][1]["hours"]}
    assert list(states) == told["hours"]
    short = str(Period(plain.this_ms - 2 * HOUR_MS, "hour"))
    assert states[short] == "late"
    assert states[str(Period(plain.this_ms - 3 * HOUR_MS, "hour"))] == "ready"
    assert states[str(Period(plain.this_ms - 11 * HOUR_MS, "hour"))] == "not expected"
    why = told["streams"][1]["why"]
    assert (why["hour"], why["state"]) == (short, "waiting")
    assert [one["name"] for one in told["tables"]] == ["<b>table"]


def test_older_hours_can_be_asked_for(plain: World) -> None:
    told = plain.ask("/state.json?until=2026-01-02").json()
    assert (told["hours"][0], told["hours"][-1]) == ("2026-01-01T00", "2026-01-02T23")
    for wrong in ("x", "0001-01-01T05", "2026-13-01"):
        assert plain.ask(f"/state.json?until={wrong}").status == 400


def test_looking_leaves_no_trace(plain: World) -> None:
    before = plain.everything()
    for path in ("/", "/state.json", "/nothing", "/../headgate.yaml", "//state.json"):
        plain.ask(path)
    assert plain.everything() == before
    assert not (plain.folder / "lake").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_as_it_was_asked_to(plain: World, number: int) -> None:
    code, talk = plain.stop(number)
    assert (code, "Traceback" in talk) == (0, False)


def test_a_port_that_is_taken_is_named_with_the_next_command(plain: World) -> None:
    command = [HEADGATE, "web", "--port", str(plain.port), "--config", str(plain.file)]
    told = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
    assert told.returncode == 2
    assert f"port {plain.port}" in told.stderr
    assert "headgate web --port 0" in told.stderr


# --- in a real browser ---------------------------------------------------------------------------


def cells(page: Page, state: str) -> int:
    found = page.evaluate(f"document.querySelectorAll('#map [data-state=\"{state}\"]').length")
    assert isinstance(found, int)
    return found


@pytest.mark.browser
def test_names_are_text_and_a_change_shows_without_a_reload(
    plain: World, browser: Chromium
) -> None:
    page = browser.open(plain.url)
    page.wait_until("document.querySelectorAll('#map .cell').length === 96")
    before = cells(page, "ready")

    # every name is there as text, and none of it became an element
    assert HOSTILE in page.evaluate("document.body.innerText")
    assert HOSTILE in page.evaluate("document.querySelector('#map svg').textContent")
    assert ODD in page.evaluate("document.body.innerText")
    assert "\\u{202e}gnp.exe" in page.evaluate("document.body.innerText")
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    assert page.evaluate("document.querySelectorAll('main img, main b, main script').length") == 0
    said = page.evaluate("document.querySelector('#map .late').getAttribute('aria-label')")
    assert said.startswith(HOSTILE)
    assert ": late" in said

    with plain.store() as store:  # another hour becomes ready
        seats = {HOSTILE: plain.seat(30, 1), ODD: plain.seat(10, 2)}
        change(store, ROOT, RootDocument, lambda found: replace(found, streams=seats))
    page.wait_until(f"document.querySelectorAll('#map [data-state=ready]').length > {before}")
    assert cells(page, "ready") == before + 1

    assert page.troubles == []
    assert all(one.startswith((plain.url, "about:blank")) for one in page.requested)


@pytest.mark.browser
def test_a_server_and_a_store_that_are_away_are_shown_and_asked_again(
    plain: World, browser: Chromium
) -> None:
    page = browser.open(plain.url)
    page.wait_until("document.querySelectorAll('#map .cell').length === 96")
    state, aside = plain.folder / "state", plain.folder / "aside"
    state.rename(aside)
    state.symlink_to(state)  # a link in a circle: the disk refuses
    page.wait_until("document.getElementById('away').innerText.includes('unavailable')")
    assert page.evaluate("document.querySelectorAll('#map .cell').length") == 96
    state.unlink()
    aside.rename(state)
    page.wait_until("document.getElementById('away').hidden")

    plain.stop()
    page.wait_until("document.getElementById('away').innerText.includes('headgate web')")


@pytest.fixture
def busy(exits: ExitStack) -> World:
    """Something of everything, in a place with a short name: it is in the picture."""
    folder = Path(exits.enter_context(TemporaryDirectory(prefix="headgate-")))
    names = ("orders", "payments", "clicks", "returns", "stock-levels", "sessions")
    tables = {"orders_daily": "orders", "payments_ledger": "payments"}
    world = World(folder, names, tables)
    world.has_stream("orders", reach_h=0, data=1_284_310, late=212, dead=3)
    world.has_stream("payments", reach_h=0, data=498_201)
    world.has_stream("clicks", reach_h=5.2, data=20_118_433, late=9_120)
    world.has_stream("returns", reach_h=0, data=8_121)
    pause = Pause("the warehouse is moving", "ana", world.now_ms)
    world.has_stream("stock-levels", reach_h=3.4, pause=pause, data=77_120, dead=41)
    world.has_stream("sessions", reach_h=0, data=310_220)
    withdrawn = Period(world.this_ms - 20 * HOUR_MS, "hour")
    seats = {
        "orders": world.seat(400, 0),
        "payments": world.seat(400, 0),
        "clicks": world.seat(400, 6),
        "returns": world.seat(400, 3),
        "stock-levels": world.seat(400, 4),
        "sessions": world.seat(31, 2),
    }
    reopened = {place_of(withdrawn, "payments"): 2}
    root = RootDocument(streams=seats, reopened=reopened, hours_ms=seats["clicks"].frontier_ms)
    world.put(ROOT, root)
    held = Period(world.this_ms - 3 * HOUR_MS, "hour")
    hold = world.folder / "lake" / hold_path(FOLDER, held, "returns")
    hold.parent.mkdir(parents=True)
    hold.touch()
    applied = str(Period(world.this_ms - HOUR_MS, "hour"))
    stopped = str(Period(world.this_ms - 8 * HOUR_MS, "hour"))
    behind = str(Period(world.this_ms - 9 * HOUR_MS, "hour"))
    halt = Halt(stopped, "the disk of the table is full: 0 bytes are free", "system", world.now_ms)
    running = TableDocument(applied_up_to=applied, batches=399, rows=1_284_098)
    halted = TableDocument(
        state="halted", tries=3, halt=halt, applied_up_to=behind, batches=391, rows=489_004
    )
    world.put(table_key("orders_daily"), running)
    world.put(table_key("payments_ledger"), halted)
    for number in range(8):
        batch = str(Period(world.this_ms - (8 - number) * HOUR_MS, "hour"))
        entry = Entry(batch, number, "payments", 1, f"m/{number}", "sha256:0", 1, 1_200)
        world.put(entry_key("payments_ledger", batch), entry)
    world.put(LEADER, Right(holder="session-of-barge-1", epoch=3, since_ms=world.now_ms))
    world.has_node("barge-1", "orders", "payments", "clicks")
    world.has_node("barge-2", "returns", "sessions", "stock-levels")
    world.start()
    exits.callback(world.stop)
    return world


@pytest.mark.browser
def test_the_page_shows_why_an_hour_is_not_ready_and_what_a_person_must_do(
    busy: World, browser: Chromium, tmp_path: Path
) -> None:
    page = browser.open(busy.url, width=1240, height=1010)
    page.wait_until("document.querySelectorAll('#map .cell').length === 6 * 48")

    for state in ("ready", "withdrawn", "closing", "held", "late", "not over", "not expected"):
        assert cells(page, state) > 0, state
    text = page.evaluate("document.body.innerText")
    assert "clicks-a.json" in text  # which source partition is short
    assert "held by barge-1" in text
    assert "the warehouse is moving" in text
    assert "headgate table retry payments_ledger" in text
    page.evaluate("document.querySelector('#map .late').dispatchEvent(new MouseEvent('click'))")
    assert "headgate why clicks" in page.evaluate("document.getElementById('detail').innerText")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    height = page.evaluate("document.documentElement.scrollHeight")
    page.resize(1240, height)
    picture = Path(os.environ.get(PICTURE) or tmp_path / "status-page.png").absolute()
    page.screenshot(picture)
    assert picture.stat().st_size > 10_000
    assert page.troubles == []
