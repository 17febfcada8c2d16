"""The ZooKeeper store and a real ensemble: rights, sessions, strangers, and nobody at home."""

import logging
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from headgate import open_store
from headgate.ambient import Deadline, SystemAmbient
from headgate.errors import Conflict, Invalid, Unavailable
from headgate.store import DocumentStore, Version
from headgate.store.pages import pages
from headgate.store.trie import trie_key
from headgate.store.znodes import ZooKeeperStore
from headgate.testing.contract.base import replaced
from headgate.testing.racing import PATIENCE_S, eventually, in_background, until
from tests.servers.process import free_ports
from tests.servers.toxiproxy import Toxiproxy
from tests.servers.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.zookeeper

BODY = {"format": 1, "n": 1}


@pytest.fixture
def chroot() -> str:
    return f"it-{SystemAmbient().new_id()[:12]}"


@pytest.fixture
def url(zookeeper: ZooKeeperEnsemble, chroot: str) -> str:
    return f"zk://{zookeeper.hosts}/{chroot}"


@pytest.fixture
def bare(zookeeper: ZooKeeperEnsemble) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper.hosts)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def owned(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store that belongs to alice; RIGHT and WRONG are passwords."""
    monkeypatch.setenv("RIGHT", "correct horse")
    monkeypatch.setenv("WRONG", "battery staple")
    store = open_store(f"{url}?user=alice&password=${{env:RIGHT}}")
    store.create("f/doc", BODY)
    store.close()
    return url


def test_the_owner_comes_back_with_the_password(owned: str) -> None:
    store = open_store(f"{owned}?user=alice&password=${{env:RIGHT}}")
    found = store.get("f/doc")
    assert found is not None
    store.replace("f/doc", BODY, found.version)
    store.close()


@pytest.mark.parametrize(
    "query", ["?user=alice&password=${env:WRONG}", "?user=bob&password=${env:RIGHT}", ""]
)
def test_a_wrong_password_is_invalid_and_says_what_to_do(owned: str, query: str) -> None:
    def use() -> None:
        store = open_store(f"{owned}{query}")
        try:
            store.get("f/doc")
        finally:
            store.close()

    with pytest.raises(Invalid, match=r"wrong user or password.*\$\{env:NAME\}") as caught:
        use()
    assert "battery staple" not in str(caught.value)


@pytest.mark.usefixtures("owned")
def test_everything_made_belongs_to_the_user(bare: KazooClient, chroot: str) -> None:
    bare.add_auth("digest", "alice:correct horse")
    todo = [f"/{chroot}/default"]
    seen = 0
    while todo:
        path = todo.pop()
        (acl,) = bare.get_acls(path)[0]
        assert (acl.id.scheme, acl.id.id.partition(":")[0], acl.perms) == ("digest", "alice", 31), (
            path
        )
        todo += [f"{path}/{name}" for name in bare.get_children(path)]
        seen += 1
    assert seen >= 5


def test_user_and_password_need_each_other(url: str) -> None:
    with pytest.raises(Invalid, match="need each other"):
        open_store(f"{url}?user=alice")


def test_an_unknown_option_names_the_nearest(url: str) -> None:
    with pytest.raises(Invalid, match="did you mean 'session_ms'"):
        open_store(f"{url}?sesion_ms=5")


def test_nobody_at_home_is_unavailable_within_its_time() -> None:
    (port,) = free_ports(1)
    opening = in_background(open_store, f"zk://127.0.0.1:{port}/x")
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port}"):
        opening.result(PATIENCE_S)


def test_strangers_znodes_are_left_alone(url: str, bare: KazooClient, chroot: str) -> None:
    store = open_store(url)
    store.create("f/doc", BODY)
    for name in ("Stranger", "%zz", "a b", "f/Other"):
        bare.create(f"/{chroot}/default/{name}", b"not ours")
    assert [document.key for document in store.list().documents] == ["f/doc"]
    assert store.list().damaged == ()
    store.close()


def test_a_document_without_its_data_is_damaged_and_not_just_gone(
    url: str, bare: KazooClient, chroot: str
) -> None:
    store = open_store(url)
    store.create("f/doc", BODY)
    bare.set(f"/{chroot}/default/f/doc", b"")
    assert [one.key for one in store.list().damaged] == ["f/doc"]
    store.close()


def test_a_trie_keeps_every_child_list_small(url: str, bare: KazooClient, chroot: str) -> None:
    store = open_store(url)
    names = [f"queue-{n:05}" for n in range(400)]
    for name in names:
        store.create(trie_key("queues", name), BODY)
    assert sum(len(page.documents) for page in pages(store, "queues", limit=150)) == len(names)
    root = f"/{chroot}/default/queues"
    folders = bare.get_children(root)
    assert len(folders) > 100
    assert max(len(bare.get_children(f"{root}/{folder}")) for folder in folders) <= 10
    store.close()


def test_empty_folders_are_pruned(url: str, bare: KazooClient, chroot: str) -> None:
    store = open_store(url)
    for _ in range(3):
        store.delete("a/b/c", store.create("a/b/c", BODY))
        bare.sync("/")  # it may ask a server that is behind
        assert bare.exists(f"/{chroot}/default/a") is None
    store.close()


def test_s2_a_folder_that_was_made_anew_as_a_document_is_not_overwritten(url: str) -> None:
    """Both have version 0; a create that slept in between must notice the difference."""
    sleeper, other = open_store(url), open_store(url)
    assert isinstance(sleeper, ZooKeeperStore)
    child = other.create("a/b/c", BODY)
    look = sleeper._folder_version

    def look_and_sleep(key: str, path: str, deadline: Deadline) -> int | None:
        version = look(key, path, deadline)
        monkey.undo()  # it sleeps once
        other.delete("a/b/c", child)
        other.create("a/b", {"format": 1, "n": 2})
        return version

    monkey = pytest.MonkeyPatch()
    monkey.setattr(sleeper, "_folder_version", look_and_sleep)
    with pytest.raises(Conflict):
        sleeper.create("a/b", BODY)
    found = other.get("a/b")
    assert found is not None
    assert found.body["n"] == 2
    other.delete("a/b", found.version)
    assert other.get("a/b") is None
    other.create("a/b", BODY)
    for store in (sleeper, other):
        store.close()


@pytest.mark.parametrize("version", ["x", "0" * 32 + ":4294967296", "0" * 32 + ":\u0663"])
def test_s2_an_odd_version_is_only_a_conflict(url: str, version: str) -> None:
    store = open_store(url)
    store.create("doc", BODY)
    with pytest.raises(Conflict):
        store.replace("doc", BODY, Version(version))
    assert store.get("doc") is not None
    store.close()


@pytest.mark.parametrize(("path", "namespace"), [("/zookeeper", "n"), ("", "zookeeper")])
def test_zookeepers_own_tree_is_not_ours(
    zookeeper: ZooKeeperEnsemble, path: str, namespace: str
) -> None:
    with pytest.raises(Invalid, match="try /headgate"):
        open_store(f"zk://{zookeeper.hosts}{path}", namespace)


def test_s10_calls_that_time_out_do_not_block_later_ones(chroot: str) -> None:
    """kazoo wakes its thread through a socket that holds a few hundred bytes, and then blocks."""
    with ZooKeeperEnsemble(size=1) as server:
        store = open_store(f"zk://{server.hosts}/{chroot}")
        big = {"format": 1, "filling": "x" * 900_000}
        server.pause(0)
        try:
            for n in range(8):
                in_background(store.create, f"big-{n}", big, timeout_ms=2_000)
            calls = [in_background(store.get, f"doc-{n}", timeout_ms=100) for n in range(400)]
            for call in calls:
                with pytest.raises(Unavailable):
                    call.result(PATIENCE_S)
        finally:
            server.resume(0)
        eventually(lambda: store.get("doc", timeout_ms=1_000))
        store.close()


def test_s3_a_leader_that_slept_shows_nothing_from_before(
    zookeeper: ZooKeeperEnsemble, chroot: str
) -> None:
    """Woken, it still believes that it leads; a read through it must not show the past."""
    hosts = zookeeper.hosts.split(",")
    leader = zookeeper.leader()
    others = ",".join(host for n, host in enumerate(hosts) if n != leader)
    through_leader = open_store(f"zk://{hosts[leader]}/{chroot}?session_ms=20000")
    writer = open_store(f"zk://{others}/{chroot}")
    writer.create("doc", BODY)
    assert through_leader.get("doc") is not None
    zookeeper.pause(leader)
    try:
        new = eventually(lambda: replaced(writer, "doc", {"format": 1, "n": 2}))
    finally:
        zookeeper.resume(leader)
    found = eventually(lambda: through_leader.get("doc", timeout_ms=1_000))
    assert found is not None
    assert found.version == new
    zookeeper.heal()
    for store in (through_leader, writer):
        store.close()


def test_q14_a_lost_session_is_survived_and_waiters_wake(
    zookeeper: ZooKeeperEnsemble, network: Toxiproxy, chroot: str, caplog: pytest.LogCaptureFixture
) -> None:
    proxies = [network.proxy(host) for host in zookeeper.hosts.split(",")]
    hosts = ",".join(proxy.address for proxy in proxies)
    store = open_store(f"zk://{hosts}/{chroot}?session_ms=1000")
    other = open_store(f"zk://{zookeeper.hosts}/{chroot}")
    version = other.create("tasks/1", BODY)
    mark = store.wait("tasks", None, timeout_ms=5_000)
    waiting = in_background(follow, store, version)
    with caplog.at_level(logging.INFO, "headgate.store.zookeeper"):
        for proxy in proxies:
            proxy.cut()
        assert until(lambda: "store.suspended" in caplog.messages, within_s=PATIENCE_S)
        SystemAmbient().sleep_ms(3_000)  # thrice the session: the ensemble has forgotten it
        other.replace("tasks/1", {"format": 1, "n": 2}, version)
        for proxy in proxies:
            proxy.heal()
        assert waiting.result(PATIENCE_S) == 2
        assert "store.lost" in caplog.messages
    assert eventually(lambda: store.wait("tasks", mark, timeout_ms=1_000)) != mark
    for one in (store, other):
        one.close()
    for proxy in proxies:
        proxy.close()


def follow(store: DocumentStore, first: str) -> object:
    """Waits until the document is another one, and says what it holds."""
    mark = None
    while True:  # ends with the test: it is a daemon
        try:
            mark = store.wait("tasks", mark, timeout_ms=10_000)
            found = store.get("tasks/1", timeout_ms=1_000)
        except Unavailable:
            SystemAmbient().sleep_ms(50)
            continue
        if found is not None and found.version != first:
            return found.body["n"]
