"""Kafka: one broker that is its own controller (KRaft), from its jars.

    address     for everybody, no password: the user ANONYMOUS, who may do everything
    guarded     with a password (SASL PLAIN): `admin` may do everything, `reader` only what a rule
                allows, see tests/kafka/topics.py
    wire        like `address`, through toxiproxy, all the way: the broker names the proxy as its
                own address, so that a client cannot find a way around it

Measured on two cores, `-Xmx768m`: 2.3 s to start, 1.7 s to start again, 5 s after a
kill -9, whose session must end first; 250 MB at first.
"""

import base64
import secrets
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.servers.fetch import fetched
from tests.servers.process import (
    ChildProcess,
    ServerFailed,
    bound_to_this_process,
    free_ports,
    java,
    stop_all,
    wait_until,
    working_folder,
)
from tests.servers.toxiproxy import Proxy, Toxiproxy

FORMATTED_WITHIN_S = 60
READY_WITHIN_S = 90
ANSWER_WITHIN_S = 2  # less than what this client sleeps when a leader is not known yet
STARTED = b"Kafka Server started"
PASSWORDS = {"admin": "sluice", "reader": "weir"}
QUIET = {"log_level": 0}  # the client library would print to stderr by itself
LONG_MAX = 2**63 - 1
RECORD_BYTES_MAX = 32 * 1024 * 1024

# One partition for each internal topic, and no waiting: what takes a minute on a real broker
# (retention, compaction, the end of a transaction that nobody ends) takes about a second here.
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAIN",
    "listener.security.protocol.map": (
        "CONTROLLER:PLAINTEXT,PLAIN:PLAINTEXT,PROXIED:PLAINTEXT,GUARDED:SASL_PLAINTEXT"
    ),
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.guarded.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
        + ";"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Without a password everything is allowed, with one only what a rule says, as in earnest.
    "super.users": "User:ANONYMOUS;User:admin",
    "allow.everyone.if.no.acl.found": "false",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # For ever, unless a topic says otherwise: records of last year would be gone in a second.
    "log.retention.ms": "-1",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "500",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "4194304",
    # Producers with a wrong clock are accepted; the default refuses what is an hour ahead.
    "log.message.timestamp.after.max.ms": str(LONG_MAX),
    "message.max.bytes": str(RECORD_BYTES_MAX),
    "replica.fetch.max.bytes": str(RECORD_BYTES_MAX),
    # After kill -9 the new process is let in when the old one's session is over.
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
}


class KafkaBroker:
    """Keeps its ports and its data over kill and start, until it is closed.

    Extra settings win over ours. The network must outlive the broker.
    """

    def __init__(
        self,
        network: Toxiproxy,
        *,
        heap: str = "768m",
        settings: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        plain, proxied, guarded, self._controller = free_ports(4)
        self.address = f"127.0.0.1:{plain}"
        self.guarded = f"127.0.0.1:{guarded}"
        self._proxied = f"127.0.0.1:{proxied}"
        self.network = network
        self._wire: Proxy | None = None
        self._heap = heap
        self._settings = {**SETTINGS, **(settings or {})}
        self._given_folder = folder
        self._child: ChildProcess | None = None
        self._log_read = 0
        self._exits = ExitStack()

    @property
    def wire(self) -> Proxy:
        """Its `address` is the one to connect to. Faults add up until heal()."""
        if self._wire is None:
            raise ServerFailed("kafka was never started")
        return self._wire

    @property
    def process(self) -> ChildProcess:
        if self._child is None:
            raise ServerFailed("kafka was never started")
        return self._child

    def as_user(self, user: str, password: str | None = None) -> dict[str, str]:
        """Settings of a client that comes with a password; the right one unless told."""
        return {
            "bootstrap.servers": self.guarded,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user] if password is None else password,
        }

    def __enter__(self) -> Self:
        """Raises ServerFailed, with everything stopped again."""
        with ExitStack() as exits:
            folder = exits.enter_context(working_folder("kafka", self._given_folder))
            self._wire = self.network.proxy(self._proxied)
            exits.callback(self._wire.close)
            self._child = self._prepare(folder)
            exits.callback(stop_all, [self._child])
            self.start()
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exits.__exit__(kind, error, traceback)

    def start(self) -> None:
        """Returns when it serves; one that runs is left alone. Raises ServerFailed."""
        if not self.process.is_running:
            log = self.process.log
            self._log_read = log.stat().st_size if log.exists() else 0
            self.process.start()
        wait_until(self._says_started, "kafka to start", READY_WITHIN_S, [self.process])
        wait_until(self._answers, "kafka to answer", READY_WITHIN_S, [self.process])

    def stop(self) -> None:
        """In order, as an operator would; start() brings it back."""
        self.process.stop()

    def kill(self) -> None:
        """kill -9; start() brings it back, with the same ports and data."""
        self.process.kill()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nobody answers."""
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def heal(self) -> None:
        """It runs and serves, and the wire has no fault."""
        self.resume()
        self.start()
        self.wire.heal()

    def _prepare(self, folder: Path) -> ChildProcess:
        libs = fetched("kafka") / "libs" / "*"
        data = folder / "data"
        config = folder / "server.properties"
        listeners = {"PLAIN": self.address, "PROXIED": self._proxied, "GUARDED": self.guarded}
        own = {
            "log.dirs": str(data),
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "listeners": _spelled({**listeners, "CONTROLLER": f"127.0.0.1:{self._controller}"}),
            "advertised.listeners": _spelled({**listeners, "PROXIED": self.wire.address}),
        }
        lines = [f"{key}={value}\n" for key, value in {**self._settings, **own}.items()]
        config.write_text("".join(lines))
        log = folder / "server.log"
        if not (data / "meta.properties").exists():
            self._format(config, libs, log)
        talk = "-Dorg.slf4j.simpleLogger.showDateTime=true"
        command = java(self._heap, [libs], talk, "kafka.Kafka", str(config))
        return ChildProcess("kafka", command, log)

    def _format(self, config: Path, libs: Path, log: Path) -> None:
        # The id must not begin with a dash: it would be taken for an option.
        cluster = base64.urlsafe_b64encode(b"\0" + secrets.token_bytes(15)).decode().rstrip("=")
        tool = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)]
        with log.open("ab") as said:
            done = subprocess.run(
                bound_to_this_process(java("256m", [libs], *tool)),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=FORMATTED_WITHIN_S,
            )
        if done.returncode:
            raise ServerFailed(f"kafka's folder was not formatted\n{log.read_text()}")

    def _says_started(self) -> bool:
        with self.process.log.open("rb") as log:
            log.seek(self._log_read)
            return STARTED in log.read()

    def _answers(self) -> bool:
        """Every partition has its leader, and that one knows it: metadata alone come earlier."""
        client = AdminClient({"bootstrap.servers": self.address, **QUIET})
        try:
            found = client.list_topics(timeout=ANSWER_WITHIN_S)
            latest = {
                TopicPartition(topic, number): OffsetSpec.latest()
                for topic, about in found.topics.items()
                for number in about.partitions
            }
            asked = client.list_offsets(latest, request_timeout=ANSWER_WITHIN_S) if latest else {}
            # Below zero: no answer in time, which is no error to this client.
            return bool(found.brokers) and all(one.result().offset >= 0 for one in asked.values())
        except KafkaException:
            return False


def _spelled(listeners: Mapping[str, str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in listeners.items())
