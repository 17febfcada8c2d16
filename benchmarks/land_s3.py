"""Landing a topic in a bucket of S3: see `land_far`.

python -m benchmarks.land_s3
"""

from benchmarks.land_far import Shore, land
from headgate.ambient import SystemAmbient
from headgate.engine import SparkSettings
from headgate.lake.s3a import conf_of
from tests.servers.s3 import S3Server


def main() -> None:
    with S3Server() as server:
        bucket = server.new_bucket()
        conf = conf_of(server.lake(bucket), SystemAmbient())
        land(
            Shore(
                "land_s3",
                lambda folder: server.lake(bucket, folder),
                lambda folder: f"s3a://{bucket}/{folder}",
                SparkSettings(needs=("kafka", "s3"), conf=conf),
            )
        )


if __name__ == "__main__":
    main()
