"""App: the composition root and the library. It picks the backends; what they do is elsewhere.

nodes      a node from its parts; what a person asks of a cluster
landing    a node that lands streams
acts       what a person asks of streams and shards
flags      what a person asks of flags
gaps       what a person accepts as gone at a Kafka cluster
clusters   how a Kafka cluster of the settings is opened
declared   Stream, Files: as a Python program writes them
library    App: what the command line does, in Python
"""

from headgate.app.nodes import (
    Equipment,
    Joined,
    Place,
    ask_to_drain,
    find_session,
    find_sessions,
    joined_node,
    release_task,
)

__all__ = [
    "Equipment",
    "Joined",
    "Place",
    "ask_to_drain",
    "find_session",
    "find_sessions",
    "joined_node",
    "release_task",
]
