from rich.text import Text

from headgate.cli.tables import Rows, lines_of


def test_a_table_as_text_is_aligned_and_ends_with_its_words() -> None:
    rows = Rows(("name", "rows"), (("a", "1,000"), ("longer", "2")), frozenset({"rows"}))

    assert lines_of(rows) == ["name     rows", "a       1,000", "longer      2"]
    assert lines_of(Text("x")) == ["x"]
