"""One job for many shards: who shares it, what a failure costs, and whose staging goes when."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from headgate.engine import (
    EventTime,
    InputFile,
    Job,
    Shape,
    ShardInput,
    Staged,
    StagedFile,
    Tally,
)
from headgate.engine.failure import JobFailed
from headgate.errors import Fenced, Invalid, Unavailable
from headgate.lake.memory import MemoryLake
from headgate.landing.jobs import GATHER_MS, SHARDS_MAX, Jobs, Share, Ticket
from headgate.landing.names import labels_of
from headgate.testing.manual import ManualAmbient

SHAPE = Shape("orders", "files", "json", (), EventTime("json", "$.at"), "json", 1_000, 1_000)


class Engine:
    """Stages one file for each shard; fails whenever a shard of `poison` is among them."""

    def __init__(self, lake: MemoryLake) -> None:
        self.lake = lake
        self.jobs: list[list[str]] = []
        self.poison: set[str] = set()
        self.error: Callable[[str], Exception] = JobFailed
        self.meanwhile: Callable[[], None] = lambda: None
        self.checked: list[Shape] = []
        self.refuses: Exception | None = None

    def check(self, shape: Shape) -> None:
        self.checked.append(shape)
        if self.refuses is not None:
            raise self.refuses

    def stage(self, job: Job) -> Staged:
        labels = [one.label for one in job.inputs]
        self.jobs.append(labels)
        files = []
        for one in job.inputs:
            label = one.label
            path = f"{one.folder or f'{job.folder}/shard={label}'}/part-0"
            self.lake.put(path, label.encode())
            files.append(StagedFile(path, label, "data", 0, 1))
        self.lake.put(f"{job.folder}/_temporary/x", b"")
        self.meanwhile()
        if self.poison & set(labels):
            raise self.error("poison")
        return Staged(tuple(files), tuple(Tally(one, "a", 0, "data", 1, 1, 1, 0) for one in labels))

    def close(self) -> None:
        return


@dataclass
class Permit:
    is_over: bool = False

    def check(self) -> None:
        if self.is_over:
            raise Fenced("over")


class Bench:
    def __init__(self) -> None:
        self.ambient, self.lake = ManualAmbient(), MemoryLake()
        self.engine = Engine(self.lake)
        self.jobs = Jobs(self.engine, self.lake, self.ambient)

    def submit(self, shard: int, shape: Shape = SHAPE, permit: Permit | None = None) -> Ticket:
        wanted = ShardInput(f"{shard}-1", (InputFile("a", 0, "/a", 1, 0),), {"a": 0})
        return self.jobs.submit(shape, wanted, permit or Permit())

    def run(self) -> None:
        """Until nothing waits."""
        self.ambient.pass_ms(GATHER_MS)
        while self.jobs.tick() == self.ambient.monotonic_ms():
            self.ambient.pass_ms(GATHER_MS)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def share_of(ticket: Ticket) -> Share:
    assert isinstance(ticket.outcome, Share), ticket.outcome
    return ticket.outcome


def test_shards_of_the_same_shape_share_a_job(bench: Bench) -> None:
    tickets = [bench.submit(shard) for shard in range(3)]
    bench.run()

    assert bench.engine.jobs == [["0-1", "1-1", "2-1"]]
    for shard, ticket in enumerate(tickets):
        share = share_of(ticket)
        assert [file.label for file in share.files] == [f"{shard}-1"]
        assert [tally.label for tally in share.tallies] == [f"{shard}-1"]
        assert share.folder == f"{share.attempt}/shard={shard}-1"


def test_a_ticket_waits_a_moment_for_others(bench: Bench) -> None:
    first = bench.submit(0)
    assert bench.jobs.tick() == bench.ambient.monotonic_ms() + GATHER_MS
    bench.ambient.pass_ms(GATHER_MS - 1)
    bench.submit(1)
    bench.jobs.tick()
    assert first.outcome is None
    bench.ambient.pass_ms(1)
    bench.jobs.tick()
    assert bench.engine.jobs == [["0-1", "1-1"]]


def test_a_shard_that_is_alone_waits_for_nobody(bench: Bench) -> None:
    ticket = bench.jobs.submit(SHAPE, ShardInput("0-1", (), {}), Permit(), is_alone=True)

    bench.jobs.tick()

    assert isinstance(ticket.outcome, Share)


def test_what_differs_in_shape_runs_apart(bench: Bench) -> None:
    bench.submit(0)
    bench.submit(1, replace(SHAPE, land_as="parquet"))
    bench.submit(2)
    bench.run()
    assert bench.engine.jobs == [["0-1", "2-1"], ["1-1"]]


def test_no_job_is_larger_than_its_folders_name_allows(bench: Bench) -> None:
    tickets = [bench.submit(shard) for shard in range(SHARDS_MAX + 3)]
    bench.run()
    assert [len(labels) for labels in bench.engine.jobs] == [SHARDS_MAX, 3]
    assert all(isinstance(ticket.outcome, Share) for ticket in tickets)


LOG = replace(SHAPE, reader="kafka", place="a cluster")


def of_streams(*names: str) -> list[Shape]:
    return [replace(LOG, stream=name) for name in names]


def test_shards_of_several_streams_share_a_job_of_a_log(bench: Bench) -> None:
    tickets = [bench.submit(0, shape) for shape in of_streams("orders", "returns", "visits")]
    bench.run()

    assert bench.engine.jobs == [["0", "1", "2"]], "two streams may have the same label"
    for stream, ticket in zip(("orders", "returns", "visits"), tickets, strict=True):
        share = share_of(ticket)
        assert share.attempt.startswith(f"_headgate/staging/{stream}/")
        assert labels_of(share.attempt.rpartition("/")[2]) == [(0, 1)]
        assert share.folder == f"{share.attempt}/shard=0-1"
        assert [file.path for file in share.files] == [f"{share.folder}/part-0"]
        assert [file.label for file in share.files] == ["0-1"]
        assert [tally.label for tally in share.tallies] == ["0-1"]
    assert {path.rpartition("/")[0] for path in bench.lake.files()} == {
        share_of(ticket).folder for ticket in tickets
    }, "nothing is left of the folder that they shared"


def test_streams_of_other_clusters_or_of_files_run_apart(bench: Bench) -> None:
    orders, returns = of_streams("orders", "returns")
    bench.submit(0, orders)
    bench.submit(0, replace(returns, place="another cluster"))
    bench.submit(0, SHAPE)
    bench.submit(0, replace(SHAPE, stream="returns"))
    bench.run()
    assert bench.engine.jobs == [["0-1"]] * 4


def test_g12_what_several_streams_write_together_is_needed_while_the_job_runs(
    bench: Bench,
) -> None:
    seen: list[bool] = []

    def look() -> None:
        attempts = {path.partition("/shard=")[0] for path in bench.lake.files()}
        shared = next(one for one in attempts if "/together/" in one).partition("/together")[0]
        own = [one for one in attempts if "/together" not in one]
        seen.extend(bench.jobs.is_needed(folder, "0-1") for folder in (shared, *own))

    tickets = [bench.submit(0, shape) for shape in of_streams("orders", "returns")]
    bench.engine.meanwhile = look
    bench.run()

    assert seen == [True, True, True]
    for ticket in tickets:
        assert bench.jobs.is_needed(share_of(ticket).attempt, "0-1")
        bench.jobs.let_go(share_of(ticket), "0-1")
        assert not bench.jobs.is_needed(share_of(ticket).attempt, "0-1")
    assert bench.lake.files() == {}


def test_g7_a_stream_that_makes_a_shared_job_fail_fails_alone(bench: Bench) -> None:
    bench.engine.poison = {"1", "0-2"}  # in the job of all, and by itself
    tickets = [bench.submit(0, shape) for shape in of_streams("orders", "visits")]
    poison = ShardInput("0-2", (InputFile("a", 0, "/a", 1, 0),), {"a": 0})
    tickets.insert(1, bench.jobs.submit(of_streams("returns")[0], poison, Permit()))
    bench.run()

    outcomes = [type(ticket.outcome) for ticket in tickets]
    assert outcomes == [Share, JobFailed, Share]
    for ticket in (tickets[0], tickets[2]):
        bench.jobs.let_go(share_of(ticket), "0-1")
    assert bench.lake.files() == {}


@pytest.mark.parametrize("poison", range(8))
def test_g7_only_the_poison_shard_fails(bench: Bench, poison: int) -> None:
    bench.engine.poison = {f"{poison}-1"}
    tickets = [bench.submit(shard) for shard in range(8)]
    bench.run()

    for shard, ticket in enumerate(tickets):
        expected: type[object] = JobFailed if shard == poison else Share
        assert isinstance(ticket.outcome, expected), shard
    assert len(bench.engine.jobs) == 7  # halves of 8, 4 and 2: three times both
    assert [labels for labels in bench.engine.jobs if labels == [f"{poison}-1"]]


def test_g7_of_two_poison_shards_each_fails_alone(bench: Bench) -> None:
    bench.engine.poison = {"1-1", "2-1"}
    tickets = [bench.submit(shard) for shard in range(4)]
    bench.run()
    outcomes = [type(ticket.outcome) for ticket in tickets]
    assert outcomes == [Share, JobFailed, JobFailed, Share]


@pytest.mark.parametrize("error", [Unavailable, Invalid, KeyError])
def test_what_is_nobodys_fault_in_particular_is_told_to_all(
    bench: Bench, error: type[Exception]
) -> None:
    bench.engine.poison, bench.engine.error = {"0-1"}, error
    tickets = [bench.submit(shard) for shard in range(3)]
    bench.run()
    assert len(bench.engine.jobs) == 1
    assert all(isinstance(ticket.outcome, error) for ticket in tickets)


def test_a_job_that_failed_leaves_nothing(bench: Bench) -> None:
    bench.engine.poison = {"0-1"}
    bench.submit(0)
    bench.run()
    assert bench.lake.files() == {}


def test_inv10_a_holder_that_lost_its_right_is_told_so_and_nothing_is_staged(bench: Bench) -> None:
    lost = bench.submit(0, permit=Permit(is_over=True))
    kept = bench.submit(1)
    bench.run()
    assert isinstance(lost.outcome, Fenced)
    assert share_of(kept)
    assert bench.engine.jobs == [["1-1"]]


def test_a_ticket_that_was_given_up_is_not_run(bench: Bench) -> None:
    bench.submit(0).is_given_up = True
    bench.run()
    assert bench.engine.jobs == []


def test_what_was_given_up_while_the_job_ran_does_not_stay(bench: Bench) -> None:
    given_up, kept = bench.submit(0), bench.submit(1)
    bench.engine.meanwhile = lambda: setattr(given_up, "is_given_up", True)
    bench.run()
    assert not any("shard=0-1" in path for path in bench.lake.files())
    bench.jobs.let_go(share_of(kept), "1-1")
    assert bench.lake.files() == {}


class Hasty(Ticket):
    """Its shard has journaled the share, and given up, the moment it is told of it."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "outcome" and isinstance(value, Share):
            super().__setattr__("is_given_up", True)


