"""Bucket: signed requests to one bucket of an S3 server, and what their answers mean.

    sent ── an answer ──▶ Answer
         ── nobody could be reached, or it was refused ──▶ Unavailable: nothing was done
         ── sent, and no answer ──▶ OutcomeUnknown

What may be done twice without harm is tried again, a few times and a little later each time; the
rest never: who sent it must look first. Connections are kept; a dead one is noticed before anything
is sent through it.
"""

import html
import http.client
import os
import re
import select
import threading
import weakref
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from headgate.ambient import Ambient
from headgate.errors import OutcomeUnknown, Unavailable
from headgate.lake import BucketSettings
from headgate.lake.credentials import Keyring
from headgate.lake.signing import Credentials, escaped, query_of, signed

ANSWER_WITHIN_S: Final = 60  # a copy of some gigabytes takes a while
CONNECT_WITHIN_S: Final = 5
TRIES_MAX: Final = 4
PAUSE_MS: Final = 100  # before the second try; twice as long before each other one
IDLE_MAX: Final = 64  # connections that are kept
REGION: Final = "us-east-1"
_READING: Final = frozenset({"GET", "HEAD"})
_BUSY: Final = frozenset({429, 500, 502, 503, 504})
_WRONG_KEYS: Final = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})
_CODE: Final = re.compile(rb"<Code>([^<]*)</Code>")
_MESSAGE: Final = re.compile(rb"<Message>([^<]*)</Message>")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in small letters
    body: bytes

    @property
    def is_good(self) -> bool:
        """A copy may say 200, work for a while, and then tell that it failed."""
        return 200 <= self.status < 300 and b"<Error>" not in self.body[:1_000]

    @property
    def code(self) -> str:
        found = _CODE.search(self.body)
        return found[1].decode("utf-8", "replace") if found else ""

    @property
    def message(self) -> str:
        found = _MESSAGE.search(self.body)
        return html.unescape(found[1].decode("utf-8", "replace")) if found else ""


