from pathlib import Path

import pytest

from headgate.engine.packages import TESTED, coordinates, is_path, jars, left_out
from headgate.errors import Invalid


def test_files_need_no_jar() -> None:
    assert coordinates("4.0.4", ()) == ()


def test_what_is_needed_comes_in_the_version_tested_with_this_line() -> None:
    assert coordinates("4.0.4", ("kafka", "delta")) == (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        "io.delta:delta-spark_4.0_2.13:4.4.0",
    )


def test_the_settings_go_before_the_table() -> None:
    assert coordinates("9.9.0", ("kafka",), ("a:b:1",)) == ("a:b:1",)
    assert coordinates("4.0.4", (), ("a:b:1",)) == ("a:b:1",)


def test_a_line_that_was_not_tested_is_invalid_and_says_what_to_do() -> None:
    with pytest.raises(Invalid, match=r"Spark 4.3.0: no jar was tested for kafka.*packages"):
        coordinates("4.3.0", ("kafka",))


def test_every_coordinate_is_whole() -> None:
    for tested in TESTED.values():
        for several in tested.values():
            for one in several.split(","):
                assert len(one.split(":")) == 3


def test_jars_of_a_folder_are_taken_as_they_are(tmp_path: Path) -> None:
    for name in ("b.jar", "a.jar", "notes.txt"):
        (tmp_path / name).touch()
    alone, folder = str(tmp_path / "b.jar"), str(tmp_path)
    assert jars(["g:a:1", folder]) == (f"{folder}/a.jar", f"{folder}/b.jar")
    assert jars([alone]) == (alone,)
    assert coordinates("4.0.4", ("kafka",), (folder,)) == (), "nothing is fetched"
    assert coordinates("4.0.4", ("kafka",), ("g:a:1", folder)) == ("g:a:1",)


@pytest.mark.parametrize("name", ["", "notes.txt", "gone", "gone.jar"])
def test_a_path_without_a_jar_is_invalid_and_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(Invalid, match=r"is neither a jar nor a folder with some.*next: ls "):
        jars([str(tmp_path / name)])


@pytest.mark.parametrize(
    ("package", "is_one"),
    [("g:a:1", False), ("./jars", True), ("/a/b.jar", True), ("C:a", True), ("g:a:1:x", True)],
)
def test_what_are_no_coordinates_is_a_path(package: str, is_one: bool) -> None:
    assert is_path(package) == is_one


def test_the_page_about_clusters_names_what_was_tested() -> None:
    page = Path(__file__).parents[3] / "docs/howto/use-a-spark-cluster.md"
    told = page.read_text("utf-8")
    wanted = [one for need in ("kafka", "avro", "s3") for one in TESTED["4.0"][need].split(",")]
    assert [one for one in wanted if f"`{one}`" not in told] == []


def test_half_a_gigabyte_that_nobody_needs_is_left_out() -> None:
    assert left_out(("kafka", "s3")) == ("software.amazon.awssdk:bundle",)
    assert left_out(("kafka",)) == ()
    assert left_out(("s3",), ("a:b:1",)) == ()
