import pytest

from headgate.engine.addresses import path_of, spellings_of, to_read


@pytest.mark.parametrize("url", ["file:/a%20b/%25.json", "file:///a%20b/%25.json"])
def test_both_spellings_are_the_same_file(url: str) -> None:
    assert path_of(url) == "/a b/%.json"
    assert url in spellings_of(url)


def test_a_path_is_no_pattern() -> None:
    assert to_read("/a*[1]{x}?\\.json") == "file:/a\\*\\[1\\]\\{x\\}\\?\\\\.json"
