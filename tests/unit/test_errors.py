import headgate.errors
from headgate.errors import HeadgateError


def test_there_are_seven_groups_and_none_is_a_kind_of_another() -> None:
    groups = HeadgateError.__subclasses__()
    assert sorted(group.__name__ for group in groups) == [
        *("Conflict", "Corrupt", "Fenced", "Halted", "Invalid", "OutcomeUnknown", "Unavailable"),
    ]
    assert all(group.__subclasses__() == [] for group in groups)


def test_the_drawing_names_every_group() -> None:
    drawing = headgate.errors.__doc__ or ""
    assert all(group.__name__ in drawing for group in HeadgateError.__subclasses__())
