"""Credentials: who this node is to S3, looked up where every client looks, and again before they
end.

    the settings (references) ──▶ AWS_ACCESS_KEY_ID … ──▶ ~/.aws/credentials ──▶ what the container
    or the machine was given

The first that has any is taken. Keys are in memory only; what is written or said never has them.
"""

import configparser
import http.client
import json
import os
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from headgate.ambient import Ambient
from headgate.errors import Invalid, Unavailable
from headgate.lake import BucketSettings
from headgate.lake.signing import Credentials
from headgate.references import is_reference, resolve

RENEW_MS: Final = 300_000  # before they end
AGAIN_MS: Final = 60_000  # at most so often, after a refusal
ASK_S: Final = 2
_CONTAINER: Final = "http://169.254.170.2"
_MACHINE: Final = "http://169.254.169.254"
_ROLES: Final = "/latest/meta-data/iam/security-credentials/"

Ask = Callable[[str, str, dict[str, str]], str]
"""Method, URL and headers: the answer. Raises OSError."""


class Keyring:
    """Safe to be asked from several threads."""

    def __init__(self, settings: BucketSettings, ambient: Ambient, ask: Ask | None = None) -> None:
        self._settings = settings
        self._ambient = ambient
        self._ask = ask or _asked
        self._alone = threading.Lock()
        self._held: Credentials | None = None
        self._dropped_ms: int | None = None

    def current(self) -> Credentials:
        """Raises Invalid (a reference names nothing), Unavailable (nobody gave any)."""
        with self._alone:
            now_ms = self._ambient.wall_ns() // 1_000_000
            ends_ms = None if self._held is None else self._held.expires_at_ms
            if self._held is None or (ends_ms is not None and ends_ms - RENEW_MS <= now_ms):
                self._held = self._found()
            return self._held

    def drop(self, refused: Credentials) -> bool:
        """The server takes these no more; whether looking again may give others."""
        with self._alone:
            if self._held is not refused:
                return True
            now_ms = self._ambient.monotonic_ms()
            if self._dropped_ms is not None and now_ms - self._dropped_ms < AGAIN_MS:
                return False
            self._dropped_ms = now_ms
            self._held = None
            return True

    def _found(self) -> Credentials:
        found = self._of_settings() or _of_environment() or _of_file()
        found = found or self._of_container() or self._of_machine()
        if found is None:
            raise Unavailable(
                "S3: nobody gave this node any keys; nothing was done; next: set access_key and "
                "secret_key of lake: as references, or export AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY"
            )
        return found

    def _of_settings(self) -> Credentials | None:
        settings = self._settings
        if not settings.access_key:
            return None
        given = (settings.access_key, settings.secret_key, settings.session_token)
        key, secret, token = (resolve(one) if is_reference(one) else one for one in given)
        return Credentials(key, secret, token)

    def _of_container(self) -> Credentials | None:
        relative = os.environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        whole = os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        url = f"{_CONTAINER}{relative}" if relative else whole
        if not url:
            return None
        token = os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
        file = os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        try:
            if file:
                token = Path(file).read_text("utf-8").strip()
            headers = {"Authorization": token} if token else {}
            return _of_json(self._ask("GET", url, headers))
        except (OSError, ValueError, KeyError) as error:
            raise Unavailable(
                f"S3: the container was promised keys at {url}, and they cannot be had ({error}); "
                "nothing was done; next: try again"
            ) from error

    def _of_machine(self) -> Credentials | None:
        """A machine of Amazon's own tells its keys to who is on it."""
        if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            return None
        try:
            term = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
            token = self._ask("PUT", f"{_MACHINE}/latest/api/token", term)
            headers = {"X-aws-ec2-metadata-token": token}
            role = self._ask("GET", f"{_MACHINE}{_ROLES}", headers).split("\n")[0].strip()
            return _of_json(self._ask("GET", f"{_MACHINE}{_ROLES}{role}", headers))
        except (OSError, ValueError, KeyError):
            return None  # it is none


def _of_environment() -> Credentials | None:
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    if not key or not secret:
        return None
    return Credentials(key, secret, os.environ.get("AWS_SESSION_TOKEN", ""))


def _of_file() -> Credentials | None:
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE")
    file = Path(named) if named else Path.home() / ".aws" / "credentials"
    profile = os.environ.get("AWS_PROFILE", "default")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(file.read_text("utf-8"))
        part = parser[profile]
        key, secret = part["aws_access_key_id"], part["aws_secret_access_key"]
    except (FileNotFoundError, NotADirectoryError, KeyError):
        return None
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        reason = type(error).__name__  # its text may have a key in it
        raise Invalid(f"{file}: cannot be read ({reason}); next: correct it, or ls -l") from error
    return Credentials(key, secret, part.get("aws_session_token", ""))


def _of_json(text: str) -> Credentials:
    """Raises ValueError, KeyError."""
    told = json.loads(text)
    ends = datetime.fromisoformat(told["Expiration"])
    return Credentials(
        told["AccessKeyId"], told["SecretAccessKey"], told["Token"], int(ends.timestamp() * 1000)
    )


def _asked(method: str, url: str, headers: dict[str, str]) -> str:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=ASK_S)
    try:
        connection.request(method, parts.path or "/", headers=headers)
        answer = connection.getresponse()
        content = answer.read()
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()
    if answer.status != 200:
        raise OSError(f"{url} answers {answer.status}")
    return content.decode("utf-8")
