"""Opening: from settings to a lake, by the scheme of its root."""

import os
import re
from collections.abc import Callable
from shlex import quote
from tempfile import TemporaryFile

from headgate.ambient import Ambient
from headgate.errors import Invalid
from headgate.lake import Lake, LakeSettings
from headgate.lake.local import Each, LocalLake, in_turn
from headgate.lake.refusals import explained
from headgate.store.disk import make_folder, sync_folder

# One letter is no scheme: it is more likely a drive.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_AZURE, _GOOGLE = "Azure", "Google"
_UNPROVED = {"gs": _GOOGLE} | dict.fromkeys(("az", "abfs", "abfss", "wasb", "wasbs"), _AZURE)
_PATTERN_CHARACTERS = frozenset("*?[]{}\\")  # Spark takes a path with these for a pattern


def open_lake(settings: LakeSettings, ambient: Ambient, each: Each = in_turn) -> Lake:
    """The root is made if it is missing, where it is a folder. `each` does many things at once,
    where somebody has threads for it. Raises Invalid, Unavailable."""
    if scheme_of(settings.root) == "hdfs":
        return _hdfs_lake(settings, ambient)
    if scheme_of(settings.root) == "s3":
        return _s3_lake(settings, ambient, each)
    root = local_root(settings.root)
    if os.path.lexists(root) and not os.path.isdir(root):
        raise Invalid(
            f"lake {settings.root!r}: is a file or a link to nowhere, not a folder; next: choose "
            f"another path, or see what it is: ls -ld {quote(root)}"
        )
    with explained(root):
        make_folder(root)
        sync_folder(os.path.dirname(root))
    changed = LakeSettings(root, settings.file_mode, settings.folder_mode, settings.group)
    return LocalLake(changed, ambient, each)


def _hdfs_lake(settings: LakeSettings, ambient: Ambient) -> Lake:
    """Raises Invalid, Unavailable."""
    try:
        from headgate.lake.hdfs import HdfsLake
    except ImportError as error:
        raise Invalid(
            f"lake {settings.root!r}: the client for HDFS is not installed here ({error}); next: "
            "pip install 'headgate[hdfs]'"
        ) from error
    return HdfsLake(settings, ambient)


def _s3_lake(settings: LakeSettings, ambient: Ambient, each: Each) -> Lake:
    """Raises Invalid."""
    try:
        from headgate.lake.s3 import S3Lake
    except ImportError as error:
        raise Invalid(
            f"lake {settings.root!r}: the client for S3 is not installed here ({error}); next: "
            "pip install 'headgate[s3]'"
        ) from error
    return S3Lake(settings, ambient, each)


def scheme_of(root: str) -> str:
    """`file`, or what the URL begins with."""
    matched = _URL.fullmatch(root)
    return matched[1].lower() if matched else "file"


def check_proved(scheme: str) -> None:
    """Raises Invalid: a lake there would be a guess."""
    whose = _UNPROVED.get(scheme.lower())
    if whose is not None:
        door = " Google's buckets speak s3:, too; ask headgate doctor lake before you use that."
        raise Invalid(
            f"not {scheme}: nothing has proved a lake in a bucket of {whose}, with what Spark "
            f"writes there.{door if whose == _GOOGLE else ''} Next: take a folder, hdfs: or s3:"
        )


def is_there(settings: LakeSettings) -> bool:
    """Whether a look at it makes nothing: a local lake may not be there yet. Raises Invalid."""
    return scheme_of(settings.root) != "file" or os.path.isdir(local_root(settings.root))


def clock_of(settings: LakeSettings, ambient: Ambient) -> Callable[[], float]:
    """Asks the place itself what time it is, in milliseconds. Raises Invalid; each call
    Unavailable."""
    if scheme_of(settings.root) == "s3":
        from headgate.lake.s3 import S3Lake

        return S3Lake(settings, ambient).server_ms
    if scheme_of(settings.root) == "hdfs":
        from headgate.lake.hdfs import HdfsLake

        return HdfsLake(settings, ambient).server_ms
    root = local_root(settings.root)

    def disk_ms() -> float:
        with explained(root), TemporaryFile(dir=root) as file:
            return os.fstat(file.fileno()).st_mtime_ns / 1_000_000

    return disk_ms


def place_of(lake: Lake) -> str:
    """Where a person, and Spark, finds it: a path on this machine, or a URL."""
    return lake.url.removeprefix("file://")


def local_root(root: str) -> str:
    """The absolute path that these settings name. Raises Invalid."""
    matched = _URL.fullmatch(root)
    scheme, path = matched.groups() if matched else ("file", root)
    if scheme.lower() != "file":
        check_proved(scheme)
        raise Invalid(
            f"lake {root!r}: is on {scheme}:, and a folder of this machine is needed here; next: "
            "give a path, or a file: URL"
        )
    if matched and path.startswith("//"):
        if not path.startswith("///"):
            raise Invalid(f"lake {root!r}: names a host; next: write file:///srv/lake, or a path")
        path = path[2:]
    if not path.startswith("/"):
        raise Invalid(
            f"lake {root!r}: is no absolute path, and nodes may stand in other folders; next: "
            "write it from the first / on"
        )
    if "\0" in path or not _PATTERN_CHARACTERS.isdisjoint(path):
        raise Invalid(
            f"lake {root!r}: has one of * ? [ ] {{ }} \\ in it, which Spark takes for a pattern; "
            "next: choose another path"
        )
    if os.path.normpath(path).strip("/") == "":
        raise Invalid(f"lake {root!r}: is the whole machine; next: choose a folder")
    return "/" + path.strip("/")
