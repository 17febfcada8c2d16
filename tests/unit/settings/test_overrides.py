from typing import Any

import pytest

from headgate.settings.model import schema
from headgate.settings.overrides import Overridden, overridden

TREE: dict[str, Any] = {
    "store": "file:./state",
    "lake": "./lake",
    "streams": {"orders": {"shards": 1}, "Größe a.b": {}},
    "spark": {"conf": {"spark.sql.shuffle.partitions": 8}},
}


def over(**environ: str) -> Overridden:
    return overridden(TREE, environ, schema())


def test_a_variable_replaces_a_value() -> None:
    found = over(HEADGATE__STREAMS__ORDERS__SHARDS="4")

    assert found.tree["streams"]["orders"] == {"shards": "4"}
    assert found.variables == {("streams", "orders", "shards"): "HEADGATE__STREAMS__ORDERS__SHARDS"}
    assert TREE["streams"]["orders"] == {"shards": 1}  # the file's stays


def test_a_variable_sets_what_the_file_leaves_to_the_default() -> None:
    found = over(HEADGATE__STREAMS__ORDERS__SHIFT="1m", HEADGATE__NODE__WORKERS="8")

    assert found.tree["streams"]["orders"]["shift"] == "1m"
    assert found.tree["node"] == {"workers": "8"}


def test_the_three_short_ones() -> None:
    found = over(HEADGATE_STORE="zk://h/x", HEADGATE_LAKE="/l", HEADGATE_NAMESPACE="prod")

    assert (found.tree["store"], found.tree["namespace"]) == ("zk://h/x", "prod")
    assert found.tree["lake"] == {"root": "/l"}


def test_a_lakes_root_is_replaced_without_its_other_settings() -> None:
    tree = {"lake": {"root": "./lake", "file_mode": "640"}}
    for name in ("HEADGATE_LAKE", "HEADGATE__LAKE", "HEADGATE__LAKE__ROOT"):
        found = overridden(tree, {name: "/l"}, schema())
        assert found.tree["lake"] == {"root": "/l", "file_mode": "640"}


def test_names_that_no_variable_can_spell_are_matched_by_letters_and_digits() -> None:
    environ = {
        "HEADGATE__STREAMS__GRÖSSE_A_B__SHIFT": "1m",
        "HEADGATE__SPARK__CONF__SPARK_SQL_SHUFFLE_PARTITIONS": "2",
    }

    found = overridden(TREE, environ, schema())

    assert found.tree["streams"]["Größe a.b"] == {"shift": "1m"}
    assert found.tree["spark"]["conf"] == {"spark.sql.shuffle.partitions": "2"}


def test_a_list_is_given_whole() -> None:
    found = over(HEADGATE__SPARK__PACKAGES="[a:b:1, c:d:2]")
    assert found.tree["spark"]["packages"] == ["a:b:1", "c:d:2"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("HEADGATE__STROE", "store"),
        ("HEADGATE__STREAMS__ORDRES__SHIFT", "orders"),
        ("HEADGATE__STREAMS__ORDERS__SHFIT", "shift"),
        ("HEADGATE__STREAMS__ORDERS__SHARDS__X", "there are no keys"),
    ],
)
def test_a_variable_that_matches_nothing_is_named_with_the_nearest(name: str, near: str) -> None:
    found = overridden(TREE, {name: "1"}, schema())

    (problem,) = found.problems
    assert problem.variable == name
    assert near in problem.words
    assert found.tree == TREE


def test_a_variable_that_matches_several_names_is_refused() -> None:
    tree: dict[str, Any] = {"streams": {"a b": {}, "a.b": {}}}

    (problem,) = overridden(tree, {"HEADGATE__STREAMS__A_B__SHIFT": "1m"}, schema()).problems

    assert "several" in problem.words


def test_two_variables_for_one_value_must_agree() -> None:
    assert over(HEADGATE_STORE="file:/a", HEADGATE__STORE="file:/a").problems == ()
    (problem,) = over(HEADGATE_STORE="file:/a", HEADGATE__STORE="file:/b").problems
    assert "unset one" in problem.words


def test_a_list_that_cannot_be_read_is_a_problem() -> None:
    (problem,) = over(HEADGATE__SPARK__PACKAGES="[a").problems
    assert problem.variable == "HEADGATE__SPARK__PACKAGES"


def test_empty_and_foreign_variables_are_left_alone() -> None:
    found = over(HEADGATE_STORE="", HEADGATE_CONFIG="x", HEADGATE_OTHER="x", HOME="/h")
    assert (found.tree, found.problems) == (TREE, ())
