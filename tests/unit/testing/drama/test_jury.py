from headgate.periods import DEFAULT_FOLDER, FolderTemplate, Period
from headgate.testing.drama.jury import Checked, flags_of


def test_kf15_each_hour_must_have_both_flags_and_the_one_over_all_streams() -> None:
    hours = [Period.parse("2026-11-01T13"), Period.parse("2026-11-01T14")]

    assert flags_of(FolderTemplate.parse(DEFAULT_FOLDER), "orders", hours) == [
        *("2026-11-01/13/orders/data/_READY", "2026-11-01/13/orders/_READY"),
        "2026-11-01/13/_READY",
        *("2026-11-01/14/orders/data/_READY", "2026-11-01/14/orders/_READY"),
        "2026-11-01/14/_READY",
    ]


def test_planted_findings_of_a_command_and_a_silent_no_are_faults() -> None:
    clean = Checked("headgate audit", is_clean=True, findings=(), counts={})
    silent = Checked("headgate audit", is_clean=False, findings=(), counts={})
    told = Checked("headgate verify --all", is_clean=False, findings=("a is gone",), counts={})

    assert list(clean.faults()) == []
    assert list(silent.faults()) == ["headgate audit: is not clean"]
    assert list(told.faults()) == ["headgate verify --all: a is gone"]
