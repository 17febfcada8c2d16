"""What a status means. Whether a write took effect must never be guessed (S5)."""

import pytest

from headgate.errors import HeadgateError, Invalid, OutcomeUnknown, Unavailable
from headgate.store.opensearch import _Cluster, _Connection


@pytest.fixture
def cluster() -> _Cluster:
    return _Cluster([_Connection(host="127.0.0.1", port=9200)], "es://h/index", "index")


def refused(cluster: _Cluster, status: int, kind: str, *, is_write: bool) -> HeadgateError:
    answer = {"error": {"type": kind, "reason": "index [x] blocked by: [FORBIDDEN/8/write]"}}
    return cluster.refusal("index/_doc/1", status, answer, is_write=is_write)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 408])
def test_s5_what_may_answer_a_repeated_write_is_unknown(cluster: _Cluster, status: int) -> None:
    """The first may have taken effect before its primary died; this is the second one's answer."""
    assert isinstance(refused(cluster, status, "whatever", is_write=True), OutcomeUnknown)
    assert isinstance(refused(cluster, status, "whatever", is_write=False), Unavailable)


@pytest.mark.parametrize("status", [400, 404, 413])
def test_what_can_never_be_right_is_invalid(cluster: _Cluster, status: int) -> None:
    assert isinstance(refused(cluster, status, "parse_exception", is_write=True), Invalid)


@pytest.mark.parametrize("status", [401, 403])
def test_no_right_is_invalid_and_says_what_to_give(cluster: _Cluster, status: int) -> None:
    error = refused(cluster, status, "security_exception", is_write=True)
    assert isinstance(error, Invalid)
    assert "password=${env:NAME}" in str(error)


def test_a_block_is_unavailable_with_the_command_that_lifts_it(cluster: _Cluster) -> None:
    error = refused(cluster, 403, "cluster_block_exception", is_write=True)
    assert isinstance(error, Unavailable)
    assert "index.blocks.write" in str(error)
    assert "curl -X PUT" in str(error)


def test_an_index_that_is_gone_is_not_made_anew(cluster: _Cluster) -> None:
    error = refused(cluster, 404, "index_not_found_exception", is_write=True)
    assert isinstance(error, Unavailable)
    assert "makes no new one" in str(error)
