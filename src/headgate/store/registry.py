"""Registry: from a URL to an opened store.

Every backend, ours too, is an entry point of the group `headgate.stores`: its name is the URL's
scheme, its object an `Opener`. Its client library is imported when a URL asks for it, not before.
"""

import difflib
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from headgate.ambient import Ambient, SystemAmbient
from headgate.errors import Invalid
from headgate.store import DocumentStore
from headgate.store.names import check_namespace
from headgate.store.url import StoreUrl, parse

GROUP = "headgate.stores"

_CLIENTS = {"kazoo": "zookeeper", "opensearchpy": "opensearch"}  # module -> our extra


class Opener(Protocol):
    def __call__(self, url: StoreUrl, namespace: str, ambient: Ambient) -> DocumentStore:
        """Raises Invalid (the URL, the rights, the password), Unavailable (nobody answers)."""


def schemes() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def open_store(
    url: str, namespace: str = "default", *, ambient: Ambient | None = None
) -> DocumentStore:
    """The store that a URL names. Raises Invalid, Unavailable."""
    check_namespace(namespace)
    parsed = parse(url)
    known = schemes()
    if parsed.scheme not in known:
        nearest = difflib.get_close_matches(parsed.scheme, known, n=1)
        hint = (
            f"did you mean {nearest[0]}:?"
            if nearest
            else "next: install the package that brings it"
        )
        raise Invalid(
            f"no store is registered for {parsed.scheme}: (known: "
            f"{', '.join(f'{name}:' for name in sorted(known))}); {hint}"
        )
    try:
        opener: Opener = known[parsed.scheme].load()
    except ModuleNotFoundError as error:
        extra = _CLIENTS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise Invalid(
            f"{parsed.scheme}: needs a client library that is not installed; "
            f"next: pip install 'headgate[{extra}]'"
        ) from error
    return opener(parsed, namespace, ambient or SystemAmbient())