class Bucket:
    """Safe to be used from several threads."""

    def __init__(self, name: str, settings: BucketSettings, region: str, ambient: Ambient) -> None:
        self.name = name
        self.region = region
        self.keyring = Keyring(settings, ambient)
        self.requests: Counter[str] = Counter()  # by method, for tests and benchmarks
        self._ambient = ambient
        parts = urlsplit(endpoint_of(settings, region))
        self._is_safe = parts.scheme == "https"
        self._host = parts.netloc if settings.is_path_style else f"{name}.{parts.netloc}"
        self._above = f"/{name}" if settings.is_path_style else ""
        self._alone = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        weakref.finalize(self, _close, self._idle)  # a lake is not closed, only let go

    def ask(
        self,
        method: str,
        key: str,
        options: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        is_repeatable: bool,
        about: str = "",
    ) -> Answer:
        """Any answer but one that says "not now" or "not you". `key`: "" is the bucket itself;
        `about`: for people, which. Raises Unavailable, OutcomeUnknown, Invalid."""
        for tries in range(TRIES_MAX):
            is_last = tries == TRIES_MAX - 1 or not is_repeatable
            if tries:
                pause_ms = PAUSE_MS * 2 ** (tries - 1)
                self._ambient.sleep_ms(pause_ms * (0.5 + self._ambient.random() / 2))
            who = self.keyring.current()
            try:
                answer = self._sent(method, key, options or {}, headers or {}, body, who)
            except Unavailable:
                if is_last:
                    raise
                continue
            except OutcomeUnknown as error:
                if not is_repeatable:
                    raise
                if is_last and method in _READING:
                    raise Unavailable(f"{error}; it was only asked for") from error
                if is_last:
                    raise
                continue
            if _is_about_keys(method, answer) and self.keyring.drop(who) and tries < TRIES_MAX - 1:
                # Refused before anything was done: with other keys it is the first time.
                answer = self._once_more(method, key, options or {}, headers or {}, body, answer)
            if answer.status in _BUSY and not is_last:
                continue
            self._refuse(method, key or about, answer, is_repeatable=is_repeatable)
            return answer
        raise AssertionError("the last try returns or raises")

    def _once_more(
        self,
        method: str,
        key: str,
        options: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        refused: Answer,
    ) -> Answer:
        who = self.keyring.current()
        found = self._sent(method, key, options, headers, body, who)
        return refused if _is_about_keys(method, found) else found

    def place(self, key: str) -> str:
        """Where a person finds it."""
        return f"s3://{self.name}/{key}" if key else f"s3://{self.name}"

    def _refuse(self, method: str, key: str, answer: Answer, *, is_repeatable: bool) -> None:
        """Raises Unavailable, OutcomeUnknown; nothing if it is for the caller to decide."""
        place, said = self.place(key), f"{answer.status} {answer.code}".strip()
        if answer.code == "NoSuchBucket":
            raise Unavailable(
                f"{place}: there is no such bucket, and nothing was done; next: make it, or "
                f"correct lake: in the settings: headgate doctor lake {self.place('')}"
            )
        if answer.status in (401, 403) or _is_about_keys(method, answer):
            told = f"{said}: {answer.message}" if answer.message else said
            raise Unavailable(
                f"{place}: not allowed ({told}), and nothing was done; next: see what these keys "
                f"may do: headgate doctor lake {self.place('')}"
            )
        if answer.status in _BUSY:
            if answer.status != 503 and not is_repeatable and method != "HEAD":
                raise OutcomeUnknown(
                    f"{place}: the server failed at it ({said}); next: look whether it is done"
                )
            raise Unavailable(
                f"{place}: the server does not serve now ({said}), and nothing was done; next: try "
                "again"
            )

    def _sent(
        self,
        method: str,
        key: str,
        options: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        who: Credentials,
    ) -> Answer:
        path, query = escaped(f"{self._above}/{key}"), query_of(options)
        every = signed(
            method,
            path,
            query,
            {**headers, "host": self._host},
            body,
            who,
            self.region,
            self._ambient.wall_ns(),
        )
        every["content-length"] = str(len(body))
        connection = self._connected(key)
        self.requests[method] += 1
        is_kept = False
        try:
            connection.request(method, f"{path}?{query}" if query else path, body, every)
            answer = connection.getresponse()
            content = answer.read()
            # Refused before its body was read: the server closes, and may not say so.
            is_kept = not answer.will_close and not (body and answer.status >= 400)
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise OutcomeUnknown(
                f"{self.place(key)}: no answer ({reason}); next: look whether it is done"
            ) from error
        finally:
            self._give_back(connection, is_kept)
        return Answer(
            answer.status, {name.lower(): value for name, value in answer.getheaders()}, content
        )

    def _connected(self, key: str) -> http.client.HTTPConnection:
        """Raises Unavailable."""
        while True:  # ends: each turn takes one away
            with self._alone:
                found = self._idle.pop() if self._idle else None
            if found is None:
                break
            if not _is_dead(found):
                return found
            found.close()
        kind = http.client.HTTPSConnection if self._is_safe else http.client.HTTPConnection
        made = kind(self._host, timeout=CONNECT_WITHIN_S)
        try:
            made.connect()
        except OSError as error:
            made.close()
            raise Unavailable(
                f"{self.place(key)}: nobody answers at {self._host} ({error}), and nothing was "
                f"done; next: see whether the server runs: headgate doctor lake {self.place('')}"
            ) from error
        if made.sock is not None:
            made.sock.settimeout(ANSWER_WITHIN_S)
        return made

    def _give_back(self, connection: http.client.HTTPConnection, is_kept: bool) -> None:
        if is_kept:
            with self._alone:
                if len(self._idle) < IDLE_MAX:
                    self._idle.append(connection)
                    return
        with suppress(OSError):
            connection.close()


def _is_about_keys(method: str, answer: Answer) -> bool:
    """Whether others may do. An answer to HEAD has no words: there is no other reason for a 400."""
    return answer.code in _WRONG_KEYS or (method == "HEAD" and answer.status == 400)


def region_of(settings: BucketSettings) -> str:
    given = settings.region or os.environ.get("AWS_REGION")
    return given or os.environ.get("AWS_DEFAULT_REGION") or REGION


def endpoint_of(settings: BucketSettings, region: str) -> str:
    return settings.endpoint or f"https://s3.{region}.amazonaws.com"


def _close(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _is_dead(connection: http.client.HTTPConnection) -> bool:
    """Closed by the other side: what is readable now is its end, or rubbish."""
    if connection.sock is None:
        return True
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))
