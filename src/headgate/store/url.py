"""Store URL: which store, where, with which options.

    memory:NAME                     file:PATH
    zk://HOST[:PORT],…/CHROOT       es://HOST[:PORT],…/INDEX

Options follow as `?name=value&…`, a name is lower-case letters and `_`. A secret is never part of
a URL: an option that needs one takes a reference (`password=${env:NAME}`), so that a URL can be
shown, logged and stored as it is. Until it is known to be such a URL, nothing of it is shown but
what cannot be a secret: its scheme and the names of its options.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from headgate.errors import Invalid
from headgate.references import is_reference, resolve


@dataclass(frozen=True, slots=True)
class StoreUrl:
    shown: str  # without options: a misspelt one may hold a bare secret
    scheme: str
    hosts: tuple[str, ...]
    path: str
    options: Mapping[str, str]

    def check_options(self, *known: str) -> None:
        """Raises Invalid for an option that this kind of store does not have."""
        for name in self.options:
            if name not in known:
                raise Invalid(f"{self.shown}: unknown option {name!r}; {_hint(name, known)}")

    def secret(self, option: str) -> str | None:
        """The secret that an option refers to. Raises Invalid if it is bare, or names nothing."""
        reference = self.options.get(option)
        return None if reference is None else resolve(reference)

    def number(self, option: str, default: int) -> int:
        text = self.options.get(option, str(default))
        if not text.isascii() or not text.isdigit():
            raise Invalid(f"{self.shown}: option {option!r} needs a whole number")
        return int(text)

    def truth(self, option: str, default: bool) -> bool:
        text = self.options.get(option, str(default)).lower()
        if text not in ("true", "false"):
            raise Invalid(f"{self.shown}: option {option!r} is true or false")
        return text == "true"


def _hint(name: str, known: Sequence[str]) -> str:
    if not known:
        return "this store takes no options, next: leave out '?' and what follows"
    nearest = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {nearest[0]!r}?" if nearest else f"known are: {', '.join(known)}"


_SECRETS = frozenset({"password", "api_key", "digest_password"})
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+]*")
_OPTION = re.compile(r"[a-z_]+")
# A name or an address, then maybe a port: `user:password` is none of these.
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+(?:%[a-z]\w*)?\]|[^\s:@%\[\]]+)(?::[0-9]{1,5})?")
_NAMED = "next: write who asks as an option, ?user=NAME&password=${env:NAME}"


def parse(text: str) -> StoreUrl:
    """Raises Invalid. The message never repeats what may be a secret."""
    scheme, colon, rest = text.strip().partition(":")
    if not colon or _SCHEME.fullmatch(scheme) is None:
        raise Invalid(
            "this is no store URL, which begins with the kind of store and a colon; "
            "next: try file:./state, or see headgate store --help"
        )
    rest, _, query = rest.partition("?")
    if "@" in unquote(rest) and scheme not in ("file", "memory"):
        raise Invalid(f"{scheme}: has an '@', and nobody is named before the hosts; {_NAMED}")
    hosts: tuple[str, ...] = ()
    path = rest
    if rest.startswith("//") and scheme != "file":
        authority, slash, below = rest[2:].partition("/")
        hosts = tuple(filter(None, authority.split(",")))
        path = slash + below
    if any(_HOST.fullmatch(host) is None for host in hosts):
        raise Invalid(f"{scheme}: each host is HOST, HOST:PORT or [IPv6]:PORT; {_NAMED}")
    return StoreUrl(f"{scheme}:{rest}", scheme, hosts, unquote(path), _options(scheme, query))


def _options(scheme: str, query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        name, equals, value = pair.partition("=")
        value = unquote(value)
        if not equals or _OPTION.fullmatch(name) is None:
            raise Invalid(
                f"{scheme}: what follows '?' is name=value, with names of lower-case letters "
                "and '_'; next: write '?' elsewhere as %3F"
            )
        if name in options:
            raise Invalid(f"{scheme}: option {name!r} is given twice; next: leave one out")
        if name in _SECRETS and not is_reference(value):
            raise Invalid(
                f"{scheme}: option {name!r} holds a bare secret, which would be shown and stored; "
                f"next: export NAME=… and write {name}=${{env:NAME}}"
            )
        options[name] = value
    return options
