"""Model: which keys there are, what they mean, and what they may be. The door to pydantic.

From it come the check of a file with all its problems at once, the JSON Schema, and the values that
`Settings` is put together from. What needs two parts of the file to be seen is in `crossings`.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Strict,
    Tag,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from headgate.cluster.duties import WORKERS_MAX
from headgate.engine import LandAs
from headgate.errors import Invalid
from headgate.lake import REQUESTS_MAX
from headgate.landing import LateRecords
from headgate.periods import DEFAULT_FOLDER, FolderTemplate
from headgate.settings import TableKind, rules, units
from headgate.settings.ddl import columns_of
from headgate.settings.keys import Schema
from headgate.settings.problems import Place, nearest, quoted
from headgate.settings.secrecy import connect_server, secret_reference, unreferring
from headgate.settings.wording import Error
from headgate.store.names import check_namespace

LANES_MAX = 10_000
SHARDS_MAX = 10_000
FOLDER = "folder"  # in the context: where relative paths start

Given = TypeVar("Given")
Taken = TypeVar("Taken")


def checked(rule: Callable[[Given], Taken]) -> Callable[[Given], Taken]:
    """A rule of ours as a validator of theirs."""

    def check(value: Given) -> Taken:
        try:
            return rule(value)
        except Invalid as error:
            raise refused(str(error)) from error

    return check


def kept(rule: Callable[[Given], object]) -> Callable[[Given], Given]:
    """The same, where only the check matters and the value stays as it was typed."""

    def check(value: Given) -> Given:
        checked(rule)(value)
        return value

    return check


def refused(words: str, *below: str) -> PydanticCustomError:
    """`below`: the keys from the place of the check to the one that is wrong."""
    return PydanticCustomError("refused", "{words}", {"words": words, "below": below})


def _anchored(rule: Callable[..., str]) -> Callable[[str, ValidationInfo], str]:
    def check(value: str, info: ValidationInfo) -> str:
        context: Any = info.context
        return checked(partial(rule, folder=context[FOLDER]))(value)

    return check


def duration(lowest_ms: int, highest_ms: int) -> Callable[[object], int]:
    return _measured(units.duration_ms, units.duration_text, lowest_ms, highest_ms, "5m")


def size(lowest_bytes: int, highest_bytes: int) -> Callable[[object], int]:
    return _measured(units.size_bytes, units.size_text, lowest_bytes, highest_bytes, "128MB")


def _measured(
    parse: Callable[[str], int], text: Callable[[int], str], lowest: int, highest: int, example: str
) -> Callable[[object], int]:
    def check(value: object) -> int:
        if not isinstance(value, str):
            raise refused(f"{quoted(value)} has no unit: write it like {example}")
        number = checked(parse)(value)
        if not lowest <= number <= highest:
            raise refused(f"must be from {text(lowest)} to {text(highest)}, not {quoted(value)}")
        return number

    return check


def _is_no_truth(value: object) -> object:
    if isinstance(value, bool):
        raise refused(f"needs a whole number, not {quoted(value)}")
    return value


def _mode(needed: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise refused('needs three digits as for chmod, like "640"')
        return checked(partial(rules.mode, needed=needed))(str(value))

    return check


def _not_blank(text: str) -> str:
    if not text.strip():
        raise refused("is empty: write a value, or leave the key out")
    return text


def _built(policy: LateRecords) -> LateRecords:
    if policy == "append":
        raise refused("`append` is not built yet: use divert or dead-letter")
    return policy


def _conf_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise refused("needs a text or a number")


DAY_MS = 86_400_000
_DURATION = (
    PlainSerializer(units.duration_text),
    WithJsonSchema({"type": "string", "pattern": f"^{units.DURATION_PATTERN}$"}),
)
_SIZE = (
    PlainSerializer(units.size_text),
    WithJsonSchema({"type": "string", "pattern": f"^{units.SIZE_PATTERN}$"}),
)
_CHMOD = (
    PlainSerializer("{:o}".format),
    WithJsonSchema({"type": "string", "pattern": "^[0-7]{3}$"}),
)
Wait = Annotated[int, BeforeValidator(duration(0, 365 * DAY_MS)), _DURATION[0], _DURATION[1]]
Shift = Annotated[int, BeforeValidator(duration(100, DAY_MS)), _DURATION[0], _DURATION[1]]
RecordSize = Annotated[int, BeforeValidator(size(1, 2**30)), _SIZE[0], _SIZE[1]]
RoundSize = Annotated[int, BeforeValidator(size(1, 2**40)), _SIZE[0], _SIZE[1]]
TargetSize = Annotated[int, BeforeValidator(size(1, 2**40)), _SIZE[0], _SIZE[1]]
Truth = Annotated[bool, Strict()]
FileMode = Annotated[int, BeforeValidator(_mode(0o600)), _CHMOD[0], _CHMOD[1]]
FolderMode = Annotated[int, BeforeValidator(_mode(0o700)), _CHMOD[0], _CHMOD[1]]
Whole = Annotated[int, BeforeValidator(_is_no_truth)]
Shown = Annotated[str, AfterValidator(checked(rules.shown_text))]
Text = Annotated[Shown, AfterValidator(_not_blank), AfterValidator(checked(unreferring))]
Path = Annotated[
    str, AfterValidator(checked(unreferring)), AfterValidator(_anchored(rules.absolute))
]
Root = Annotated[
    str, AfterValidator(checked(unreferring)), AfterValidator(_anchored(rules.lake_root))
]
Endpoint = Annotated[
    Shown, AfterValidator(checked(unreferring)), AfterValidator(checked(rules.endpoint))
]
Name = Annotated[Text, AfterValidator(checked(rules.stream_name))]
Hour = Annotated[Text, AfterValidator(kept(rules.hour_ms))]
Folder = Annotated[Text, AfterValidator(kept(FolderTemplate.parse))]
Topic = Annotated[Text, AfterValidator(checked(rules.topic_name))]
Start = Annotated[Text, AfterValidator(kept(rules.start_ms))]
Secret = Annotated[Shown, AfterValidator(checked(secret_reference))]

ConfText = Annotated[
    str,
    BeforeValidator(_conf_text),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]


def written(default: str, description: str) -> Any:
    """A field whose default is given as a person would write it."""
    return Field(default, description=description)


class Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", validate_default=True, populate_by_name=False, frozen=True
    )


class LakePart(Part):
    """Where everything lands."""

    model_config = ConfigDict(title="lake")
    root: Root = Field(
        description="The folder of the lake; or hdfs://HOST:PORT/FOLDER, or s3://BUCKET/FOLDER."
    )
    file_mode: FileMode | None = Field(
        None, description="Of published files, as for chmod; none: as the system does."
    )
    folder_mode: FolderMode | None = Field(
        None, description="Of folders; none: as the system does."
    )
    group: Shown = Field("", description="Of files and folders; none: as the system does.")
    endpoint: Endpoint = Field(
        "", description="Of s3: where the server is, like http://HOST:PORT; none: Amazon's own."
    )
    region: Text | None = Field(None, description="Of s3; none: AWS_REGION, else us-east-1.")
    path_style: Truth = Field(
        True, description="Of s3: the bucket stands in the path, not in the name of the host."
    )
    access_key: Shown = Field(
        "", description="Of s3: a reference; none: as every client of Amazon looks it up."
    )
    secret_key: Shown = Field("", description="Of s3: a reference, with `access_key`.")
    session_token: Shown = Field("", description="Of s3: a reference, for keys that end.")
    requests: Annotated[Whole, Field(ge=1, le=1_000)] = Field(
        REQUESTS_MAX, description="Of s3: no more than that at once, of one node."
    )

    @model_validator(mode="after")
    def _fits(self) -> "LakePart":
        is_bucket, is_hdfs = self.root.startswith("s3:"), self.root.startswith("hdfs:")
        for name in FOLDER_KEYS if is_bucket else BUCKET_KEYS:
            if getattr(self, name) != type(self).model_fields[name].default:
                kind = "on HDFS" if is_hdfs else "a folder of this machine"
                kind = "a bucket" if is_bucket else kind
                raise refused(f"has no use where the lake is {kind}: leave it out", name)
        if bool(self.access_key) != bool(self.secret_key):
            raise refused("is one of two: set access_key and secret_key, or neither", "access_key")
        if self.session_token and not self.access_key:
            raise refused("belongs to access_key and secret_key: set both", "session_token")
        return self


FOLDER_KEYS = ("file_mode", "folder_mode", "group")
BUCKET_KEYS = (
    *("endpoint", "region", "path_style", "access_key", "secret_key", "session_token", "requests"),
)


SOURCE_KINDS = ("files", "kafka")


def _known_kind(kind: object) -> object:
    """Said here once: a source whose kind is not known is read as one of files."""
    if isinstance(kind, str) and kind not in SOURCE_KINDS:
        near = nearest(kind, SOURCE_KINDS)
        raise refused(f"{quoted(kind)} is none of 'files' or 'kafka'; the nearest is {near!r}")
    return kind


class FilesPart(Part):
    """A folder into which somebody drops files."""

    model_config = ConfigDict(title="source")
    kind: Annotated[Literal["files"], BeforeValidator(_known_kind)] = Field(
        description="A folder into which somebody drops files."
    )
    path: Path = Field(description="The folder.")
    format: Literal["json", "csv", "text", "parquet"] = Field(
        "json", description="What is in the files; json, csv and text may be gzipped."
    )
    lanes: Whole = Field(
        1, ge=1, le=LANES_MAX, description="Source partitions to spread files over."
    )
    include: tuple[Text, ...] = Field(
        (), description="Patterns for the path below the folder; none: every file."
    )
    exclude: tuple[Text, ...] = Field((), description="Patterns of files to leave alone.")
    min_age: Wait = written("0s", description="Younger files are left alone for now.")
    after_read: Literal["keep", "move", "delete"] = Field(
        "keep", description="What happens to a file once its records are in the lake."
    )
    move_to: Path | None = Field(None, description="The folder for `after_read: move`.")
    columns: tuple[Text, ...] = Field((), description="Names for csv files without a header line.")

    @model_validator(mode="after")
    def _fits(self) -> "FilesPart":
        if self.after_read == "move" and self.move_to is None:
            raise refused("is missing: `after_read: move` needs a folder", "move_to")
        if self.move_to is not None and self.after_read != "move":
            raise refused(f"has no use with `after_read: {self.after_read}`", "move_to")
        if self.move_to is not None and f"{self.move_to}/".startswith(f"{self.path}/"):
            raise refused("is inside `path`, where its files would be read again", "move_to")
        if self.columns and self.format in ("json", "text"):
            raise refused(f"{self.format} files have no columns: leave it out", "columns")
        if len(set(self.columns)) < len(self.columns):
            raise refused("a name is there twice", "columns")
        return self


def _addressed(value: object) -> object:
    return {"url": value} if isinstance(value, str) else value


class RegistryPart(Part):
    """A schema registry."""

    model_config = ConfigDict(title="registry")
    url: Annotated[Text, AfterValidator(checked(rules.web_address))] = Field(
        description="Where it is: http://host:port or https://…"
    )
    user: Text | None = Field(None, description="The name for it, with `password`.")
    password: Secret | None = Field(None, description="A reference to it, like ${env:NAME}.")
    token: Secret | None = Field(None, description="A reference to one, instead of a user.")
    ca: Path | None = Field(None, description="A file with certificates to trust.")

    @model_validator(mode="after")
    def _fits(self) -> "RegistryPart":
        if (self.user is None) != (self.password is None):
            raise refused("needs `user` and `password` together", "user")
        if self.user is not None and self.token is not None:
            raise refused("has a user and a token: keep one", "token")
        return self


class KafkaPart(Part):
    """Topics of a Kafka cluster."""

    model_config = ConfigDict(title="source of kind kafka")
    kind: Literal["kafka"] = Field(description="Topics of a Kafka cluster.")
    brokers: Text = Field(description="Where the cluster is: host:port, several with commas.")
    topic: Topic | None = Field(None, description="The topic.")
    topics: tuple[Topic, ...] = Field((), description="Several topics, instead of one.")
    pattern: Annotated[Text, AfterValidator(checked(rules.pattern))] | None = Field(
        None, description="A regular expression: each topic that it matches is a stream by itself."
    )
    format: Literal["json", "text", "binary", "avro"] = Field(
        "json", description="What the value of a record is."
    )
    schema_file: Path | None = Field(
        None, alias="schema", description="Of avro: a file with the schema of all records."
    )
    registry: (
        Annotated[
            RegistryPart, BeforeValidator(_addressed, json_schema_input_type=str | RegistryPart)
        ]
        | None
    ) = Field(None, description="Of avro: a schema registry, by its URL or with more.")
    framing: Literal["none", "confluent"] | None = Field(
        None,
        description="Of avro: what stands before a record; with a registry, confluent: a zero byte "
        "and the id of its schema.",
    )
    start: Start = Field(
        "beginning",
        description="Where a stream begins: beginning, end, or a time like 2026-11-01T00:00Z.",
    )
    out_of_range: Literal["fail", "earliest", "latest"] = Field(
        "fail", description="Where reading goes on if records expired before they were read."
    )
    isolation: Literal["read_committed", "read_uncommitted"] = Field(
        "read_committed", description="Whether records of open and aborted transactions are read."
    )
    options: dict[Text, ConfText] = Field(
        {}, description="Of the Kafka client, like security.protocol; a secret is a reference."
    )
    spark_options: dict[Text, ConfText] = Field(
        {}, description="Of Spark's Kafka reader, in its own words, beside those it gets from here."
    )
    land: tuple[Literal["key", "headers", "timestamp"], ...] = Field(
        (), description="What is landed beside the value, as parquet or avro."
    )
    round_records: Annotated[Whole, Field(ge=1)] = Field(
        10_000_000, description="No round reads more records than that."
    )
    records_per_second: Annotated[Whole, Field(ge=0)] = Field(
        0, description="No more are read on average, per shard; 0: as many as there are."
    )

    @model_validator(mode="after")
    def _fits(self) -> "KafkaPart":
        if [self.topic is None, not self.topics, self.pattern is None].count(False) != 1:
            raise refused("needs exactly one of `topic`, `topics` and `pattern`", "topic")
        if len({*self.topics}) < len(self.topics):
            raise refused("a topic is there twice", "topics")
        self._fits_avro()
        return self

    def _fits_avro(self) -> None:
        given = {"schema": self.schema_file, "registry": self.registry, "framing": self.framing}
        for key, value in given.items():
            if value is not None and self.format != "avro":
                raise refused(f"is for `format: avro`, and the format is {self.format}", key)
        if self.format != "avro":
            return
        if (self.schema_file is None) == (self.registry is None):
            raise refused("avro needs exactly one of `schema` and `registry`", "schema")
        if self.registry is not None and self.framing == "none":
            words = "without a frame no record says which schema of the registry it has: name a "
            raise refused(f"{words}`schema` instead of the registry", "framing")


def _source_kind(value: object) -> str:
    """Which of the parts it is; what says nothing is read as files, which then says what lacks."""
    kind = value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)
    return "kafka" if kind == "kafka" else "files"


SourcePart = Annotated[
    Annotated[FilesPart, Tag("files")] | Annotated[KafkaPart, Tag("kafka")],
    Discriminator(_source_kind),
]


class EventTimePart(Part):
    """How the event time is taken from a record, in exactly one of these ways."""

    model_config = ConfigDict(title="event_time")
    json_path: Annotated[Text, AfterValidator(checked(rules.json_path))] | None = Field(
        None, alias="json", description="A JSON path of names, like $.order['placed at']."
    )
    regex: Annotated[Text, AfterValidator(checked(rules.regex))] | None = Field(
        None, description="A regular expression; its only group is the event time."
    )
    column: Text | None = Field(None, description="The name of a column.")
    sql: Text | None = Field(None, description="An expression of Spark SQL.")
    kafka: Literal["timestamp"] | None = Field(
        None, description="The time that Kafka keeps of the record."
    )
    avro: Annotated[Text, AfterValidator(checked(rules.avro_field))] | None = Field(
        None, description="A field of an Avro record, like meta.at."
    )
    unit: Literal["ms", "s"] | None = Field(
        None, description="Of a number, since 1970 in UTC; ms if there is no `parse` either."
    )
    parse: Annotated[Shown, AfterValidator(kept(rules.time_pattern))] | None = Field(
        None, description="The pattern of a text, as Spark takes it; iso is ISO 8601."
    )

    @model_validator(mode="after")
    def _fits(self) -> "EventTimePart":
        given = self.given
        if len(given) != 1:
            names = " and ".join(given) if given else "none of them"
            raise refused(
                f"needs exactly one of json, regex, column, sql, kafka and avro, and has {names}"
            )
        if self.kafka is not None and (self.unit is not None or self.parse is not None):
            raise refused("the time that Kafka keeps needs neither `unit` nor `parse`")
        if self.unit is not None and self.parse is not None:
            raise refused("has `unit` and `parse`: a number has a unit, a text a pattern; keep one")
        return self

    @property
    def given(self) -> dict[str, str]:
        every = {
            "json": self.json_path,
            "regex": self.regex,
            "column": self.column,
            "sql": self.sql,
            "kafka": self.kafka,
            "avro": self.avro,
        }
        return {key: text for key, text in every.items() if text is not None}


class StepPart(Part):
    """A step of your own after the files of each commit; all other keys are its options."""

    model_config = ConfigDict(title="steps", extra="allow")
    kind: Text = Field(description="As it was registered.")


class OutputPart(Part):
    """Records that land under a name of their own: exactly one of filter and json."""

    model_config = ConfigDict(title="outputs")
    filter: Annotated[Text, AfterValidator(checked(rules.condition))] | None = Field(
        None, description="A condition of Spark SQL over a record, like an event_time of sql."
    )
    json_path: Annotated[Text, AfterValidator(checked(rules.json_path))] | None = Field(
        None, alias="json", description="A JSON path of names, like $.type; with `equals`."
    )
    equals: ConfText | None = Field(None, description="What stands at that path, as text.")

    @model_validator(mode="after")
    def _fits(self) -> "OutputPart":
        if (self.filter is None) == (self.json_path is None):
            raise refused("needs exactly one of `filter` and `json`")
        if (self.equals is None) != (self.json_path is None):
            raise refused("`json` and `equals` belong together: the path, and what stands there")
        return self


class StreamPart(Part):
    """A sequence of records from one source."""

    model_config = ConfigDict(title="stream")
    source: SourcePart = Field(description="Where its records come from.")
    event_time: EventTimePart = Field(description="When a record happened.")
    land_as: LandAs = Field("parquet", description="The format in the lake.")
    codec: Literal["zstd", "snappy", "gzip", "lz4", "deflate", "none"] | None = Field(
        None,
        description="How it is packed; none given: parquet by zstd, avro by deflate, others not.",
    )
    columns: Annotated[Text, AfterValidator(kept(columns_of))] | None = Field(
        None,
        description="What becomes of a record, like id BIGINT, note STRING; none: it lands as it "
        "came.",
    )
    folder: Folder = Field(DEFAULT_FOLDER, description="Where an hour lies in the lake; in UTC.")
    former_folders: tuple[Folder, ...] = Field(
        (), description="Where it landed before a person let it begin anew; the first one first."
    )
    shards: Whole = Field(
        1,
        ge=1,
        le=SHARDS_MAX,
        description="How many nodes can share it; fixed by its first commit.",
    )
    shift: Shift = written("5m", description="Wall time that one commit covers.")
    grace: Wait = written("30s", description="Wait after a shift's end before it is finished.")
    allowed_lateness: Wait = written(
        "10m", description="So much later than others a record may come, and is not late."
    )
    future_skew: Wait = written(
        "5m", description="Further ahead of its arrival, an event time is not believed."
    )
    late_records: Annotated[LateRecords, AfterValidator(_built)] = Field(
        "divert", description="Where late records go."
    )
    first_hour: Hour | None = Field(
        None,
        description="The first hour in UTC, like 2026-11-01T00; none: its first commit decides.",
    )
    last_hour: Hour | None = Field(
        None, description="The last hour in UTC; after it the stream is over. None: it goes on."
    )
    record_size_max: RecordSize = written("16MB", description="Longer records are dead letters.")
    round_size: RoundSize = written(
        "512MB", description="So much waiting starts a round before the shift ends."
    )
    merge: Truth = Field(
        False, description="Whether small files of an hour are merged before its flag."
    )
    target_size: TargetSize = written(
        "128MB", description="Of a file, about; smaller ones are merged if `merge` says so."
    )
    nodes: tuple[Text, ...] = Field(
        (), description="Only nodes with one of these labels; none: any."
    )
    steps: tuple[StepPart, ...] = Field((), description="Steps of your own in each commit.")
    outputs: dict[Name, OutputPart] = Field(
        {}, description="By name, in order: where its records land, instead of under its own name."
    )

    @model_validator(mode="after")
    def _fits(self) -> "StreamPart":
        first, last = self.first_hour, self.last_hour
        if first is not None and last is not None and rules.hour_ms(last) < rules.hour_ms(first):
            raise refused(f"is before `first_hour: {first}`: no hour would be left", "last_hour")
        return self


class FeedPart(Part):
    """What a table takes."""

    model_config = ConfigDict(title="feed")
    stream: Text = Field(description="The stream whose ready periods it takes.")


class TablePart(Part):
    """A table that takes the ready hours of a stream, in order."""

    model_config = ConfigDict(title="table")
    kind: TableKind = Field(description="What the table is.")
    path: Path | None = Field(None, description="The folder of a parquet or delta table.")
    feed: FeedPart = Field(description="What it takes.")

    @model_validator(mode="after")
    def _fits(self) -> "TablePart":
        if self.kind != "parquet":
            raise refused(f"{self.kind} tables are not built yet: use parquet", "kind")
        if self.path is None:
            raise refused(f"is missing: a {self.kind} table is a folder", "path")
        return self


class SparkPart(Part):
    """How Spark is reached."""

    model_config = ConfigDict(title="spark")
    master: Text = Field("local[*]", description="A master; of no use with `remote`.")
    remote: Annotated[Shown, AfterValidator(checked(connect_server))] = Field(
        "", description="A Spark Connect server, like sc://host:15002; may be a reference."
    )
    conf: dict[Text, ConfText] = Field(
        {}, description="Spark's own settings; a secret is a reference."
    )
    packages: tuple[Annotated[Text, AfterValidator(_anchored(rules.package))], ...] = Field(
        (),
        description="Maven coordinates, jars, or folders of jars; none: those tested with this "
        "line of Spark.",
    )
    stall_after: Wait = written(
        "10m",
        description="A session of a master is given up, and another started, if jobs wait and no "
        "task ran for so long; 0s: never.",
    )


class NodePart(Part):
    """What a node is started with, unless its command says otherwise."""

    model_config = ConfigDict(title="node")
    name: Shown = Field("", description="For people; none: host and process id.")
    workers: Whole = Field(2, ge=1, le=WORKERS_MAX, description="Tasks at the same moment.")
    labels: tuple[Text, ...] = Field((), description="Streams may ask for them.")


def _rooted(value: object) -> object:
    return {"root": value} if isinstance(value, str) else value


class File(Part):
    """A settings file."""

    model_config = ConfigDict(title="headgate.yaml")
    namespace: Annotated[Text, AfterValidator(checked(check_namespace))] = Field(
        "default", description="Keeps installations in one store apart."
    )
    store: Annotated[Shown, AfterValidator(_anchored(rules.absolute_store))] = Field(
        description="Where the nodes' documents are: a store URL."
    )
    lake: Annotated[LakePart, BeforeValidator(_rooted, json_schema_input_type=str | LakePart)] = (
        Field(description="Where everything lands: a folder, or its root with more.")
    )
    streams: dict[Name, StreamPart] = Field({}, description="By name.")
    tables: dict[Text, TablePart] = Field({}, description="By name.")
    spark: SparkPart = Field(
        default_factory=lambda: SparkPart.model_validate({}), description="How Spark is reached."
    )
    node: NodePart = Field(
        default_factory=lambda: NodePart.model_validate({}),
        description="What a node is started with.",
    )


def _place(place: Place) -> Place:
    """As it was typed: without the name of the part that a source was taken for."""
    return place[:3] + place[4:] if len(place) > 3 and place[2] == "source" else place


def judged(tree: Mapping[str, Any], folder: str) -> File | list[Error]:
    """The file, or everything that is wrong with it."""
    try:
        return File.model_validate(tree, context={FOLDER: folder})
    except ValidationError as error:
        return [
            Error(one["type"], _place(one["loc"]), one["input"], one.get("ctx", {}))
            for one in error.errors(include_url=False)
        ]


def dumped(file: File) -> dict[str, Any]:
    """As it would be written, with every default."""
    return file.model_dump(mode="json", by_alias=True)


@cache
def schema() -> Schema:
    """JSON Schema, for editors and for other checkers."""
    found = File.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
