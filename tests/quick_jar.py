"""`python -m tests.quick_jar`: makes `quick.jar` of its Java source, the same bytes each time."""

import subprocess
import tempfile
import zipfile
from pathlib import Path

import pyspark

from headgate.engine.quick.spark import JAR

SOURCE = JAR.with_name("QuickJson.java")
RELEASE = "17"  # the oldest Java that Spark 4 runs on
_DATE = (2020, 1, 1, 0, 0, 0)


def compiled() -> dict[str, bytes]:
    """Classes by their path in the jar."""
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    with tempfile.TemporaryDirectory() as folder:
        command = ["javac", "--release", RELEASE, "-g:none", "-cp", str(jars), "-d", folder]
        subprocess.run([*command, str(SOURCE)], check=True)
        classes = sorted(Path(folder).rglob("*.class"))
        return {str(one.relative_to(folder)): one.read_bytes() for one in classes}


def packed(jar: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(jar) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def make(jar: Path) -> None:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in compiled().items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    make(JAR)
