from headgate.engine.sql import case, name, text


def test_a_literal_holds_whatever_is_in_it() -> None:
    assert text("it's") == "'it\\'s'"
    assert text("\\d") == "'\\\\d'"
    assert text("a\n\tb") == "'a\\u000a\\u0009b'"


def test_a_name_holds_whatever_is_in_it() -> None:
    assert name("a`b.c") == "`a``b.c`"


def test_a_case_without_branches_is_its_end() -> None:
    assert case([], "1") == "1"
    assert case([("a", "b")], "c") == "CASE WHEN a THEN b ELSE c END"
