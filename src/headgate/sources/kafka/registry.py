"""Registry: Avro schemas, from a file or from a schema registry by their ids.

An id means the same for ever, so a schema is asked for once. Only the registry's own word counts:
that it does not know an id (404 with its code 40403). Whatever else it answers, or that it does
not, says nothing about a record: then nobody can tell.
"""

import base64
import json
import logging
import ssl
from collections.abc import Collection, Mapping
from http.client import HTTPException
from pathlib import Path
from shlex import quote
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from headgate.engine.avro import Schema
from headgate.errors import Invalid, Unavailable

CALL_S: Final = 10
ANSWER_BYTES_MAX: Final = 16_000_000
ONLY: Final = 0  # the id of a schema that is there for all records

_NOT_THERE: Final = 40403  # "schema not found"

log = logging.getLogger(__name__)


class _Staying(HTTPRedirectHandler):
    """Whoever sends us elsewhere would get the password there."""

    def redirect_request(self, *_: object) -> None:
        return None


class Registry:
    """Asks a schema registry over HTTP. The secrets are resolved."""

    def __init__(
        self, url: str, *, user: str = "", password: str = "", token: str = "", ca: str = ""
    ) -> None:
        """Raises Invalid: the file with certificates cannot be read."""
        self._url = url.rstrip("/")
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        elif user or password:
            both = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {both}"
        try:
            tls = ssl.create_default_context(cafile=ca or None)
        except OSError as error:
            raise Invalid(
                f"source.registry ca: {ca} has no certificates ({error}); next: ls -l {quote(ca)}"
            ) from error
        self._opener = build_opener(_Staying(), HTTPSHandler(context=tls))

    def schema(self, number: int) -> str | None:
        """None: it knows none of this id that is Avro of a record. Raises Unavailable, Invalid."""
        where = f"{self._url}/schemas/ids/{number}"
        answer = self._answer(where)
        if answer is None:
            return None
        schema, kind = answer.get("schema"), answer.get("schemaType", "AVRO")
        if not isinstance(schema, str):
            raise Unavailable(f"{where}: has no schema in its answer; {_HELD.format(quote(where))}")
        if kind != "AVRO":
            log.warning("registry.not_avro", extra={"where": where, "kind": kind})
            return None
        if answer.get("references"):
            raise Invalid(
                f"{where}: its schema refers to others, and is not read by itself; nothing was "
                "landed; next: register one without references, or name a file in source.schema"
            )
        try:
            Schema(schema)
        except Invalid as error:
            log.warning("registry.no_record", extra={"where": where, "why": str(error)})
            return None
        return schema

    def _answer(self, where: str) -> Mapping[str, Any] | None:
        request = Request(where, headers=self._headers)  # noqa: S310 - the settings allow http(s) only
        try:
            with self._opener.open(request, timeout=CALL_S) as answer:
                found = json.loads(answer.read(ANSWER_BYTES_MAX))
        except HTTPError as error:
            with error:
                if error.code == 404 and _code(error) == _NOT_THERE:
                    return None
                told = f"answers {error.code} {error.reason}"
            raise Unavailable(f"{where}: {told}; {_HELD.format(quote(where))}") from error
        except (OSError, HTTPException, ValueError) as error:
            why = str(error) or type(error).__name__
            raise Unavailable(
                f"{where}: cannot be asked ({why}); {_HELD.format(quote(where))}"
            ) from error
        if not isinstance(found, dict):
            raise Unavailable(f"{where}: answers something else; {_HELD.format(quote(where))}")
        return found


_HELD: Final = (
    "without the schema nobody can tell what a record is, so nothing was landed, and none became a "
    "dead letter; next: curl {}"
)


def _code(error: HTTPError) -> int | None:
    try:
        found = json.loads(error.read(ANSWER_BYTES_MAX))
    except (OSError, HTTPException, ValueError):
        return None
    return found.get("error_code") if isinstance(found, dict) else None


class KnownSchemas:
    """Implements `headgate.engine.Schemas`: files and registries by their places."""

    def __init__(self, fixed: Mapping[str, str], registries: Mapping[str, Registry]) -> None:
        """`fixed`: the schema of all records there."""
        self._registries = registries
        self._known: dict[str, dict[int, str]] = {
            **{place: {ONLY: schema} for place, schema in fixed.items()},
            **{place: {} for place in registries},
        }

    def known(self, place: str) -> Mapping[int, str]:
        return dict(self._known[place])

    def learn(self, place: str, ids: Collection[int]) -> Mapping[int, str]:
        found = dict[int, str]()
        for number in sorted(ids):
            schema = self._known[place].get(number) or self._registries[place].schema(number)
            if schema is not None:
                self._known[place][number] = found[number] = schema
        return found


def read_schema(path: str) -> str:
    """Of a file. Raises Invalid: it has none."""
    try:
        content = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise Invalid(f"{path}: cannot be read ({why}); next: ls -l {quote(path)}") from error
    try:
        Schema(content)
    except Invalid as error:
        raise Invalid(f"{path}: {error}; next: put the schema of the records there") from error
    return content
