"""The lake in a bucket, where something goes wrong: killed in any step, answers lost, keys that
end, late wakers, buckets that are missing, forbidden or versioned."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from headgate.ambient import SystemAmbient
from headgate.commits.checkpoint import Journal
from headgate.commits.record import Record, RecordFile, to_bytes
from headgate.commits.replay import carry_out_journal
from headgate.commits.roots import FlagMove
from headgate.commits.steps import PublishFile, State, carry_out
from headgate.errors import Conflict, HeadgateError, OutcomeUnknown, Unavailable
from headgate.lake import FileFacts, LakeSettings
from headgate.lake.credentials import Keyring
from headgate.lake.examining import examine
from headgate.lake.paths import STAGING
from headgate.lake.s3 import S3Lake
from headgate.lake.shelf import LakeShelf
from headgate.ready.flagging import withdraw_flag
from headgate.store.probe import Verdict
from headgate.testing.racing import at_once
from tests.servers.meddler import Instead, Lost, Meddler, Request
from tests.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from tests.servers.toxiproxy import Toxiproxy

pytestmark = pytest.mark.s3

PRIVATE = f"{STAGING}/orders/attempt/shard=0-7"
LARGE = bytes(n % 251 for n in range(251)) * 28_000  # more than the server copies at once


@pytest.fixture
def between(s3: S3Server) -> Iterator[Meddler]:
    with Meddler(s3.address) as meddler:
        yield meddler


@dataclass
class Place:
    """One bucket; a lake reached straight, and one through whoever meddles."""

    server: S3Server
    bucket: str
    between: Meddler

    @property
    def settings(self) -> LakeSettings:
        return self.server.lake(self.bucket)

    def lake(self) -> S3Lake:
        return S3Lake(self.settings, SystemAmbient(), copy_bytes_max=6 << 20, part_bytes=5 << 20)

    def meddled(self) -> S3Lake:
        there = self.server.lake(self.bucket, address=self.between.address)
        return S3Lake(there, SystemAmbient(), copy_bytes_max=6 << 20, part_bytes=5 << 20)

    def files(self) -> dict[str, bytes]:
        return dict(self.server.contents(self.bucket))

    def public(self) -> dict[str, bytes]:
        return {path: raw for path, raw in self.files().items() if not path.startswith("_")}

    def has_uploads(self) -> bool:
        return b"<Upload>" in self.server.uploads(self.bucket)


@pytest.fixture
def place(s3: S3Server, between: Meddler) -> Place:
    return Place(s3, s3.new_bucket(), between)


class Nth:
    """The nth of those requests that change something."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.seen = 0
        self._alone = threading.Lock()

    def is_it(self, request: Request) -> bool:
        if request.method in ("GET", "HEAD"):
            return False
        with self._alone:
            self.seen += 1
            return self.seen == self.number


def published(lake: S3Lake, content: bytes, name: str = "f") -> tuple[PublishFile, FileFacts]:
    facts = lake.stage(f"{PRIVATE}/{name}", content)
    return PublishFile("orders/0", f"{PRIVATE}/{name}", f"day/{name}", facts), facts


# ── every step of a publish ───────────────────────────────────────────────────────────────────────


def writes_of_a_publish(place: Place, content: bytes) -> int:
    """As a calm run makes them: the points at which everything may end."""
    lake = place.meddled()
    lake.stage(f"{PRIVATE}/calm-probe", b"x")
    lake.publish(f"{PRIVATE}/calm-probe", "calm/probe")  # asks what this server can, once
    counted = Nth(0)
    step, _ = published(lake, content, "calm")
    place.between.act = lambda request: (counted.is_it(request) and None) or None
    lake.publish(step.staged, step.published)
    place.between.heal()
    return counted.seen


