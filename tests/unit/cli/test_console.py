import json

from headgate.cli.console import json_line, pretty, printable


def test_g6_what_would_move_the_cursor_is_shown_instead() -> None:
    assert printable("a\x1b[2Jb\nc\x9b\u202e") == "a\\u001b[2Jb\\u000ac\\u009b\\u202e"
    assert printable("日本 é 😀 %2F") == "日本 é 😀 %2F"


def test_a_pretty_body_is_still_json_and_readable() -> None:
    text = pretty({"format": 1, "name": "é\x9b\u2028\n", "list": [1]})

    assert json.loads(text) == {"format": 1, "name": "é\x9b\u2028\n", "list": [1]}
    assert "é\\u009b\\u2028\\n" in text


def test_a_json_line_is_one_line_of_ascii_whatever_is_in_it() -> None:
    value = {"key": "é\u2028\n", "none": None}

    assert json_line(value).isascii()
    assert len(json_line(value).splitlines()) == 1
    assert json.loads(json_line(value)) == value
