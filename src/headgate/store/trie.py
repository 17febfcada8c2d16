"""Trie: a collection so large that no folder of it may hold all its names.

A naming rule, not a feature of a backend: the document `name` of a collection has the key
`<collection>/ab/cd/<name>`, where `abcd` are the first digits of the name's hash. 65,536 folders
share the names evenly, whatever they look like: millions of names leave each folder with dozens.
The price is order: a listing is complete, but sorted by nothing that means anything.
"""

import hashlib

from headgate.errors import Invalid
from headgate.store.names import key, parts


def trie_key(collection: str, name: str) -> str:
    """The key of `name` in the trie below the prefix `collection`. Raises Invalid."""
    text = f"{collection}/{key(*_folders(name), name)}"
    parts(text)
    return text


def trie_name(collection: str, found: str) -> str:
    """The name that a listed key stands for. Raises Invalid if it is not from this trie."""
    name = parts(found)[-1]
    if trie_key(collection, name) != found:
        raise Invalid(
            f"{found}: is no key of the trie {collection}; next: list it with its own prefix"
        )
    return name


def _folders(name: str) -> tuple[str, str]:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:2], digest[2:4]
