"""The commands around Kafka, as processes against a real broker.

Nobody lands here, so no Spark is needed: what nodes would have written is written by hand.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AclOperation

from headgate.cluster import Order
from headgate.cluster.tasks import Task, Trouble, new_task, task_key
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.streams import StreamDocument, stream_key
from headgate.landing.kind import feed_name, kind_name
from headgate.landing.report import Report, report_key
from headgate.sources.kafka.document import KafkaDocument, Life, document_key
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.codec import body_of
from headgate.store.registry import open_store
from tests.e2e.test_landing_cli import documented, headgate, next_of
from tests.kafka.topics import (
    Sent,
    Transaction,
    allow,
    delete_records,
    delete_topic,
    forbid,
    new_topic,
    produce,
    topic_id,
)
from tests.servers.kafka import PASSWORDS, KafkaBroker

pytestmark = pytest.mark.kafka


class World:
    """A folder with settings that read one topic, and the documents of a node that has begun."""

    def __init__(self, folder: Path, broker: KafkaBroker, topic: str) -> None:
        self.folder, self.broker, self.topic = folder, broker, topic
        self.write(broker.address, {})

    def write(self, brokers: str, options: Mapping[str, str]) -> None:
        source = {"kind": "kafka", "brokers": brokers, "topic": self.topic, "options": options}
        stream = {"source": source, "event_time": {"json": "$.at"}}
        tree = {"store": "file:./state", "lake": "./lake", "streams": {"sales": stream}}
        (self.folder / "headgate.yaml").write_text(json.dumps(tree), "utf-8")

    def write_guarded(self, user: str, password: str) -> None:
        options = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": "${env:KAFKA_PASSWORD}",
        }
        self.write(self.broker.guarded, options)
        self.password = password

    password = ""

    def run(self, *words: str) -> Any:
        return headgate(self.folder, *words, KAFKA_PASSWORD=self.password)

    def store(self) -> "closing[DocumentStore]":
        return closing(open_store(f"file:{self.folder / 'state'}"))

    def put(self, key: str, value: object) -> None:
        with self.store() as store:
            store.create(key, body_of(value))

    def began(self, position: str, words: str) -> None:
        """A node read so far; then its shard was set aside."""
        life = Life(topic_id(self.broker, self.topic), 1, 1)
        self.put(document_key("sales"), KafkaDocument({self.topic: life}))
        self.put(stream_key("sales"), StreamDocument(1))
        positions = {f"{self.topic}/0": position}
        self.put(checkpoint_key("sales", 0), Checkpoint(1, 1, 3, positions=positions))
        task = new_task(Order(kind_name("sales"), b'{"shard": 0}'))
        aside = replace(task, set_aside=Trouble(words, "node-1", 1_800_000_000_000))
        self.put(task_key(feed_name("sales"), 0), aside)

    def document(self) -> KafkaDocument:
        with self.store() as store:
            found = read(store, document_key("sales"), KafkaDocument)
        assert found is not None
        return found.value

    def is_aside(self) -> bool:
        with self.store() as store:
            found = read(store, task_key(feed_name("sales"), 0), Task)
        return found is not None and found.value.set_aside is not None

    def notes(self) -> list[tuple[str, str]]:
        lines = map(json.loads, self.run("history", "--json").stdout.splitlines())
        return [(line["what"], line["subject"]) for line in lines]


@pytest.fixture
def world(tmp_path: Path, kafka: KafkaBroker) -> Iterator[World]:
    kafka.heal()
    topic = new_topic(kafka)
    produce(kafka, topic, [Sent(f'{{"at": {n}}}'.encode()) for n in range(10)])
    yield World(tmp_path, kafka, topic)
    forbid(kafka, "reader", topic)


# ── gap accept ────────────────────────────────────────────────────────────────────────────────────


def test_what_expired_is_accepted_by_the_command_that_status_names(world: World) -> None:
    name = f"{world.topic}/0"
    command = f'headgate gap accept sales {name} --reason "…"; or set out_of_range: earliest'
    world.began("2", f"{name}: offsets 2 to 6 expired before they were read; next: {command}")
    delete_records(world.broker, world.topic, 7)
    told = world.run("status", "sales")
    asked = next_of(told.stdout, "gap accept")

    done = world.run(*asked)

    assert asked[:4] == ["gap", "accept", "sales", name]
    assert (told.returncode, done.returncode) == (1, 0), done.stderr
    assert "offsets 2 to 6 expired before they were read; it is accepted" in done.stderr
    assert "released: sales/0" in done.stderr
    assert "next: headgate status sales\n" in done.stderr
    assert world.document().accepted == {name: 2}
    assert not world.is_aside()
    assert world.notes() == [("gap.accepted", f"sales/{name}"), ("shard.released", "sales/0")]

    again = world.run(*asked, "--json")

    body = json.loads(again.stdout)
    assert (again.returncode, body["is_new"], body["released"]) == (1, False, [])
    assert set(body) == documented("#### `gap accept --json`")


def test_where_nothing_is_gone_nothing_is_accepted(world: World) -> None:
    world.began("7", "something else")
    delete_records(world.broker, world.topic, 7)

    done = world.run("gap", "accept", "sales", f"{world.topic}/0", "--reason", "x")

    assert done.returncode == 1
    assert "nothing of it is gone: offset 7 is read next, and the topic has all from 7 on" in (
        done.stderr
    )
    assert world.is_aside()
    assert world.notes() == []


def test_a_topic_that_was_made_again_goes_on_in_its_next_life(world: World) -> None:
    world.began("7", "the topic was made again")
    topic = ["gap", "accept", "sales", world.topic, "--reason", "a new beginning"]
    assert "is the one that was read from the start" in world.run(*topic).stderr
    delete_topic(world.broker, world.topic)
    gone = world.run(*topic)
    assert (gone.returncode, "is not there" in gone.stderr) == (1, True)
    new_topic(world.broker, name=world.topic)

    done = world.run(*topic)

    assert done.returncode == 0, done.stderr
    life = world.document().lives[world.topic]
    assert (life.id, life.number) == (topic_id(world.broker, world.topic), 2)
    assert not world.is_aside()


def test_an_unknown_name_is_told_with_the_nearest(world: World) -> None:
    world.began("7", "x")
    done = world.run("gap", "accept", "sales", f"{world.topic}/1", "--reason", "x")
    assert (done.returncode, f"the nearest is '{world.topic}/0'" in done.stderr) == (2, True)


# ── status ────────────────────────────────────────────────────────────────────────────────────────


def test_status_tells_what_waits_in_records_and_when_it_expires(world: World) -> None:
    world.began("2", "x")
    with world.store() as store:
        now_ms = store.now_ms()
    expires_ms = {f"{world.topic}/0": now_ms + 20 * 60_000}
    waits = Report("n", 1, "x", waiting_bytes=80, waiting_records=8, expires_ms=expires_ms)
    world.put(report_key("sales", 0), replace(waits, at_ms=now_ms))

    told = world.run("status", "sales")

    assert "8 records, 80 B" in told.stdout
    assert "expires soon: sales/0" in told.stdout
    assert f"{world.topic}/0: the next record to read expires in 19 min" in told.stdout
    (stream,) = json.loads(world.run("status", "sales", "--json").stdout)["streams"]
    assert set(stream) == documented("#### One of `streams`")
    assert 0 < stream["left_ms"] <= 20 * 60_000
    (partition,) = stream["shards"][0]["partitions"]
    assert set(partition) == documented("#### One of `partitions`")
    assert stream["lag"]["records"] == 8


# ── doctor source ─────────────────────────────────────────────────────────────────────────────────


def test_a_topic_that_can_be_read_is_told_with_its_newest_record(world: World) -> None:
    produce(world.broker, world.topic, [Sent(b'{"at": 1, "x": "\x1b[2J"}' + b"y" * 500)])

    done = world.run("doctor", "source", "sales")

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"topic {world.topic}: read" in done.stdout
    assert r"\u001b[2J" in done.stdout
    assert "\x1b" not in done.stdout
    assert "y" * 201 not in done.stdout
    assert "headgate doctor source sales --spark" in done.stderr
    body = json.loads(world.run("doctor", "source", "sales", "--json").stdout)
    assert set(body) == documented("#### `doctor source --json`")
    (topic,) = body["topics"]
    assert set(topic) == documented("#### One of `topics`")
    assert (topic["first_offsets"], topic["end_offsets"]) == ([0], [11])
    assert topic["id"] == topic_id(world.broker, world.topic)
    assert topic["timestamp_type"] == "CreateTime"
    assert body["samples"][0]["position"] == "10"
    assert not (world.folder / "state").exists()
    assert not (world.folder / "lake").exists()


def test_an_open_transaction_is_told(world: World) -> None:
    transaction = Transaction(world.broker)
    transaction.send(world.topic, [Sent(b"x"), Sent(b"y")])
    try:
        done = world.run("doctor", "source", "sales")
        plan = json.loads(world.run("plan", "sales", "--json").stdout)
    finally:
        transaction.abort()

    assert done.returncode == 0
    assert "open: 2 offsets of partition 0 wait for its end" in done.stdout
    ((read_next,),) = [one["ranges"] for one in plan["rounds"]]
    assert (read_next["next"], read_next["records"]) == ("10", 10)


def test_a_wrong_password_a_missing_topic_and_a_forbidden_one_are_told_apart(world: World) -> None:
    world.write_guarded("reader", "wrong")
    refused = world.run("doctor", "source", "sales")
    world.write_guarded("reader", PASSWORDS["reader"])
    forbidden = world.run("doctor", "source", "sales")
    allow(world.broker, "reader", world.topic, (AclOperation.DESCRIBE,))
    described = world.run("doctor", "source", "sales")
    forbid(world.broker, "reader", world.topic)
    allow(world.broker, "reader", world.topic)
    allowed = world.run("doctor", "source", "sales")
    world.topic, topic = "no-such-topic", world.topic
    world.write(world.broker.address, {})
    missing = world.run("doctor", "source", "sales")
    world.topic = topic

    said = [one.returncode for one in (refused, forbidden, described, allowed, missing)]
    assert said == [1, 1, 1, 0, 1]
    assert "user or password is refused" in refused.stdout
    assert "wrong" not in refused.stdout + refused.stderr
    may_not = f"topic {topic} may not be read; next: give this user the right READ on it"
    assert may_not in forbidden.stdout
    assert f"bad   topic {topic}: read" in described.stdout
    assert may_not in described.stdout
    assert "DESCRIBE_CONFIGS" in allowed.stdout
    assert "topic no-such-topic is not there; next: create it" in missing.stdout


# ── plan ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_next_round_is_told_and_nothing_is_written(world: World) -> None:
    done = world.run("plan")

    assert done.returncode == 0, done.stderr
    assert f"{world.topic}/0" in done.stdout
    assert sorted(one.name for one in world.folder.iterdir()) == ["headgate.yaml"]
    body = json.loads(world.run("plan", "sales", "--json").stdout)
    assert set(body) == documented("#### A line of `plan --json`")
    (round_,) = body["rounds"]
    assert set(round_) == documented("#### One of `rounds`") - {
        *("partition", "next", "files", "records", "size_bytes", "reason"),
    }
    (read_next,) = round_["ranges"]
    assert (read_next["first"], read_next["next"], read_next["records"]) == ("", "10", 10)


# ── all of it, with Spark ─────────────────────────────────────────────────────────────────────────


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_records_that_expired_are_a_gap_on_record_once_a_person_accepts_it(world: World) -> None:
    """Landed, expired, set aside, accepted by the command that status names, landed again; and each
    offset is found where it is."""
    tree = json.loads((world.folder / "headgate.yaml").read_text("utf-8"))
    tree["spark"] = {"master": "local[1]", "conf": {"spark.driver.memory": "512m"}}
    # Not what they say: from 1970 on there are half a million hours to flag.
    tree["streams"]["sales"]["event_time"] = {"kafka": "timestamp"}
    (world.folder / "headgate.yaml").write_text(json.dumps(tree), "utf-8")
    name = f"{world.topic}/0"
    sampled = world.run("doctor", "source", "sales", "--spark")
    landed = world.run("run", "--until", "idle")
    more = [Sent(f'{{"at": {n}}}'.encode()) for n in range(10, 20)]
    produce(world.broker, world.topic, more)
    delete_records(world.broker, world.topic, 15)
    halted = world.run("run", "--until", "idle")
    accepted = world.run(*next_of(world.run("status", "sales").stdout, "gap accept"))
    again = world.run("run", "--until", "idle")

    assert sampled.returncode == 0, sampled.stdout + sampled.stderr
    assert "becomes  on time, event time 20" in sampled.stdout
    assert landed.returncode == 0, landed.stderr
    assert halted.returncode == 1
    assert "offsets 10 to 14 expired before they were read" in halted.stderr
    assert accepted.returncode == 0, accepted.stderr
    assert again.returncode == 0, again.stderr
    states = {}
    for offset in (3, 9, 12, 17, 20):
        found = world.run("locate", "sales", f"{name}/{offset}", "--json")
        states[offset] = json.loads(found.stdout)
    told = {offset: one["state"] for offset, one in states.items()}
    assert told == {3: "landed", 9: "landed", 12: "gap", 17: "landed", 20: "not read yet"}
    assert "accepted by a person" in states[12]["words"]
    (file,) = states[3]["files"]
    rows = pq.read_table(world.folder / "lake" / file["path"]).to_pylist()
    assert rows[file["row"]]["_headgate"]["number"] == 3
    back = json.loads(world.run("locate", file["path"], "--json").stdout)
    assert back["commits"][0]["commit"] == states[3]["commit"]
    assert world.run("audit").returncode == 0
