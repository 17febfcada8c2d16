"""Presence and a real ensemble: what ends with a client, and who notices."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from kazoo.client import KazooClient

from headgate import open_store
from headgate.ambient import SystemAmbient
from headgate.cluster import Advert, Presence
from headgate.cluster.ephemeral import NODE_ENDED, EphemeralPresence, open_presence
from headgate.cluster.presence import NUMBERS
from headgate.cluster.session import LEFT, session_key
from headgate.errors import Fenced, Unavailable
from headgate.store import DocumentStore
from headgate.store.znodes import ZooKeeperStore
from headgate.testing.racing import PATIENCE_S, eventually, until
from tests.servers.toxiproxy import Toxiproxy
from tests.servers.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.zookeeper

ADVERT = Advert(node="n1", workers=2)
TERM_MS = 600_000  # nobody is over by time alone while a test runs
SESSION_MS = 1_000


@pytest.fixture
def chroot() -> str:
    return f"it-{SystemAmbient().new_id()[:12]}"


@pytest.fixture
def bare(zookeeper: ZooKeeperEnsemble) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper.hosts)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def opened(zookeeper: ZooKeeperEnsemble, chroot: str) -> Iterator[Callable[..., DocumentStore]]:
    stores: list[DocumentStore] = []

    def open(hosts: str = zookeeper.hosts, options: str = "") -> DocumentStore:
        stores.append(open_store(f"zk://{hosts}/{chroot}{options}"))
        return stores[-1]

    yield open
    for store in stores:
        store.close()


def present(store: DocumentStore) -> Presence:
    return open_presence(store, SystemAmbient(), term_ms=TERM_MS)


def why(store: DocumentStore, session: str) -> object:
    found = store.get(session_key(session))
    assert found is not None
    return found.body["why"]


_CHILD = """
import sys, time
from headgate import open_store
from headgate.ambient import SystemAmbient
from headgate.cluster import Advert
from headgate.cluster.ephemeral import open_presence

