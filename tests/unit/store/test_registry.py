import sys
from importlib.metadata import EntryPoint
from unittest.mock import patch

import pytest

from headgate import open_store
from headgate.errors import Invalid
from headgate.store.memory import MemoryStore
from headgate.store.registry import schemes


def test_the_four_backends_are_registered() -> None:
    assert {"memory", "file", "zk", "es"} <= set(schemes())


def test_an_unknown_scheme_names_the_known_and_the_nearest() -> None:
    with pytest.raises(Invalid, match=r"es:, file:, memory:, zk:.*did you mean file:"):
        open_store("fil:state")


def test_a_third_party_brings_its_own_by_entry_point() -> None:
    mine = EntryPoint("mine", "headgate.store.memory:open_url", "headgate.stores")
    with patch("headgate.store.registry.entry_points", return_value=[mine]):
        assert isinstance(open_store("mine:x"), MemoryStore)


@pytest.mark.parametrize(
    ("url", "client", "extra"),
    [("zk://h", "kazoo", "zookeeper"), ("es://h", "opensearchpy", "opensearch")],
)
def test_a_missing_client_library_names_the_extra(
    url: str, client: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        is_ours = name in ("headgate.store.zookeeper", "headgate.store.opensearch")
        if is_ours or name.partition(".")[0] == client:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, client, None)
    with pytest.raises(Invalid, match=rf"pip install 'headgate\[{extra}\]'"):
        open_store(url)


def test_a_namespace_that_is_none_is_refused() -> None:
    with pytest.raises(Invalid, match="namespace"):
        open_store("memory:x", "a/b")


def test_who_opens_the_same_memory_shares_it() -> None:
    open_store("memory:shared", "n").create("doc", {"format": 1})
    assert open_store("memory:shared", "n").get("doc") is not None
    assert open_store("memory:other", "n").get("doc") is None
