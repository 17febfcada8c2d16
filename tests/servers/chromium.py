"""Chromium: a real browser without a window, led over a pipe by its own DevTools protocol.

with Chromium() as browser:
    page = browser.open("http://127.0.0.1:8080/")
    page.wait_until("document.title === 'Headgate'")
    # page.troubles: what the page's scripts and its security policy complained about
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.servers.fetch import fetched_program
from tests.servers.process import LOOK_EVERY_S, ServerFailed, bound_to_this_process, working_folder

ANSWER_WITHIN_S = 60
FLAGS = (
    *("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--force-color-profile=srgb", "--disable-dev-shm-usage"),
)
# It reads from 3 and writes to 4, whichever numbers the pipes have here. (A plain sh knows only
# numbers of one digit.)
MOVED = """
import fcntl, os, sys
high = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(high[0], 3)
os.dup2(high[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class Page:
    """One tab."""

    def __init__(self, browser: "Chromium", session: str) -> None:
        self._browser, self._session = browser, session
        self.troubles: list[str] = []
        self.requested: list[str] = []  # every URL that was asked for

    def call(self, method: str, **parameters: object) -> Any:
        return self._browser.call(method, parameters, self)

    def evaluate(self, expression: str) -> Any:
        """Its value, as JSON can say it. Raises ServerFailed with what the script threw."""
        told = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in told:
            raise ServerFailed(f"{expression}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def wait_until(self, expression: str, within_s: float = 20) -> None:
        give_up_at_s = time.monotonic() + within_s
        while not self.evaluate(expression):
            if time.monotonic() > give_up_at_s:
                text = self.evaluate("document.body.innerText")
                raise ServerFailed(f"not in {within_s:g} s: {expression}\n{self.troubles}\n{text}")
            time.sleep(LOOK_EVERY_S)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def hear(self, method: str, told: Any) -> None:
        if method == "Network.requestWillBeSent":
            self.requested.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.troubles.append(json.dumps(told["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.troubles.append(f"{told['entry']['source']}: {told['entry']['text']}")
        elif method == "Page.javascriptDialogOpening":
            self.troubles.append(f"a dialog: {told['message']}")

    @property
    def session(self) -> str:
        return self._session


class Chromium:
    def __init__(self, *, folder: Path | None = None) -> None:
        self._given_folder = folder
        self._exits = ExitStack()
        self._pages: dict[str, Page] = {}
        self._number, self._unread = 0, b""

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            folder = exits.enter_context(working_folder("chromium", self._given_folder))
            self._start(fetched_program("chromium"), folder, exits)
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exits.__exit__(kind, error, traceback)

    def open(self, url: str, width: int = 1240, height: int = 900) -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.call("Page.navigate", url=url)
        return page

    def call(self, method: str, parameters: object = None, page: Page | None = None) -> Any:
        """Raises ServerFailed."""
        self._number += 1
        body: dict[str, object] = {"id": self._number, "method": method, "params": parameters or {}}
        if page is not None:
            body["sessionId"] = page.session
        os.write(self._to, json.dumps(body).encode() + b"\0")
        give_up_at_s = time.monotonic() + ANSWER_WITHIN_S
        while True:
            told = self._read(method, give_up_at_s)
            if told.get("id") == self._number:
                if "error" in told:
                    raise ServerFailed(f"chromium: {method}: {told['error']}")
                return told["result"]
            heard = self._pages.get(told.get("sessionId", ""))
            if heard is not None and "method" in told:
                heard.hear(told["method"], told["params"])

    def _start(self, program: str, folder: Path, exits: ExitStack) -> None:
        theirs, self._to = os.pipe()
        self._from, ours = os.pipe()
        flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        moved = [sys.executable, "-I", "-S", "-c", MOVED, str(theirs), str(ours)]
        profile = folder / "profile"
        command = [*moved, program, *flags, f"--user-data-dir={profile}", "about:blank"]
        with (folder / "chromium.log").open("ab") as log:
            process = subprocess.Popen(
                bound_to_this_process(command),
                pass_fds=(theirs, ours),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        os.close(theirs)
        os.close(ours)
        exits.callback(shutil.rmtree, profile, ignore_errors=True)
        exits.callback(os.close, self._from)
        exits.callback(self._end, process)

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        os.close(self._to)  # the sign to end
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def _read(self, method: str, give_up_at_s: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            left_s = max(0.0, give_up_at_s - time.monotonic())
            if not select.select([self._from], [], [], left_s)[0]:
                raise ServerFailed(f"chromium: no answer to {method} in {ANSWER_WITHIN_S} s")
            more = os.read(self._from, 1 << 20)
            if not more:
                raise ServerFailed(f"chromium ended before it answered to {method}")
            self._unread += more
        raw, _, self._unread = self._unread.partition(b"\0")
        told: dict[str, Any] = json.loads(raw)
        return told
