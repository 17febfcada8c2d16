"""The contract of the lake, on every backend.

    class TestMine(LakeContract):
        outages = ("the disk is full",)

        @pytest.fixture
        def harness(self):
            return MyHarness()

A test's name starts with the guarantee it guards; `headgate.lake.Lake` lists them.
"""

import os
import threading
from functools import partial

import pytest

from headgate.errors import Conflict, Corrupt, Invalid, Unavailable
from headgate.lake import LIST_MAX, Entry, FileFacts, Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import STAGING
from headgate.testing.contract.publishing import (
    PRIVATE,
    Call,
    PublishingContract,
    staged,
)
from headgate.testing.harness import LakeHarness
from headgate.testing.racing import PATIENCE_S, at_once, in_background

NO_PATHS = (
    *("", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "a/./b", ".", "a//b", "a/", "/a"),
    *("a\0b", "a\\..\\b", "x" * 256, "\u00e4" * 128, "/".join(["x" * 200] * 6), "lone \ud800"),
)
NAMES = (
    *("plain", "two words", "100%", "%2e%2e", "it's", '"quoted"', "$HOME;`x`", "a=b", "#?*", "-rf"),
    *("...", "..x", "x" * 255, "\u00e4" * 127, "日本語", "العربية", "🦆", "e\u0301", "a\nb", "~"),
)


