import pytest

from headgate.errors import Invalid
from headgate.store.url import parse


def test_hosts_path_and_options_are_told_apart() -> None:
    url = parse("zk://h1:2181,h2,[::1]:2183/head/gate?session_ms=5000&user=me&ca=/etc/a%26b.pem")
    assert url.scheme == "zk"
    assert url.hosts == ("h1:2181", "h2", "[::1]:2183")
    assert url.path == "/head/gate"
    assert dict(url.options) == {"session_ms": "5000", "user": "me", "ca": "/etc/a&b.pem"}


def test_a_file_url_is_a_path() -> None:
    assert parse("file:./state").path == "./state"
    assert parse("file:///srv/my%20state").path == "///srv/my state"
    assert parse("file:/srv/a@b").path == "/srv/a@b"


@pytest.mark.parametrize("text", ["", "state", "/srv/state", ":x", "ö:x"])
def test_what_is_no_url_is_invalid(text: str) -> None:
    with pytest.raises(Invalid, match=r"file:\./state"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "es://alice:hunter2@host/index",
        "zk:alice:hunter2@host/x",
        "es://host/index?password=hunter2",
        "es://host/index?api_key=hunter2",
    ],
)
def test_l14_a_bare_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse(text)
    assert "hunter2" not in str(caught.value)
    assert "${env:NAME}" in str(caught.value)


def test_l14_a_misspelt_option_is_refused_without_its_value() -> None:
    with pytest.raises(Invalid, match="did you mean 'password'") as caught:
        parse("es://host/index?passwort=hunter2").check_options("user", "password")
    assert "hunter2" not in str(caught.value)


def test_a_secret_is_read_through_its_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_TEST_SECRET", "s3cret")
    url = parse("es://host/index?password=${env:HEADGATE_TEST_SECRET}")
    assert url.secret("password") == "s3cret"
    assert url.secret("api_key") is None
    assert "s3cret" not in repr(url)


def test_options_are_numbers_and_truths_where_they_should_be() -> None:
    url = parse("zk://h?session_ms=5000&tls=true&bad=maybe")
    assert url.number("session_ms", 1) == 5000
    assert url.number("absent", 7) == 7
    assert url.truth("tls", False) is True
    assert url.truth("absent", True) is True
    with pytest.raises(Invalid, match="whole number"):
        url.number("bad", 1)
    with pytest.raises(Invalid, match="true or false"):
        url.truth("bad", True)


@pytest.mark.parametrize("query", ["x", "x=1&x=2"])
def test_an_option_has_one_value(query: str) -> None:
    with pytest.raises(Invalid, match="'x'"):
        parse(f"file:state?{query}")