@pytest.mark.parametrize("content", [b"small", LARGE], ids=["small", "in parts"])
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_g3_killed_at_any_request_a_replay_ends_with_one_whole_file(
    place: Place, content: bytes, is_after: bool
) -> None:
    writes = writes_of_a_publish(place, content)
    assert writes >= 5  # a claim, an upload begun, its parts, its end, a deletion
    for number in range(1, writes + 1):
        name = f"{number}"
        lake, nth = place.meddled(), Nth(number)
        lake._refuses_copies = False  # as this server is; asked before
        step, facts = published(lake, content, name)

        def end(request: Request, nth: Nth = nth) -> Instead | None:
            if nth.is_it(request):
                place.server.child.kill()
            return None

        def end_after(request: Request, nth: Nth = nth) -> None:
            if nth.is_it(request):
                place.server.child.kill()
                raise Lost

        if is_after:
            place.between.after = end_after
        else:
            place.between.act = end
        with pytest.raises((Unavailable, OutcomeUnknown)):
            lake.publish(step.staged, step.published)
        place.between.heal()
        place.server.start()

        carry_out(step, place.lake())

        assert step.state(place.lake()) is State.DONE
        assert place.files()[f"day/{name}"] == content
        assert place.lake().facts(f"day/{name}") == facts


def test_half_uploads_are_given_up_when_they_are_old_and_by_who_removes_the_file(
    place: Place,
) -> None:
    lake = place.lake()
    step, facts = published(lake, b"f")
    client = place.server.client(place.bucket)
    for key in ("the-lake/day/f", "the-lake/_headgate/staging/x/part", "elsewhere/g"):
        client.ask("POST", key, {"uploads": ""}, is_repeatable=True)
    lake.settle(["day"])
    assert place.server.uploads(place.bucket).count(b"<Upload>") == 3, "they are young"

    lake.publish(step.staged, step.published)
    lake.remove("day/f", facts)
    assert place.server.uploads(place.bucket).count(b"<Upload>") == 2
    lake.remove_folder(f"{STAGING}/x")
    assert place.server.uploads(place.bucket).count(b"<Upload>") == 1
    S3Lake(
        replace(place.settings, root=f"s3://{place.bucket}"), SystemAmbient(), upload_age_ms=-5_000
    ).settle([])
    assert not place.has_uploads()


# ── late wakers ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("content", [b"small", LARGE], ids=["small", "in parts"])
@pytest.mark.parametrize("at", ["claim", "begin", "part", "completion"])
def test_k18_a_zombie_that_goes_on_after_the_file_was_rightly_removed_brings_nothing_back(
    place: Place, content: bytes, at: str
) -> None:
    """It stands still at one request; meanwhile the file is published, and removed."""
    zombie, other = place.meddled(), place.lake()
    zombie._refuses_copies = False
    step, facts = published(other, content)
    is_there, may_go = threading.Event(), threading.Event()

    def hold(request: Request) -> Instead | None:
        kinds = {
            "claim": request.method == "PUT" and "/.to-" in request.path,
            "begin": request.method == "POST" and request.path.endswith("?uploads="),
            "part": request.is_copy_part,
            "completion": request.is_completion,
        }
        if kinds[at] and not is_there.is_set():
            is_there.set()
            may_go.wait(30)
        return None

    place.between.act = hold

    def wake_late() -> str:
        try:
            zombie.publish(step.staged, step.published)
        except HeadgateError as error:
            return type(error).__name__
        return "published"

    def meanwhile() -> str:
        assert is_there.wait(30)
        carry_out(step, other)
        other.remove(step.published, facts)
        may_go.set()
        return ""

    told, _ = at_once([wake_late, meanwhile])
    assert told in ("Unavailable", "Conflict", "OutcomeUnknown")
    assert place.public() == {}
    assert not place.has_uploads()
    with pytest.raises(Unavailable, match="is not there"):
        zombie.publish(step.staged, step.published)


def test_k18_a_zombie_that_publishes_many_after_they_were_removed_brings_nothing_back(
    place: Place,
) -> None:
    zombie, other = place.meddled(), place.lake()
    moves = [published(zombie, b"%d" % n, f"{n}")[0] for n in range(20)]
    files = tuple(_file(step) for step in moves)
    assert other.publish_all(files) == (True,) * 20
    for step in moves:
        other.remove(step.published, step.facts)

    assert zombie.publish_all(files) == (False,) * 20, "though it knows what was sealed"

    assert place.public() == {}


