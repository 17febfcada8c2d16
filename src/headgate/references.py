"""Reference: the name of a secret, never the secret itself.

`${env:NAME}` is an environment variable, `${file:PATH}` a file's content without its last line
break. Settings, URLs, documents and logs carry references only; they are resolved on the node, at
the moment of use, and the result is handed to a client library and to nothing else.
"""

import os
import re
import shlex
from pathlib import Path

from headgate.errors import Invalid

_REFERENCE = re.compile(r"\$\{(env|file):([^{}]+)\}")


def is_reference(text: str) -> bool:
    return _REFERENCE.fullmatch(text) is not None


def resolve(reference: str) -> str:
    """The secret that a reference names. Raises Invalid if it names none."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        # The text itself is not shown: it may be the secret that should not have been there.
        raise Invalid("not a reference to a secret: write ${env:NAME} or ${file:PATH} instead")
    kind, name = found.groups()
    if kind == "env":
        value = os.environ.get(name)
        if value is None:
            raise Invalid(f"{reference}: the variable is not set; next: export {name}=…")
        return value
    try:
        file = Path(name).expanduser()
    except RuntimeError as error:
        raise Invalid(
            f"{reference}: nobody of that name has a home folder; next: write the path without ~"
        ) from error
    try:
        return file.read_text("utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise Invalid(
            f"{reference}: the file cannot be read ({reason}); next: ls -l {shlex.quote(str(file))}"
        ) from error
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise Invalid(f"{reference}: no file has such a name; next: correct the path") from error
