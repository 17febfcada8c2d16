"""Streams in words: how `headgate status` shows streams, shards and what stands still."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from headgate.cli import console
from headgate.cli.moments import many, shown_bytes, shown_moment
from headgate.cli.places import Here, command
from headgate.cli.tables import Block, Rows
from headgate.status import shown_ms
from headgate.status.still import Advice, Standing
from headgate.status.streams import Lag, ShardStatus, StreamStatus

SHOWN_MAX = 20  # of what stands still


def next_command(advice: Advice, here: Here) -> str:
    """For a person to copy."""
    return command(advice.verb, here, *advice.words, options=advice.options)


def stream_blocks(
    streams: Sequence[StreamStatus], here: Here, at_ms: int, *, is_all: bool
) -> list[Block]:
    if not streams:
        return []
    standing = [one for stream in streams for one in stream.standing]
    standing.sort(key=lambda one: not one.is_for_a_person)
    shown: list[Block] = [Text(), _streams(streams, at_ms)]
    if is_all:
        shown += shard_blocks(streams, at_ms)
    for one in standing if is_all else standing[:SHOWN_MAX]:
        shown += [Text(), *standing_lines(one, here)]
    if not is_all and len(standing) > SHOWN_MAX:
        all_ = command("status", here, options=["--all"])
        shown.append(Text(f"and {len(standing) - SHOWN_MAX:,} more; next: {all_}", "dim"))
    return shown


def shard_blocks(streams: Sequence[StreamStatus], at_ms: int) -> list[Block]:
    shards = [shard for stream in streams for shard in stream.shards]
    if not shards:
        return []
    shown: list[Block] = [Text(), _shards(shards, at_ms)]
    if any(shard.partitions for shard in shards):
        shown += [Text(), _partitions(shards)]
    return shown


def _streams(streams: Sequence[StreamStatus], at_ms: int) -> Rows:
    return Rows(
        (
            *("stream", "shards", "waiting", "oldest", "watermark", "last commit", "next commit"),
            *("landed", "late", "dead", "gaps"),
        ),
        tuple(
            (
                console.printable(stream.name) + _beside(stream),
                str(len(stream.shards)),
                waiting(stream.lag),
                _oldest(stream.lag),
                shown_moment(stream.watermark_ms),
                _ago(stream.committed_ms, at_ms),
                due(stream.due_ms, at_ms),
                *(f"{one:,}" for one in (stream.landed, stream.late, stream.dead, stream.gaps)),
            )
            for stream in streams
        ),
        frozenset({"shards", "landed", "late", "dead", "gaps"}),
    )


def _beside(stream: StreamStatus) -> str:
    if stream.ended:
        return " (ended)"
    return "" if stream.is_in_settings else " (not in the settings)"


def _shards(shards: Sequence[ShardStatus], at_ms: int) -> Rows:
    return Rows(
        (
            *("shard", "condition", "node", "waiting", "watermark", "last commit", "next commit"),
            *("commits", "doing"),
        ),
        tuple(
            (
                console.printable(shard.name),
                shard.condition,
                console.printable(_holder(shard)),
                waiting(shard.lag),
                shown_moment(shard.watermark_ms),
                _ago(shard.committed_ms, at_ms),
                due(shard.due_ms, at_ms),
                f"{shard.commits:,}",
                console.printable(shard.doing or "-"),
            )
            for shard in shards
        ),
        frozenset({"commits"}),
    )


def _holder(shard: ShardStatus) -> str:
    return f"{shard.node}, silent" if shard.is_silent else shard.node or "-"


def _partitions(shards: Sequence[ShardStatus]) -> Rows:
    every = [(shard, one) for shard in shards for one in shard.partitions]
    is_log = any(one.left_ms is not None for _, one in every)
    return Rows(
        ("source partition", "shard", "position", "watermark", *(["expires"] if is_log else [])),
        tuple(
            (
                console.printable(one.name),
                console.printable(shard.name),
                console.printable(one.position or "-"),
                shown_moment(one.watermark_ms),
                *([_expires(one.left_ms)] if is_log else []),
            )
            for shard, one in every
        ),
    )


def _expires(left_ms: int | None) -> str:
    """When the next record to read will be gone at the source."""
    if left_ms is None:
        return "-"
    return f"in {shown_ms(left_ms)}" if left_ms > 0 else "may be gone"


def waiting(lag: Lag | None) -> str:
    """`3 files, 1.2 MB`; `700 records, 1.2 MB`. If nobody looks now, nobody knows: then what was
    seen, and when."""
    if lag is None:
        return "not known"
    counts = [(lag.files, "file"), (lag.records, "record")]
    told = [many(count, word) for count, word in counts if count]
    words = ", ".join([*told, shown_bytes(lag.size_bytes)]) if told else "nothing"
    return words if lag.is_now else f"not known; {shown_ms(lag.age_ms)} ago: {words}"


def _oldest(lag: Lag | None) -> str:
    if lag is None or lag.oldest_ms is None or not lag.is_now:
        return "-"
    return shown_ms(lag.oldest_ms)


def _ago(moment_ms: int | None, at_ms: int) -> str:
    return "-" if moment_ms is None else f"{shown_ms(max(0, at_ms - moment_ms))} ago"


def due(moment_ms: int | None, at_ms: int) -> str:
    """When the running shift is over, and its holder commits at the latest."""
    if moment_ms is None:
        return "-"
    return f"within {shown_ms(moment_ms - at_ms)}" if moment_ms > at_ms else "now"


def cause_of(words: str) -> str:
    """Without the command that an error ends in: it does not know the settings, and we do."""
    return words.partition("; next: headgate ")[0]


def standing_lines(one: Standing, here: Here) -> Iterator[Text]:
    """What stands still, why, and the next command."""
    style = "bold yellow" if one.is_for_a_person else "bold"
    cause = one.words if one.advice is None else cause_of(one.words)
    yield Text(console.printable(f"{one.kind}: {one.subject}"), style)
    yield Text(console.printable(f"  cause    {cause}"))
    yield Text(console.printable(f"  meaning  {one.meaning}"))
    if one.advice is not None:
        yield Text.assemble("  next     ", (next_command(one.advice, here), "cyan"))
