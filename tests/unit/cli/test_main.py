from headgate.cli.main import EXIT_CODES
from headgate.errors import HeadgateError


def test_each_of_the_seven_groups_has_its_exit_code() -> None:
    codes = {group.__name__: code for group, (code, _) in EXIT_CODES.items()}

    assert codes == {
        "Halted": 1,
        "Invalid": 2,
        "Conflict": 3,
        "Fenced": 3,
        "OutcomeUnknown": 3,
        "Unavailable": 3,
        "Corrupt": 4,
    }
    assert set(EXIT_CODES) == set(HeadgateError.__subclasses__())
