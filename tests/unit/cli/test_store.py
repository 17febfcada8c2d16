import shlex

import pytest

from headgate.cli.store import command


def test_a_command_to_copy_names_the_namespace_unless_it_is_the_default() -> None:
    assert command("get", "file:./state", "default", "a/b") == "headgate store get file:./state a/b"
    assert command("ls", "file:./state", "prod") == (
        "headgate store ls file:./state --namespace prod"
    )


@pytest.mark.parametrize("key", ["a b", "a'b", "$HOME", "a;b", "*", "é"])
def test_a_command_to_copy_means_the_same_in_a_shell(key: str) -> None:
    words = shlex.split(command("get", "es://h/i?password=${env:P}&tls=true", key, key))

    assert words == [
        *("headgate", "store", "get", "es://h/i?password=${env:P}&tls=true", key),
        *("--namespace", key),
    ]


def test_a_key_that_looks_like_an_option_comes_behind_two_dashes() -> None:
    assert command("get", "file:./state", "-n", "--json") == (
        "headgate store get --namespace -n -- file:./state --json"
    )


def test_g6_a_command_to_copy_does_not_move_the_cursor() -> None:
    assert command("get", "file:./state", "default", "a\x1b[2J") == (
        "headgate store get file:./state 'a\\u001b[2J'"
    )