def test_what_a_journal_may_name_is_not_dropped_though_its_shard_gave_up(bench: Bench) -> None:
    ticket = bench.submit(0)
    ticket.__class__ = Hasty
    bench.run()
    assert ticket.is_given_up
    assert f"{share_of(ticket).folder}/part-0" in bench.lake.files()


def test_a_lake_that_takes_nothing_is_no_shards_fault(bench: Bench) -> None:
    bench.engine.poison = {"0-1"}
    bench.engine.meanwhile = lambda: setattr(bench.lake, "refuses", "no room")
    tickets = [bench.submit(shard) for shard in range(3)]
    bench.run()
    assert all(isinstance(ticket.outcome, Unavailable) for ticket in tickets)
    assert len(bench.engine.jobs) == 1


def test_a_shards_cleanup_touches_only_its_own_part(bench: Bench) -> None:
    first, second = bench.submit(0), bench.submit(1)
    bench.run()

    bench.jobs.let_go(share_of(first), "0-1")

    assert f"{share_of(second).folder}/part-0" in bench.lake.files()
    assert not any("shard=0-1" in path for path in bench.lake.files())

    bench.jobs.let_go(share_of(second), "1-1")
    assert bench.lake.files() == {}  # the last one takes what the job itself left


def test_whoever_did_not_run_the_job_takes_only_a_shards_part(bench: Bench) -> None:
    """After a take-over: another process knows nothing of the others."""
    first, second = bench.submit(0), bench.submit(1)
    bench.run()
    Jobs(bench.engine, bench.lake, bench.ambient).let_go(share_of(first), "0-2")
    assert f"{share_of(second).folder}/part-0" in bench.lake.files()


