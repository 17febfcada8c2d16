from headgate.cli.status import status


def test_help_says_that_no_node_is_a_no_only_while_something_waits() -> None:
    said = " ".join((status.__doc__ or "").split())

    assert "Exit code 0: healthy, also if no node is running and nothing waits; 1: a person" in said
    assert "must look, or something waits and no node is running;" in said
