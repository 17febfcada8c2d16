"""Outlook: how far a shard is. Whether it has ended, and whether all that was there has landed.

Values in, values out.
"""

from headgate.commits.checkpoint import Checkpoint
from headgate.commits.streams import StreamDocument
from headgate.landing import StreamSettings
from headgate.periods import HOUR_MS, Period


def words_of_the_end(
    settings: StreamSettings, stream: StreamDocument | None, checkpoint: Checkpoint
) -> str:
    """Why nothing more of this shard is read, for good; "": it goes on."""
    if stream is not None and stream.retired is not None:
        return f"retired by {stream.retired.who}: {stream.retired.reason}"
    end_ms = settings.end_ms
    if end_ms is None or checkpoint.discovered_ms < end_ms + settings.allowed_lateness_ms:
        return ""
    marks = checkpoint.watermarks.values()
    if any(mark_ms is None or mark_ms < end_ms for mark_ms in marks):
        return ""
    return f"ended: its last hour was {Period(end_ms - HOUR_MS, 'hour')}"


def lacks_marks(checkpoint: Checkpoint, stream: StreamDocument | None) -> bool:
    """The stream's first hour is known, and a source partition that was empty before it has no
    watermark yet: a round without records gives it one, and until then it holds every hour."""
    is_begun = stream is not None and stream.first_hour_ms is not None
    return is_begun and None in checkpoint.watermarks.values()


def is_proved(checkpoint: Checkpoint, since_ms: int, now_ms: int) -> bool:
    """Everything that was there at that wall time has landed. A proof from the future is none: the
    clock was set back since."""
    ends_ms = (checkpoint.ends_ms.get(one, 0) for one in checkpoint.positions)
    return all(since_ms <= one <= now_ms for one in ends_ms)
