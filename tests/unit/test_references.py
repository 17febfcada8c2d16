from pathlib import Path

import pytest

from headgate.errors import Invalid
from headgate.references import is_reference, resolve


def test_an_environment_variable_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_TEST_SECRET", "s3cret")
    assert resolve("${env:HEADGATE_TEST_SECRET}") == "s3cret"


def test_a_file_is_resolved_without_its_last_line_break(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret \n")
    assert resolve(f"${{file:{tmp_path}/secret}}") == "s3cret "


def test_what_names_nothing_is_invalid_and_says_the_next_command(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="export HEADGATE_NOT_SET"):
        resolve("${env:HEADGATE_NOT_SET}")
    with pytest.raises(Invalid, match="ls -l"):
        resolve(f"${{file:{tmp_path}/absent}}")


@pytest.mark.parametrize("name", ["~nosuchuser/x", "a\0b", "\ud800", "/"])
def test_a_path_that_cannot_be_one_is_invalid(name: str) -> None:
    with pytest.raises(Invalid, match="next: "):
        resolve(f"${{file:{name}}}")


def test_the_next_command_can_be_copied_into_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(Invalid) as caught:
        resolve("${file:~/my secret}")
    assert str(caught.value).endswith(f"next: ls -l '{tmp_path}/my secret'")


@pytest.mark.parametrize("bare", ["hunter2", "$hunter2", "${vault:x}", "x${env:A}", "${env:}"])
def test_l14_a_bare_secret_is_refused_and_not_repeated(bare: str) -> None:
    assert not is_reference(bare)
    with pytest.raises(Invalid) as caught:
        resolve(bare)
    assert bare not in str(caught.value)
