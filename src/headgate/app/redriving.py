"""Redriving: where a stream's dead letters wait to be read again, as a source of files."""

from headgate.app.lake_folder import LakeFolder
from headgate.app.letters import REDRIVEN_PREFIX
from headgate.lake import Lake, LakeSettings
from headgate.lake.opening import local_root, scheme_of
from headgate.landing.names import REDRIVE, REDRIVEN
from headgate.periods import escape_name
from headgate.sources import FilesSettings
from headgate.sources.folder import Folder
from headgate.sources.local_folder import LocalFolder


def redriven_letters(
    settings: LakeSettings, lake: Lake, stream: str
) -> tuple[FilesSettings, Folder]:
    is_local = scheme_of(settings.root) == "file"
    root, name = local_root(settings.root) if is_local else lake.url, escape_name(stream)
    own = FilesSettings(
        f"{root}/{REDRIVE}/{name}",
        "dead",
        after_read="move",
        move_to=f"{root}/{REDRIVEN}/{name}",
        prefix=REDRIVEN_PREFIX,
    )
    return own, LocalFolder(own.path) if is_local else LakeFolder(lake, f"{REDRIVE}/{name}")
