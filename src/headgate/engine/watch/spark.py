"""Spark: what the stages of our driver say, and the end of its session, asked for from outside.

Only a driver that was started here is looked at: somebody else's session is theirs to stop, and a
Connect server has a driver of its own.
"""

import logging

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # it has no types

from headgate.engine.gateway.spark import own_context
from headgate.engine.stall import StageFacts

log = logging.getLogger(__name__)


def stages_now() -> tuple[StageFacts, ...]:
    """Of all jobs under way; none: there is no driver of ours, or it does not answer. Then whoever
    waits for it is told in another way."""
    context = own_context()
    if context is None:
        return ()
    try:
        tracker = context.statusTracker()
        found = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
    except (Py4JError, OSError, AttributeError) as error:  # the last: it was stopped just now
        log.debug("spark.silent", extra={"why": type(error).__name__})
        return ()
    return tuple(
        StageFacts(
            one.stageId,
            one.currentAttemptId,
            one.numActiveTasks,
            one.numCompletedTasks + one.numFailedTasks,
        )
        for one in found
        if one is not None
    )
