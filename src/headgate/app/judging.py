"""Judging: what Spark makes of the expressions that land records, and of a few records by them.

Expressions are judged without a record. Records are staged as a round would stage them, in an
attempt of an epoch that no shard has, looked at, and removed: nothing is ever published. Needs
Spark's library, and Java.
"""

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice

from headgate.ambient import Ambient
from headgate.app.checkup import SampleRecord, opened
from headgate.app.equipment import opened_landing
from headgate.app.letters import letters_of
from headgate.engine import NO_MARK_MS, Engine, InputFile, InputSpan, Job, ShardInput, Staged
from headgate.engine.failure import JobFailed
from headgate.errors import Invalid, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.opening import place_of
from headgate.landing import StreamSettings
from headgate.landing.names import attempt_folder, label_of
from headgate.landing.report import WORDS
from headgate.landing.shaping import first_shape, has_sql
from headgate.settings import Settings
from headgate.sources import KafkaSettings
from headgate.sources.kafka.document import parsed_name

LABEL = label_of(0, 0)  # older than any holder's: a sweeper may remove it
WHOLE_BYTES_MAX = 64_000_000  # of a Parquet file: it is read as a whole


def judge_by_spark(
    settings: Settings,
    stream: StreamSettings,
    samples: Sequence[SampleRecord],
    columns: tuple[str, ...],
    ambient: Ambient,
) -> list[SampleRecord]:
    """`columns`: of files. Also without samples its expressions are judged. Raises Invalid,
    Unavailable."""
    with opened_landing(settings, ambient) as landing:
        _check(landing.engine, stream)
        return [
            _judged(landing.engine, landing.lake, stream, one, columns, ambient) for one in samples
        ]


def refused_by_spark(settings: Settings, ambient: Ambient) -> dict[str, str]:
    """By stream: which expression of it, and why. Without one, Spark is not started. Raises Invalid
    (other settings), Unavailable."""
    every = {**settings.streams, **settings.templates}
    asked = [stream for stream in every.values() if has_sql(stream)]
    found = dict[str, str]()
    if not asked:
        return found
    with opened_landing(settings, ambient) as landing:
        for stream in asked:
            try:
                _check(landing.engine, stream)
            except Invalid as error:
                found[stream.name] = str(error)
    return found


def _check(engine: Engine, stream: StreamSettings) -> None:
    if has_sql(stream):
        try:
            engine.check(first_shape(stream))
        except JobFailed as error:
            raise Unavailable(f"{error}; next: try again") from error


def _judged(
    engine: Engine,
    lake: Lake,
    stream: StreamSettings,
    sample: SampleRecord,
    columns: tuple[str, ...],
    ambient: Ambient,
) -> SampleRecord:
    folder = attempt_folder(stream.name, ambient.new_id, [LABEL])
    with closing(_Folder(lake, folder)):
        wanted = _input(lake, stream, sample, folder, ambient.wall_ns() // 1_000_000)
        if wanted is None:
            return replace(sample, becomes="not judged: its file is too large for a sample")
        shape = replace(first_shape(stream), columns=columns)
        job = Job(shape, f"{folder}/out", (wanted,))
        try:
            staged = engine.stage(job)
        except JobFailed as error:
            raise Unavailable(f"{error}; next: headgate --debug doctor source") from error
        return _told(lake, sample, staged)


def _told(lake: Lake, sample: SampleRecord, staged: Staged) -> SampleRecord:
    tallies = [one for one in staged.tallies if one.kind != "skip"]
    if not tallies:
        return replace(sample, becomes="no record: a blank line or a header")
    event_ms, kind = tallies[0].event_ms_min, tallies[0].kind
    if kind != "dead":
        (output,) = {one.output for one in staged.files if one.kind == kind}
        to = f" of output {output}" if output else ""
        return replace(sample, event_ms=event_ms, becomes=f"{WORDS[kind][0]}{to}")
    (letters,) = [one.path for one in staged.files if one.kind == "dead"]
    reason = next(letters_of(lake, letters)).reason
    return replace(sample, event_ms=event_ms, becomes=f"dead: {reason}")


def _input(
    lake: Lake, stream: StreamSettings, sample: SampleRecord, folder: str, now_ms: int
) -> ShardInput | None:
    name = sample.partition
    if isinstance(stream.source, KafkaSettings):
        topic, _, number = parsed_name(name)
        offset = int(sample.position)
        span = InputSpan(name, topic, number, offset, offset + 1, now_ms, 1)
        return ShardInput(LABEL, (), {name: NO_MARK_MS}, (span,))
    path = name
    if stream.source.format != "parquet":
        with opened(path) as content:
            head = b"".join(islice(content, int(sample.position)))
        path = f"{place_of(lake)}/{folder}/sample"
        size_bytes = lake.stage(f"{folder}/sample", head).size_bytes
    else:
        size_bytes = os.stat(path).st_size
    if size_bytes > WHOLE_BYTES_MAX:
        return None
    file = InputFile("sample", 0, path, size_bytes, now_ms)
    return ShardInput(LABEL, (file,), {"sample": NO_MARK_MS})


class _Folder:
    """Is gone afterwards; what cannot be removed now, a sweeper removes."""

    def __init__(self, lake: Lake, folder: str) -> None:
        self._lake = lake
        self._folder = folder

    def close(self) -> None:
        with suppress(Unavailable, OutcomeUnknown):
            self._lake.remove_folder(self._folder)
