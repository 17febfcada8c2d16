"""Failure: a job of the engine that did not come to a good end, for a reason of its own."""


class JobFailed(Exception):
    """Nothing of it counts. Tried again, it may fail again: perhaps for only one of its shards."""
