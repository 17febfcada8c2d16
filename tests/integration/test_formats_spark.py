"""How landed files are packed and how large they are, on real Spark."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from headgate.engine import EventTime, weights
from headgate.engine.codecs import CODECS
from headgate.engine.containers import rows_of, values_of
from headgate.engine.footers import codec_in
from headgate.errors import Corrupt
from tests.spark import AT_MS, HOUR_MS, USES_SPARK, Bench, bench, spark_engine

__all__ = ["bench", "spark_engine"]

pytestmark = USES_SPARK

RECORDS = 5_000


def records(count: int, hours: int = 1, seed: int = 7) -> str:
    """Of a hundred bytes each, which cannot be packed much smaller."""
    chance = random.Random(seed)
    return "".join(
        f'{{"at":{AT_MS - n % hours * HOUR_MS},"x":"{chance.randbytes(36).hex()}"}}\n'
        for n in range(count)
    )


@pytest.mark.parametrize("codec", ["", *CODECS["parquet"]])
def test_parquet_is_packed_as_asked_for(bench: Bench, codec: str) -> None:
    rows = bench.stage(bench.file("a.json", records(50)), codec=codec)
    assert len(rows) == 50
    assert {codec_in(str(bench.lake / one.path)) for one in bench.staged.files} == {codec or "zstd"}


@pytest.mark.parametrize("land_as", ["json", "text"])
def test_packed_lines_are_counted_and_are_the_same_lines(bench: Bench, land_as: str) -> None:
    file = bench.file("a.json", records(50) + "no json\n")
    bench.stage(file, land_as=land_as)
    plain = {one.kind: (bench.lake / one.path).read_bytes() for one in bench.staged.files}

    shard = bench.engine.stage(bench.job(file, land_as=land_as, codec="gzip"))

    packed = {
        one.kind: gzip.decompress((bench.lake / one.path).read_bytes()) for one in shard.files
    }
    assert packed == plain
    assert {one.kind: one.rows for one in shard.files} == {"data": 50, "dead": 1}
    assert json.loads(packed["dead"])["raw"] == "no json"


@pytest.mark.parametrize("codec", ["", *CODECS["avro"]])
def test_avro_files_say_their_codec_rows_and_letters(bench: Bench, codec: str) -> None:
    """Whoever reads Avro reads them, and so do we."""
    bad = b'{"at":1,"x":"\xff"}\n'
    file = bench.file("a.json", records(50, hours=2).encode() + b"no json\n" + bad)

    staged = bench.engine.stage(bench.job(file, land_as="avro", codec=codec))

    found = dict[str, list[dict[str, Any]]]()
    for one in staged.files:
        path = bench.lake / one.path
        ours = list(values_of(str(path)))
        assert len(ours) == rows_of(str(path)) == one.rows
        found.setdefault(one.kind, []).extend(ours)
        if (codec or "deflate") in ("deflate", "none"):  # others it unpacks only with more packages
            with path.open("rb") as content:
                theirs = fastavro.reader(content)
                assert theirs.codec == ("null" if codec == "none" else "deflate")
                assert list(theirs) == ours
    assert sorted(row["_headgate"]["line"] for row in found["data"]) == list(range(1, 51))
    by_line = {row["_headgate"]["line"]: row for row in found["data"]}
    assert [by_line[n + 1]["value"] for n in range(50)] == records(50, hours=2).split("\n")[:-1]
    hours = {row["_headgate"]["event_time"].timestamp() * 1000 for row in found["data"]}
    assert hours == {AT_MS, AT_MS - HOUR_MS}
    dead = {row["_headgate"]["line"]: row for row in found["dead"]}
    assert (dead[51]["value"], dead[51]["_headgate"]["reason"]) == ("no json", "bad json")
    assert (dead[52]["_headgate"]["raw"], dead[52]["value"]) == (bad[:-1], None)
    assert {tally.kind: tally.rows for tally in staged.tallies} == {"data": 50, "dead": 2}


def test_letters_in_avro_are_driven_in_again(bench: Bench) -> None:
    file = bench.file("a.json", "".join(f'{{"id":{n},"when":{AT_MS}}}\n' for n in range(7)))
    staged = bench.engine.stage(bench.job(file, land_as="avro"))
    assert {one.kind for one in staged.files} == {"dead"}
    letters = [bench.lake / one.path for one in staged.files]

    rows = bench.stage(*letters, format="dead-json", event_time=EventTime("json", "$.when"))

    assert [(row["kind"], row["line"]) for row in rows] == [("data", n) for n in range(1, 8)]
    assert sorted(json.loads(row["value"])["id"] for row in rows) == list(range(7))


def test_a_file_that_is_no_parquet_has_no_codec(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"neither")
    with pytest.raises(Corrupt, match="not a whole Parquet file"):
        codec_in(str(tmp_path / "x"))


@pytest.mark.parametrize(
    ("land_as", "codec"), [("json", "none"), ("avro", "deflate"), ("parquet", "zstd")]
)
def test_an_hour_is_landed_in_files_of_about_the_target_size(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, land_as: str, codec: str
) -> None:
    """Also in the first round of a stream, by a guess; from the second on it is known."""
    monkeypatch.setattr(weights, "LEAST_BYTES", 10_000)
    monkeypatch.setattr(bench.engine, "_weights", weights.Weights())
    target = 40_000
    told: dict[str, Any] = {"land_as": land_as, "codec": codec, "target_bytes": target}
    files = [bench.file(f"{n}.json", records(RECORDS // 2, 2, n)) for n in range(2)]

    bench.engine.stage(bench.job(*files, **told))
    staged = bench.engine.stage(bench.job(*files, **told))

    assert sum(one.rows for one in staged.files) == RECORDS
    for hour_ms in (AT_MS, AT_MS - HOUR_MS):
        sizes = [
            (bench.lake / one.path).stat().st_size for one in staged.files if one.hour_ms == hour_ms
        ]
        assert len(sizes) >= 3
        assert max(sizes) < 1.3 * target
        small = [size for size in sizes if size < 0.7 * target]
        assert len(small) <= 1  # what is left over


def test_what_is_smaller_than_the_target_is_one_file_an_hour(bench: Bench) -> None:
    files = [bench.file(f"{n}.json", records(RECORDS // 10, hours=2)) for n in range(10)]
    staged = bench.engine.stage(bench.job(*files, target_bytes=10_000_000))
    assert len(staged.files) == 2
    counts = [pq.read_metadata(bench.lake / one.path).num_rows for one in staged.files]
    assert counts == [one.rows for one in staged.files] == [RECORDS // 2] * 2
