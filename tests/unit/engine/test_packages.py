import pytest

from headgate.engine.packages import TESTED, coordinates, left_out
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


def test_half_a_gigabyte_that_nobody_needs_is_left_out() -> None:
    assert left_out(("kafka", "s3")) == ("software.amazon.awssdk:bundle",)
    assert left_out(("kafka",)) == ()
    assert left_out(("s3",), ("a:b:1",)) == ()
