"""What the lake contract needs beside a lake on HDFS: careless hands, power cuts, outages."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from hdfs_native import Client, WriteOptions

from headgate.ambient import SystemAmbient
from headgate.lake import FileFacts, Lake, LakeSettings
from headgate.lake.digests import checksum_of
from headgate.lake.hdfs import HdfsLake
from tests.servers.hdfs import AT_ONCE, HdfsCluster

ANSWER_WITHIN_MS = 5_000

OUTAGES = (
    "the network is cut",
    "nobody answers",
    "safe mode",
    "the quota is used up",
    "the name node is dead",
)


class HdfsLakeHarness:
    """A folder of its own on the server, reached through a wire that can be cut."""

    has_modes, folder_mode, is_lasting = True, 0o1750, True

    def __init__(self, cluster: HdfsCluster) -> None:
        self._cluster = cluster
        self._root = f"/lakes/{os.urandom(8).hex()}"
        self._client = Client(cluster.url, AT_ONCE)

    def open(self, *, file_mode: int | None = None, folder_mode: int | None = None) -> Lake:
        settings = LakeSettings(
            f"hdfs://{self._cluster.wire.address}{self._root}", file_mode, folder_mode
        )
        return HdfsLake(settings, SystemAmbient(), answer_within_ms=ANSWER_WITHIN_MS)

    def facts_of(self, content: bytes) -> FileFacts:
        return FileFacts(len(content), checksum_of(content))

    def put(self, path: str, content: bytes) -> None:
        options = WriteOptions(overwrite=True, create_parent=True)
        file = self._client.create(f"{self._root}/{path}", options)
        if content:
            file.write(content)
        file.close()

    def files(self) -> Mapping[str, bytes]:
        try:
            found = sorted(
                one.path for one in self._client.list_status(self._root, True) if not one.isdir
            )
        except FileNotFoundError:
            return {}
        return {
            path.removeprefix(f"{self._root}/"): self._client.read(path).read() for path in found
        }

    def ways_out(self) -> Sequence[str]:
        return ["../x"]  # links are switched off there

    def mode_of(self, path: str) -> int:
        return self._client.get_file_info(f"{self._root}/{path}").permission

    def power_cut(self) -> None:
        for child in (self._cluster.name_node, self._cluster.data_node):
            child.kill()
        self._cluster.start()

    @contextmanager
    def outage(self, name: str) -> Iterator[None]:
        cluster = self._cluster
        if name == "safe mode":
            with cluster.safe_mode():
                yield
        elif name == "the quota is used up":
            with cluster.quota(self._root, 1, 1):
                yield
        else:
            start = {
                "the network is cut": cluster.wire.cut,
                "nobody answers": cluster.name_node.pause,
                "the name node is dead": cluster.name_node.kill,
            }
            start[name]()
            try:
                yield
            finally:
                cluster.heal()
