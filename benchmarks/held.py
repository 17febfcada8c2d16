"""A shard's work without a cluster around it: what a benchmark drives tick by tick."""

import json

from headgate.store import DocumentStore


class Held:
    """`headgate.cluster.Assignment` of somebody who is trusted."""

    key, epoch, node, is_draining = "tasks/land", 1, "bench", False

    def __init__(self, stream: str = "orders") -> None:
        self.payload = json.dumps({"stream": stream, "shard": 0}).encode()

    def check(self) -> None:
        return

    def left_ms(self) -> int:
        return 10_000

    def guard(self, store: DocumentStore) -> DocumentStore:
        return store
