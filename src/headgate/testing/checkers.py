"""Checkers: small rules that watch every call of a simulated fleet. Each looks at one thing.

They know what documents look like from outside, and nothing of the code that writes them.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from headgate.cluster.tasks import FAILED_TRIES_MAX
from headgate.testing.faults import Call, Sort
from headgate.testing.simulation import Event, Happening, Simulation

WRITES = frozenset({"create", "replace"})


class Checker(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def sees(self) -> Sequence[Happening]:
        """What of a write it wants to see."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Beginnings of the keys that concern it."""

    @property
    def violations(self) -> Sequence[str]: ...

    def see(self, event: Event) -> None: ...


def checkers(term_ms: int) -> Sequence[Checker]:
    return (
        EpochsGrow(),
        TrustEnds(term_ms),
        OneActs(),
        HoldersStay(),
        RemovedStaysRemoved(),
        StartsStay(),
        TriesEnd(),
    )


class EpochsGrow:
    """Invariant 3: no write takes effect with an epoch older than its document's; and each new
    holder has an epoch of its own."""

    name = "invariant 3"
    sees = (Happening.ACTED,)
    keys = ("cluster/", "steps/")

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._seen: dict[str, tuple[int, object]] = {}  # epoch and holder of each document

    def see(self, event: Event) -> None:
        call = event.call
        if isinstance(event.outcome, Exception):
            return
        if call is None or call.method not in WRITES:
            return
        body = body_of(call)
        epoch = body.get("epoch")
        if not isinstance(epoch, int):
            return
        key = call.subject
        holder = body.get("holder")
        before_epoch, before_holder = self._seen.get(key, (0, ""))
        if call.method == "create":
            before_epoch, before_holder = 0, ""
        if epoch < before_epoch:
            self.violations.append(
                f"{event.machine} wrote {key} with epoch {epoch} over epoch {before_epoch}"
            )
        if holder and holder != before_holder and epoch <= before_epoch:
            self.violations.append(
                f"{event.machine} took {key} for session {str(holder)[:8]} and left epoch {epoch} "
                "as it was"
            )
        self._seen[key] = (epoch, holder)


