from headgate.app.letters import Letter
from headgate.cli.deadletter import GREP_BYTES_MAX, search_for


def letter(raw: bytes) -> Letter:
    return Letter("bad json", "lane-0", 3, 1, raw)


def test_a_record_whose_file_is_forgotten_is_looked_for_by_how_it_begins() -> None:
    odd = [letter(b"\xff\xfe"), letter(b"a\x1b[2J"), letter(b"-x 'y'\n")]

    assert search_for(odd, "/srv/a b") == """grep -rnF -- '-x '"'"'y'"'"'' '/srv/a b'"""
    assert search_for(odd[:2], "/srv") == ""


def test_a_letter_that_was_cut_in_the_middle_of_a_character_is_still_found() -> None:
    raw = b"x" * (GREP_BYTES_MAX - 1) + "é".encode()

    assert search_for([letter(raw)], "/srv") == f"grep -rnF -- {'x' * (GREP_BYTES_MAX - 1)} /srv"
