import os

import pytest

from headgate.engine.java import program_of, require_java, version_in
from headgate.errors import Invalid


@pytest.mark.parametrize(
    ("talk", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_402"\n', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "25-ea" 2025', 25),
        ("command not found", None),
        ("", None),
    ],
)
def test_the_version_is_read_from_what_java_says(talk: str, version: int | None) -> None:
    assert version_in(talk) == version


def test_no_java_is_invalid_and_names_the_package() -> None:
    with pytest.raises(
        Invalid, match=r"no java was found.*apt-get install openjdk-17-jre-headless"
    ):
        require_java({"PATH": "/nowhere"})


def test_a_wrong_java_home_counts_even_if_the_path_has_one() -> None:
    with pytest.raises(Invalid, match=r"JAVA_HOME=/nowhere.*unset JAVA_HOME"):
        require_java({"JAVA_HOME": "/nowhere", "PATH": os.environ["PATH"]})
    assert program_of({"JAVA_HOME": "/nowhere", "PATH": os.environ["PATH"]}) is None
