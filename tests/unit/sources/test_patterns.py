"""Patterns: which paths a stream reads."""

import pytest

from headgate.errors import Invalid
from headgate.sources.patterns import Patterns, is_unfinished


@pytest.mark.parametrize(
    ("pattern", "path", "is_one"),
    [
        ("*.json", "a.json", True),
        ("*.json", "x/y/a.json", True),
        ("*.json", "a.json.gz", False),
        ("*.json", "a.JSON", False),
        ("*.json", "ajson", False),
        ("x/*.json", "x/a.json", True),
        ("x/*.json", "x/y/a.json", False),
        ("x/*.json", "z/x/a.json", False),
        ("**/*.json", "a.json", True),
        ("**/*.json", "x/y/a.json", True),
        ("x/**/a.json", "x/a.json", True),
        ("x/**/a.json", "x/y/z/a.json", True),
        ("x/**", "x/y/z", True),
        ("x/**", "xy", False),
        ("2026-*/x?.gz", "2026-11/x1.gz", True),
        ("2026-*/x?.gz", "2026-11/x/.gz", False),
        ("[ab].json", "a.json", True),
        ("[!ab].json", "a.json", False),
        ("[!ab].json", "c.json", True),
        ("a[0-9].json", "a7.json", True),
        ("[]^].json", "].json", True),
        ("a+(b)|c.json", "a+(b)|c.json", True),
        ("Straße *%'\".json", "Straße 日本%'\".json", True),
        ("a\nb*", "a\nbc", True),
    ],
)
def test_a_pattern_is_for_these_paths(pattern: str, path: str, is_one: bool) -> None:
    assert Patterns([pattern]).is_included(path) == is_one
    assert Patterns([], [pattern]).is_excluded(path) == is_one
    assert Patterns([], [pattern]).is_included(path) != is_one


def test_nothing_included_is_everything_and_exclude_wins() -> None:
    assert Patterns().is_included("any/thing")
    assert not Patterns(["*.json"], ["old/**"]).is_included("old/a.json")


@pytest.mark.parametrize("pattern", ["", "/a", "a/", "[z-a].json"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(Invalid, match="next"):
        Patterns([pattern])


@pytest.mark.parametrize("path", [".a", "_a", "x/.a", "_x/a", "x/_y/a", "a.tmp", "x/a.json.tmp"])
def test_an_unfinished_name(path: str) -> None:
    assert is_unfinished(path)


@pytest.mark.parametrize("path", ["a", "a_b", "a.b", "x/a.tmp.json", "x.tmp/a", "tmp"])
def test_a_finished_name(path: str) -> None:
    assert not is_unfinished(path)
