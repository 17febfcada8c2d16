"""Hdfs names: where a path of the lake is on the server, and what people are told of it. Pure."""

import re
from shlex import quote
from typing import Final

from headgate.errors import Conflict, Corrupt, HeadgateError, Invalid, OutcomeUnknown, Unavailable
from headgate.lake.hdfs_wire import NoAnswer, Refused
from headgate.lake.paths import check_file, folder_of

_ROOT: Final = re.compile(r"hdfs://([^/@:]+)(:\d+)?(/.*)?", re.DOTALL | re.IGNORECASE)
_PATTERN_CHARACTERS: Final = frozenset("*?[]{}\\:")


def hdfs_root(root: str) -> tuple[str, str]:
    """The address of the server and the path on it. Raises Invalid."""
    matched = _ROOT.fullmatch(root)
    if matched is None:
        raise Invalid(
            f"lake {root!r}: is no address of HDFS; next: write hdfs://HOST:PORT/FOLDER, or "
            "hdfs://NAMESERVICE/FOLDER with HADOOP_CONF_DIR set"
        )
    host, port, path = matched[1], matched[2] or "", matched[3] or ""
    if "\0" in path or not _PATTERN_CHARACTERS.isdisjoint(path):
        raise Invalid(
            f"lake {root!r}: has one of * ? [ ] {{ }} \\ : in its path, which Spark or HDFS takes "
            "for something else; next: choose another path"
        )
    names = path.strip("/").split("/")
    if not all(name not in ("", ".", "..") for name in names):
        raise Invalid(
            f"lake {root!r}: is the whole file system, or has a name that is none; next: choose a "
            "folder, like hdfs://HOST:PORT/lake"
        )
    return f"hdfs://{host}{port}", "/" + "/".join(names)


class Names:
    def __init__(self, server: str, root: str) -> None:
        self.url = f"{server}{root}"
        self.root = root  # on the server

    def there(self, path: str) -> str:
        """On the server."""
        return f"{self.root}/{path}" if path else self.root

    def place(self, path: str) -> str:
        """Where a person finds it."""
        return f"{self.url}/{path}" if path else self.url

    def checked(self, path: str) -> str:
        """The same path. Raises Invalid."""
        check_file(path)
        if ":" in path:
            raise Invalid(f"{path!r}: HDFS has no colon in a name; next: rename it")
        return path

    def refusal(self, path: str, error: Refused) -> HeadgateError:
        place, there = self.place(path), quote(self.there(path))
        if error.kind == "SafeModeException":
            return Unavailable(
                f"{place}: the name node is in safe mode, where everything can be read and nothing "
                "changes, and nothing was done; next: hdfs dfsadmin -safemode get"
            )
        if "QuotaExceeded" in error.kind:
            return Unavailable(
                f"{place}: the quota is used up ({error.said}), and nothing was done; next: "
                f"hdfs dfs -count -q -v {quote(self.root)}"
            )
        if "Limit" in error.kind or error.kind in (
            "PathComponentTooLongException",
            "InvalidPathException",
        ):
            return Invalid(f"{place}: HDFS takes no such name ({error.said}); next: a shorter one")
        if error.kind == "AccessControlException":
            return Unavailable(
                f"{place}: not allowed ({error.said}), and nothing was done; next: see whose it "
                f"is, and give this user the right: hdfs dfs -ls -d {there}"
            )
        return Unavailable(
            f"{place}: {error.said}, and nothing was done; next: try again, or hdfs dfs -ls {there}"
        )

    def silent(self, path: str, error: NoAnswer) -> Unavailable:
        return Unavailable(
            f"{self.place(path)}: HDFS did not answer ({error}), and nothing was done; next: try "
            f"again, or hdfs dfs -ls {quote(self.place(''))}"
        )

    def unknown(self, path: str, error: NoAnswer, next_act: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{self.place(path)}: HDFS did not confirm it ({error}); it may have been done. Next: "
            f"{next_act}"
        )

    def missing(self, path: str) -> Unavailable:
        return Unavailable(
            f"{self.place(path)}: is not there, and nothing was done; next: see what is: "
            f"hdfs dfs -ls {quote(self.place(folder_of(path)))}"
        )

    def no_file(self, path: str) -> Corrupt:
        place = self.place(path)
        return Corrupt(
            f"{place}: is something else than a file, and nothing here would make such a thing; "
            f"next: see what it is, and move it out of the lake: hdfs dfs -ls -d {quote(place)}"
        )

    def another(self, path: str) -> Conflict:
        place = self.place(path)
        return Conflict(
            f"{place}: is another file than the one to be removed, and stays; next: see what it "
            f"is: hdfs dfs -ls {quote(place)}"
        )
