"""Still: what stands still in a stream, and why. Values in, values out.

Each kind is a fixed word. `is_for_a_person` says that it does not go on by itself; the rest is
there to be seen: somebody paused it, somebody is still writing a file.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headgate.commits.checkpoint import Checkpoint
from headgate.commits.roots import Merging
from headgate.commits.streams import StreamDocument
from headgate.landing import StreamSettings
from headgate.landing.kind import kind_name
from headgate.landing.report import Report
from headgate.periods import Period
from headgate.ready import MERGE_TRIES_MAX
from headgate.sources import KafkaSettings
from headgate.status.fleet import ClusterStatus, TaskStatus, shown_ms
from headgate.status.missing import Missing, others

NO_NODE, NOT_BEGUN, SILENT = "no node has it", "not started", "node silent"  # kinds
GAP = "gap on record"
UNREADABLE, OPEN, EXPIRING = "unreadable topics", "open transactions", "expires soon"  # of a log
EXPIRING_MS = 3_600_000
RELEASED = ("--reason", "the cause is fixed")
RESTAGED = ("--reason", "what was staged is gone")
RESUMED = ("--reason", "it may go on")
ACCEPT = "headgate gap accept "
ACCEPTED = ("--reason", "we know, and go on without them")


@dataclass(frozen=True, slots=True)
class Advice:
    """The next command, without the options that name the installation."""

    verb: str
    words: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """Something that stands still."""

    kind: str
    subject: str  # a stream, or STREAM/SHARD
    words: str
    meaning: str
    advice: Advice | None
    is_for_a_person: bool


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """What the documents say of one shard."""

    name: str  # STREAM/SHARD
    task: TaskStatus | None
    checkpoint: Checkpoint | None
    report: Report | None
    missing: Missing | None = None

    @property
    def is_reported_now(self) -> bool:
        """By whoever holds it."""
        task, report = self.task, self.report
        if task is None or report is None or task.is_silent:
            return False
        return task.condition == "in progress" and task.epoch == report.epoch

    def proved_ms(self, at_ms: int) -> int | None:
        """When nothing was waiting, if that is newer than the last report. A proof of later than
        now was told by a clock that has been set back since."""
        checkpoint, report = self.checkpoint, self.report
        if checkpoint is None or checkpoint.journal is not None or not checkpoint.positions:
            return None
        found_ms = min(checkpoint.ends_ms.get(name, 0) for name in checkpoint.positions)
        is_newer = 0 < found_ms <= at_ms and (report is None or found_ms >= report.at_ms)
        return found_ms if is_newer else None


def standing_of(
    stream: str,
    settings: StreamSettings | None,
    document: StreamDocument | None,
    shards: Sequence[ShardFacts],
    cluster: ClusterStatus,
    merging: Merging | None = None,
) -> tuple[Standing, ...]:
    """What a person must do first comes first."""
    if document is not None and document.retired is not None and settings is None:
        return ()  # it is over, on record
    is_log = settings is not None and isinstance(settings.source, KafkaSettings)
    found = [
        *_of_merging(stream, merging),
        *_of_settings(stream, settings, document),
        *_without_a_node(stream, shards, cluster),
        *_of_person(stream, document, cluster.at_ms),
        *(
            one
            for shard in shards
            for one in _of_shard(
                shard, cluster.at_ms, can_others=_can_others(stream, cluster), is_log=is_log
            )
        ),
        *(one for shard in shards for one in _expiring(shard, cluster.at_ms)),
        *(one for shard in shards for one in _gone(shard, cluster.at_ms, is_log=is_log)),
    ]
    return tuple(sorted(found, key=lambda one: not one.is_for_a_person))


def _of_settings(
    stream: str, settings: StreamSettings | None, document: StreamDocument | None
) -> Iterator[Standing]:
    if settings is not None and document is not None and settings.shards != document.shards:
        yield Standing(
            "shards differ",
            stream,
            f"it has {document.shards} shards since it began, and the settings say "
            f"{settings.shards}",
            "no node with these settings lands it; the number of shards of a live stream is fixed",
            Advice("config check"),
            is_for_a_person=True,
        )


def _without_a_node(
    stream: str, shards: Sequence[ShardFacts], cluster: ClusterStatus
) -> Iterator[Standing]:
    able = [member for member in cluster.members if member.is_able]
    if able and not any(member.knows(kind_name(stream)) for member in able):
        yield Standing(
            NO_NODE,
            stream,
            "nodes are running, and none of them has this stream in its settings",
            "nothing of it lands; a node reads its settings when it starts",
            Advice("run"),
            is_for_a_person=True,
        )
    elif not able and all(shard.task is None for shard in shards):
        yield Standing(
            NOT_BEGUN,
            stream,
            "no node has ever had it",
            "nothing of it has landed here",
            Advice("run"),
            is_for_a_person=False,
        )


def _of_person(stream: str, document: StreamDocument | None, at_ms: int) -> Iterator[Standing]:
    pause = None if document is None else document.paused
    if pause is not None:
        age = shown_ms(max(0, at_ms - pause.at_ms))
        yield Standing(
            "paused",
            stream,
            f"paused by {pause.who}, {age} ago: {pause.reason}",
            "no new round starts; what waits stays in the source",
            Advice("stream resume", (stream,), RESUMED),
            is_for_a_person=False,
        )


def _of_merging(stream: str, merging: Merging | None) -> Iterator[Standing]:
    if merging is None or (not merging.why and merging.tries < MERGE_TRIES_MAX):
        return
    why = merging.why or "its node ended in the middle of it"
    is_over = merging.tries >= MERGE_TRIES_MAX
    yield Standing(
        "not merged",
        stream,
        f"the small files of {merging.period} were not merged, in {merging.tries} of "
        f"{MERGE_TRIES_MAX} tries: {why}",
        "its flag is raised all the same, and later hours are merged if they can be"
        if is_over
        else "its flag waits for the next try, or the last",
        None,
        is_for_a_person=False,
    )


def _can_others(stream: str, cluster: ClusterStatus) -> bool:
    """Whether a node is there that was heard of, and can take over."""
    kind = kind_name(stream)
    return any(one.is_able and not one.is_silent and one.knows(kind) for one in cluster.members)


def _silent(name: str, task: TaskStatus, can_others: bool) -> Standing:
    left_ms = task.left_ms or 0
    ends = f"ends in about {shown_ms(left_ms)}; then" if left_ms > 0 else "is over:"
    who = "another node takes the shard over" if can_others else "any node that runs takes it over"
    return Standing(
        SILENT,
        name,
        f"node {task.node}, which held it, seems to be gone: nothing was heard of it for "
        f"{shown_ms(task.silent_ms or 0)}; it was killed, is paused, or cannot reach the store",
        f"its session {ends} {who}, and finishes what it began",
        None if can_others else Advice("run"),
        is_for_a_person=False,
    )


def _of_shard(
    shard: ShardFacts, at_ms: int, *, can_others: bool, is_log: bool
) -> Iterator[Standing]:
    task, checkpoint, report = shard.task, shard.checkpoint, shard.report
    journal = None if checkpoint is None else checkpoint.journal
    is_aside = task is not None and task.set_aside is not None
    if task is not None and task.condition == "in progress" and task.is_silent:
        yield _silent(shard.name, task, can_others)
    if task is not None and task.set_aside is not None:
        yield _set_aside(shard.name, task.set_aside.words, has_journal=journal is not None)
    if journal is not None and not is_aside and (task is None or task.condition != "in progress"):
        yield Standing(
            "journal stands",
            shard.name,
            f"commit {journal.number} is journaled and not finished",
            "whoever takes the shard finishes it before anything else",
            Advice("journal show", (shard.name,)),
            is_for_a_person=False,
        )
    if report is not None and report.remark and (task is None or task.epoch == report.epoch):
        yield Standing(
            "waits" if report.tries else "clock",
            shard.name,
            report.remark,
            "nothing of it lands until then; it is tried again and again"
            if report.tries
            else "records land, and no further hour can be complete",
            None,
            is_for_a_person=True,
        )
    if report is not None and is_log and shard.proved_ms(at_ms) is None:
        yield from _of_log(shard.name, report)
    elif report is not None:
        yield from _of_files(shard, report, at_ms)
    without = [] if checkpoint is None else _without_watermark(checkpoint)
    if without:
        yield Standing(
            "no watermark",
            shard.name,
            f"{', '.join(without)} {'has' if len(without) == 1 else 'have'} no watermark yet",
            "its hours stay open until its first commit that reads a record or proves its end",
            None,
            is_for_a_person=False,
        )


def _of_files(shard: ShardFacts, report: Report, at_ms: int) -> Iterator[Standing]:
    if report.unreadable and shard.proved_ms(at_ms) is None:
        first = f"{report.unreadable:,} files, the first of them: " if report.unreadable > 1 else ""
        yield Standing(
            "unreadable files",
            shard.name,
            f"{first}{report.unreadable_why}",
            "they do not land as they are, and no further hour can be complete; all else lands",
            None,
            is_for_a_person=True,
        )
    if report.unfinished and shard.proved_ms(at_ms) is None:
        files = "1 file is" if report.unfinished == 1 else f"{report.unfinished:,} files are"
        yield Standing(
            "unfinished files",
            shard.name,
            f"{files} unfinished: still being written (.x, _x, *.tmp), or younger than min_age",
            "they land once they are complete; until then nothing proves that all is there",
            None,
            is_for_a_person=False,
        )


def _of_log(name: str, report: Report) -> Iterator[Standing]:
    if report.unreadable:
        others = f", and {report.unreadable - 1:,} more" if report.unreadable > 1 else ""
        yield Standing(
            UNREADABLE,
            name,
            f"{report.unreadable_why}{others}",
            "nothing of it lands, and no further hour can be complete; all else lands",
            None,
            is_for_a_person=True,
        )
    if report.unfinished:
        one = report.unfinished == 1
        where = "a source partition" if one else f"{report.unfinished:,} source partitions"
        yield Standing(
            OPEN,
            name,
            f"a transaction is open in {where}",
            "its records land once its producer ends it, or the cluster does; until then nothing "
            "proves that all is there",
            None,
            is_for_a_person=False,
        )


def _expiring(shard: ShardFacts, at_ms: int) -> Iterator[Standing]:
    """The clock runs on while nobody reads: then it is the last report that tells."""
    left_ms = {name: one for name, one in left_of(shard, at_ms).items() if one < EXPIRING_MS}
    if not left_ms:
        return
    name = min(left_ms, key=lambda one: left_ms[one])
    others = f", and {len(left_ms) - 1:,} more follow" if len(left_ms) > 1 else ""
    first_ms = left_ms[name]
    when = f"expires in {shown_ms(first_ms)}" if first_ms > 0 else "may have expired by now"
    is_held = shard.task is not None and shard.task.condition == "in progress"
    yield Standing(
        EXPIRING,
        shard.name,
        f"{name}: the next record to read {when} at the source{others}",
        "what is not read by then is lost, and stays a gap; let its topic keep records for longer "
        "(retention.ms) until it has caught up",
        None if is_held else Advice("run"),
        is_for_a_person=True,
    )


def _gone(shard: ShardFacts, at_ms: int, *, is_log: bool) -> Iterator[Standing]:
    """Nobody has to accept it: it is there to be seen."""
    found = shard.missing
    if found is None:
        return
    age = shown_ms(max(0, at_ms - found.at_ms))
    certificates = "the certificates of the hours that it may concern name"
    if found.since:
        certificates = f"the certificates of {found.since} to {found.until} name"
    if found.since == str(Period.hour_of(0)):  # nothing has landed before: of any hour
        certificates = f"the certificates of all hours up to {found.until} name"
    if found.since and found.since == found.until:
        certificates = f"the certificate of {found.since} names"
    back = "" if is_log else "; what has its name now, or is put back, is read as a new file"
    commit = f"{shard.name}/{found.number}"
    since = str(Period.day_of(found.at_ms))
    yield Standing(
        GAP,
        shard.name,
        f"{found.words}{others(found.gaps)}; found {age} ago, noted in commit {found.number}",
        f"its records did not land, and nothing waits for them: {certificates} the gap{back}",
        Advice("history", (), ("--subject", commit, "--since", since)),
        is_for_a_person=False,
    )


def left_of(shard: ShardFacts, at_ms: int) -> dict[str, int]:
    """By source partition, how long the next record to read is still there; none of those of which
    nobody knows it, or of which nothing waits."""
    if shard.report is None or shard.proved_ms(at_ms) is not None:
        return {}
    return {name: one - at_ms for name, one in shard.report.expires_ms.items()}


def _set_aside(name: str, words: str, *, has_journal: bool) -> Standing:
    # An error that a journal's files are gone ends in that command; nothing else helps.
    if has_journal and "headgate journal restage" in words:
        advice = Advice("journal restage", (name,), RESTAGED)
    elif gap := _gap_of(words):  # likewise
        advice = Advice("gap accept", gap, ACCEPTED)
    else:
        advice = Advice("shard release", (name,), RELEASED)
    return Standing(
        "set aside",
        name,
        words,
        "no node tries it again until a person decides; its records stay in the source, and other "
        "shards go on",
        advice,
        is_for_a_person=True,
    )


def _gap_of(words: str) -> tuple[str, ...]:
    """The stream, and what is gone of it, as the command in these words names them; none: there is
    no such command, or it was cut off."""
    _, _, rest = words.partition(ACCEPT)
    named, is_whole, _ = rest.partition(" --reason")
    return tuple(shlex.split(named)) if is_whole else ()


def _without_watermark(checkpoint: Checkpoint) -> list[str]:
    """Before the first commit nobody expects one."""
    if checkpoint.number == 0:
        return []
    return [name for name, mark in checkpoint.watermarks.items() if mark is None]
