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


def test_blanks_around_a_url_are_not_part_of_it() -> None:
    assert parse(" file:./state\n") == parse("file:./state")


@pytest.mark.parametrize("text", ["", "state", "/srv/state", ":x", "ö:x", "e s://h", "1:x"])
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
        " es://alice:hunter2@host/index",
        "es://alice:hunter2%40host/index",
        "es:alice:hunter2%40host/index",
        "es://alice:hunter2/index",
        "es://host,alice:hunter2/index",
        "es://alice:hunter2?x=y@host/index",
    ],
)
def test_l14_a_bare_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse(text)
    assert "hunter2" not in str(caught.value)
    assert "${env:NAME}" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "es//alice:hunter2@host",
        "es_x://alice:hunter2@host/index",
        "es://alice:x?hunter2@host/index",
        "es://alice:x?hunter2=@host/index",
        "es://host/index?hunter2",
        "es://host/index?hunter2=x",
        "es://host/index?user=x&hunter2",
        "es://host/hunter2@index",
    ],
)
def test_l14_what_may_be_a_secret_is_not_repeated_wherever_it_stands(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["h", "h_1.example-2.org:9200", "[::1]", "[fe80::1%eth0]:1", "ü"])
def test_every_kind_of_host_is_taken(host: str) -> None:
    assert parse(f"es://{host},h2/index").hosts == (host, "h2")


def test_l14_a_misspelt_option_is_refused_without_its_value() -> None:
    with pytest.raises(Invalid, match="did you mean 'password'") as caught:
        parse("es://host/index?passwort=hunter2").check_options("user", "password")
    assert "hunter2" not in str(caught.value)


def test_a_store_without_options_says_so() -> None:
    with pytest.raises(Invalid) as caught:
        parse("file:./state?sync=1").check_options()
    assert str(caught.value) == (
        "file:./state: unknown option 'sync'; this store takes no options, "
        "next: leave out '?' and what follows"
    )


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
    with pytest.raises(Invalid, match="'bad' needs a whole number") as caught:
        url.number("bad", 1)
    assert "maybe" not in str(caught.value)
    with pytest.raises(Invalid, match="'bad' is true or false") as caught:
        url.truth("bad", True)
    assert "maybe" not in str(caught.value)


def test_an_option_has_one_value() -> None:
    with pytest.raises(Invalid, match="'x' is given twice"):
        parse("file:state?x=1&x=2")
    with pytest.raises(Invalid, match="name=value"):
        parse("file:state?x")
