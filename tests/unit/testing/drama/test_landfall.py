from headgate.apply.notice import notice
from headgate.apply.table_document import SYSTEM, Halt, TableDocument
from headgate.testing.drama.landfall import remedy_of


def test_the_remedy_is_the_first_command_of_the_notice_with_a_reason() -> None:
    halt = Halt("2026-11-01T13", "it is gone", SYSTEM, 0)
    words = notice("my orders", TableDocument(state="halted", tries=3, halt=halt), 2)

    assert remedy_of(words, "it is back") == (
        "headgate table retry 'my orders' --reason 'it is back'"
    )
