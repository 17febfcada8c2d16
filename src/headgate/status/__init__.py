"""Status: who is there, who does what, how far it is, and what a person must look at.

    fleet     nodes and tasks
    streams   streams and shards: lag, watermark, commits, and what stands still

Values, read-only, from documents and a few files of the lake that are known by name: looking starts
no Spark, lists no folder of the lake, and works while no node runs.
"""

from headgate.status.fleet import (
    SESSION_LETTERS,
    ClusterStatus,
    MemberStatus,
    TaskStatus,
    as_json,
    exit_code,
    read_status,
    resting,
    shown_ms,
)

__all__ = [
    "SESSION_LETTERS",
    "ClusterStatus",
    "MemberStatus",
    "TaskStatus",
    "as_json",
    "exit_code",
    "read_status",
    "resting",
    "shown_ms",
]
