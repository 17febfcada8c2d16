"""Codecs: how what lands is packed, by format. Pure.

Lines that are packed say so by their name, as every reader expects; of the others only the file
itself tells.
"""

from collections.abc import Mapping
from typing import Final

from headgate.engine import LandAs

CODECS: Final[Mapping[LandAs, tuple[str, ...]]] = {
    "parquet": ("zstd", "snappy", "gzip", "lz4", "none"),
    "avro": ("deflate", "zstd", "snappy", "none"),
    "json": ("none", "gzip"),
    "text": ("none", "gzip"),
}
"""Those that every usual reader unpacks; the first is the default."""

GZIPPED: Final = ".gz"

_IN_SPARK: Final[Mapping[tuple[LandAs, str], str]] = {
    # The other one is framed in a way of Hadoop's own, which few readers know.
    ("parquet", "lz4"): "lz4_raw",
    ("avro", "zstd"): "zstandard",
    ("avro", "none"): "uncompressed",
}


def codec_of(land_as: LandAs, codec: str = "") -> str:
    """The one that is meant: the format's own if none is named."""
    return codec or CODECS[land_as][0]


def for_spark(land_as: LandAs, codec: str = "") -> str:
    """The same in the words of Spark's writers."""
    meant = codec_of(land_as, codec)
    return _IN_SPARK.get((land_as, meant), meant)


def suffix_of(land_as: LandAs, codec: str = "") -> str:
    """What names of landed files end in."""
    plain = "txt" if land_as == "text" else land_as
    is_packed = land_as in ("json", "text") and codec_of(land_as, codec) == "gzip"
    return f"{plain}{GZIPPED}" if is_packed else plain
