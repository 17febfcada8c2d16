from headgate.cli.status import status


def test_help_says_that_no_node_is_an_exit_code_of_its_own_kind() -> None:
    said = " ".join((status.__doc__ or "").split())

    assert "1: a person must look, also if all that is wrong is that no node is running;" in said