def test_letting_go_twice_is_fine(bench: Bench) -> None:
    ticket = bench.submit(0)
    bench.run()
    for _ in range(2):
        bench.jobs.let_go(share_of(ticket), "0-1")
    assert bench.lake.files() == {}


def test_g12_what_a_job_writes_is_needed_until_its_shard_lets_go(bench: Bench) -> None:
    seen: list[bool] = []

    def look() -> None:
        folder = max(bench.lake.files()).partition("/shard=")[0]
        seen.append(bench.jobs.is_needed(folder, "0-1"))

    first, second = bench.submit(0), bench.submit(1)
    bench.engine.meanwhile = look
    bench.run()
    attempt = share_of(first).attempt

    assert seen == [True], "while the job runs"
    assert bench.jobs.is_needed(attempt, "0-1")
    bench.jobs.let_go(share_of(first), "0-1")
    assert not bench.jobs.is_needed(attempt, "0-1")
    assert bench.jobs.is_needed(attempt, "1-1")
    assert not bench.jobs.is_needed(attempt, "1-2")
    bench.jobs.let_go(share_of(second), "1-1")
    assert not bench.jobs.is_needed(attempt, "1-1")


def test_g12_what_a_failed_job_could_not_remove_is_needed_by_nobody(bench: Bench) -> None:
    bench.engine.poison = {"0-1"}
    bench.engine.meanwhile = lambda: setattr(bench.lake, "refuses", "no room")
    bench.submit(0)
    bench.run()
    (folder,) = {path.partition("/shard=")[0] for path in bench.lake.files() if "shard=" in path}
    assert not bench.jobs.is_needed(folder, "0-1")


