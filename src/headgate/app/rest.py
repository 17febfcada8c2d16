"""Rest: whether nothing is to be done, so that it is no trouble that no node runs.

Tasks of streams, flags and tables are never done: they wait for a node for ever. As long as nothing
waited when somebody last looked, and nothing follows from what has landed, that is rest. What
somebody dropped since then, nobody knows.
"""

from collections.abc import Callable

from headgate.apply.kind import kind_name as batches_of
from headgate.landing.kind import kind_name as landing_of
from headgate.ready.kind import kind_name as flags_of
from headgate.status import ClusterStatus, resting
from headgate.status.streams import StreamsStatus

ENDLESS = (landing_of(""), flags_of(""), batches_of(""))  # how the kinds of such tasks begin


def rested(
    fleet: ClusterStatus, streams: StreamsStatus, is_more_to_come: Callable[[], bool]
) -> ClusterStatus:
    """The same; at rest, if no node is there and nothing is to be done. `is_more_to_come`: flags,
    or batches for tables; it is asked only if it matters. Raises what that raises."""
    if fleet.members or not fleet.tasks:
        return fleet
    if any(not task.kind.startswith(ENDLESS) for task in fleet.tasks if task.set_aside is None):
        return fleet
    if not all(one.is_at_rest for one in streams.streams) or is_more_to_come():
        return fleet
    return resting(fleet)
