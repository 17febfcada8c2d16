"""Surroundings: how the places that the settings name look from this machine, now.

It only looks, and only at this machine: a folder may be there on others, and be made later. So most
of it is a remark. An obstacle is what no node can get past on this machine: a store of a kind that
is not installed, a file where a folder must be.
"""

import grp
import os
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from headgate.engine.avro import Schema, path_of
from headgate.errors import Invalid
from headgate.lake import LakeSettings
from headgate.lake.opening import scheme_of
from headgate.landing import StreamSettings
from headgate.references import is_reference, resolve
from headgate.settings import Settings
from headgate.settings.problems import Place, Problem, shown
from headgate.settings.rules import is_inside
from headgate.sources import AvroSettings, FilesSettings, KafkaSettings
from headgate.sources.kafka.registry import read_schema
from headgate.store import registry
from headgate.store import url as store_url

_CLIENTS = {"hdfs": "hdfs_native", "s3": "obstore"}


def obstacles(settings: Settings) -> list[Problem]:
    found = [*_no_store(settings.store), *_no_lake(settings.lake)]
    for name, stream in (*settings.streams.items(), *settings.templates.items()):
        at, source = ("streams", name, "source"), stream.source
        if isinstance(source, KafkaSettings):
            found += _no_client((*at, "kind"))
            found += _no_schema(("streams", name), stream)
            continue
        found += _no_folder((*at, "path"), source.path)
        found += _no_folder((*at, "move_to"), source.move_to)
    return found


def _no_store(text: str) -> Iterator[Problem]:
    scheme, known = store_url.parse(text).scheme, registry.schemes()
    if scheme not in known:
        names = ", ".join(f"{one}:" for one in sorted(known))
        yield Problem(
            ("store",),
            f"no store is registered here for {scheme}: (known: {names}); write file:PATH for one "
            "machine, zk://HOSTS/CHROOT or es://HOSTS/INDEX for several, or install the package "
            "that brings it",
        )


def _no_lake(lake: LakeSettings) -> Iterator[Problem]:
    scheme = scheme_of(lake.root)
    if scheme == "file":
        yield from _no_folder(("lake",), lake.root)
    elif find_spec(_CLIENTS[scheme]) is None:
        words = f"the client for {scheme}: is not installed here; next: "
        yield Problem(("lake",), f"{words}pip install 'headgate[{scheme}]'")


def _no_client(at: Place) -> Iterator[Problem]:
    if find_spec("confluent_kafka") is None:
        words = "the Kafka client is not installed here; next: pip install 'headgate[kafka]'"
        yield Problem(at, words)


def _no_schema(at: Place, stream: StreamSettings) -> Iterator[Problem]:
    """Of Avro records in a file: whether it can be read, and has the field of the event time."""
    avro = getattr(stream.source, "avro", None)
    if not isinstance(avro, AvroSettings) or not avro.schema:
        return
    try:
        schema = Schema(read_schema(avro.schema))
    except Invalid as error:
        yield Problem((*at, "source", "schema"), str(error))
        return
    how = stream.event_time
    if how.by == "avro" and not schema.type_at(path_of(how.text)):
        words = f"{avro.schema} has no field {how.text!r} of one type"
        yield Problem((*at, "event_time", "avro"), words)


def _no_folder(at: Place, folder: str) -> Iterator[Problem]:
    """Above a folder that is still to be made there may be a file, too."""
    if not folder:
        return
    place = next(one for one in (Path(folder), *Path(folder).parents) if os.path.exists(one))
    if not os.path.isdir(place):
        yield Problem(at, f"{place} is a file, and a folder must be there; name its folder instead")


def surroundings(settings: Settings) -> list[str]:
    found = [*_store(settings.store), *_lake(settings)]
    for name, stream in (*settings.streams.items(), *settings.templates.items()):
        at, source = shown(("streams", name, "source")), stream.source
        if isinstance(source, KafkaSettings):
            for key, value in (*source.options.items(), *source.spark_options.items()):
                found += _reference(f"{at}.{key}", value)
            if source.avro is not None:
                found += _reference(f"{at}.registry.password", source.avro.password)
                found += _reference(f"{at}.registry.token", source.avro.token)
            continue
        found += _folder(f"{at}.path", source.path, os.R_OK | os.X_OK)
        if source.move_to:
            found += _folder(f"{at}.move_to", source.move_to, os.W_OK | os.X_OK)
    found += _same_by_links(settings)
    for key, value in settings.spark.conf.items():
        found += _reference(shown(("spark", "conf", key)), value)
    return [*found, *_reference("spark.remote", settings.spark.remote)]


def _store(text: str) -> Iterator[str]:
    url = store_url.parse(text)
    if url.scheme == "file":
        above = os.path.dirname(os.path.expanduser(url.path).rstrip("/"))
        if not os.path.isdir(above):
            yield f"store: {above} is no folder; next: mkdir -p {shlex.quote(above)}"
    for option, value in url.options.items():
        yield from _reference(f"store ({option})", value)


def _lake(settings: Settings) -> Iterator[str]:
    if scheme_of(settings.lake.root) != "file":
        bucket = settings.lake.bucket
        for key in ("access_key", "secret_key", "session_token"):
            yield from _reference(f"lake.{key}", getattr(bucket, key))
        return
    root = Path(settings.lake.root)
    place = next(one for one in (root, *root.parents) if os.path.exists(one))
    if os.path.isdir(place) and not os.access(place, os.W_OK | os.X_OK):
        yield f"lake: nothing can be written in {place}; next: ls -ld {shlex.quote(str(place))}"
    if settings.lake.group:
        try:
            grp.getgrnam(settings.lake.group)
        except KeyError:
            yield f"lake.group: this machine knows no group {settings.lake.group!r}"


def _folder(at: str, folder: str, access: int) -> Iterator[str]:
    named = shlex.quote(folder)
    if not os.path.exists(folder):
        yield f"{at}: there is no folder {folder} here; next: mkdir -p {named}"
    elif os.path.isdir(folder) and not os.access(folder, access):
        yield f"{at}: not enough rights in {folder}; next: ls -ld {named}"


def _same_by_links(settings: Settings) -> Iterator[str]:
    """The lake and a source that meet only once symbolic links are followed."""
    lake = settings.lake.root
    for name, stream in settings.streams.items():
        if scheme_of(lake) != "file" or not isinstance(stream.source, FilesSettings):
            continue
        path = stream.source.path
        if is_inside(path, lake) or is_inside(lake, path):
            continue  # said by its name already
        real, real_lake = os.path.realpath(path), os.path.realpath(lake)
        if is_inside(real, real_lake) or is_inside(real_lake, real):
            at = shown(("streams", name, "source", "path"))
            yield f"{at}: leads by a link to a place that it shares with the lake: {real}"


def _reference(at: str, value: str) -> Iterator[str]:
    if is_reference(value):
        try:
            resolve(value)
        except Invalid as error:
            yield f"{at}: {error}"
