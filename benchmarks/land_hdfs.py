"""Landing a topic on HDFS: see `land_far`.

python -m benchmarks.land_hdfs
"""

from benchmarks.land_far import Shore, land
from headgate.engine import SparkSettings
from headgate.lake import LakeSettings
from tests.servers.hdfs import HdfsCluster
from tests.servers.toxiproxy import Toxiproxy

CONF = {"spark.hadoop.dfs.blocksize": str(128 * 1024 * 1024)}  # that of the test cluster is small


def main() -> None:
    with Toxiproxy() as network, HdfsCluster(network) as cluster:
        land(
            Shore(
                "land_hdfs",
                lambda folder: LakeSettings(f"{cluster.url}/{folder}"),
                lambda folder: f"{cluster.url}/{folder}",
                SparkSettings(needs=("kafka",), conf=CONF),
            )
        )


if __name__ == "__main__":
    main()
