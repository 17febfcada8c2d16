"""What is told of a source: topics, rights, ends, retention; a folder and its files."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NoReturn

import pytest

from headgate.app.checkup import (
    TEXT_MAX,
    Checkup,
    SampleRecord,
    check_files,
    check_topics,
    clock_finding,
    judged,
)
from headgate.app.preview import look_ahead
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.errors import Invalid, Unavailable
from headgate.sources import FilesSettings, KafkaSettings
from headgate.sources.files import FilesSource
from headgate.sources.kafka.document import KafkaDocument, Life, document_key
from headgate.sources.local_folder import LocalFolder
from headgate.store.probe import Verdict
from headgate.testing.weir import ABORTED
from tests.unit.app.test_preview import World

MINUTE_MS = 60_000


class Topics(World):
    def check(self) -> Checkup:
        source = self.stream.source
        assert isinstance(source, KafkaSettings)
        before = self.documents()
        cluster = self.weir.cluster(source.isolation)
        found = check_topics(self.stream, source, cluster, self.store, self.weir.now_ms)
        assert self.documents() == before
        return found

    def said(self, verdict: Verdict = Verdict.BAD) -> dict[str, str]:
        return {one.name: one.words for one in self.check().findings if one.verdict is verdict}


@pytest.fixture
def world() -> Topics:
    found = Topics()
    found.weir.send("orders", 1, [b'{"at": 1}', b"\x1b[2J\xff" + b"x" * 500])
    return found


def test_a_healthy_topic_is_told_with_a_record_of_it(world: Topics) -> None:
    found = world.check()

    assert found.is_readable
    (topic,) = found.topics
    assert (topic.id, topic.partitions, topic.end_offsets) == ("id-1", 2, (0, 2))
    (sample,) = found.samples
    assert (sample.partition, sample.position) == ("orders/1", "1")
    assert sample.text.startswith("\x1b[2J\\xffxx")
    assert len(sample.text) == TEXT_MAX
    assert world.said(Verdict.OK)["topic orders"] == "id id-1, 2 partitions, 2 offsets"


def test_nobody_who_answers_is_one_finding(world: Topics) -> None:
    world.weir.is_silent = True
    assert "no broker answers" in world.said()["reachable"]


def test_missing_and_forbidden_topics_are_told_apart(world: Topics) -> None:
    world.weir.forbidden.add("orders")
    assert "may not be read" in world.said()["topic orders"]
    world.weir.forbidden.clear()
    world.weir.delete("orders")
    assert "is not there" in world.said()["topic orders"]


def test_a_topic_that_may_be_described_and_not_read_is_found_out(world: Topics) -> None:
    world.weir.unreadable.add(("orders", 1))
    assert "cannot be read" in world.said()["topic orders: read"]


def test_a_topic_that_was_made_again_leads_to_the_command(world: Topics) -> None:
    world.put(document_key("sales"), KafkaDocument({"orders": Life("old", 1, 2)}))
    assert "headgate gap accept sales orders" in world.said()["topic orders"]


@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_a_position_that_expired_is_told(
    world: Topics, policy: Literal["fail", "earliest"]
) -> None:
    world.put(document_key("sales"), KafkaDocument({"orders": Life("id-1", 1, 2)}))
    positions = {"orders/1": "0", "orders/0": "", "redrive-0": "3"}
    world.put(checkpoint_key("sales", 0), Checkpoint(1, 1, 1, positions=positions))
    world.weir.expire("orders", 1, 2)
    assert isinstance(world.stream.source, KafkaSettings)
    source = replace(world.stream.source, out_of_range=policy)
    world.stream = replace(world.stream, source=source)

    told = {one.name: one for one in world.check().findings}["topic orders: position"]

    assert "offsets 0 to 1 expired" in told.words
    assert (told.verdict is Verdict.BAD) is (policy == "fail")
    assert ("headgate gap accept sales orders/1" in told.words) is (policy == "fail")


def test_an_open_transaction_and_a_silent_partition_are_told(world: Topics) -> None:
    world.weir.begin("orders", 1, [b"a", b"b"])
    world.weir.leaderless.add(("orders", 0))

    assert "2 offsets of partition 1 wait" in world.said(Verdict.WARN)["topic orders: transactions"]
    assert world.said() == {"topic orders: leaders": "partitions 0 do not answer now"}


def test_how_long_records_are_kept_is_told_as_far_as_it_may_be_asked(world: Topics) -> None:
    assert world.said(Verdict.OK)["topic orders: retention"] == "for ever"
    world.weir.reaches["orders"].retention_ms = 30 * MINUTE_MS
    world.weir.reaches["orders"].is_compacted = True
    warned = world.said(Verdict.WARN)
    assert warned["topic orders: retention"].startswith("for 30 min 0 s")
    assert "topic orders: compaction" in warned
    world.weir.has_secret_settings = True
    assert "DESCRIBE_CONFIGS" in world.said(Verdict.WARN)["topic orders: retention"]


def test_a_topic_with_nothing_to_read_has_no_sample(world: Topics) -> None:
    world.weir.make("orders", 1)
    assert world.check().samples == ()
    world.weir.end(world.weir.begin("orders", 0, [b"x"]), ABORTED)
    assert world.check().samples == ()
    assert world.check().is_readable


def test_a_producer_whose_clock_is_ahead_is_told(world: Topics) -> None:
    world.weir.send("orders", 1, [b"x"], world.weir.now_ms + 10 * MINUTE_MS)
    assert "10 min 0 s ahead" in world.said(Verdict.WARN)["topic orders: clock"]


def test_the_clock_of_this_machine_is_told_against_the_stores() -> None:
    assert clock_finding(None).verdict is Verdict.OK
    assert clock_finding(-40).words == "-40 ms against the store's"
    assert "5.0 s behind the store's" in clock_finding(-5_000).words


def test_what_spark_says_of_the_samples_is_a_finding(world: Topics) -> None:
    found = world.check()
    dead = [replace(one, becomes="dead: bad json") for one in found.samples]
    good = [replace(one, event_ms=1, becomes="on time") for one in found.samples]

    def refuse(_: object) -> list[SampleRecord]:
        raise Invalid("no Java")

    assert judged(found, lambda _: dead).findings[-1].verdict is Verdict.WARN
    assert judged(found, lambda _: good).samples[0].event_ms == 1
    assert not judged(found, refuse).is_readable


def test_expressions_are_judged_without_a_sample() -> None:
    found = Checkup("orders", "kafka", ())
    asked = list[object]()

    def away(_: object) -> NoReturn:
        raise Unavailable("no Java")

    def refuse(_: object) -> NoReturn:
        raise Invalid("the filter of output a is refused")

    def take(samples: Sequence[SampleRecord]) -> Sequence[SampleRecord]:
        asked.append(samples)
        return ()

    taken = judged(found, take, has_sql=True, is_sampled=False)
    assert [(one.name, one.verdict) for one in taken.findings] == [("sql", Verdict.OK)]
    assert asked == [()]
    (told,) = judged(found, refuse, has_sql=True, is_sampled=False).findings
    assert (told.name, told.verdict) == ("sql", Verdict.BAD)
    (told,) = judged(found, away, has_sql=True, is_sampled=False).findings
    assert (told.name, told.verdict) == (
        "sql",
        Verdict.WARN,
    )  # nobody asked for Spark


def files_of(folder: Path, **fields: object) -> Checkup:
    world = World()
    source = FilesSettings(str(folder), **fields)  # type: ignore[arg-type] # of the settings
    stream = replace(world.stream, source=source)

    def open_source(_: object, __: int, epoch: int, store: object) -> FilesSource:
        own = LocalFolder(str(folder))
        return FilesSource(source, "sales", ["lane-0"], epoch, store, own, world.ambient)  # type: ignore[arg-type] # as it is

    found = check_files(
        stream, source, lambda shard: look_ahead(stream, shard, world.store, open_source), 1
    )
    assert world.documents() == []
    return found


def test_a_folder_is_told_with_what_waits_and_a_line(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.json.gz", "wb") as file:
        file.write(b'{"at": 1}\r\n{"at": 2}\n')
    (tmp_path / "b.json").write_bytes(b"{}\n")
    (tmp_path / "c.tmp").write_bytes(b"{}\n")

    found = files_of(tmp_path)

    told = {one.name: one.words for one in found.findings}
    assert told["waiting"].startswith("2 files, ")
    assert found.samples == (SampleRecord(f"{tmp_path}/a.json.gz", "1", None, '{"at": 1}'),)
    assert found.is_readable


def test_of_csv_the_first_record_is_shown_and_its_columns_are_known(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"at,price\n1,2\n")

    found = files_of(tmp_path, format="csv")

    assert (found.samples[0].text, found.columns) == ("1,2", ("at", "price"))


def test_files_that_cannot_be_read_are_for_a_person(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(b"no gzip")

    found = files_of(tmp_path)

    assert not found.is_readable
    assert (
        "its name says gzip" in {one.name: one.words for one in found.findings}["unreadable files"]
    )


def test_a_folder_that_is_not_there_is_one_finding(tmp_path: Path) -> None:
    (found,) = files_of(tmp_path / "gone").findings
    assert (found.name, found.verdict) == ("folder", Verdict.BAD)
    assert "mkdir -p" in found.words