def test_k18_a_copy_that_is_completed_while_its_file_is_removed_does_not_stay(place: Place) -> None:
    """As a commit that is staged again clears up: first what is staged, then what is published."""
    zombie, other = place.meddled(), place.meddled()
    step, facts = published(zombie, LARGE)
    is_ready, has_looked, is_there = (threading.Event() for _ in range(3))

    def hold(request: Request) -> Instead | None:
        if request.is_completion:
            is_ready.set()
            has_looked.wait(30)
        if request.method == "GET" and "uploads=" in request.path:
            has_looked.set()
            is_there.wait(30)
        return None

    def tell(request: Request) -> None:
        if request.is_completion:
            is_there.set()

    def wake_late() -> None:
        zombie.publish(step.staged, step.published)

    def meanwhile() -> None:
        assert is_ready.wait(30)
        place.lake().remove_folder(PRIVATE)
        other.remove(step.published, facts)

    place.between.act, place.between.after = hold, tell
    at_once([wake_late, meanwhile])
    assert place.public() == {}


def test_inv6_a_withdrawal_that_goes_on_late_leaves_the_next_flag_alone(place: Place) -> None:
    zombie, other = place.meddled(), place.lake()
    zombie._refuses_copies = False  # as this server is; asked before

    def raised(content: bytes) -> FileFacts:
        facts = other.stage(f"{PRIVATE}/flag", content)
        other.publish(f"{PRIVATE}/flag", "day/_READY")
        return facts

    facts = raised(b"generation 1")
    move = FlagMove("day/_READY", "day/_READY.1", facts.size_bytes, facts.checksum)
    is_there, may_go = threading.Event(), threading.Event()

    def hold(request: Request) -> Instead | None:
        if request.is_deletion or request.method == "DELETE":
            is_there.set()
            may_go.wait(30)
        return None

    def meanwhile() -> None:
        assert is_there.wait(30)
        withdraw_flag(other, move)
        raised(b"generation 2")
        may_go.set()

    place.between.act = hold
    at_once([partial(withdraw_flag, zombie, move), meanwhile])
    assert place.public() == {"day/_READY": b"generation 2", "day/_READY.1": b"generation 1"}


def _file(step: PublishFile) -> RecordFile:
    size, checksum = step.facts.size_bytes, step.facts.checksum
    return RecordFile("data", "", step.staged, step.published, size, checksum, 1)


# ── two nodes, one journal ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [5, 80], ids=["one by one", "at once"])
def test_inv5_two_nodes_that_replay_one_journal_end_with_each_file_once(
    place: Place, count: int
) -> None:
    lake = place.lake()
    steps = [published(lake, b"%d" % n, f"{n}")[0] for n in range(count)]
    record = Record(
        "orders", 0, 1, 1, "node", 0, 0, {}, {"data": count}, tuple(map(_file, steps)), (), {}, ()
    )
    sealed = lake.stage(f"{PRIVATE}/record.json", to_bytes(record))
    path, size, checksum = f"{PRIVATE}/record.json", sealed.size_bytes, sealed.checksum
    journal = Journal(1, 1, PRIVATE, path, size, checksum, {}, {}, {}, (), 0)

    def replay(node: S3Lake) -> None:
        for _ in range(count + 2):  # as a node does, at its next look
            try:
                carry_out_journal(node, "orders", 0, journal, {})
            except Unavailable:  # a neighbour was faster with one of them
                continue
            return
        raise AssertionError("no end")

    at_once([partial(replay, place.lake()) for _ in range(3)])

    assert place.public() == {f"day/{n}": b"%d" % n for n in range(count)}
    left = [path for path in place.files() if path.startswith(f"{PRIVATE}/")]
    assert [path for path in left if "/.to-" not in path] == []


