"""Secrecy: a secret is named in the settings, never written; it is looked up at the moment of use.

A setting that takes a secret is known by its name, or by what its value looks like. There, only
a reference is accepted, and no message repeats what stood there instead.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from headgate.engine import SparkSettings
from headgate.errors import Invalid
from headgate.references import is_reference, resolve

HINT: Final = "next: export NAME=… and write ${env:NAME}, or ${file:PATH}"

_SECRET = re.compile(
    r"secret|passw|token|credential|(?:access|account|api|auth|encryption|private|shared)[._-]?key"
    r"|(?:^|[._-])key(?:$|\.)",
    re.IGNORECASE,
)
# About a secret, and none itself: where it lies, who provides it, how long it is.
_ABOUT = re.compile(
    r"(?:file|path|provider|providers|type|enabled|mechanism|length|class|algorithm|location"
    r"|interval|ratio|store|expiration|timeout|bits|renewal\.credentials)$"
    r"|\.kubernetes\.\w+\.secret(?:s|KeyRef)\.",
    re.IGNORECASE,
)
_CARRIED = re.compile(
    r"://[^/\s@]*:[^/\s@]+@|(?:secret|passw\w*|pwd|token|api_?key)\s*=\s*[^\s;&]", re.IGNORECASE
)
_REFERENCE_INSIDE = re.compile(r"\$\{(?:env|file):")


def takes_secret(key: str) -> bool:
    return _SECRET.search(key) is not None and _ABOUT.search(key) is None


def guarded(key: str, value: str) -> str:
    """The same value. Raises Invalid for a bare secret, without repeating it."""
    if is_reference(value):
        return value
    if _REFERENCE_INSIDE.search(value):
        raise Invalid("a reference must be the whole value, with nothing before or behind it")
    if takes_secret(key) and value.lower() not in ("", "true", "false"):
        raise Invalid(f"holds a bare secret, which would be shown and stored; {HINT}")
    if _CARRIED.search(value):
        raise Invalid(f"carries a bare secret, which would be shown and stored; {HINT}")
    return value


def connect_server(url: str) -> str:
    """The same URL of a Spark Connect server, or reference to one. Raises Invalid."""
    guarded("remote", url)
    if url and not is_reference(url) and not url.startswith("sc://"):
        raise Invalid(
            "is no Spark Connect server, which is written sc://HOST:PORT; another Spark is a master"
        )
    return url


def secret_reference(text: str) -> str:
    """The same reference. Raises Invalid for anything else, without repeating it."""
    if not is_reference(text):
        raise Invalid(f"holds a bare secret, which would be shown and stored; {HINT}")
    return text


def unreferring(text: str) -> str:
    """The same text. Raises Invalid if it is a reference where none is looked up."""
    if _REFERENCE_INSIDE.search(text):
        raise Invalid(
            "a reference is for secrets, and none is looked up here: write the value itself, or "
            "set it by a variable (HEADGATE__…)"
        )
    return text


def resolved_conf(spark: SparkSettings) -> dict[str, str]:
    """For Spark and for nobody else. Raises Invalid, naming the reference that names nothing."""
    return resolved_values(spark.conf)


def resolved_values(options: Mapping[str, str]) -> dict[str, str]:
    """With every secret; for a client library and for nobody else. Raises Invalid."""
    return {key: _resolved(value) for key, value in options.items()}


def resolved(spark: SparkSettings) -> SparkSettings:
    """The same with every secret in it; it is not shown, logged or kept. Raises Invalid."""
    return replace(spark, conf=resolved_conf(spark), remote=_resolved(spark.remote))


def references(conf: Mapping[str, str]) -> list[str]:
    return [value for value in conf.values() if is_reference(value)]


def _resolved(value: str) -> str:
    return resolve(value) if is_reference(value) else value
