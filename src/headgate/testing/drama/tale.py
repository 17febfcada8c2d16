"""Tale: what happened to the nodes, in sentences, from the events of their logs.

Many events of one sort in a row are one sentence: `node-1 took over 8 tasks of node-2, epoch 2`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.cluster.session import LEFT
from headgate.testing.drama.child import Event

QUIET_S = 0.8  # a sentence ends when nothing of its sort came for so long


@dataclass(slots=True)
class _Sentence:
    count: int
    since_s: float


class Tale:
    """Fed with events and the time, asked for sentences. Values in, values out."""

    def __init__(self) -> None:
        self.takeovers = 0  # of tasks, from nodes whose session was closed
        self.refused = 0  # late writes of nodes that were woken
        self.lost = 0  # sessions that others closed
        self._nodes: dict[str, str] = {}  # by session
        self._sessions: dict[str, str] = {}  # by node
        self._closed: set[str] = set()
        self._woken: set[str] = set()
        self._holders: dict[str, str] = {}  # task -> session, as far as the logs say
        self._pending: dict[tuple[str, str, str], _Sentence] = {}

    def wake(self, node: str) -> None:
        """From now on, what it is refused is worth telling."""
        self._woken.add(node)

    def hear(self, events: Iterable[Event], now_s: float) -> list[str]:
        """What can be said at once."""
        # Each log is in order, but not all together: who joined and who was closed comes first.
        heard = sorted(events, key=lambda event: _ORDER.get(event.name, 9))
        said: list[str] = []
        for event in heard:
            said += self._hear(event, now_s)
        return said

    def flush(self, now_s: float) -> list[str]:
        """What has come to an end since."""
        return self._told(
            [key for key, one in self._pending.items() if now_s - one.since_s >= QUIET_S]
        )

    def _said_of(self, node: str) -> list[str]:
        return self._told([key for key in self._pending if key[0] == node])

    def _told(self, keys: Iterable[tuple[str, str, str]]) -> list[str]:
        return [_sentence(*key, self._pending.pop(key).count) for key in keys]

    def _hear(self, event: Event, now_s: float) -> list[str]:
        node, fields = event.node, event.fields
        if event.name == "member.joined":
            is_again = node in self._sessions
            self._nodes[fields["session"]] = node
            self._sessions[node] = fields["session"]
            return [f"{node} joined {'again ' if is_again else ''}as number {fields['number']}"]
        if event.name == "session.closed" and fields["why"] != LEFT:
            self._closed.add(fields["session"])
            whose = self._nodes.get(fields["session"], "somebody")
            return [f"{node} closed the session of {whose}: {fields['why']}"]
        if event.name == "session.lost":
            self.lost += 1
            return [f"{node} found its session closed, and drops all it held"]
        if event.name == "task.fenced" and node in self._woken:
            self.refused += 1
            return [f"{node} was refused a late write: {fields['why']}"]
        if event.name == "leader.elected":
            return [f"{node} is the leader now, epoch {fields['epoch']}"]
        if event.name == "member.left":
            return [*self._said_of(node), f"{node} gave everything back and left"]
        if event.name == "task.claimed":
            self._claimed(node, fields["task"], fields["epoch"], now_s)
        elif event.name == "task.given_back":
            self._holders.pop(fields["task"], None)
            self._add(node, "gave back", "", now_s)
        return []

    def _claimed(self, node: str, task: str, epoch: str, now_s: float) -> None:
        before = self._holders.get(task, "")
        self._holders[task] = self._sessions.get(node, "")
        if before in self._closed:
            self.takeovers += 1
            self._add(node, f"of {self._nodes.get(before, 'somebody')}", epoch, now_s)
        else:
            self._add(node, "claimed", epoch, now_s)

    def _add(self, node: str, what: str, epoch: str, now_s: float) -> None:
        sentence = self._pending.setdefault((node, what, epoch), _Sentence(0, now_s))
        sentence.count += 1
        sentence.since_s = now_s


_ORDER = {"member.joined": 0, "session.closed": 1, "session.lost": 2, "task.given_back": 3}


def _sentence(node: str, what: str, epoch: str, count: int) -> str:
    many = "1 task" if count == 1 else f"{count:,} tasks"
    if what.startswith("of "):
        return f"{node} took over {many} {what}, epoch {epoch}"
    if what == "gave back":
        return f"{node} gave back {many} beyond its share"
    return f"{node} claimed {many}, epoch {epoch}"
