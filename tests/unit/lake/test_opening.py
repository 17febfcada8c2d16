"""Which root a text names, and which it cannot name."""

import pytest

from headgate.errors import Invalid
from headgate.lake.opening import local_root


@pytest.mark.parametrize(
    "text", ["/srv/lake", "/srv/lake/", "file:/srv/lake", "file:///srv/lake", "FILE:///srv/lake//"]
)
def test_one_place_has_several_spellings(text: str) -> None:
    assert local_root(text) == "/srv/lake"


@pytest.mark.parametrize("text", ["/srv/my lake", "/srv/100%", "/srv/日本", "/srv/a:b", "/s/it's"])
def test_a_path_is_taken_as_it_is(text: str) -> None:
    assert local_root(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "absolute"),
        ("lake", "absolute"),
        ("./lake", "absolute"),
        ("file:lake", "absolute"),
        ("file://host/lake", "host"),
        ("s3://bucket/lake", "s3:"),
        ("hdfs://nn/lake", "hdfs:"),
        ("gs://bucket/lake", "bucket of Google.*speak s3:"),
        ("az://bucket/lake", "bucket of Azure"),
        ("ABFSS://bucket/lake", "bucket of Azure"),
        ("/", "whole machine"),
        ("///", "whole machine"),
        ("/srv/..", "whole machine"),
        ("/srv/{a}", "pattern"),
        ("/srv/*", "pattern"),
        ("/srv/a\0", "pattern"),
    ],
)
def test_what_is_no_root_is_refused_with_its_reason(text: str, said: str) -> None:
    with pytest.raises(Invalid, match=said) as caught:
        local_root(text)
    assert "next:" in str(caught.value).lower()