# ── trouble on the way ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_is_busy_now_and_then_costs_time_and_nothing_else(
    place: Place, status: int
) -> None:
    lake, count = place.meddled(), iter(range(1_000_000))

    def every_fourth(_: Request) -> Instead | None:
        return place.between.refuse(status) if next(count) % 4 == 3 else None

    steps = [published(lake, b"%d" % n, f"{n}")[0] for n in range(70)]
    place.between.act = every_fourth
    lake.publish_all([_file(step) for step in steps])
    for step in steps:
        for _ in range(20):
            try:
                carry_out(step, lake)
            except (Unavailable, OutcomeUnknown):
                continue
            break
    place.between.heal()
    assert place.public() == {f"day/{n}": b"%d" % n for n in range(70)}
    assert all(step.state(lake) is State.DONE for step in steps)


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_stays_busy_is_told_with_what_to_do(place: Place, status: int) -> None:
    lake = place.meddled()
    step, _ = published(lake, b"f")
    before = place.files()
    place.between.act = lambda _: place.between.refuse(status)
    for call in (
        partial(lake.publish, step.staged, step.published),
        partial(lake.facts, "day/f"),
        partial(lake.list, "day"),
        partial(lake.stage, f"{PRIVATE}/g", b"g"),
    ):
        with pytest.raises(Unavailable, match=rf"{status}.*next:"):
            call()
    place.between.heal()
    assert place.files() == before


def test_a_slow_network_costs_time_and_nothing_else(place: Place, network: Toxiproxy) -> None:
    wire = network.proxy(place.server.address)
    settings = place.server.lake(place.bucket, address=wire.address)
    lake = S3Lake(settings, SystemAmbient())
    step, facts = published(lake, b"f")
    with wire.slow(150):
        carry_out(step, lake)
        assert lake.facts("day/f") == facts
    assert place.public() == {"day/f": b"f"}


def test_lost_answers_leave_an_unknown_outcome_that_a_look_settles(
    place: Place,
) -> None:
    lake = place.meddled()
    lake._refuses_copies = False
    step, _ = published(lake, b"f")

    def lose(request: Request) -> None:
        if request.is_completion:
            raise Lost

    place.between.after = lose
    with pytest.raises(OutcomeUnknown, match="look"):
        lake.publish(step.staged, step.published)
    place.between.heal()
    assert step.state(lake) is State.HALF
    carry_out(step, lake)
    assert place.public() == {"day/f": b"f"}


@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done"])
def test_lines_whose_answer_was_lost_are_added_once(place: Place, is_done: bool) -> None:
    lake, nth = place.meddled(), Nth(1)
    lake.append("l/1.jsonl", ["first"])

    def lose(request: Request) -> None:
        if request.method == "PUT" and nth.is_it(request):
            raise Lost

    def refuse(request: Request) -> Instead | None:
        is_it = request.method == "PUT" and nth.is_it(request)
        return place.between.refuse(500, "InternalError") if is_it else None

    if is_done:
        place.between.after = lose
    else:
        place.between.act = refuse
    lake.append("l/1.jsonl", ["second"])
    lake.append("l/1.jsonl", ["third"])
    assert nth.seen >= 1
    assert place.files()["l/1.jsonl"] == b"first\nsecond\nthird\n"


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────


def test_keys_that_end_in_mid_commit_are_looked_up_again(place: Place, tmp_path: Path) -> None:
    """The server takes the old ones no more from the first published file on."""
    secret = tmp_path / "secret"
    secret.write_text(SECRET_KEY)
    own = replace(place.server.settings(place.between.address), secret_key=f"${{file:{secret}}}")
    lake = S3Lake(replace(place.settings, bucket=own), SystemAmbient())
    steps = [published(lake, b"%d" % n, f"{n}")[0] for n in range(4)]
    old = lake.bucket.keyring.current()
    ended = threading.Event()

    def end(request: Request) -> Instead | None:
        if request.is_deletion:
            ended.set()
        is_old = lake.bucket.keyring._held is old
        return place.between.refuse(400, "ExpiredToken") if ended.is_set() and is_old else None

    place.between.act = end
    for step in steps:
        carry_out(step, lake)
    assert lake.bucket.keyring.current() is not old
    assert place.public() == {f"day/{n}": b"%d" % n for n in range(4)}


def test_keys_that_stay_wrong_are_told_and_nothing_is_done(place: Place) -> None:
    step, _ = published(place.lake(), b"f")
    own = replace(place.server.settings(), secret_key="wrong")
    lake = S3Lake(replace(place.settings, bucket=own), SystemAmbient())
    with pytest.raises(Unavailable, match=r"not allowed.*doctor lake"):
        lake.publish(step.staged, step.published)
    place.between.act = lambda _: place.between.refuse(400, "ExpiredToken")
    with pytest.raises(Unavailable, match=r"ExpiredToken.*nothing was done"):
        place.meddled().read("day/f")
    with pytest.raises(Unavailable, match=r"not allowed.*nothing was done"):
        place.meddled().facts("day/f")
    assert place.public() == {}


