"""The OpenSearch store and a real cluster: rights, TLS, an index that vanishes, nobody at home."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from headgate import open_store
from headgate.ambient import SystemAmbient
from headgate.errors import Conflict, Invalid, Unavailable
from headgate.store import JsonObject
from headgate.store.pages import pages
from headgate.testing.racing import PATIENCE_S, eventually, in_background
from tests.servers.guard import Guard, basic
from tests.servers.opensearch import OpenSearchCluster
from tests.servers.process import free_ports

pytestmark = pytest.mark.opensearch

BODY = {"format": 1, "n": 1}


@pytest.fixture
def index() -> str:
    return f"it-{SystemAmbient().new_id()[:12]}"


@pytest.fixture
def url(opensearch: OpenSearchCluster, index: str) -> str:
    return f"es://{opensearch.hosts}/{index}"


def send(cluster: OpenSearchCluster, method: str, path: str, body: object = None) -> None:
    request = Request(
        f"http://127.0.0.1:{cluster.ports[0]}/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method=method,
    )
    with urlopen(request, timeout=30) as answer:
        answer.read()


@pytest.fixture
def guard(
    opensearch: OpenSearchCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Guard]:
    monkeypatch.setenv("RIGHT", "correct horse")
    monkeypatch.setenv("WRONG", "battery staple")
    monkeypatch.setenv("KEY", "a2V5")
    known = {basic("alice", "correct horse"), "ApiKey a2V5"}
    with Guard(opensearch.hosts.split(",")[0], known, tmp_path) as guard:
        yield guard


@pytest.mark.parametrize("who", ["user=alice&password=${env:RIGHT}", "api_key=${env:KEY}"])
def test_over_tls_with_a_password_or_a_key(guard: Guard, index: str, who: str) -> None:
    store = open_store(f"es://{guard.address}/{index}?tls=true&ca={guard.ca}&{who}")
    version = store.create("f/doc", BODY)
    store.replace("f/doc", BODY, version)
    assert len(store.list("f").documents) == 1
    assert store.now_ms() > 0
    store.close()


@pytest.mark.parametrize("who", ["user=alice&password=${env:WRONG}", "api_key=${env:WRONG}", ""])
def test_a_wrong_password_is_invalid_and_says_what_to_do(
    guard: Guard, index: str, who: str
) -> None:
    with pytest.raises(Invalid, match=r"user=NAME&password=\$\{env:NAME\}") as caught:
        open_store(f"es://{guard.address}/{index}?tls=true&ca={guard.ca}&{who}")
    assert "battery staple" not in str(caught.value)


def test_an_untrusted_certificate_is_invalid_and_says_what_to_do(guard: Guard, index: str) -> None:
    with pytest.raises(Invalid, match="ca="):
        open_store(f"es://{guard.address}/{index}?tls=true&user=alice&password=${{env:RIGHT}}")


def test_nobody_at_home_is_unavailable_within_its_time() -> None:
    (port,) = free_ports(1)
    opening = in_background(open_store, f"es://127.0.0.1:{port}/x")
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port}"):
        opening.result(PATIENCE_S)


@pytest.mark.parametrize("name", ["Upper", "_hidden", "a b", "a,b", "*"])
def test_what_is_no_index_is_invalid(opensearch: OpenSearchCluster, name: str) -> None:
    with pytest.raises(Invalid):
        open_store(f"es://{opensearch.hosts}/{name}")


def test_an_unknown_option_names_the_nearest(url: str) -> None:
    with pytest.raises(Invalid, match="did you mean 'verify'"):
        open_store(f"{url}?verfiy=false")


def test_an_index_that_vanishes_is_not_made_anew_in_silence(
    opensearch: OpenSearchCluster, url: str, index: str
) -> None:
    store = open_store(url)
    version = store.create("doc", BODY)
    send(opensearch, "DELETE", f"{index}*")
    for call in (
        lambda: store.get("doc"),
        lambda: store.create("other", BODY),
        lambda: store.replace("doc", BODY, version),
        lambda: store.list(),
    ):
        with pytest.raises(Unavailable, match="gone"):
            call()
    store.close()
    # Whoever starts anew starts from nothing, and no old version fits.
    fresh = open_store(url)
    fresh.create("doc", BODY)
    with pytest.raises((Conflict, Invalid)):
        fresh.replace("doc", BODY, version)
    fresh.close()


def test_a_read_only_index_says_which_setting_and_goes_on_afterwards(
    opensearch: OpenSearchCluster, url: str, index: str
) -> None:
    store = open_store(url)
    version = store.create("doc", BODY)
    send(opensearch, "PUT", f"{index}/_settings", {"index.blocks.read_only_allow_delete": True})
    with pytest.raises(Unavailable, match=r"index\.blocks\.read_only_allow_delete.*null"):
        store.replace("doc", BODY, version)
    send(opensearch, "PUT", f"{index}/_settings", {"index.blocks.read_only_allow_delete": None})
    eventually(lambda: store.replace("doc", BODY, version))
    store.close()


def test_a_page_of_large_documents_is_listed_whole(url: str) -> None:
    """More than a node answers at once: the page is made of several small searches."""
    store = open_store(url)
    body: JsonObject = {"format": 1, "filling": "x" * 900_000}
    names = [f"big/{n:02}" for n in range(40)]
    for name in names:
        store.create(name, body, timeout_ms=60_000)
    found = list(pages(store, "big", timeout_ms=60_000))
    assert [document.key for page in found for document in page.documents] == names
    store.close()
