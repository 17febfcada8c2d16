"""Source: topics of a Kafka cluster, read in ranges of offsets.

    look:   the time is taken ──▶ ends of all partitions ──▶ last stable offsets
    plan:   a range for each, from the position to at most the last stable offset
    confirm: the same topics, nothing expired meanwhile, no end moved back

Who has read to a stable end that is not below the end asked before it has read all that was there
at that time: that is the proof of idleness. An open transaction keeps the stable end below; a
broker that does not answer proves nothing.

One thread at a time; the cluster's client is shared.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from headgate.ambient import Ambient
from headgate.engine import InputSpan, Tally
from headgate.errors import Conflict, Corrupt, Halted, Unavailable
from headgate.sources import Gap, KafkaSettings, Plan, Range, Waiting
from headgate.sources.kafka import Bounds, Cluster, Keeping, Sample, Topic, TopicPartition
from headgate.sources.kafka.document import (
    KafkaDocument,
    fix_starts,
    kafka_origin,
    open_document,
    parsed_name,
    partition_name,
)
from headgate.sources.kafka.holes import buckets_with_holes, check_bucket
from headgate.sources.kafka.planning import BYTES_GUESSED, Log, shares
from headgate.store import DocumentStore

CLOSED = "closed"  # the position of a source partition that is gone for good
SAMPLE_RECORDS = 100
SAMPLE_MS = 60_000  # between two samples of one partition
SAMPLES_MAX = 8  # of one look
KEEPING_MS = 600_000
BUCKETS_COUNTED_MAX = 4  # of one round: each may cost a second

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Look:
    at_ms: int  # by the store's clock, before anything was asked
    firsts: Mapping[str, int]  # where reading goes on, whether it is there or not
    lows: Mapping[str, int]  # what is still there
    logs: Mapping[str, Log]
    gaps: tuple[Gap, ...]
    closed: tuple[str, ...]  # source partitions of an earlier life


class KafkaSource:
    """Implements `headgate.sources.Source`."""

    def __init__(
        self,
        settings: KafkaSettings,
        stream: str,
        is_mine: Callable[[str], bool],
        store: DocumentStore,
        cluster: Cluster,
        ambient: Ambient,
    ) -> None:
        """`is_mine`: whether a source partition belongs to this shard."""
        self._settings = settings
        self._stream = stream
        self._is_mine = is_mine
        self._store = store
        self._cluster = cluster
        self._ambient = ambient
        self._topics: Mapping[str, Topic] = {}
        self._document = KafkaDocument()
        self._known: dict[str, None] = {}  # source partitions, in the order they were found
        self._look: _Look | None = None
        self._samples: dict[str, tuple[int, Sample]] = {}  # with the moment of each
        self._keeping: tuple[int, Mapping[str, Keeping]] | None = None
        self._tokens = Tokens(settings.records_per_s)
        self._turn = 0

    def partitions(self) -> tuple[str, ...]:
        self._topics = self._cluster.topics(self._settings.topics)
        self._document = open_document(self._store, self._stream, self._topics).value
        for name, topic in self._topics.items():
            life = self._document.lives.get(name)
            # What cannot be asked for has at least one: it joins, and holds every hour until then.
            known = 0 if life is None else life.began_with
            is_told = life is not None and life.id == topic.id
            count = topic.partitions if is_told else max(1, known)
            number = 1 if life is None else life.number
            names = (partition_name(name, number, one) for one in range(count))
            self._known |= dict.fromkeys(one for one in names if self._is_mine(one))
        return tuple(self._known)

    def look(self, positions: Mapping[str, str]) -> Waiting:
        self._look = None
        if not self._topics:
            self.partitions()
        at_ms = self._ambient.wall_ns() // 1_000_000  # before anything is asked
        self._check_lives()
        closed = tuple(one for one in positions if self._is_past(one))
        asked = {one: _address(one) for one in positions if self._is_there(one)}
        bounds = self._cluster.bounds(asked.values())
        answering = {one: at for one, at in asked.items() if at in bounds}
        new = {one: at for one, at in answering.items() if not positions[one]}
        firsts = self._starts(new, bounds)
        firsts |= {one: _offset(one, positions[one]) for one in answering if positions[one]}
        logs, gaps = dict[str, Log](), list[Gap]()
        for name, first in firsts.items():
            logs[name], gap = self._log(name, first, bounds[answering[name]])
            gaps += [] if gap is None else [gap]
        self._sample(logs)
        logs = {name: self._weighed(name, one) for name, one in logs.items()}
        lows = {name: bounds[answering[name]].low for name in logs}
        self._look = _Look(at_ms, firsts, lows, logs, tuple(gaps), closed)
        return self._waiting(positions, logs, at_ms)

    def plan(
        self, positions: Mapping[str, str], *, size_bytes_max: int, until: Mapping[str, str] = {}
    ) -> Plan:
        if until and self._look is None:
            self.look(positions)
        seen = self._look
        if seen is None:
            return self._plan({}, (), {}, has_more=True)
        firsts = {
            name: _offset(name, positions[name]) if positions[name] else first
            for name, first in seen.firsts.items()
            if name in positions
        }
        gaps = [gap for gap in seen.gaps if gap.first == str(firsts.get(gap.partition))]
        if until:
            ends = _ends_again(until, {name: seen.logs[name] for name in firsts}, seen.closed)
            logs = {
                name: replace(seen.logs[name], first=max(firsts[name], seen.lows[name]))
                for name in ends
            }
            gaps = [
                _cut(gap, min(logs[gap.partition].first, ends[gap.partition]))
                for gap in gaps
                if gap.partition in ends
            ]
        else:
            # Behind what a commit under way leads to; what was gone before it stays gone.
            logs = {
                name: replace(seen.logs[name], first=max(seen.logs[name].first, first))
                for name, first in firsts.items()
            }
            taken = self._shares(logs, size_bytes_max, seen.at_ms)
            ends = {name: one.first + taken.get(name, 0) for name, one in logs.items()}
        spans = tuple(
            InputSpan(name, *_address(name), one.first, ends[name], seen.at_ms, one.record_bytes)
            for name, one in logs.items()
            if ends[name] > one.first
        )
        ranges = {
            name: Range(positions[name], str(end))
            for name, end in ends.items()
            if end != firsts[name]
        }
        proofs = {
            name: seen.at_ms
            for name, one in logs.items()
            if not until and one.is_proof and ends[name] == one.end
        }
        for name in seen.closed:
            if not until:
                proofs[name] = seen.at_ms  # nothing more will ever come
            position = positions.get(name, CLOSED)
            if position != CLOSED and (not until or until.get(name) == CLOSED):
                ranges[name] = Range(position, CLOSED)
                gaps.append(Gap(name, position, CLOSED, _GONE))
        has_more = any(ends[name] < one.end for name, one in logs.items())
        plan = self._plan(ranges, tuple(gaps), proofs, has_more=has_more)
        unread = [name for name, position in positions.items() if not position]
        return replace(plan, spans=spans, origin=kafka_origin(self._document, unread))

    def _shares(
        self, logs: Mapping[str, Log], size_bytes_max: int, now_ms: int
    ) -> Mapping[str, int]:
        allowed = self._tokens.left(self._now_ms(), _waiting_in(logs))
        if allowed == 0:
            return {}
        self._turn += 1
        taken = shares(
            logs,
            records_max=min(self._settings.records_max, allowed),
            size_bytes_max=size_bytes_max,
            now_ms=now_ms,
            turn=self._turn,
        )
        self._tokens.take(sum(taken.values()))
        return taken

    def confirm(self, plan: Plan) -> None:
        if not plan.spans:
            return
        now = self._cluster.topics(sorted({span.topic for span in plan.spans}))
        bounds = self._cluster.bounds([(span.topic, span.lane) for span in plan.spans])
        for span in plan.spans:
            life = self._document.lives.get(span.topic)
            found = bounds.get((span.topic, span.lane))
            if life is None or now[span.topic].id != life.id or found is None:
                raise Conflict(f"{span.partition}: is not what it was when it was read; {_AGAIN}")
            if found.low > span.first or self._end(found) < span.next:
                raise Conflict(f"{span.partition}: records went away while it was read; {_AGAIN}")

    def reconcile(self, plan: Plan, tallies: Sequence[Tally]) -> None:
        holes = buckets_with_holes(plan.spans, tallies)
        if not holes:
            return
        chosen = sorted(holes, key=lambda _: self._ambient.random())[:BUCKETS_COUNTED_MAX]
        for bucket in chosen:
            address = (bucket.span.topic, bucket.span.lane)
            check_bucket(bucket, self._cluster.count(address, bucket.first, bucket.next))

    def settle(self, positions: Mapping[str, str]) -> None:
        """A topic keeps its records as long as it likes."""

    def _plan(
        self,
        ranges: Mapping[str, Range],
        gaps: tuple[Gap, ...],
        ends_ms: Mapping[str, int],
        *,
        has_more: bool,
    ) -> Plan:
        return Plan("kafka", self._settings.format, (), ranges, (), gaps, ends_ms, has_more)

    # What the topics are

    def _check_lives(self) -> None:
        """Raises Halted: a topic is another one than that which was read so far."""
        for name, topic in self._topics.items():
            life = self._document.lives.get(name)
            if life is None:
                continue
            if topic.id and topic.id != life.id:
                raise Halted(
                    f"topic {name} was deleted and made again: its offsets begin anew, and what "
                    "was not read of the old one is gone; nothing is read until a person decides; "
                    f"next: {self._accept(name)}; or begin anew in another folder: {self._anew()}"
                )

    def _is_past(self, name: str) -> bool:
        topic, life, _ = parsed_name(name)
        current = self._document.lives.get(topic)
        return current is not None and life < current.number

    def _is_there(self, name: str) -> bool:
        topic, life, number = parsed_name(name)
        known, now = self._document.lives.get(topic), self._topics.get(topic)
        return (
            known is not None
            and now is not None
            and now.id == known.id
            and life == known.number
            and number < now.partitions
        )

    # Where reading goes on

    def _starts(
        self, new: Mapping[str, TopicPartition], bounds: Mapping[TopicPartition, Bounds]
    ) -> dict[str, int]:
        """Of source partitions that nothing was read of yet: fixed when they are first seen. One
        whose start cannot be told now is not read yet."""
        unknown = {name: at for name, at in new.items() if name not in self._document.starts}
        if unknown:
            offsets = {name: bounds[address].low for name, address in unknown.items()}
            if self._settings.start != "beginning":
                chosen = {name: at for name, at in unknown.items() if self._is_first(name)}
                offsets = {name: at for name, at in offsets.items() if name not in chosen}
                offsets |= self._first_offsets(chosen, bounds)
            self._document = fix_starts(self._store, self._stream, offsets)
        fixed = self._document.starts
        return {name: fixed[name] for name in new if name in fixed}

    def _first_offsets(
        self, new: Mapping[str, TopicPartition], bounds: Mapping[TopicPartition, Bounds]
    ) -> dict[str, int]:
        ends = {name: self._end(bounds[address]) for name, address in new.items()}
        if self._settings.start_ms is None:
            return ends
        at_time = self._cluster.offsets_at(new.values(), self._settings.start_ms)
        return {
            name: max(min(at_time[address], ends[name]), bounds[address].low)
            for name, address in new.items()
            if address in at_time
        }

    def _is_first(self, name: str) -> bool:
        """There when the stream began: one that was added later is read from its beginning."""
        topic, life, number = parsed_name(name)
        known = self._document.lives.get(topic)
        return known is not None and life == known.number and number < known.began_with

    def _log(self, name: str, position: int, bounds: Bounds) -> tuple[Log, Gap | None]:
        if position > bounds.high:
            raise Halted(
                f"{name}: its end is offset {bounds.high:,}, and {position:,} was reached before: "
                "records were taken back at the source, and others will have their offsets; "
                "nothing is read until a person decides; next: begin anew in another folder: "
                f"{self._anew()}"
            )
        # What was read under another isolation may be part of a transaction that is still open.
        end = max(position, self._end(bounds))
        if position >= bounds.low:
            return Log(position, bounds.high, end), None
        policy = self._settings.out_of_range
        lost = f"offsets {position:,} to {bounds.low - 1:,} expired before they were read"
        if self._document.accepted.get(name) == position:
            gap = Gap(name, str(position), str(bounds.low), f"{lost}; accepted by a person")
        elif policy == "earliest":
            gap = Gap(name, str(position), str(bounds.low), f"{lost}; out_of_range: earliest")
        elif policy == "latest":
            words = f"{lost}; out_of_range: latest, so reading goes on at the end"
            return Log(end, bounds.high, end), Gap(name, str(position), str(end), words)
        else:
            raise Halted(
                f"{name}: {lost}; nothing is read until a person decides; next: "
                f"{self._accept(name)}; or set out_of_range: earliest"
            )
        return Log(bounds.low, bounds.high, end), gap

    def _end(self, bounds: Bounds) -> int:
        return bounds.stable if self._settings.isolation == "read_committed" else bounds.high

    def _accept(self, what: str) -> str:
        return f'headgate gap accept {quote(self._stream)} {quote(what)} --reason "…"'

    def _anew(self) -> str:
        return f'headgate stream reset {quote(self._stream)} --into FOLDER --reason "…"'

    # What waits

    def _waiting(
        self, positions: Mapping[str, str], logs: Mapping[str, Log], at_ms: int
    ) -> Waiting:
        troubles = [one.why for one in self._topics.values() if one.why]
        silent = [
            one
            for one in positions
            if one not in logs and positions[one] != CLOSED and not self._is_past(one)
        ]
        dropped = sorted({parsed_name(one)[0] for one in silent} - {*self._topics})
        troubles += [
            f"topic {name} is not in the settings any more, and hours wait for its end; next: put "
            "it into source.topics again"
            for name in dropped
        ]
        open_ones = sum(1 for one in logs.values() if not one.is_proof)
        oldest = [sample.oldest_ms for _, sample in map(self._sampled, logs) if sample.oldest_ms]
        waiting = [one for one in logs.values() if one.waiting > 0]
        why = next(
            iter(troubles), f"{silent[0]}: cannot be asked for its end now" if silent else ""
        )
        records = _waiting_in(logs)
        return Waiting(
            0,
            sum(one.waiting * one.record_bytes for one in waiting),
            min(oldest, default=at_ms) if waiting else None,
            open_ones,
            len(troubles) or len(silent),
            why,
            records,
            {name: one.expires_ms for name, one in logs.items() if one.expires_ms is not None},
            is_held_back=records > 0 and self._tokens.left(self._now_ms(), records) == 0,
        )

    def _sampled(self, name: str) -> tuple[int, Sample]:
        return self._samples.get(name, (0, Sample(0, 0, None)))

    def _sample(self, logs: Mapping[str, Log]) -> None:
        """A look at what is read next, now and then: how large records are, and how old."""
        now_ms = self._ambient.monotonic_ms()
        for name in [name for name in self._samples if name in logs and not logs[name].waiting]:
            del self._samples[name]
        due = [
            name
            for name, one in logs.items()
            if one.waiting and (name not in self._samples or now_ms >= self._samples[name][0])
        ]
        for name in sorted(due, key=lambda name: self._sampled(name)[0])[:SAMPLES_MAX]:
            self._samples[name] = (now_ms + SAMPLE_MS, self._sample_of(name, logs[name].first))
        if self._keeping is None or now_ms >= self._keeping[0]:
            self._keeping = (now_ms + KEEPING_MS, self._cluster.keeping(self._settings.topics))

    def _sample_of(self, name: str, offset: int) -> Sample:
        """What cannot be sampled is guessed: it must not keep the others from being read."""
        try:
            return self._cluster.sample(_address(name), offset, SAMPLE_RECORDS)
        except Unavailable as error:
            log.warning("kafka.not_sampled", extra={"partition": name, "why": str(error)})
            return Sample(0, 0, None)

    def _weighed(self, name: str, one: Log) -> Log:
        sample = self._sampled(name)[1]
        keeping = {} if self._keeping is None else self._keeping[1]
        of_topic = keeping.get(parsed_name(name)[0])
        expires_ms = None
        if one.waiting and sample.oldest_ms is not None and of_topic is not None:
            kept_ms = of_topic.retention_ms
            expires_ms = None if kept_ms is None else sample.oldest_ms + kept_ms
        per_record = sample.size_bytes // sample.records if sample.records else BYTES_GUESSED
        return replace(one, expires_ms=expires_ms, record_bytes=max(1, per_record))

    def _now_ms(self) -> int:
        return self._ambient.monotonic_ms()


_AGAIN = "nothing of it is committed; next: it is planned again"
_GONE = "the topic was deleted and made again: what was not read of this life of it is gone"


class Tokens:
    """How many records may be read now, so that there are no more a second than that."""

    def __init__(self, per_s: int) -> None:
        self._per_s = per_s  # 0: as many as there are
        self._left = float(per_s * TOKENS_S_MIN)
        self._at_ms: int | None = None

    def left(self, now_ms: int, wanted: int) -> int:
        """0 until it is worth a round: as many as are wanted, or those of a few seconds."""
        if not self._per_s:
            return 1 << 62
        if self._at_ms is not None:
            grown = (now_ms - self._at_ms) * self._per_s / 1000
            self._left = min(self._left + grown, self._per_s * TOKENS_S_MAX)
        self._at_ms = now_ms
        found = int(self._left)
        return found if found >= min(wanted, self._per_s * TOKENS_S_MIN) else 0

    def take(self, records: int) -> None:
        if self._per_s:
            self._left -= records


TOKENS_S_MIN = 5
TOKENS_S_MAX = 3_600  # what was not read for so long may be read at once


def _address(name: str) -> TopicPartition:
    topic, _, number = parsed_name(name)
    return topic, number


def _offset(name: str, position: str) -> int:
    """Raises Corrupt."""
    if not (position.isascii() and position.isdecimal()):
        raise Corrupt(f"{name}: {position!r} is no offset; next: headgate audit")
    return int(position)


def _waiting_in(logs: Mapping[str, Log]) -> int:
    return sum(max(0, one.waiting) for one in logs.values())


def _ends_again(
    until: Mapping[str, str], logs: Mapping[str, Log], closed: Sequence[str]
) -> dict[str, int]:
    """Where ranges end that are read once more; without those of an earlier life, whose records
    are gone. Raises Unavailable: one cannot be read so far now."""
    found = dict[str, int]()
    for name, following in until.items():
        if name in closed:
            continue
        end, one = _offset(name, following), logs.get(name)
        if one is None or one.end < end:
            raise Unavailable(
                f"{name}: cannot be read again up to offset {end:,} now, and nothing was read; "
                "next: headgate status says what its topic lacks"
            )
        found[name] = end
    return found


def _cut(gap: Gap, following: int) -> Gap:
    return replace(gap, next=str(following))
