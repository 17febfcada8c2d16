"""Packages: which jars were tested with which line of Spark.

A connector of another line fails only when data flows; so there is one table, and a setting that
goes before it. Reading and writing files needs none of them. A package is named by its Maven
coordinates, and comes from a repository; or by a path, for clusters that reach none: a jar, or a
folder of jars.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

from headgate.errors import Invalid

TESTED: Final[Mapping[str, Mapping[str, str]]] = {
    "4.0": {
        "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        "avro": "org.apache.spark:spark-avro_2.13:4.0.0",
        "delta": "io.delta:delta-spark_4.0_2.13:4.4.0",
        "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
        "s3": (
            "org.apache.hadoop:hadoop-aws:3.4.1,"
            "software.amazon.awssdk:s3:2.25.53,"
            "software.amazon.awssdk:s3-transfer-manager:2.25.53,"
            "software.amazon.awssdk:sts:2.25.53"
        ),
    },
}
"""By line of Spark, by what needs it: Maven coordinates that were tested together."""

LEFT_OUT: Final[Mapping[str, str]] = {"s3": "software.amazon.awssdk:bundle"}
"""What these would bring, and is not needed: half a gigabyte, of which the ones above are 14 MB."""


def left_out(needs: Sequence[str], packages: Sequence[str] = ()) -> tuple[str, ...]:
    """`group:artifact`; nothing if the settings say which packages."""
    return () if packages else tuple(LEFT_OUT[need] for need in needs if need in LEFT_OUT)


_COORDINATES: Final = re.compile(r"[^:/\s]+:[^:/\s]+:[^:/\s]+")
JAR: Final = ".jar"


def is_path(package: str) -> bool:
    return _COORDINATES.fullmatch(package) is None


def jars(packages: Sequence[str]) -> tuple[str, ...]:
    """Files of those that are paths. Raises Invalid: there is no jar."""
    found = list[str]()
    for package in filter(is_path, packages):
        if os.path.isdir(package):
            inside = sorted(name for name in os.listdir(package) if name.endswith(JAR))
            here = [os.path.join(package, name) for name in inside]
        else:
            here = [package] if package.endswith(JAR) and os.path.isfile(package) else []
        if not here:
            raise Invalid(
                f"spark packages {package}: is neither a jar nor a folder with some on this "
                f"machine; next: ls {package}, or name a package as group:artifact:version"
            )
        found += here
    return tuple(found)


def coordinates(
    spark_version: str, needs: Sequence[str], packages: Sequence[str] = ()
) -> tuple[str, ...]:
    """What Spark must fetch: the packages of the settings if there are any, else those tested for
    what is needed. Raises Invalid if this line of Spark was tested with none."""
    if packages or not needs:
        return tuple(package for package in packages if not is_path(package))
    line = ".".join(spark_version.split(".")[:2])
    tested = TESTED.get(line, {})
    missing = [need for need in needs if need not in tested]
    if missing:
        raise Invalid(
            f"Spark {spark_version}: no jar was tested for {', '.join(missing)}; next: name yours "
            "in the settings, spark: {packages: [group:artifact:version]}, or use Spark "
            f"{', '.join(TESTED)}"
        )
    return tuple(tested[need] for need in needs)
