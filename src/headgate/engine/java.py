"""Java: is there one that runs Spark? Asked before Spark starts, since Spark's own answer is long.

Spark takes `JAVA_HOME` first and `PATH` second, so that a too old one in `JAVA_HOME` counts even if
`PATH` has a newer one.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from headgate.errors import Invalid

VERSION_MIN = 17
PACKAGE = "openjdk-17-jre-headless"
_TIMEOUT_S = 60

# `openjdk version "17.0.15" …`, `java version "1.8.0_402"`
_VERSION = re.compile(r'^.* version "(?:1\.)?(\d+)[^"]*"', re.MULTILINE)


def require_java(environment: Mapping[str, str] = os.environ) -> str:
    """The program, of version 17 or newer. Raises Invalid, with the package to install."""
    home = environment.get("JAVA_HOME", "")
    where = f" in JAVA_HOME={home}" if home else ""
    program = program_of(environment)
    if program is None:
        raise _refusal(f"no java was found{where}", home)
    try:
        told = subprocess.run(  # noqa: S603 - the Java that Spark itself would start
            [program, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _refusal(f"{program} does not run ({error})", home) from error
    version = version_in(told.stderr + told.stdout)
    if version is None:
        raise _refusal(f"{program} does not say its version", home)
    if version < VERSION_MIN:
        raise _refusal(f"{program} is version {version}", home)
    return program


def program_of(environment: Mapping[str, str]) -> str | None:
    home = environment.get("JAVA_HOME", "")
    if home:
        program = os.path.join(home, "bin", "java")
        return program if os.access(program, os.X_OK) else None
    return shutil.which("java", path=environment.get("PATH"))


def version_in(talk: str) -> int | None:
    """The major version in what `java -version` says."""
    found = _VERSION.search(talk)
    return int(found[1]) if found else None


def _refusal(what: str, home: str) -> Invalid:
    step = (
        f"unset JAVA_HOME, or point it to a Java {VERSION_MIN}"
        if home
        else f"apt-get install {PACKAGE}"
    )
    return Invalid(
        f"{what}, and Spark needs Java {VERSION_MIN} or newer; nothing was read or written. "
        f"Next: {step}"
    )