class LakeContract(PublishingContract):
    """All of it: what is here, and how files get their names (`publishing`)."""

    @pytest.mark.parametrize("path", NO_PATHS, ids=ascii)
    def test_l1_what_is_no_path_is_refused(
        self, harness: LakeHarness, lake: Lake, path: str
    ) -> None:
        lake.stage("kept", b"kept")
        before = harness.files()
        calls: list[Call] = [
            *touching(lake, path),
            partial(lake.remove_folder, f"{STAGING}/{path}"),
        ]
        if path:  # as a folder, the root is one
            calls += [partial(lake.list, path), partial(lake.settle, [path])]
        for call in calls:
            with pytest.raises(Invalid):
                call()
        assert harness.files() == before

    def test_l1_no_link_leads_out_of_the_root(self, harness: LakeHarness, lake: Lake) -> None:
        lake.stage("kept", b"kept")
        paths = harness.ways_out()
        before = harness.files()
        for path in paths:
            for call in touching(lake, path):
                with pytest.raises(Invalid):
                    call()
        assert harness.files() == before

    @pytest.mark.parametrize("name", NAMES, ids=ascii)
    def test_l1_any_plain_name_is_a_name(self, harness: LakeHarness, lake: Lake, name: str) -> None:
        staged, published = f"{PRIVATE}/{name}", f"{name}/{name}"
        facts = lake.stage(staged, b"content")
        lake.publish(staged, published)
        lake.settle([name])
        assert lake.facts(published) == facts
        assert lake.read(published) == b"content"
        assert lake.list(name).entries == (Entry(published, 7),)
        assert harness.files() == {published: b"content"}
        lake.remove(published, facts)
        assert harness.files() == {}

    @pytest.mark.parametrize("count", [1, 3, 100])
    def test_l3_what_is_sealed_survives_a_power_cut(
        self, harness: LakeHarness, lake: Lake, count: int
    ) -> None:
        paths = [f"{PRIVATE}/{n % 3}/{n}" for n in range(count)]
        for path in paths:
            harness.put(path, path.encode())
        harness.put(f"{PRIVATE}/never-sealed", b"gone")
        found = lake.seal(paths)

        harness.power_cut()

        assert found == tuple(harness.facts_of(path.encode()) for path in paths)
        assert [lake.facts(path) for path in paths] == list(found)

    def test_l3_a_power_cut_takes_what_nobody_sealed(self, harness: LakeHarness) -> None:
        """Else the others of this number would prove nothing."""
        harness.put(f"{PRIVATE}/f", b"content")
        harness.power_cut()
        left = {b"content"} if harness.is_lasting else {b""}
        assert set(harness.files().values()) <= left
        assert not harness.is_lasting or len(harness.files()) == 1

    def test_l3_what_is_settled_survives_a_power_cut(
        self, harness: LakeHarness, lake: Lake
    ) -> None:
        for n in range(4):
            staged(harness, lake, f"{n}", f"{n}".encode())
            lake.publish(f"{PRIVATE}/{n}", f"day/hour-{n % 2}/{n}")
        lake.stage(f"{PRIVATE}/record", b"staged alone is sealed")
        lake.settle(["day/hour-0", "day/hour-1", PRIVATE])
        lake.remove("day/hour-1/3", harness.facts_of(b"3"))
        lake.settle(["day/hour-1"])
        lake.append("ledger/1.jsonl", ["a line"])

        harness.power_cut()

        assert harness.files() == {
            f"{PRIVATE}/record": b"staged alone is sealed",
            "day/hour-0/0": b"0",
            "day/hour-0/2": b"2",
            "day/hour-1/1": b"1",
            "ledger/1.jsonl": b"a line\n",
        }
        lake.settle(["day/never", ""])  # nothing was done there: nothing is lost

    def test_l3_a_removed_folder_stays_away(self, harness: LakeHarness, lake: Lake) -> None:
        lake.stage(f"{PRIVATE}/f", b"f")
        lake.remove_folder(f"{STAGING}/attempt")
        lake.settle([PRIVATE, STAGING])
        harness.power_cut()
        assert harness.files() == {}

    @pytest.mark.parametrize("size_bytes", [0, 1, 999_999, 1_000_000, 3_000_000])
    def test_l4_facts_are_size_and_checksum(
        self, harness: LakeHarness, lake: Lake, size_bytes: int
    ) -> None:
        content = bytes(n % 251 for n in range(1_000)) * (size_bytes // 1_000 + 1)
        content = content[:size_bytes]
        harness.put(f"{PRIVATE}/f", content)
        assert lake.facts(f"{PRIVATE}/f") == harness.facts_of(content)
        assert lake.seal([f"{PRIVATE}/f"]) == (harness.facts_of(content),)
        assert lake.read(f"{PRIVATE}/f") == content
        assert lake.stage(f"{PRIVATE}/g", content) == harness.facts_of(content)
        with pytest.raises(Invalid, match="bytes"):
            lake.read(f"{PRIVATE}/f", size_bytes - 1)

    def test_l4_nothing_has_no_facts_and_a_folder_is_no_file(self, lake: Lake) -> None:
        lake.stage("folder/f", b"f")
        assert lake.facts("folder/none") is None
        assert lake.facts("none/none") is None
        assert lake.facts("folder/f/none") is None
        assert lake.read("folder/none") is None
        with pytest.raises(Corrupt, match="folder"):
            lake.facts("folder")
        with pytest.raises(Unavailable, match="none"):
            lake.seal(["folder/f", "folder/none"])

    def test_l4_a_change_of_the_same_size_is_noticed_at_once(
        self, harness: LakeHarness, lake: Lake
    ) -> None:
        path = f"{PRIVATE}/f"
        for n in range(100, 200):
            harness.put(path, f"{n}".encode())
            found = lake.facts(path) if n % 2 else lake.seal([path])[0]
            assert found == harness.facts_of(f"{n}".encode())

    def test_l4_a_change_after_the_publishing_is_noticed(
        self, harness: LakeHarness, lake: Lake
    ) -> None:
        facts = staged(harness, lake, "f", b"right")
        lake.publish(f"{PRIVATE}/f", "day/f")
        assert lake.facts("day/f") == facts
        harness.put("day/f", b"wrong")
        assert lake.facts("day/f") == harness.facts_of(b"wrong")

    def test_l12_any_part_of_a_file_can_be_read(self, harness: LakeHarness, lake: Lake) -> None:
        content = bytes(n % 251 for n in range(300_000))
        harness.put("day/f", content)
        with lake.open("day/f") as opened:
            assert opened.seek(-8, os.SEEK_END) == len(content) - 8
            assert opened.read() == content[-8:]
            opened.seek(1_000)
            assert opened.read(200_000) == content[1_000:201_000]
            assert opened.tell() == 201_000
            opened.seek(0)
            assert opened.read() == content
            assert opened.read(1) == b""
        for path in ("day/none", "none/none"):
            with pytest.raises(Unavailable, match="none"):
                lake.open(path)
        with pytest.raises(Corrupt):
            lake.open("day")

    @pytest.mark.parametrize("limit", [1, 2, 7, LIST_MAX])
    def test_l6_a_listing_is_in_the_order_of_code_points(self, lake: Lake, limit: int) -> None:
        for name in NAMES:
            lake.stage(f"folder/{name}", name.encode())
        lake.stage("folder/sub/f", b"f")
        lake.stage("folder2/f", b"f")
        found = list(entries_of(lake, "folder", limit=limit))
        assert [entry.path for entry in found] == [
            f"folder/{name}" for name in sorted([*NAMES, "sub"])
        ]
        assert [entry for entry in found if entry.is_folder] == [Entry("folder/sub", 0, True)]
        assert all(e.size_bytes == len(e.path[7:].encode()) for e in found if not e.is_folder)

    def test_l6_a_listing_starts_behind_any_name(self, lake: Lake) -> None:
        for name in "bdf":
            lake.stage(f"x/{name}", b"")
        for after, rest in [
            ("", "bdf"),
            ("a", "bdf"),
            ("b", "df"),
            ("c", "df"),
            ("f", ""),
            ("g", ""),
        ]:
            assert [e.path for e in lake.list("x", after=after).entries] == [f"x/{n}" for n in rest]
        assert lake.list("x", limit=2).next_after == "d"
        assert lake.list("x", limit=3).next_after is None
        assert [entry.path for entry in lake.list("").entries] == ["x"]
        assert lake.list("none").entries == ()
        assert lake.list("x/b").entries == ()
        for limit in (0, -1, LIST_MAX + 1):
            with pytest.raises(Invalid):
                lake.list("x", limit=limit)

    def test_l6_what_is_there_all_the_time_is_listed_once(self, harness: LakeHarness) -> None:
        lake, other = harness.open(), harness.open()
        kept = [f"day/{n:03}-kept" for n in range(60)]
        for path in kept:
            lake.stage(path, b"")
        is_over = threading.Event()

        def come_and_go() -> None:
            n = 0
            while not is_over.is_set():
                facts = other.stage(f"{PRIVATE}/f", b"f")
                other.publish(f"{PRIVATE}/f", f"day/{n % 60:03}-guest")
                other.remove(f"day/{n % 60:03}-guest", facts)
                n += 7

        guest = in_background(come_and_go)
        try:
            for _ in range(20):
                paths = [entry.path for entry in entries_of(lake, "day", limit=11)]
                assert [path for path in paths if path in kept] == kept
                assert paths == sorted(set(paths))
        finally:
            is_over.set()
            guest.result(PATIENCE_S)

    def test_l7_removing_what_is_not_there_is_fine(self, harness: LakeHarness, lake: Lake) -> None:
        facts = lake.stage("day/f", b"f")
        lake.stage("day/f2", b"f")
        for path in ("day/none", "none/none", "day/f2/none"):
            lake.remove(path, facts)
        lake.remove_folder(f"{STAGING}/none")
        lake.remove_folder(f"{STAGING}/none/none")
        lake.remove("day/f", facts)
        lake.remove("day/f", facts)
        assert harness.files() == {"day/f2": b"f"}

    def test_l7_only_exactly_that_file_is_removed(self, harness: LakeHarness, lake: Lake) -> None:
        facts = lake.stage("day/f", b"old")
        harness.put("day/f", b"new")
        before = harness.files()
        for path in ("day/f", "day"):
            with pytest.raises(Conflict):
                lake.remove(path, facts)
        assert harness.files() == before

    def test_l7_many_remove_at_once(self, harness: LakeHarness) -> None:
        lakes = [harness.open() for _ in range(6)]
        for n in range(10):
            facts = lakes[0].stage(f"day/{n}", b"f")
            lakes[0].stage(f"{PRIVATE}/{n}/f", b"f")
            at_once([partial(lake.remove, f"day/{n}", facts) for lake in lakes])
            at_once([partial(lake.remove_folder, f"{PRIVATE}/{n}") for lake in lakes])
        assert harness.files() == {}

    def test_l7_folders_are_removed_only_where_nobody_looks(
        self, harness: LakeHarness, lake: Lake
    ) -> None:
        paths = [f"{STAGING}/{name}/f" for name in ("a", "a2", "b", "a/deep/er")]
        for path in (*paths, "day/f", "_headgate/commits/1"):
            lake.stage(path, b"f")
        before = harness.files()
        for folder in ("day", "_headgate", STAGING, "_headgate/commits", f"{STAGING}2"):
            with pytest.raises(Invalid, match=STAGING):
                lake.remove_folder(folder)
        with pytest.raises(Corrupt):
            lake.remove_folder(f"{STAGING}/b/f")
        assert harness.files() == before
        lake.remove_folder(f"{STAGING}/a")
        gone = {path for path in before if path.startswith(f"{STAGING}/a/")}
        assert harness.files().keys() == before.keys() - gone

    def test_l8_lines_are_added_behind_what_is_there(self, lake: Lake) -> None:
        lake.append("l/1.jsonl", ["a", "\u00e4 b"])
        lake.append("l/1.jsonl", [])
        lake.append("l/1.jsonl", ["c"])
        assert lake.read("l/1.jsonl") == "a\n\u00e4 b\nc\n".encode()
        for line in ("a\nb", "\ud800"):
            with pytest.raises(Invalid):
                lake.append("l/1.jsonl", ["x", line])
        assert lake.read("l/1.jsonl") == "a\n\u00e4 b\nc\n".encode()
        with pytest.raises((Unavailable, Corrupt)):
            lake.append("l", ["x"])

    def test_l8_a_torn_line_is_not_gone_on_with(self, harness: LakeHarness, lake: Lake) -> None:
        harness.put("l/1.jsonl", b"whole\nto")
        lake.append("l/1.jsonl", ["next"])
        assert lake.read("l/1.jsonl") == b"whole\nto\nnext\n"

    def test_l8_of_many_who_add_at_once_no_line_is_lost_or_mixed(
        self, harness: LakeHarness
    ) -> None:
        lakes = [harness.open() for _ in range(6)]

        def add(who: int) -> None:
            for n in range(15):
                lakes[who].append("l/1.jsonl", [f"{who} {n} {part} {'x' * 2_000}" for part in "ab"])

        at_once([partial(add, who) for who in range(6)])
        lines = (lakes[0].read("l/1.jsonl") or b"").decode().splitlines()
        found = [tuple(line.split(" ")[:3]) for line in lines]
        assert sorted(found) == sorted(
            (str(who), str(n), part) for who in range(6) for n in range(15) for part in "ab"
        )
        assert {line.split(" ")[3] for line in lines} == {"x" * 2_000}
        for first, second in zip(found[::2], found[1::2], strict=True):
            assert (*first[:2], "b") == second, "lines of one call stay together"
        for who in range(6):
            mine = [int(n) for one, n, _ in found if one == str(who)]
            assert mine == sorted(mine)

    def test_l9_mode_is_set_before_the_publishing(self, harness: LakeHarness) -> None:
        if not harness.has_modes:
            for modes in ({"file_mode": 0o640}, {"folder_mode": 0o750}):
                with pytest.raises(Invalid, match="mode"):
                    harness.open(**modes)
            return
        lake = harness.open(file_mode=0o640, folder_mode=harness.folder_mode)
        harness.put(f"{PRIVATE}/f", b"f")
        lake.seal([f"{PRIVATE}/f"])
        lake.stage(f"{PRIVATE}/g", b"g")
        for name in ("f", "g"):
            assert harness.mode_of(f"{PRIVATE}/{name}") == 0o640
            lake.publish(f"{PRIVATE}/{name}", f"day/hour/{name}")
            assert harness.mode_of(f"day/hour/{name}") == 0o640
        lake.append("ledger/day/1.jsonl", ["x"])
        assert harness.mode_of("ledger/day/1.jsonl") == 0o640
        for folder in ("day", "day/hour", "ledger", "ledger/day"):
            assert harness.mode_of(folder) == harness.folder_mode

    def test_l10_an_outage_is_told_and_nothing_is_done(
        self, harness: LakeHarness, lake: Lake, outage: str
    ) -> None:
        facts = lake.stage("day/f", b"f")
        lake.append("l/1.jsonl", ["before"])
        staged(harness, lake, "g", b"g")
        before = harness.files()
        calls: dict[str, Call] = {
            f"{PRIVATE}/h": partial(lake.stage, f"{PRIVATE}/h", b"h" * 100_000),
            "new/g": partial(lake.publish, f"{PRIVATE}/g", "new/g"),
            "l/1.jsonl": partial(lake.append, "l/1.jsonl", ["x" * 100_000]),
            "l/2.jsonl": partial(lake.append, "l/2.jsonl", ["x" * 100_000]),
        }
        with harness.outage(outage):
            for path, call in calls.items():
                with pytest.raises(Unavailable, match="nothing was done") as caught:
                    call()
                paths = (path, f"{PRIVATE}/g") if path == "new/g" else (path,)
                assert any(one in str(caught.value) for one in paths)
        found = {path: content for path, content in harness.files().items() if content}
        assert found == before, "an empty file may be left: nobody takes it for a line"
        for call in calls.values():
            call()
        lake.remove("day/f", facts)
        assert lake.facts("new/g") == harness.facts_of(b"g")


def touching(lake: Lake, path: str) -> list[Call]:
    facts = FileFacts(4, "sha256:0")
    return [
        partial(lake.stage, path, b"x"),
        partial(lake.seal, ["kept", path]),
        partial(lake.facts, path),
        partial(lake.publish, path, "elsewhere"),
        partial(lake.publish, "kept", path),
        partial(lake.read, path),
        partial(lake.open, path),
        partial(lake.remove, path, facts),
        partial(lake.remove_folder, path),
        partial(lake.append, path, ["x"]),
    ]
