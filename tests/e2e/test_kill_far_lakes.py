"""Nodes land from a real broker into a bucket or onto HDFS, and are killed with -9; then the lake
is compared with the topic, offset by offset.

As in `test_kill_kafka`, with little data: a round is a wave of records and a kill, the first one in
the middle of a commit, the other at a moment that chance decides.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.kafka_crews import Brigade, Ground, Size, brigade_in
from tests.e2e.landing_crews import chance_of_this_run
from tests.servers.hdfs import HdfsCluster
from tests.servers.kafka import KafkaBroker
from tests.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

ROUNDS = 2
SIZE = Size(wave=300, hours=5, lanes=2)


@pytest.fixture
def in_a_bucket(tmp_path: Path, kafka: KafkaBroker, s3: S3Server) -> Iterator[Brigade]:
    bucket = s3.new_bucket()
    lake = {
        "root": f"s3://{bucket}/the-lake",
        "endpoint": f"http://{s3.address}",
        "access_key": _kept(tmp_path / "access", ACCESS_KEY),
        "secret_key": _kept(tmp_path / "secret", SECRET_KEY),
    }
    # So many bytes of a small heap are taken for each file that Spark has open.
    conf = {"spark.hadoop.fs.s3a.multipart.size": "5M"}
    ground = Ground(lake, lambda folder: _copied(s3.contents(bucket), folder / "copy"), conf)
    with brigade_in(tmp_path, kafka, SIZE, ground) as brigade:
        yield brigade


@pytest.fixture
def on_hdfs(tmp_path: Path, kafka: KafkaBroker, hdfs: HdfsCluster) -> Iterator[Brigade]:
    root = f"/{os.urandom(4).hex()}/the-lake"
    ground = Ground(
        f"{hdfs.url}{root}", lambda folder: _copied(hdfs.contents(root), folder / "copy")
    )
    with brigade_in(tmp_path, kafka, SIZE, ground) as brigade:
        yield brigade


@pytest.mark.s3
def test_k17_nodes_killed_with_minus_nine_while_they_land_in_a_bucket_lose_and_double_nothing(
    in_a_bucket: Brigade,
) -> None:
    in_a_bucket.land_under_kills(ROUNDS, chance_of_this_run())

    in_a_bucket.check()


@pytest.mark.hdfs
def test_k17_nodes_killed_with_minus_nine_while_they_land_on_hdfs_lose_and_double_nothing(
    on_hdfs: Brigade,
) -> None:
    on_hdfs.land_under_kills(ROUNDS, chance_of_this_run())

    on_hdfs.check()


def _kept(file: Path, secret: str) -> str:
    """A reference to it."""
    file.write_text(secret, "utf-8")
    return f"${{file:{file}}}"


def _copied(contents: Mapping[str, bytes], to: Path) -> Path:
    for path, content in contents.items():
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_bytes(content)
    return to
