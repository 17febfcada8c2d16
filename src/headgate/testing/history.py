"""History: what clients asked of a store and what they were told, and whether that can be true.

Each call is recorded with the moments it began and ended. A history is *linearizable* if every
call can be given one instant between the two, such that the calls in that order explain every
answer: a read shows what was last written, a write was accepted only with the current version, a
Conflict was answered only when the version had moved. A call whose outcome is unknown may have
happened at any instant after it began, or never.

Documents do not influence each other, so each has a history of its own. The search tries the calls
that could come next and remembers what it has seen (Wing and Gong's, with Lowe's memory).
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random

from headgate.errors import Conflict, OutcomeUnknown, Unavailable
from headgate.store import TIMEOUT_MS, DocumentStore, JsonObject, Version

NEVER = 1 << 62

StateValue = tuple[Version | None, str]  # the version is None until somebody has read it
State = StateValue | None


@dataclass(frozen=True, slots=True)
class Call:
    client: str
    verb: str  # get, create, replace, delete
    key: str
    wrote: str  # the value it would write; unique in the history
    based_on: Version | None
    began_ns: int
    ended_ns: int  # NEVER: its outcome is not known
    told: str  # found, absent, done, conflict, unknown
    version: Version | None  # as read, or as acknowledged
    value: str  # as read

    def __str__(self) -> str:
        asked = {
            "get": "",
            "create": f" {self.wrote}",
            "replace": f" {self.wrote} over {_short(self.based_on)}",
            "delete": f" {_short(self.based_on)}",
        }[self.verb]
        answer = f"{self.told} {self.value} {_short(self.version)}".rstrip(" -")
        return f"{self.client:>4} {self.verb}{asked} -> {answer}"


def _short(version: Version | None) -> str:
    return "-" if version is None else f"v[{version[-10:]}]"


def next_state(state: State, call: Call) -> tuple[bool, State]:
    """Could `call` get this answer in `state`, and what is the state afterwards?"""
    is_current = state is not None and call.based_on is not None and state[0] == call.based_on
    after: State = None if call.verb == "delete" else (call.version, call.wrote)
    match call.verb, call.told:
        case "get", "absent":
            return state is None, state
        case "get", _:
            fits = state is not None and state[1] == call.value
            fits = fits and state is not None and state[0] in (None, call.version)
            return fits, (call.version, call.value)
        case "create", "conflict":
            return state is not None, state
        case "create", _:
            return state is None, after
        case _, "conflict":
            return not is_current, state
        case _:
            return is_current, after


@dataclass(frozen=True, slots=True)
class Violation:
    key: str
    story: str

    def __str__(self) -> str:
        return f"{self.key}: no order of these calls explains their answers\n{self.story}"


def find_violations(history: Sequence[Call]) -> list[Violation]:
    """One for each document whose history is not linearizable."""
    by_key: dict[str, list[Call]] = defaultdict(list)
    for call in history:
        by_key[call.key].append(call)
    found = (_check(key, calls) for key, calls in sorted(by_key.items()))
    return [violation for violation in found if violation is not None]


def _twice(key: str, calls: Sequence[Call]) -> Violation | None:
    """A version that stands for two writes (S4): no order of calls would show it."""
    wrote: dict[Version, str] = {}
    for call in calls:
        if call.version is not None:
            value = call.value if call.verb == "get" else call.wrote
            if wrote.setdefault(call.version, value) != value:
                return Violation(
                    key,
                    f"  {_short(call.version)} stands for {wrote[call.version]} and for {value}",
                )
    return None


def _check(key: str, calls: Sequence[Call]) -> Violation | None:
    if (found := _twice(key, calls)) is not None:
        return found
    known = sorted((c for c in calls if c.ended_ns != NEVER), key=lambda call: call.began_ns)
    open_ended = [call for call in calls if call.ended_ns == NEVER]
    # A position: how many known calls are placed without a hole, which ones beyond that (bits),
    # which open-ended ones happened (bits), and the state they lead to.
    todo: list[tuple[int, int, int, State]] = [(0, 0, 0, None)]
    seen = set(todo)
    furthest = todo[0]
    while todo:
        low, ahead, _, _ = position = todo.pop()
        if (low, ahead.bit_count()) >= (furthest[0], furthest[1].bit_count()):
            furthest = position
        if low == len(known):
            return None
        first_end_ns = _first_end(known, low, ahead)
        for nxt in _steps(known, open_ended, position, first_end_ns):
            if nxt not in seen:
                seen.add(nxt)
                todo.append(nxt)
    return Violation(key, _story(known, open_ended, furthest))


def _first_end(known: Sequence[Call], low: int, ahead: int) -> int:
    end_ns = NEVER
    for index in range(low, len(known)):
        if known[index].began_ns > end_ns:
            break
        if not ahead >> (index - low) & 1:
            end_ns = min(end_ns, known[index].ended_ns)
    return end_ns


def _steps(
    known: Sequence[Call],
    open_ended: Sequence[Call],
    position: tuple[int, int, int, State],
    first_end_ns: int,
) -> Iterator[tuple[int, int, int, State]]:
    low, ahead, happened, state = position
    for index in _possible(known, low, ahead, first_end_ns):
        fits, after = next_state(state, known[index])
        if fits and after == state:
            # It changes nothing, so it may as well come now: no other order has to be tried.
            yield (*_placed(low, ahead, index), happened, state)
            return
    for bit, call in enumerate(open_ended):
        if not happened >> bit & 1 and call.began_ns <= first_end_ns:
            fits, after = next_state(state, call)
            if fits:
                yield low, ahead, happened | 1 << bit, after
    for index in _possible(known, low, ahead, first_end_ns):
        fits, after = next_state(state, known[index])
        if fits:
            yield (*_placed(low, ahead, index), happened, after)


def _possible(known: Sequence[Call], low: int, ahead: int, first_end_ns: int) -> Iterator[int]:
    """Calls that began before any that is not placed yet has ended."""
    for index in range(low, len(known)):
        if known[index].began_ns > first_end_ns:
            return
        if not ahead >> (index - low) & 1:
            yield index


def _placed(low: int, ahead: int, index: int) -> tuple[int, int]:
    ahead |= 1 << (index - low)
    while ahead & 1:
        low, ahead = low + 1, ahead >> 1
    return low, ahead


def _story(
    known: Sequence[Call], open_ended: Sequence[Call], furthest: tuple[int, int, int, State]
) -> str:
    low, ahead, _, state = furthest
    lines = [f"  {call}" for call in known[max(0, low - 6) : low]]
    lines.append(
        f"  -- up to here an order exists; the document is then {state}; none of these fits:"
    )
    rest = [known[index] for index in range(low, len(known)) if not ahead >> (index - low) & 1]
    lines += [f"  {call}" for call in rest[:8]]
    lines += [f"  {call} (outcome unknown)" for call in open_ended[:8]]
    return "\n".join(lines)


class Recorder:
    """Keeps the history of all clients; each client calls through `client()`."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._lock = threading.Lock()

    @property
    def calls(self) -> list[Call]:
        with self._lock:
            return list(self._calls)

    def keep(self, call: Call) -> None:
        with self._lock:
            self._calls.append(call)


