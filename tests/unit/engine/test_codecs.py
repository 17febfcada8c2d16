"""How what lands is packed, and what that does to a name."""

from headgate.engine.codecs import CODECS, codec_of, for_spark, suffix_of
from headgate.settings.model import schema


def test_each_format_has_a_usual_codec() -> None:
    assert {one: codec_of(one) for one in CODECS} == {
        "parquet": "zstd", "avro": "deflate", "json": "none", "text": "none",
    }  # fmt: skip
    assert for_spark("parquet") == "zstd"
    assert for_spark("parquet", "lz4") == "lz4_raw"
    assert [for_spark("avro", one) for one in CODECS["avro"]] == [
        *("deflate", "zstandard", "snappy", "uncompressed"),
    ]


def test_only_packed_lines_say_so_by_their_name() -> None:
    assert [suffix_of("json"), suffix_of("json", "gzip")] == ["json", "json.gz"]
    assert [suffix_of("text", "none"), suffix_of("text", "gzip")] == ["txt", "txt.gz"]
    assert suffix_of("parquet", "gzip") == "parquet"


def test_the_settings_know_every_codec_and_no_other() -> None:
    given = schema()["$defs"]["StreamPart"]["properties"]["codec"]["anyOf"][0]["enum"]
    assert {*given} == {one for known in CODECS.values() for one in known}
