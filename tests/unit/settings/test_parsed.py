from hypothesis import given
from hypothesis import strategies as st

from headgate.settings.parsed import FILE_BYTES_MAX, parse
from headgate.settings.problems import Problem


def problem(text: str | bytes) -> Problem:
    raw = text if isinstance(text, bytes) else text.encode()
    (found,) = parse(raw).problems
    return found


def test_values_are_texts_numbers_truths_lists_and_mappings() -> None:
    found = parse(b"a: {b: [1, x, true, ~, 1.5]}\nc: 'quoted: 1'\n")

    assert found.tree == {"a": {"b": [1, "x", True, None, 1.5]}, "c": "quoted: 1"}
    assert found.lines[("a", "b")] == 1
    assert found.lines[("c",)] == 2
    assert found.problems == ()


def test_what_yaml_1_1_would_turn_into_something_else_stays_a_text() -> None:
    found = parse(b"a: on\nb: yes\nc: NO\nd: 12:30:00\ne: 2026-11-01\nf: 0o640\ng: 1e3\n")

    assert list(found.tree.values()) == [
        *("on", "yes", "NO", "12:30:00", "2026-11-01", "0o640", "1e3")
    ]


def test_a_key_is_its_spelling() -> None:
    assert parse(b"true: 1\n2026: 2\non: 3\n").tree == {"true": 1, "2026": 2, "on": 3}


def test_a_key_that_is_there_twice_is_named_with_both_lines() -> None:
    found = problem("a: 1\nb: {}\na: 2\n")

    assert (found.place, found.line) == (("a",), 3)
    assert "first in line 1" in found.words


def test_a_key_twice_further_down_has_its_place() -> None:
    assert problem("a:\n  b: 1\n  b: 2\n").place == ("a", "b")


def test_a_tab_is_named_with_its_line() -> None:
    for text in ("a: 1\n\tb: 2\n", "a:\n\tb: 2\n", "a:\n  b: 1\n\t- c\n"):
        found = problem(text)
        assert "tab" in found.words
        assert found.line > 1


def test_text_that_is_not_utf8_is_named_with_its_line() -> None:
    assert (problem(b"a: 1\nb: \xff\n").line, problem(b"\xff\xfea\x00").line) == (2, 1)
    assert "UTF-8" in problem(b"a: \xe4").words


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert parse(b"\xef\xbb\xbfa: 1\n").tree == {"a": 1}


def test_a_control_character_is_named_with_its_line() -> None:
    found = problem(b"a: 1\nb: \x01\n")
    assert (found.line, "U+0001" in found.words) == (2, True)


def test_an_empty_file_says_how_to_get_a_full_one() -> None:
    for text in ("", "\n\n", "# only a comment\n", "---\n"):
        assert "headgate init" in problem(text).words or "keys with values" in problem(text).words


def test_a_file_that_is_no_mapping_is_refused() -> None:
    for text in ("- a\n- b\n", "just a text\n", "5\n"):
        assert "keys with values" in problem(text).words
        assert problem(text).line == 1


def test_broken_yaml_is_named_with_its_line() -> None:
    assert problem("a: 1\nb: [1, 2\n").line in (2, 3)
    assert problem("a: 1\nb: c: d\n").line == 2
    assert problem("a: 1\n---\nb: 2\n").line == 2


def test_nothing_is_ever_evaluated() -> None:
    found = problem("a: !!python/object/apply:os.system [echo hello]\n")

    assert "is not allowed" in found.words
    assert parse(b"a: !!python/name:os.system x\n").tree == {"a": None}


def test_a_star_that_is_no_alias_is_not_repeated() -> None:
    assert "hunter2" not in problem("password: *hunter2\n").words


def test_an_alias_stands_for_its_value() -> None:
    assert parse(b"a: &x {b: 1}\nc: *x\n").tree == {"a": {"b": 1}, "c": {"b": 1}}


def test_an_alias_bomb_ends_early() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 12):
        lines.append(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]")

    assert "too much" in problem("\n".join(lines)).words


def test_an_alias_of_itself_ends_early() -> None:
    assert "too much" in problem("a: &x [*x]\n").words


def test_deep_nesting_ends_early() -> None:
    for depth in (40, 5_000):
        assert "deep" in problem("a: " + "[" * depth + "]" * depth).words


def test_a_huge_file_is_not_read() -> None:
    assert f"{FILE_BYTES_MAX:,}" in problem(b"#" * (FILE_BYTES_MAX + 1)).words


@given(st.binary(max_size=200) | st.text("ab:{}[]&*!-#\n\t '\"", max_size=60).map(str.encode))
def test_no_bytes_raise_anything(raw: bytes) -> None:
    found = parse(raw)
    assert found.tree or found.problems or raw.strip().startswith((b"{", b"---"))
