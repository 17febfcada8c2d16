"""How many records make a file: guessed from what is planned, then learned."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from headgate.engine import EventTime, InputFile, InputSpan, Job, Shape, ShardInput
from headgate.engine.weights import LEAST_BYTES, Weights, record_bytes


def job(*files: Path, spans: tuple[InputSpan, ...] = (), **changed: Any) -> Job:
    usual: dict[str, Any] = {"codec": "none", "target_bytes": 13_000_000}
    shape = Shape(
        *("orders", "files", "json", (), EventTime("json", "$.at"), "json", 1_000, 1_000),
        **{**usual, **changed},
    )
    taken = tuple(InputFile("lane-0", 1, str(one), one.stat().st_size, 0) for one in files)
    return Job(shape, "x", (ShardInput("0-1", taken, {}, spans),))


def span(records: int, record_bytes: int) -> InputSpan:
    return InputSpan("t/0", "t", 0, 5, 5 + records, 0, record_bytes)


def test_of_a_log_the_plan_says_what_a_record_weighs() -> None:
    planned = job(spans=(span(100, 10), span(300, 50)))
    assert record_bytes(planned) == 40
    assert Weights().records_max(planned) == 250_000  # with what is added to each


def test_of_files_the_first_lines_of_the_largest_say_it(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x" * 9 + b"\n")
    large = tmp_path / "large"
    large.write_bytes((b"x" * 99 + b"\n") * 5_000)
    packed = tmp_path / "large.gz"
    packed.write_bytes(gzip.compress((b"x" * 49 + b"\n") * 5_000))
    assert record_bytes(job(tmp_path / "small", large)) == pytest.approx(100, rel=0.01)
    assert record_bytes(job(packed)) == pytest.approx(50, rel=0.01)


def test_nobody_can_tell_of_what_cannot_be_read(tmp_path: Path) -> None:
    for name in ("no.gz", "no.parquet"):
        (tmp_path / name).write_bytes(b"neither of them")
        assert record_bytes(job(tmp_path / name)) == 0
        assert Weights().records_max(job(tmp_path / name)) == 0
    assert record_bytes(job()) == 0


def test_what_was_staged_is_better_than_a_guess_and_of_its_stream_and_codec_only() -> None:
    weights, planned = Weights(), job(spans=(span(100, 10),))
    weights.learn(planned.shape, [6_000_000, 4_000_000], 1_000_000)  # ten bytes a row
    assert weights.records_max(planned) == 1_300_000
    packed = job(spans=(span(100, 10),), codec="gzip")
    assert weights.records_max(packed) == round(13_000_000 / 3)
    weights.learn(planned.shape, [99], 1)  # a file has a frame
    assert weights.records_max(planned) == 1_300_000


def test_nobody_gets_a_file_for_each_record() -> None:
    weights = Weights()
    planned = job(spans=(span(100, 10),), target_bytes=1)
    assert weights.records_max(planned) == round(LEAST_BYTES / 13)