class RecordingClient:
    """One client of a store, one call at a time, on record."""

    def __init__(
        self, name: str, store: DocumentStore, recorder: Recorder, timeout_ms: int
    ) -> None:
        self.name = name
        self.store = store
        self._recorder = recorder
        self._timeout_ms = timeout_ms
        self._writes = 0

    def get(self, key: str) -> Version | None:
        with self._on_record("get", key, None) as answer:
            found = self.store.get(key, timeout_ms=self._timeout_ms)
            if found is None:
                answer["told"] = "absent"
                return None
            answer.update(told="found", version=found.version, value=str(found.body["value"]))
            return found.version

    def look(self, keys: Sequence[str]) -> None:
        """One listing: as if each of the keys had been read, at some instant of it."""
        began_ns = time.monotonic_ns()
        try:
            page = self.store.list(timeout_ms=self._timeout_ms)
        except Unavailable:
            return
        ended_ns = time.monotonic_ns()
        found = {document.key: document for document in page.documents}
        for key in keys:
            call = Call(self.name, "get", key, "", None, began_ns, ended_ns, "absent", None, "")
            if (document := found.get(key)) is not None:
                value = str(document.body["value"])
                call = replace(call, told="found", version=document.version, value=value)
            self._recorder.keep(call)

    def create(self, key: str) -> None:
        with self._on_record("create", key, None) as answer:
            body: JsonObject = {"format": 1, "value": answer["wrote"]}
            version = self.store.create(key, body, timeout_ms=self._timeout_ms)
            answer.update(told="done", version=version)

    def replace(self, key: str, version: Version) -> None:
        with self._on_record("replace", key, version) as answer:
            body: JsonObject = {"format": 1, "value": answer["wrote"]}
            new = self.store.replace(key, body, version, timeout_ms=self._timeout_ms)
            answer.update(told="done", version=new)

    def delete(self, key: str, version: Version) -> None:
        with self._on_record("delete", key, version) as answer:
            self.store.delete(key, version, timeout_ms=self._timeout_ms)
            answer["told"] = "done"

    @contextmanager
    def _on_record(self, verb: str, key: str, based_on: Version | None) -> Iterator[dict[str, str]]:
        self._writes += 1
        answer = {"wrote": f"{self.name}.{self._writes}"}
        call = Call(
            self.name,
            verb,
            key,
            answer["wrote"],
            based_on,
            time.monotonic_ns(),
            NEVER,
            "unknown",
            None,
            "",
        )
        try:
            yield answer
        except Conflict:
            answer["told"] = "conflict"
        except Unavailable:
            return  # nothing happened: it needs no place, and nobody may ever see its value
        except OutcomeUnknown:
            self._recorder.keep(call)
            return
        version = answer.get("version")
        self._recorder.keep(
            replace(
                call,
                ended_ns=time.monotonic_ns(),
                told=answer["told"],
                version=None if version is None else Version(version),
                value=answer.get("value", ""),
            )
        )


