"""Shapes: what a file has in common with others, or why it cannot be read."""

import gzip
from dataclasses import replace

import pytest

from headgate.errors import Corrupt, Invalid
from headgate.sources import FilesSettings
from headgate.sources.folder import Entry
from headgate.sources.memory_folder import MemoryFolder
from headgate.sources.shapes import columns_of

JSON = FilesSettings("/memory")
CSV = replace(JSON, format="csv")


def columns(settings: FilesSettings, path: str, content: bytes) -> tuple[str, ...]:
    folder = MemoryFolder()
    folder.files[path] = (content, 1)

    def schema_of(place: str) -> tuple[str, ...]:
        if content == b"noise":
            raise Corrupt(f"{place}: no footer")
        return ("a:bigint",)

    return columns_of(settings, folder, schema_of, Entry(path, len(content), 1))


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (b"at,id\n1,2\n", ("at", "id")),
        (b"at,id", ("at", "id")),
        (b"\xef\xbb\xbfat,id\r\n", ("at", "id")),
        (b'"a, b",\xd0\xb4\xd0\xbe\xd0\xbc\n', ("a, b", "дом")),
        (b"a,,A, b \n", ("a", "_c1", "A2", "b")),
        (b"\xff\n", ("\ufffd",)),
        (b"", ()),
    ],
)
def test_the_columns_of_csv_are_in_its_first_line(header: bytes, names: tuple[str, ...]) -> None:
    assert columns(CSV, "a.csv", header) == names
    if header:
        assert columns(CSV, "a.csv.gz", gzip.compress(header)) == names


def test_csv_without_a_header_has_the_columns_of_the_settings() -> None:
    assert columns(replace(CSV, columns=("x", "y")), "a.csv", b"1,2\n") == ("x", "y")


def test_other_formats() -> None:
    assert columns(JSON, "a.json", b"{}\n") == ()
    assert columns(replace(JSON, format="text"), "a.log", b"x,y\n") == ()
    assert columns(replace(JSON, format="parquet"), "a", b"PAR1") == ("a:bigint",)
    assert columns(replace(JSON, format="parquet"), "a", b"") == ()
    assert columns(replace(JSON, format="dead"), "a.parquet", b"PAR1") == (".parquet", "a:bigint")
    assert columns(replace(JSON, format="dead"), "a.json", b"{}") == (".json", "a:bigint")


@pytest.mark.parametrize(
    ("settings", "path", "content", "said"),
    [
        (JSON, "a.json.zst", b"x", "unpack it"),
        (JSON, "a.json.GZ", b"x", "unpack it"),
        (JSON, "a.zip", b"x", "unpack it"),
        (CSV, "a.csv.bz2", b"x", "unpack it"),
        (JSON, "a.json.gz", b"noise", "not gzip"),
        (CSV, "a.csv.gz", b"noise", "not gzip"),
        (replace(JSON, format="parquet"), "a.parquet", b"noise", "no footer"),
        (JSON, "a\udcff.json", b"{}", "not UTF-8"),
    ],
)
def test_what_cannot_be_read_says_why(
    settings: FilesSettings, path: str, content: bytes, said: str
) -> None:
    with pytest.raises(Invalid, match=said):
        columns(settings, path, content)


@pytest.mark.parametrize("name", ["a:b*.json", "a:b/[c].json", "a:\\b.json"])
def test_a_name_that_spark_cannot_read_is_told_and_gets_no_number(name: str) -> None:
    with pytest.raises(Invalid, match="colon"):
        columns(JSON, name, b"{}\n")


def test_a_colon_alone_is_no_obstacle() -> None:
    assert columns(JSON, "2026-11-01T13:00:00.json", b"{}\n") == ()