store = open_store(sys.argv[1])
open_presence(store, SystemAmbient(), term_ms=int(sys.argv[3])).join(
    sys.argv[2], Advert(node="child", workers=1)
)
print("joined", flush=True)
time.sleep(600)
"""


def test_qf3_whoever_is_killed_is_over_when_its_znode_ends(
    zookeeper: ZooKeeperEnsemble, chroot: str, opened: Callable[..., DocumentStore]
) -> None:
    store = opened()
    watcher = present(store)
    rings: list[int] = []
    watcher.watch(lambda: rings.append(1))
    mine = watcher.join("0watcher", ADVERT)
    url = f"zk://{zookeeper.hosts}/{chroot}?session_ms={SESSION_MS}"
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, url, "1child", str(TERM_MS)], stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"joined\n"
        look = watcher.look()
        assert [m.session for m in look.members] == ["0watcher", "1child"]
        rings.clear()
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert child.stdout is not None
        child.stdout.close()
    assert until(lambda: bool(rings), within_s=PATIENCE_S), "the watch of the last look rings"
    assert until(lambda: watcher.look().over == ("1child",), within_s=PATIENCE_S)
    assert watcher.look().members == (mine,)
    assert why(store, "1child") == NODE_ENDED
    assert look.members[1].expires_at_ms > store.now_ms(), "long before its term was over"
    with pytest.raises(Fenced, match=NODE_ENDED):
        watcher.renew(look.members[1], ADVERT)


def test_q14_whoever_lost_its_zookeeper_session_is_fenced_and_joins_again(
    zookeeper: ZooKeeperEnsemble, network: Toxiproxy, opened: Callable[..., DocumentStore]
) -> None:
    proxies = [network.proxy(host) for host in zookeeper.hosts.split(",")]
    hosts = ",".join(proxy.address for proxy in proxies)
    store = opened(hosts, f"?session_ms={SESSION_MS}")
    presence, watcher = present(store), present(opened())
    rings: list[int] = []
    presence.watch(lambda: rings.append(1))
    member = presence.join("a", ADVERT)
    presence.look()
    rings.clear()
    for proxy in proxies:
        proxy.cut()
    assert until(lambda: bool(rings), within_s=PATIENCE_S), "a lost connection rings, too"
    assert until(lambda: watcher.look().over == ("a",), within_s=PATIENCE_S)
    for proxy in proxies:
        proxy.heal()
    eventually(lambda: store.get("x", timeout_ms=1_000))
    with pytest.raises(Fenced, match=NODE_ENDED):
        presence.renew(member, ADVERT)
    again = presence.join("b", ADVERT)
    assert again.number > member.number
    assert watcher.look().members == (again,)
    for proxy in proxies:
        proxy.close()


@pytest.mark.parametrize("finder", ["renew", "look"])
def test_p9_a_renewal_through_a_new_zookeeper_session_does_not_count(
    opened: Callable[..., DocumentStore], bare: KazooClient, chroot: str, finder: str
) -> None:
    """Its znode is gone, so others may close it at any moment: it must not believe otherwise."""
    store = opened()
    presence = present(store)
    member = presence.join("a", ADVERT)
    bare.delete(f"/{chroot}/default/!members/m-{member.number:010d}")
    if finder == "look":
        look = presence.look()
        assert (look.members, look.over) == ((), ("a",))
    with pytest.raises(Fenced, match=NODE_ENDED):
        presence.renew(member, ADVERT)
    assert why(store, "a") == NODE_ENDED


def test_qf3_a_member_is_an_ephemeral_sequential_znode_and_leaves_with_its_session(
    opened: Callable[..., DocumentStore], bare: KazooClient, chroot: str
) -> None:
    store = opened()
    presence = present(store)
    member = presence.join("a", ADVERT)
    path = f"/{chroot}/default/!members/m-{member.number:010d}"
    data, stat = bare.get(path)
    assert json.loads(data) == {"node": "n1", "session": "a"}
    assert stat.ephemeralOwner != 0
    presence.leave(member)
    assert bare.exists(path) is None
    assert why(store, "a") == LEFT
    presence.forget("a")
    assert [document.key for document in store.list().documents] == [NUMBERS]
    assert presence.join("b", ADVERT).number > member.number


def test_p8_a_session_that_got_through_before_its_znode_ended_is_fenced(
    opened: Callable[..., DocumentStore], bare: KazooClient, chroot: str
) -> None:
    presence = present(opened())
    first = presence.join("a", ADVERT)
    folder = f"/{chroot}/default/!members"
    bare.delete(f"{folder}/m-{first.number:010d}")
    with pytest.raises(Fenced, match=NODE_ENDED):
        presence.join("a", ADVERT)
    assert bare.get_children(folder) == [], "what was made for the second try is gone"
    assert presence.is_over("a")


@pytest.mark.parametrize(("asked_ms", "agreed_ms"), [(2_000, 2_000), (30_000, 10_000)])
def test_p9_a_renewal_holds_no_longer_than_what_the_ensemble_agreed_to(
    opened: Callable[..., DocumentStore], asked_ms: int, agreed_ms: int
) -> None:
    """With its tick of 500 ms, it agrees to 10 s at most."""
    presence = present(opened(options=f"?session_ms={asked_ms}"))
    assert isinstance(presence, EphemeralPresence)
    member = presence.join("a", ADVERT)
    assert presence.hold_ms == agreed_ms
    presence.renew(member, ADVERT)
    assert presence.hold_ms == agreed_ms


def test_s10_a_silent_server_is_left_even_by_a_client_that_keeps_asking(
    zookeeper: ZooKeeperEnsemble, opened: Callable[..., DocumentStore]
) -> None:
    """kazoo takes each request for a ping: while they go out, it waits for no answer."""
    store = opened(options="?session_ms=6000")
    presence = present(store)
    member = presence.join("a", ADVERT)
    assert isinstance(store, ZooKeeperStore)
    silent = store._ensemble._client._connection._socket.getpeername()[1]  # type: ignore[attr-defined]  # kazoo's
    index = list(zookeeper.ports).index(silent)

    def is_answered() -> bool:
        try:
            store.get("x", timeout_ms=300)
        except Unavailable:
            return False
        return True

    zookeeper.pause(index)
    try:
        assert until(is_answered, within_s=30)
    finally:
        zookeeper.heal()
    with suppress(Fenced):  # over, or not: that depends on who was paused
        presence.renew(member, ADVERT)