def _calls_by_chance(
    client: RecordingClient, keys: Sequence[str], random: Random
) -> Iterator[None]:
    """Does one call after the other, for ever; whoever drives it decides when."""
    known: dict[str, Version | None] = {}
    while True:
        key = random.choice(keys)
        version, dice = known.get(key), random.random()
        if dice < 0.05:
            client.look(keys)
        elif dice < 0.4 or key not in known:
            known[key] = client.get(key)
        elif version is None:
            client.create(key)
            known.pop(key)
        elif dice < 0.9:
            client.replace(key, version)
            if random.random() < 0.8:  # else: keep the old version and be refused next time
                known.pop(key)
        else:
            client.delete(key, version)
        yield


def run_in_turns(
    clients: Mapping[str, DocumentStore],
    recorder: Recorder,
    keys: Sequence[str],
    *,
    seed: int,
    calls: int,
) -> None:
    """One call at a time, the seed says whose: the same history each time."""
    random = Random(seed)
    turns = [
        _calls_by_chance(
            RecordingClient(name, store, recorder, TIMEOUT_MS), keys, Random(f"{seed}/{name}")
        )
        for name, store in clients.items()
    ]
    for _ in range(calls):
        next(random.choice(turns))


def run_clients(
    clients: Mapping[str, DocumentStore],
    recorder: Recorder,
    keys: Sequence[str],
    *,
    seed: int,
    is_over: Callable[[str, int], bool],
    calls_max: int = 5_000,
    timeout_ms: int = 2_000,
) -> None:
    """Every client in a thread of its own does what chance says until `is_over(client, its calls)`.

    Raises the first error that is not one of the store's answers.
    """
    failures: list[BaseException] = []
    start = threading.Barrier(len(clients))

    def work(name: str, store: DocumentStore) -> None:
        client = RecordingClient(name, store, recorder, timeout_ms)
        calls = _calls_by_chance(client, keys, Random(f"{seed}/{name}"))
        start.wait()
        try:
            for count in range(calls_max):
                if is_over(name, count) or failures:
                    return
                next(calls)
        except BaseException as error:  # noqa: BLE001 - handed to the caller, below
            failures.append(error)

    threads = [threading.Thread(target=work, args=item, daemon=True) for item in clients.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
