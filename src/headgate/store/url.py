"""Store URL: which store, where, with which options.

    memory:NAME                     file:PATH
    zk://HOST[:PORT],…/CHROOT       es://HOST[:PORT],…/INDEX

Options follow as `?name=value&…`. A secret is never part of a URL: an option that needs one takes
a reference (`password=${env:NAME}`), so that a URL can be shown, logged and stored as it is.
"""

import difflib
from collections.abc import Mapping
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
                nearest = difflib.get_close_matches(name, known, n=1)
                hint = (
                    f"did you mean {nearest[0]!r}?" if nearest else f"known are: {', '.join(known)}"
                )
                raise Invalid(f"{self.shown}: unknown option {name!r}; {hint}")

    def secret(self, option: str) -> str | None:
        """The secret that an option refers to. Raises Invalid if it is bare, or names nothing."""
        reference = self.options.get(option)
        return None if reference is None else resolve(reference)

    def number(self, option: str, default: int) -> int:
        text = self.options.get(option, str(default))
        if not text.isascii() or not text.isdigit():
            raise Invalid(f"{self.shown}: option {option!r} needs a whole number, it is {text!r}")
        return int(text)

    def truth(self, option: str, default: bool) -> bool:
        text = self.options.get(option, str(default)).lower()
        if text not in ("true", "false"):
            raise Invalid(f"{self.shown}: option {option!r} is true or false, it is {text!r}")
        return text == "true"


_SECRETS = frozenset({"password", "api_key", "digest_password"})


def parse(text: str) -> StoreUrl:
    """Raises Invalid. The message never repeats what may be a secret."""
    scheme, colon, rest = text.partition(":")
    if not colon or not scheme.isascii() or not scheme.replace("+", "").isalnum():
        raise Invalid(
            f"{text!r} is no store URL; next: try file:./state, or see headgate store --help"
        )
    rest, _, query = rest.partition("?")
    options: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        name, equals, value = pair.partition("=")
        value = unquote(value)
        if not equals or name in options:
            raise Invalid(
                f"{scheme}: option {name!r} needs one value; next: write {name}=VALUE once"
            )
        if name in _SECRETS and not is_reference(value):
            raise Invalid(
                f"{scheme}: option {name!r} holds a bare secret, which would be shown and stored; "
                f"next: export NAME=… and write {name}=${{env:NAME}}"
            )
        options[name] = value
    if "@" in rest and scheme not in ("file", "memory"):
        raise Invalid(
            f"{scheme}: nobody is named before the hosts; next: write "
            f"{scheme}://{rest.rpartition('@')[2]}?user=NAME&password=${{env:NAME}}"
        )
    shown = f"{scheme}:{rest}"
    hosts: tuple[str, ...] = ()
    if rest.startswith("//") and scheme != "file":
        authority, slash, path = rest[2:].partition("/")
        hosts = tuple(filter(None, authority.split(",")))
        rest = slash + path
    return StoreUrl(shown, scheme, hosts, unquote(rest), options)
