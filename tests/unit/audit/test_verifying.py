"""Certificates against flags and files: whatever a person deleted or edited is named."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from headgate.audit import Finding, verifying
from headgate.audit.verifying import verify
from headgate.commits.certificate import (
    Certificate,
    CertifiedFile,
    CertifiedPartition,
    ParentCertificate,
    certificate_folder,
    certificate_name,
    flag_paths,
    parent_flag_path,
    parent_folder,
    parent_from_bytes,
    sealed,
    to_bytes,
    withdrawn_path,
)
from headgate.commits.roots import root_name
from headgate.lake.memory import MemoryLake
from headgate.periods import DEFAULT_FOLDER, FolderTemplate, Period

T = TypeVar("T")
R = TypeVar("R")
FOLDER = FolderTemplate.parse(DEFAULT_FOLDER)
HOUR = Period.parse("2026-11-01T13")
DATA = "2026-11-01/13/orders/data"
FILE = f"{DATA}/shard0-commit0000000001-0.parquet"


@dataclass
class World:
    """A lake with one flagged hour, of one file."""

    lake: MemoryLake = field(default_factory=MemoryLake)

    def __post_init__(self) -> None:
        self.lake.put(FILE, b"rows")
        facts = self.lake.facts(FILE)
        assert facts is not None
        self.certificate = sealed(
            Certificate(
                "orders", str(HOUR), 1,
                (CertifiedFile(FILE, facts.size_bytes, facts.checksum, 4),),
                {"lane-0": CertifiedPartition("", "1", HOUR.end_ms, "records")},
                (), {"landed": 4, "late": 0, "dead": 0}, (HOUR.start_ms, HOUR.start_ms + 1),
                {"0": ((1, 2),)}, HOUR.end_ms, "red",
            )
        )  # fmt: skip
        self.raw = to_bytes(self.certificate)
        self.archive = f"{certificate_folder('orders', HOUR)}/{certificate_name(1)}"
        self.flags = flag_paths(FOLDER, HOUR, "orders")
        for path in (self.archive, *self.flags):
            self.lake.put(path, self.raw)

    def raise_parent(self, child_hash: str) -> str:
        return self.raise_over(HOUR, {"orders": child_hash})

    def raise_over(self, period: Period, children: dict[str, str]) -> str:
        parent = sealed(ParentCertificate(str(period), 1, children, 0, "red"))
        flag = parent_flag_path(FOLDER, period)
        assert flag is not None
        for path in (flag, parent_archive(period)):
            self.lake.put(path, to_bytes(parent))
        return flag

    def raise_hour(self, hour: Period, files: int = 0) -> Certificate:
        """One more, with files of its own."""
        folder, found = FOLDER.folder(hour, stream="orders"), []
        for number in range(files):
            path = f"{folder}/shard0-commit0000000009-{number}.parquet"
            self.lake.put(path, b"rows")
            facts = self.lake.facts(path)
            assert facts is not None
            found.append(CertifiedFile(path, facts.size_bytes, facts.checksum, 4))
        made = sealed(replace(self.certificate, period=str(hour), files=tuple(found)))
        archive = f"{certificate_folder('orders', hour)}/{certificate_name(1)}"
        for path in (archive, *flag_paths(FOLDER, hour, "orders")):
            self.lake.put(path, to_bytes(made))
        return made

    def withdraw(self, flag: str) -> None:
        self.lake.publish(flag, withdrawn_path(flag, 1))

    def delete(self, path: str) -> None:
        facts = self.lake.facts(path)
        assert facts is not None
        self.lake.remove(path, facts)

    def findings(self, period: Period | None = None) -> list[Finding]:
        return verify(self.lake, {"orders": FOLDER}, period).findings

    def words(self) -> list[tuple[str, str]]:
        return [(one.subject, one.words) for one in self.findings()]


def parent_archive(period: Period) -> str:
    return f"{parent_folder(root_name(FOLDER), period)}/{certificate_name(1)}"


@pytest.fixture
def world() -> World:
    return World()


def test_an_hour_as_it_was_flagged_is_clean(world: World) -> None:
    world.raise_parent(world.certificate.hash)

    found = verify(world.lake, {"orders": FOLDER})

    assert found.is_clean
    assert (found.periods, found.files, found.size_bytes) == (2, 1, 4)


def test_a_data_file_that_is_gone_is_named(world: World) -> None:
    world.delete(FILE)

    assert world.words() == [(FILE, "is gone: 4 rows")]


@pytest.mark.parametrize(
    ("content", "words"), [(b"ROWS", "was changed"), (b"row", "has another size")]
)
def test_a_data_file_that_was_edited_is_named(world: World, content: bytes, words: str) -> None:
    world.delete(FILE)
    world.lake.put(FILE, content)

    assert world.words() == [(FILE, words)]


def test_each_flag_that_is_gone_is_named(world: World) -> None:
    for flag in world.flags:
        world.delete(flag)

    assert world.words() == [(flag, "the flag is gone") for flag in world.flags]


def test_a_flag_that_was_edited_is_named(world: World) -> None:
    world.delete(world.flags[0])
    world.lake.put(world.flags[0], world.raw.replace(b'"landed":4', b'"landed":5'))

    assert world.words() == [(world.flags[0], "the flag is not what its certificate says")]


def test_a_certificate_that_was_edited_proves_nothing(world: World) -> None:
    world.delete(world.archive)
    world.lake.put(world.archive, world.raw.replace(b'"landed":4', b'"landed":5'))

    (finding,) = world.findings()

    assert world.archive in finding.words
    assert finding.meaning == "nothing proves what this period holds"


@pytest.mark.parametrize("name", ["shard0-commit0000000002-0.parquet", "merge00001-0.parquet"])
def test_inv6_a_file_that_came_after_the_flag_is_named(world: World, name: str) -> None:
    late = f"{DATA}/{name}"
    world.lake.put(late, b"more")
    world.lake.put(f"{DATA}/notes.txt", b"of a person")

    (finding,) = world.findings()

    assert (finding.invariant, finding.subject) == (6, late)


def test_a_withdrawn_hour_promises_nothing(world: World) -> None:
    for flag in world.flags:
        world.delete(flag)
        world.lake.put(withdrawn_path(flag, 1), world.raw)
    world.delete(FILE)

    found = verify(world.lake, {"orders": FOLDER})

    assert (found.findings, found.withdrawn) == ([], 1)


def test_a_parent_names_the_certificates_below_it(world: World) -> None:
    world.raise_parent(replace(world.certificate, hash="sha256:0").hash)

    (finding,) = world.findings()

    assert finding.words == "orders has another certificate than the one that is named here"


def test_a_parents_flag_that_is_gone_is_named(world: World) -> None:
    flag = world.raise_parent(world.certificate.hash)
    world.delete(flag)

    assert world.words() == [(flag, "the flag is gone")]


def test_only_the_period_that_is_asked_for(world: World) -> None:
    world.delete(FILE)

    assert not world.findings(Period.parse("2026-11-01T14"))
    assert world.findings(Period.parse("2026-11-01"))


# Certificates that are gone, and what lies there without one


def test_a_certificate_that_is_gone_is_named_by_its_flags(world: World) -> None:
    world.delete(world.archive)

    what = "the flag is up, and there is no certificate of its period"
    assert world.words() == [(flag, what) for flag in world.flags]


def test_an_hour_that_is_gone_with_everything_is_a_hole(world: World) -> None:
    world.raise_hour(HOUR.next().next().next())

    (finding,) = world.findings()

    assert finding.subject == "orders 2026-11-01T14"
    assert finding.words == (
        "has no certificate, nor any hour up to 2026-11-01T16, and hours before and after it have "
        "one"
    )
    assert not world.findings(Period.parse("2026-11-01T13"))
    assert world.findings(Period.parse("2026-11-01T15"))


def test_a_certificate_that_lies_where_another_one_should_is_named(world: World) -> None:
    made = world.raise_hour(HOUR.next())
    world.lake.put(world.archive, to_bytes(made))

    assert (world.archive, "is the certificate of orders 2026-11-01T14") in world.words()


@pytest.mark.parametrize("period", [HOUR, HOUR.day()], ids=str)
def test_a_parents_certificate_that_is_gone_is_named_by_its_flag(
    world: World, period: Period
) -> None:
    flag = world.raise_over(period, {})
    world.delete(parent_archive(period))

    assert world.words() == [(flag, "the flag is up, and there is no certificate of its period")]


def test_a_parents_certificate_that_was_edited_proves_nothing(world: World) -> None:
    world.raise_parent(world.certificate.hash)
    path = parent_archive(HOUR)
    world.lake.put(path, world.lake.files()[path].replace(b'"generation":1', b'"generation":2'))

    (finding,) = world.findings()

    assert path in finding.words


def test_a_parents_flag_that_was_edited_is_named(world: World) -> None:
    flag = world.raise_parent(world.certificate.hash)
    world.lake.put(flag, b"{}")

    assert world.words() == [(flag, "the flag is not what its certificate says")]


def test_a_child_without_a_certificate_is_named_by_its_parent(world: World) -> None:
    world.raise_over(HOUR, {"orders": world.certificate.hash, "bids": "sha256:0"})

    assert world.words() == [("bids 2026-11-01T13", "has no certificate any more")]


def test_a_day_rests_on_the_hours_over_all_streams(world: World) -> None:
    world.raise_parent(world.certificate.hash)
    known = parent_from_bytes(world.lake.files()[parent_archive(HOUR)], "").hash
    world.raise_over(HOUR.day(), {str(HOUR): known})
    assert world.words() == []

    world.raise_over(HOUR.day(), {str(HOUR): "sha256:0"})
    (finding,) = world.findings()
    assert finding.subject == parent_archive(HOUR.day())


def test_inv7_a_flag_above_a_withdrawn_one_is_named(world: World) -> None:
    flag = world.raise_parent(world.certificate.hash)
    known = parent_from_bytes(world.lake.files()[parent_archive(HOUR)], "").hash
    world.raise_over(HOUR.day(), {str(HOUR): known})
    for one in world.flags:
        world.withdraw(one)

    (finding,) = world.findings()
    assert (finding.invariant, finding.subject) == (7, parent_archive(HOUR))

    world.withdraw(flag)
    (finding,) = world.findings()
    assert (finding.invariant, finding.subject) == (7, parent_archive(HOUR.day()))


def test_a_flag_that_is_gone_can_be_repaired_by_the_command_that_is_named(world: World) -> None:
    world.delete(world.flags[0])

    (finding,) = world.findings()

    assert finding.next == (
        "headgate flags repair --from 2026-11-01T13 --to 2026-11-01T13 --reason 'it was deleted', "
        "then headgate verify 2026-11-01T13"
    )


def test_a_damaged_file_has_a_next_step_for_somebody_without_a_backup(world: World) -> None:
    world.delete(FILE)

    found = verify(world.lake, {"orders": FOLDER}, named=" --config 'a b.yaml'")

    (finding,) = found.findings
    mend, readers, see = finding.next.split("\n")
    assert mend == (
        "put it back from a backup, then headgate verify 2026-11-01T13 --config 'a b.yaml'"
    )
    assert readers.startswith(
        "without a backup, keep its readers off: put a file 2026-11-01/13/orders/working into"
    )
    assert readers.endswith(
        "then headgate flags withdraw orders 2026-11-01T13 --reason 'a file of it is damaged' "
        "--config 'a b.yaml'"
    )
    assert see.endswith(f"in the source: headgate locate {FILE} --config 'a b.yaml'")


# How it is read


@pytest.mark.parametrize(("small_bytes_max", "at_once"), [(0, 151), (256_000, 0)])
def test_large_files_of_many_hours_are_read_at_once_and_progress_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, small_bytes_max: int, at_once: int
) -> None:
    monkeypatch.setattr(verifying, "SMALL_BYTES_MAX", small_bytes_max)
    hour = HOUR
    for _ in range(5):
        hour = hour.next()
        world.raise_hour(hour, files=30)
    handed: list[int] = []
    told: list[tuple[int, int | None]] = []

    def each(act: Callable[[T], R], things: Sequence[T]) -> list[R]:
        handed.append(len(things))
        return [act(thing) for thing in things]

    found = verify(
        world.lake,
        {"orders": FOLDER},
        each=each,
        on_progress=lambda done, total, _: told.append((done, total)),
    )

    assert (found.is_clean, found.periods, found.files) == (True, 6, 151)
    assert handed == [at_once]
    assert told[:2] == [(0, 6), (1, 6)]
    assert told[-1] == (6, 6)


def test_no_more_files_wait_than_are_read_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "FILES_AT_ONCE", 10)
    world.raise_hour(HOUR.next(), files=25)
    gone = f"{FOLDER.folder(HOUR.next(), stream='orders')}/shard0-commit0000000009-24.parquet"
    world.delete(gone)
    handed: list[int] = []

    def each(act: Callable[[T], R], things: Sequence[T]) -> list[R]:
        handed.append(len(things))
        return [act(thing) for thing in things]

    found = verify(world.lake, {"orders": FOLDER}, each=each)

    assert [one.subject for one in found.findings] == [gone]
    assert (found.files, len(handed)) == (26, 3)
