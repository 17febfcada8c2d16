"""Composed: a file that passed every check, as the values that each room takes. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from headgate.engine import EventTime, SparkSettings
from headgate.engine.sql import text
from headgate.lake import BucketSettings, LakeSettings
from headgate.landing import Output, StepSettings, StreamSettings
from headgate.periods import FolderTemplate, life_name
from headgate.settings import NodeDefaults, Settings, TableSettings, rules
from headgate.settings.ddl import columns_of
from headgate.settings.model import (
    EventTimePart,
    File,
    FilesPart,
    KafkaPart,
    LakePart,
    OutputPart,
    StreamPart,
)
from headgate.sources import AvroSettings, FilesSettings, KafkaSettings, SourceSettings

_BY: Mapping[str, Literal["json", "regex", "column", "sql", "kafka", "avro"]] = {
    **{"json": "json", "regex": "regex", "column": "column", "sql": "sql", "kafka": "kafka"},
    **{"avro": "avro"},
}


def composed(file: File) -> Settings:
    lake, spark, node = file.lake, file.spark, file.node
    every = {name: _stream(name, one) for name, one in file.streams.items()}
    past = [_past(every[name], one) for name, one in file.streams.items()]
    streams = {one.name: one for one in every.values()}
    called = {face.word: face.name for one in streams.values() for face in (one, *one.flagged)}
    return Settings(
        store=file.store,
        lake=_lake(lake),
        namespace=file.namespace,
        streams={name: one for name, one in streams.items() if not _is_template(one)},
        templates={name: one for name, one in streams.items() if _is_template(one)},
        tables={
            name: TableSettings(name, one.kind, called[one.feed.stream], one.path or "")
            for name, one in file.tables.items()
        },
        spark=SparkSettings(
            spark.master,
            spark.remote,
            spark.conf,
            spark.packages,
            stall_after_ms=spark.stall_after,
        ),
        node=NodeDefaults(node.name, node.workers, tuple(sorted(set(node.labels)))),
        past={one.name: one for lives in past for one in lives},
    )


def _past(stream: StreamSettings, one: StreamPart) -> list[StreamSettings]:
    """Its earlier lives: where they lie is all that matters of them."""
    word, former = stream.word, enumerate(one.former_folders, 1)
    return [
        replace(
            stream,
            name=life_name(word, life),
            folder=_folder(folder, life),
            outputs=_outputs(one, life),
        )
        for life, folder in former
    ]


def _folder(template: str, life: int) -> FolderTemplate:
    return replace(FolderTemplate.parse(template), life=life)


def _outputs(one: StreamPart, life: int) -> tuple[Output, ...]:
    return tuple(
        Output(life_name(name, life), _condition(output)) for name, output in one.outputs.items()
    )


def _condition(one: OutputPart) -> str:
    if one.filter is not None:
        return one.filter
    return f"get_json_object(value, {text(one.json_path or '')}) = {text(one.equals or '')}"


def _lake(lake: LakePart) -> LakeSettings:
    bucket = BucketSettings(
        lake.endpoint,
        lake.region or "",
        lake.path_style,
        lake.access_key,
        lake.secret_key,
        lake.session_token,
        lake.requests,
    )
    return LakeSettings(lake.root, lake.file_mode, lake.folder_mode, lake.group, bucket)


def _is_template(stream: StreamSettings) -> bool:
    return isinstance(stream.source, KafkaSettings) and bool(stream.source.pattern)


def _stream(name: str, one: StreamPart) -> StreamSettings:
    life = len(one.former_folders) + 1
    return StreamSettings(
        name=life_name(name, life),
        source=_source(one.source),
        event_time=_event_time(one.event_time),
        folder=_folder(one.folder, life),
        land_as=one.land_as,
        shards=one.shards,
        shift_ms=one.shift,
        grace_ms=one.grace,
        allowed_lateness_ms=one.allowed_lateness,
        future_skew_ms=one.future_skew,
        late_records=one.late_records,
        first_hour_ms=None if one.first_hour is None else rules.hour_ms(one.first_hour),
        last_hour_ms=None if one.last_hour is None else rules.hour_ms(one.last_hour),
        record_bytes_max=one.record_size_max,
        round_bytes=one.round_size,
        nodes=tuple(sorted(set(one.nodes))),
        steps=tuple(StepSettings(step.kind, step.model_extra or {}) for step in one.steps),
        is_merged=one.merge,
        target_bytes=one.target_size,
        codec=one.codec or "",
        columns=() if one.columns is None else columns_of(one.columns),
        outputs=_outputs(one, life),
    )


def _source(one: FilesPart | KafkaPart) -> SourceSettings:
    return _kafka(one) if isinstance(one, KafkaPart) else _files(one)


def _kafka(one: KafkaPart) -> KafkaSettings:
    start_ms = rules.start_ms(one.start)
    return KafkaSettings(
        brokers=one.brokers,
        topics=one.topics or ((one.topic,) if one.topic is not None else ()),
        pattern=one.pattern or "",
        format=one.format,
        start="time" if start_ms is not None else "end" if one.start == "end" else "beginning",
        start_ms=start_ms,
        out_of_range=one.out_of_range,
        isolation=one.isolation,
        options=one.options,
        spark_options=one.spark_options,
        land=tuple(dict.fromkeys(one.land)),
        records_max=one.round_records,
        records_per_s=one.records_per_second,
        avro=_avro(one) if one.format == "avro" else None,
    )


def _avro(one: KafkaPart) -> AvroSettings:
    registry = one.registry
    if registry is None:
        return AvroSettings(one.schema_file or "", is_framed=one.framing == "confluent")
    return AvroSettings(
        registry=registry.url,
        is_framed=True,
        user=registry.user or "",
        password=registry.password or "",
        token=registry.token or "",
        ca=registry.ca or "",
    )


def _files(one: FilesPart) -> FilesSettings:
    return FilesSettings(
        path=one.path,
        format=one.format,
        lanes=one.lanes,
        include=one.include,
        exclude=one.exclude,
        min_age_ms=one.min_age,
        after_read=one.after_read,
        move_to=one.move_to or "",
        columns=one.columns,
    )


def _event_time(one: EventTimePart) -> EventTime:
    ((by, given),) = one.given.items()
    if one.parse is not None:
        return EventTime(_BY[by], given, "text", rules.time_pattern(one.parse))
    return EventTime(_BY[by], given, one.unit or "ms")