class TrustEnds:
    """Invariant 10: after `trusted_until` a node starts no write. Counted here from the moment at
    which the last acknowledged renewal was sent, less the margin of a tenth."""

    name = "invariant 10"
    sees = (Happening.BOOTED, Happening.STARTED, Happening.REPLIED)
    keys = ("cluster/", "sessions/", "steps/")

    def __init__(self, term_ms: int) -> None:
        self.violations: list[str] = []
        self._trust_us = (term_ms - term_ms // 10) * 1_000
        self._sent_us: dict[tuple[str, int], int] = {}  # renewals under way
        self._until_us: dict[str, int] = {}

    def see(self, event: Event) -> None:
        if event.happening is Happening.BOOTED:
            self._until_us.pop(event.machine, None)
            return
        call = event.call
        if call is None or call.method not in (*WRITES, "delete"):
            return
        if call.subject.startswith("sessions/"):
            self._see_session(event, call)
        elif event.happening is Happening.STARTED and is_acting(call):
            until_us = self._until_us.get(event.machine, 0)
            if event.time_us > until_us:
                late_ms = (event.time_us - until_us) // 1_000
                self.violations.append(
                    f"{event.machine} started {call.method} {call.subject} {late_ms} ms after its "
                    "trust was over"
                )

    def _see_session(self, event: Event, call: Call) -> None:
        if call.method == "delete" or body_of(call).get("state") != "live":
            return
        flight = (event.machine, event.number)
        if event.happening is Happening.STARTED:
            self._sent_us[flight] = event.time_us
        elif event.happening is Happening.REPLIED:
            sent_us = self._sent_us.pop(flight, None)
            if sent_us is not None and not isinstance(event.outcome, Exception):
                self._until_us[event.machine] = sent_us + self._trust_us


class OneActs:
    """For each task and epoch one process acts, and that with one hand."""

    name = "one acting holder"
    sees = (Happening.BOOTED, Happening.STARTED, Happening.REPLIED)
    keys = ("steps/",)

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._boots: dict[str, int] = {}
        self._acting: dict[tuple[str, int], tuple[str, int]] = {}
        self._under_way: dict[tuple[str, int, str], int] = {}  # the call that is not answered yet

    def see(self, event: Event) -> None:
        machine, call = event.machine, event.call
        if event.happening is Happening.BOOTED:
            self._boots[machine] = self._boots.get(machine, 0) + 1
        if call is None or call.method != "replace":
            return
        actor = (machine, self._boots.get(machine, 0))
        hand = (*actor, call.subject)
        if event.happening is Happening.REPLIED:
            if self._under_way.get(hand) == event.number:
                del self._under_way[hand]
            return
        if hand in self._under_way:
            self.violations.append(f"two workers of {machine} act on {call.subject} at once")
        self._under_way[hand] = event.number
        epoch = body_of(call).get("epoch")
        if isinstance(epoch, int):
            other = self._acting.setdefault((call.subject, epoch), actor)
            if other != actor:
                self.violations.append(
                    f"{machine} and {other[0]} both act on {call.subject} with epoch {epoch}"
                )


class HoldersStay:
    """A right is taken from its holder only by itself, or after its session was closed; and nobody
    closes a session as it was before its last renewal."""

    name = "sessions and holders"
    sees = (Happening.ACTED,)
    keys = ("cluster/", "sessions/")

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._owners: dict[object, str] = {}  # machine of each live session
        self._renewals: dict[str, int] = {}
        self._holders: dict[str, object] = {}

    def see(self, event: Event) -> None:
        call = event.call
        if isinstance(event.outcome, Exception):
            return
        if call is None or call.method not in WRITES:
            return
        body = body_of(call)
        if call.subject.startswith("sessions/"):
            self._see_session(event.machine, call.subject, body)
        elif "holder" in body:
            self._see_right(event.machine, call.subject, body)

    def _see_session(self, machine: str, key: str, body: Mapping[str, object]) -> None:
        session = key.partition("/")[2]
        renewals = body.get("renewals")
        known = self._renewals.get(session, 0)
        if body.get("state") == "live":
            self._owners[session] = machine
            self._renewals[session] = renewals if isinstance(renewals, int) else 0
            return
        if isinstance(renewals, int) and renewals < known:
            self.violations.append(
                f"{machine} closed session {session[:8]} as it was before its renewal {known}"
            )
        self._owners.pop(session, None)

    def _see_right(self, machine: str, key: str, body: Mapping[str, object]) -> None:
        before, holder = self._holders.get(key), body.get("holder")
        owner = self._owners.get(before)
        if before and holder != before and owner not in (None, machine):
            self.violations.append(
                f"{machine} took {key} from {owner}, whose session {str(before)[:8]} lives"
            )
        self._holders[key] = holder


class RemovedStaysRemoved:
    """A task that was done and removed is never started again, even if its document comes back."""

    name = "removed tasks"
    sees = (Happening.ACTED,)
    keys = ("cluster/tasks/",)

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._removed: set[str] = set()

    def see(self, event: Event) -> None:
        call = event.call
        if isinstance(event.outcome, Exception):
            return
        if call is None or not call.subject.startswith("cluster/tasks/"):
            return
        was_removed = call.subject in self._removed
        if call.method == "delete":
            self._removed.add(call.subject)
        elif was_removed and call.method == "replace" and body_of(call).get("start"):
            self.violations.append(f"{event.machine} started {call.subject}, which was removed")


class StartsStay:
    """A start that is on record goes away with the task's good end, by its holder's long good work,
    or by the process that made it; nobody else's: it may have died by it."""

    name = "starts"
    sees = (Happening.BOOTED, Happening.ACTED)
    keys = ("cluster/tasks/",)

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._boots: dict[str, int] = {}
        self._owners: dict[tuple[str, str], tuple[str, int]] = {}
        self._before: dict[str, list[str]] = {}
        self._aside: set[str] = set()

    def see(self, event: Event) -> None:
        machine, call = event.machine, event.call
        if event.happening is Happening.BOOTED:
            self._boots[machine] = self._boots.get(machine, 0) + 1
        if call is None or call.method not in WRITES or isinstance(event.outcome, Exception):
            return
        key, body = call.subject, body_of(call)
        starts = body.get("starts")
        if not isinstance(starts, list):
            return
        actor = (machine, self._boots.get(machine, 0))
        before = self._before.get(key, []) if call.method == "replace" else []
        for start in starts:
            if start not in before:
                self._owners[key, start] = actor
        is_forgiven = body.get("state") == "done" or (not starts and body.get("holder"))
        if not is_forgiven and key not in self._aside:
            for start in before:
                if start not in starts and self._owners[key, start] != actor:
                    owner = self._owners[key, start][0]
                    self.violations.append(f"{machine} erased start {start} of {owner} at {key}")
        self._before[key] = starts
        (self._aside.add if body.get("set_aside") else self._aside.discard)(key)


class TriesEnd:
    """No task has more starts that came to nothing than its tries allow: it is set aside."""

    name = "tries"
    sees = (Happening.ACTED,)
    keys = ("cluster/tasks/",)

    def __init__(self) -> None:
        self.violations: list[str] = []

    def see(self, event: Event) -> None:
        call = event.call
        if isinstance(event.outcome, Exception) or call is None or call.method != "replace":
            return
        starts = body_of(call).get("starts")
        if isinstance(starts, list) and len(starts) > FAILED_TRIES_MAX:
            self.violations.append(
                f"{event.machine} started {call.subject} for the {len(starts)}th time"
            )


def watch(simulation: Simulation, watching: Sequence[Checker]) -> None:
    """Shows each checker what it wants to see; reads are nobody's concern."""
    wanted = {happening: [c for c in watching if happening in c.sees] for happening in Happening}

    def show(event: Event) -> None:
        call = event[4]
        if call is None:
            for checker in wanted[event[2]]:
                checker.see(event)
        elif call[4] is Sort.WRITE:
            key = call[2][0]  # the first argument; of some calls it is no text
            if isinstance(key, str):
                for checker in wanted[event[2]]:
                    if key.startswith(checker.keys):
                        checker.see(event)

    simulation.observe(show)


def body_of(call: Call) -> Mapping[str, object]:
    body = call.args[1]
    return body if isinstance(body, Mapping) else {}


def is_acting(call: Call) -> bool:
    """Under a right, or on the way to one; joining is not."""
    return call.subject.startswith(("cluster/", "steps/")) and call.subject != "cluster/numbers"
