"""Shaping: the shape of a stream's records, by its settings: what shards must have in common to
share a job, and what an engine can judge before there is any record."""

from headgate.engine import Shape
from headgate.landing import StreamSettings
from headgate.sources import KafkaSettings

ANY_SKEW_MS = 2**60


def has_sql(settings: StreamSettings) -> bool:
    """Whether there are expressions that only the engine can judge."""
    return settings.event_time.by == "sql" or bool(settings.outputs)


def first_shape(settings: StreamSettings) -> Shape:
    """Before anything was read: of files whose columns stand in themselves, without those."""
    source = settings.source
    if isinstance(source, KafkaSettings):
        return shape_of(settings, "kafka", source.format)
    is_bare = source.format == "csv" and bool(source.columns)
    return shape_of(settings, "files", "csv-bare" if is_bare else source.format, source.columns)


def shape_of(
    settings: StreamSettings,
    reader: str,
    kind: str,
    columns: tuple[str, ...] = (),
    *,
    is_clock_trusted: bool = True,
) -> Shape:
    """`reader`, `kind` and `columns`: as a plan of its source says."""
    source = settings.source
    is_dead = kind == "dead"
    kafka = source if isinstance(source, KafkaSettings) else None
    return Shape(
        settings.name,
        reader,
        f"dead-{source.format}" if is_dead else kind,
        columns,
        settings.event_time,
        settings.land_as,
        settings.record_bytes_max,
        # An arrival told by a wrong clock must not make dead letters of good records.
        settings.future_skew_ms if is_clock_trusted else ANY_SKEW_MS,
        "" if kafka is None or is_dead else kafka.place,
        () if kafka is None else kafka.land,
        settings.codec,
        settings.target_bytes,
        None if kafka is None else kafka.coding,
        settings.columns,
        tuple((one.name, one.filter) for one in settings.outputs),
        is_of_log=is_dead and kafka is not None,
    )
