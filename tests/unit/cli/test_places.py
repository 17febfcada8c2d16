import shlex

from headgate.app import Place
from headgate.cli.places import Here, command


def test_a_command_to_copy_names_the_namespace_unless_it_is_the_default() -> None:
    assert command("status", Place("file:./state")) == "headgate status --store file:./state"
    assert command("node drain", Place("file:./state", "prod"), "3") == (
        "headgate node drain 3 --store file:./state --namespace prod"
    )


def test_a_command_to_copy_means_the_same_in_a_shell() -> None:
    place = Place("es://h/i?password=${env:P}&tls=true", "$HOME; x")

    words = shlex.split(command("task release", place, "a b/1", options=["--reason", "it's ok"]))

    assert words == [
        *("headgate", "task", "release", "a b/1", "--reason", "it's ok"),
        *("--store", place.url, "--namespace", place.namespace),
    ]


def test_a_name_that_looks_like_an_option_comes_behind_two_dashes() -> None:
    assert command("node drain", Place("file:./state"), "-x") == (
        "headgate node drain --store file:./state -- -x"
    )


def test_a_command_for_the_settings_that_are_found_anyway_names_nothing() -> None:
    here = Here(Place("file:/x/state", "prod"), None, ())

    assert command("stream resume", here, "a b", options=["--reason", "ok"]) == (
        "headgate stream resume 'a b' --reason ok"
    )


def test_a_command_for_other_settings_names_them() -> None:
    here = Here(Place("file:/x/state"), None, ("--config", "my settings.yaml"))

    assert command("shard release", here, "-x/0", options=["--reason", "ok"]) == (
        "headgate shard release --reason ok --config 'my settings.yaml' -- -x/0"
    )
