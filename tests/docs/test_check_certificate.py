"""A stranger checks an hour with a script that knows nothing of Headgate."""

import subprocess
import sys
from pathlib import Path

import pytest

from headgate.ambient import SystemAmbient
from headgate.commits.certificate import (
    Certificate,
    CertifiedFile,
    CertifiedPartition,
    flag_paths,
    sealed,
    to_bytes,
)
from headgate.lake import LakeSettings
from headgate.lake.opening import open_lake
from headgate.periods import DEFAULT_FOLDER, FolderTemplate, Period

SCRIPT = Path(__file__).parents[2] / "examples/check_certificate.py"
HOUR = Period.parse("2026-11-01T13")
STREAM = "заказы 注文"


def flagged(root: Path, watermark_ms: int = HOUR.end_ms) -> tuple[Path, Path]:
    """An hour of one file: where the file is, and the flag."""
    template = FolderTemplate.parse(DEFAULT_FOLDER)
    lake = open_lake(LakeSettings(str(root)), SystemAmbient())
    path = f"{template.folder(HOUR, stream=STREAM)}/shard0-commit0000000001-0.parquet"
    facts = lake.stage(path, b"rows")
    certificate = Certificate(
        STREAM, str(HOUR), 1, (CertifiedFile(path, facts.size_bytes, facts.checksum, 4),),
        {"lane-0": CertifiedPartition("", "1", watermark_ms, "records")}, (),
        {"landed": 4, "late": 0, "dead": 0}, (HOUR.start_ms, HOUR.start_ms + 1),
        {"0": ((1, 2),)}, HOUR.end_ms, "red",
    )  # fmt: skip
    flag = flag_paths(template, HOUR, STREAM)[-1]
    lake.stage(flag, to_bytes(sealed(certificate)))
    return root / path, root / flag


def check(root: Path, flag: Path) -> tuple[int, str]:
    command = [sys.executable, "-I", str(SCRIPT), str(root), str(flag)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_an_hour_as_certified_passes(tmp_path: Path) -> None:
    _, flag = flagged(tmp_path)

    assert check(tmp_path, flag) == (0, "as certified\n")


@pytest.mark.parametrize(("content", "words"), [(b"ROWS", "was changed"), (None, "is gone")])
def test_a_file_that_was_edited_or_deleted_is_named(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file, flag = flagged(tmp_path)
    file.unlink() if content is None else file.write_bytes(content)

    assert check(tmp_path, flag) == (1, f"{file}: {words}\n")


def test_a_certificate_that_was_edited_is_named(tmp_path: Path) -> None:
    _, flag = flagged(tmp_path)
    flag.write_bytes(flag.read_bytes().replace(b'"landed":4', b'"landed":5'))

    assert check(tmp_path, flag) == (1, f"{flag}: was changed\n")


def test_a_watermark_before_the_end_of_the_hour_proves_nothing(tmp_path: Path) -> None:
    _, flag = flagged(tmp_path, HOUR.end_ms - 1)

    assert check(tmp_path, flag) == (1, "lane-0: more could have come\n")


def test_the_script_is_short_and_a_strangers() -> None:
    text = SCRIPT.read_text("utf-8")

    assert len(text.splitlines()) <= 40
    assert "import headgate" not in text
    assert "from headgate" not in text
