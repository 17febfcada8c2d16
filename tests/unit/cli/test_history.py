from headgate.cli.history import Silent
from headgate.lake.ledger import Line


def told(*lines: tuple[str, str]) -> list[list[str]]:
    silent = Silent()
    return [
        [text.plain.strip() for text in silent.before(Line("", 0, "n", "system", what, about, ""))]
        for what, about in lines
    ]


def test_commits_that_were_not_noted_are_no_hole() -> None:
    made = "commit.made"

    assert told((made, "a/0/3"), (made, "a/0/4"), (made, "a/0/6"), (made, "a/0/9")) == [
        [],
        [],
        ["(a/0: commit 5 landed no records)"],
        ["(a/0: commits 7 to 8 landed no records)"],
    ]


def test_each_shard_is_counted_for_itself_and_only_by_its_commits() -> None:
    made = "commit.made"

    assert told(
        (made, "a/0/3"), (made, "a/1/7"), ("gap.found", "a/0/9"), (made, "a/0/4"), (made, "a/0/4")
    ) == [[], [], [], [], []]
