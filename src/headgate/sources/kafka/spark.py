"""Spark: ranges of offsets as rows.

`raw` is the value as text, byte by byte; null: there is none, which Kafka calls a tombstone. Beside
it `label`, `partition`, `number` (the offset), `line` (none), `arrival_ms`, `mark_ms`, `stamp_ms`
(the time that Kafka keeps), and what is landed on request.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from headgate.engine import NO_MARK_MS, InputSpan, Job, ShardInput
from headgate.engine.failure import JobFailed
from headgate.engine.sql import text

OFFSETS_A_TASK: Final = 1_000_000  # a hot partition is read by several tasks

_FACTS: Final = "topic string, lane int, label string, name string, mark_ms bigint, seen_ms bigint"
_STAMP_MS: Final = "unix_millis(timestamp)"

Planned = Sequence[tuple[ShardInput, InputSpan]]


class KafkaReader:
    """Makes rows of spans."""

    def __init__(self, clusters: Mapping[str, Mapping[str, str]]) -> None:
        """By `Shape.place`: Spark's options for it, with their secrets."""
        self._clusters = clusters

    def frame(self, session: SparkSession, job: Job) -> DataFrame:
        """Raises JobFailed."""
        spans = [(shard, span) for shard in job.inputs for span in shard.spans]
        read = session.read.format("kafka").options(**self._clusters[job.shape.place])
        rows = read.options(**ranges_of([span for _, span in spans])).option(
            "includeHeaders", str("headers" in job.shape.extras).lower()
        )
        return told(session, rows.load(), job, spans)


def ranges_of(spans: Sequence[InputSpan]) -> dict[str, str]:
    """Exactly these: every partition that is assigned has a start and an end. Raises JobFailed."""
    first, following = (
        defaultdict[str, dict[str, int]](dict),
        defaultdict[str, dict[str, int]](dict),
    )
    for span in spans:
        if str(span.lane) in first[span.topic]:
            raise JobFailed(f"{span.topic}/{span.lane}: planned twice in one job")
        first[span.topic][str(span.lane)] = span.first
        following[span.topic][str(span.lane)] = span.next
    assigned = {topic: [int(lane) for lane in lanes] for topic, lanes in first.items()}
    offsets = sum(span.next - span.first for span in spans)
    return {
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(first),
        "endingOffsets": json.dumps(following),
        "minPartitions": str(max(len(spans), ceil(offsets / OFFSETS_A_TASK))),
    }


def told(session: SparkSession, rows: DataFrame, job: Job, spans: Planned) -> DataFrame:
    """Each row with what is known of its span."""
    facts = [
        {
            "topic": span.topic, "lane": span.lane, "label": shard.label, "name": span.partition,
            "mark_ms": shard.marks_ms.get(span.partition, NO_MARK_MS), "seen_ms": span.seen_ms,
        }
        for shard, span in spans
    ]  # fmt: skip
    if len({span.topic for _, span in spans}) == 1:
        fact = _looked_up(facts)
        known = rows
    else:
        table = session.range(1).select(
            fn.inline(fn.from_json(fn.lit(json.dumps(facts)), f"array<struct<{_FACTS}>>"))
        )
        named = table.select(
            fn.col("topic").alias("of_topic"), "lane", fn.struct("*").alias("fact")
        )
        is_its = (rows["topic"] == named["of_topic"]) & (rows["partition"] == named["lane"])
        known, fact = rows.join(fn.broadcast(named), is_its, "left"), "fact"
    stamp = f"CASE WHEN {_STAMP_MS} > 0 THEN {_STAMP_MS} END"
    kept = [_EXTRAS[extra] for extra in job.shape.extras]
    return known.selectExpr(
        "CAST(value AS STRING) AS raw",
        f"{fact}.label AS label",
        f"{fact}.name AS partition",
        "offset AS number",
        "CAST(NULL AS BIGINT) AS line",
        f"least({stamp}, {fact}.seen_ms) AS arrival_ms",
        f"{fact}.mark_ms AS mark_ms",
        f"{stamp} AS stamp_ms",
        *(column for columns in kept for column in columns),
    )


_EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "key": ("key",),
    "headers": ("headers",),
    "timestamp": (
        "timestamp",
        "CASE timestampType WHEN 0 THEN 'create' WHEN 1 THEN 'append' END AS timestamp_type",
    ),
}


def _looked_up(facts: Sequence[Mapping[str, object]]) -> str:
    """In a list by the partition's number, which costs less than to join."""
    by_lane = {int(str(fact["lane"])): fact for fact in facts}
    listed = [_literal(by_lane.get(lane)) for lane in range(max(by_lane) + 1)]
    return f"get(array({', '.join(listed)}), partition)"


def _literal(fact: Mapping[str, object] | None) -> str:
    """Of a partition that is not read: nothing, which is never looked up."""
    if fact is None:
        fact = {"label": "", "name": "", "mark_ms": 0, "seen_ms": 0}
    return (
        f"named_struct('label', {text(str(fact['label']))}, 'name', {text(str(fact['name']))}, "
        f"'mark_ms', {fact['mark_ms']}L, 'seen_ms', {fact['seen_ms']}L)"
    )