def test_what_is_left_for_the_sweeper_is_not_removed_with_the_last_one(bench: Bench) -> None:
    """A journal may name it."""
    first, second = bench.submit(0), bench.submit(1)
    bench.run()
    bench.jobs.leave(share_of(first), "0-1")
    assert not bench.jobs.is_needed(share_of(first).attempt, "0-1")

    bench.jobs.let_go(share_of(second), "1-1")

    assert f"{share_of(first).folder}/part-0" in bench.lake.files()


def test_the_name_of_an_attempt_says_all_its_shards(bench: Bench) -> None:
    ticket = bench.submit(3)
    bench.submit(4)
    bench.run()
    name = share_of(ticket).attempt.rpartition("/")[2]
    assert labels_of(name) == [(3, 1), (4, 1)]


# Questions


def test_a_shape_is_judged_once_and_before_any_job(bench: Bench) -> None:
    ticket = bench.submit(0)
    bench.ambient.pass_ms(GATHER_MS)
    questions = [bench.jobs.ask(SHAPE) for _ in range(2)]

    bench.jobs.tick()

    assert (bench.engine.checked, bench.engine.jobs) == ([SHAPE], [])
    bench.run()
    assert bench.engine.checked == [SHAPE]
    assert [(one.is_answered, one.refusal) for one in questions] == [(True, None)] * 2
    assert share_of(ticket)


def test_what_is_refused_is_told_to_all_who_asked(bench: Bench) -> None:
    bench.engine.refuses = Invalid("the filter of output orders is refused")
    questions = [bench.jobs.ask(SHAPE) for _ in range(2)]
    bench.run()
    assert [one.refusal for one in questions] == [bench.engine.refuses] * 2


@pytest.mark.parametrize("error", [Unavailable("no Spark"), JobFailed("odd")])
def test_an_engine_that_cannot_tell_now_holds_nobody(bench: Bench, error: Exception) -> None:
    bench.engine.refuses = error
    question = bench.jobs.ask(SHAPE)
    ticket = bench.submit(0)
    bench.run()
    assert (question.is_answered, question.refusal) == (True, None)
    assert share_of(ticket)