def test_keys_are_looked_up_in_the_usual_order(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    plain = replace(place.server.settings(), access_key="", secret_key="")

    def found() -> str:
        return Keyring(plain, SystemAmbient()).current().access_key

    with pytest.raises(Unavailable, match="AWS_ACCESS_KEY_ID"):
        found()
    answer = {"AccessKeyId": "of-container", "SecretAccessKey": "s", "Token": "t"}
    ends = "2030-01-01T00:00:00Z"
    place.between.act = lambda _: Instead(200, json.dumps({**answer, "Expiration": ends}).encode())
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://{place.between.address}/x")
    assert found() == "of-container"
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(
        "[default]\naws_access_key_id = of-file\naws_secret_access_key = s%\n"
    )
    assert found() == "of-file"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert found() == "of-environment"
    own = Keyring(place.server.settings(), SystemAmbient()).current()
    assert (own.access_key, own.secret_key) == (ACCESS_KEY, SECRET_KEY)
    assert SECRET_KEY not in repr(own)


# ── buckets ───────────────────────────────────────────────────────────────────────────────────────


def test_a_bucket_that_is_missing_is_no_lake_where_everything_is_missing(s3: S3Server) -> None:
    lake = S3Lake(s3.lake("no-such-bucket"), SystemAmbient())
    for call in (
        partial(lake.facts, "day/f"),
        partial(lake.list, "day"),
        partial(lake.stage, "day/f", b"f"),
        partial(lake.publish, f"{PRIVATE}/f", "day/f"),
        partial(lake.remove, "day/f", FileFacts(1, "crc64nvme:00")),
        partial(lake.remove_folder, f"{STAGING}/x"),
    ):
        with pytest.raises(Unavailable, match=r"no such bucket.*headgate doctor lake"):
            call()
    with pytest.raises(Unavailable, match="no such bucket"):
        lake.read("day/f")


def test_in_a_versioned_bucket_nothing_comes_back_and_what_does_not_work_is_told(
    s3: S3Server, between: Meddler
) -> None:
    """This server takes a removed object for one that is there; Amazon's does not."""
    place = Place(s3, s3.new_bucket(is_versioned=True), between)
    lake = place.lake()
    step, facts = published(lake, b"f")
    carry_out(step, lake)
    assert place.public() == {"day/f": b"f"}
    lake.remove("day/f", facts)
    assert lake.facts("day/f") is None
    with pytest.raises(Unavailable, match="is not there"):
        lake.publish(step.staged, step.published)
    for lines in (["a"], ["b"]):
        lake.append("_headgate/1.jsonl", lines)
    assert lake.read("_headgate/1.jsonl") == b"a\nb\n"

    again, _ = published(lake, b"next generation")
    with pytest.raises(Unavailable, match=r"keeps versions.*doctor lake"):
        lake.publish(again.staged, again.published)
    assert place.public() == {}
    assert again.state(lake) is State.STAGED
    found = examine(lake, place.lake(), lake.server_ms, SystemAmbient(), print)
    (bad,) = [one for one in found.findings if one.verdict is Verdict.BAD]
    assert bad.name == "name used again"
    assert "switch off the versions" in bad.words


# ── large files, odd names, requests ──────────────────────────────────────────────────────────────


def test_a_file_that_is_too_large_for_one_copy_goes_in_parts_and_never_onto_something(
    place: Place,
) -> None:
    lake = place.lake()
    step, facts = published(lake, LARGE)
    assert len(LARGE) > 6 << 20
    lake.publish(step.staged, step.published)
    assert lake.facts("day/f") == facts
    assert place.files() == {"day/f": LARGE}
    again, _ = published(lake, LARGE)
    with pytest.raises(Conflict):
        lake.publish(again.staged, again.published)
    assert not place.has_uploads()


def test_names_before_and_behind_a_slash_are_listed_in_their_own_order(place: Place) -> None:
    """A bucket has `a-b` before `a/c`; by name `a` comes first."""
    lake = place.lake()
    for path in ("x/a-b", "x/a/c", "x/a!", "x/a", "x/b.c", "x/b/d", "x/part-0.json", "x/z"):
        if path != "x/a":
            lake.stage(path, b"")
    want = sorted(
        {
            path.split("/")[1]
            for path in ("x/a-b", "x/a/", "x/a!", "x/b.c", "x/b/", "x/part-0.json", "x/z")
        }
    )
    for limit in range(1, 9):
        found, after = list[str](), ""
        while True:
            page = lake.list("x", after=after, limit=limit)
            assert len(page.entries) <= limit
            found += [entry.path.removeprefix("x/") for entry in page.entries]
            if page.next_after is None:
                break
            after = page.next_after
        assert found == want, limit


def test_no_published_file_takes_more_than_four_requests(place: Place) -> None:
    sealing = place.meddled()
    steps = [published(sealing, b"%d" % n, f"{n % 7}/{n}")[0] for n in range(200)]
    sealing._is_refusing()
    place.between.seen.clear()
    sealing.seal([step.staged for step in steps])
    assert sealing.publish_all([_file(step) for step in steps]) == (True,) * 200
    assert sum(place.between.seen.values()) <= 4 * len(steps)
    place.between.seen.clear()
    replaying = place.meddled()  # which has sealed nothing
    again = [published(place.lake(), b"again%d" % n, f"a{n}")[0] for n in range(200)]
    replaying._is_refusing()
    place.between.seen.clear()
    assert replaying.publish_all([_file(step) for step in again]) == (True,) * 200
    assert sum(place.between.seen.values()) <= 4 * len(again)


def test_an_engine_looks_at_its_files_without_signs_of_spark(place: Place) -> None:
    lake = place.lake()
    for path in ("_SUCCESS", "_temporary/0/x", "h=1/a.parquet", "h=1/.b.crc", "h=2/c.parquet"):
        lake.stage(f"{STAGING}/s/j/{path}", b"x")
    shelf = LakeShelf(lake)
    assert shelf.files(f"{STAGING}/s/j") == {
        f"{STAGING}/s/j/h=1/a.parquet": 1,
        f"{STAGING}/s/j/h=2/c.parquet": 1,
    }
    shelf.move(f"{STAGING}/s/j/h=1", f"{STAGING}/t/own")
    assert shelf.files(f"{STAGING}/t") == {f"{STAGING}/t/own/a.parquet": 1}
    shelf.remove(f"{STAGING}/t")
    assert shelf.files(f"{STAGING}/t") == {}


# ── kill -9 ───────────────────────────────────────────────────────────────────────────────────────

_VICTIM = """
import sys
from headgate.ambient import SystemAmbient
from headgate.lake import BucketSettings, LakeSettings
from headgate.lake.s3 import S3Lake
root, endpoint, key, secret = sys.argv[1:5]
bucket = BucketSettings(endpoint, "", True, key, secret)
lake = S3Lake(LakeSettings(root, bucket=bucket), SystemAmbient())
print("ready", flush=True)
for n in range(1_000_000):
    lake.publish(f"{sys.argv[5]}/{n}", f"day/{n}")
    print(n, flush=True)
"""


def test_a_publisher_that_is_killed_leaves_each_file_whole_under_one_name_or_two(
    place: Place,
) -> None:
    lake, count = place.lake(), 60
    steps = [published(lake, b"%d" % n, f"{n}")[0] for n in range(count)]
    settings = place.settings
    arguments = [settings.root, settings.bucket.endpoint, ACCESS_KEY, SECRET_KEY, PRIVATE]
    victim = subprocess.Popen(
        [sys.executable, "-c", _VICTIM, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert victim.stdout is not None
    with victim.stdout:
        for line in victim.stdout:
            if line.strip() == "17":
                break
        victim.kill()
        victim.wait()

    for step in steps:
        carry_out(step, lake)
    assert place.public() == {f"day/{n}": b"%d" % n for n in range(count)}
