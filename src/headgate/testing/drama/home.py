"""Home: the folder of the landfall's installation: its settings, and how commands are run there."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from headgate.periods import Period
from headgate.settings import Settings
from headgate.settings.loading import load
from headgate.testing.drama.child import Child

COMMAND_S_MAX = 240.0

SETTINGS = """\
namespace: demo
store: file:./state
lake: ./lake
streams:
  orders:
    source: {{kind: files, path: ./incoming/orders, format: json, lanes: 2}}
    event_time: {{json: $.at, unit: ms}}
    shards: 2
    shift: 2s
    grace: 0s
    allowed_lateness: 1m
    first_hour: {first_hour}
  payments:
    source: {{kind: files, path: ./incoming/payments, format: json}}
    event_time: {{json: $.at, unit: ms}}
    shift: 2s
    grace: 0s
    allowed_lateness: 1m
    first_hour: {first_hour}
tables:
  orders: {{kind: parquet, path: ./tables/orders, feed: {{stream: orders}}}}
spark:
  master: "local[2]"
  conf: {{spark.driver.memory: 1g, spark.driver.extraJavaOptions: "{java}"}}
"""
JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # starts sooner: these sessions do not live long


class Home:
    """Nothing of the environment's own settings reaches what is started here."""

    def __init__(self, folder: Path, command: Sequence[str], first_hour: Period) -> None:
        self.folder = folder
        self._command = command
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HEADGATE")
        }
        path = folder / "headgate.yaml"
        path.write_text(SETTINGS.format(first_hour=first_hour, java=JAVA), "utf-8")
        self.settings: Settings = load(path, {})

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    def table(self, name: str) -> Path:
        return self.folder / "tables" / name

    def start(self, name: str, verb: str, *options: str) -> Child:
        config = ["--config", str(self.folder / "headgate.yaml")]
        command = [*self._command, "--log-level", "info", verb, *config, *options]
        return Child(name, command, self.folder / f"{name}.log", self._environment)

    def popen(self, *words: str) -> "subprocess.Popen[str]":
        """As a person would, who stands where the settings are: without --config."""
        return subprocess.Popen(
            [*self._command, *words],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return finished(self.popen(*words))


def finished(popen: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    with popen:
        out, errors = popen.communicate(timeout=COMMAND_S_MAX)
    return subprocess.CompletedProcess(popen.args, popen.returncode, out, errors)
