"""`headgate init` and `headgate config`, as people and schedulers use them: as processes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headgate.settings.keys import every_key

HEADGATE = str(Path(sys.executable).with_name("headgate"))
PAGE = Path(__file__).parent.parent.parent / "docs/reference/settings.md"
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS")
    and not name.startswith("HEADGATE")
}
SMALL = """\
store: file:./state
lake: ./lake
streams:
  orders:
    source: {kind: files, path: ./incoming}
    event_time: {json: $.at}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "incoming").mkdir()
    return tmp_path


def headgate(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HEADGATE, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, **environ},
    )


def checked(folder: Path, text: str, **environ: str) -> dict[str, Any]:
    (folder / "headgate.yaml").write_text(text, "utf-8")
    done = headgate(folder, "config", "check", "--json", **environ)
    assert done.stderr == ""
    said: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if said["is_valid"] else 2)
    return said


# ── init ──────────────────────────────────────────────────────────────────────────────────────────


def test_init_writes_an_example_that_is_valid(folder: Path) -> None:
    done = headgate(folder, "init")

    assert (done.returncode, done.stdout) == (0, "headgate.yaml\n")
    assert "next: " in done.stderr
    judged = headgate(folder, "config", "check")
    assert (judged.returncode, judged.stdout) == (0, "valid   headgate.yaml\n")


def test_init_never_changes_what_is_there(folder: Path) -> None:
    file = folder / "headgate.yaml"
    file.write_text("mine")

    done = headgate(folder, "init")

    assert (done.returncode, file.read_text()) == (2, "mine")
    assert "next: headgate config check --config headgate.yaml" in done.stderr


def test_init_takes_a_file_or_a_folder(folder: Path) -> None:
    assert headgate(folder, "init", "incoming").stdout == "incoming/headgate.yaml\n"
    assert headgate(folder, "init", "my own.yaml").stdout == "my own.yaml\n"
    missing = headgate(folder, "init", "no/where.yaml")
    assert missing.returncode == 2
    assert "mkdir -p no" in missing.stderr


# ── which file ────────────────────────────────────────────────────────────────────────────────────


def test_the_file_is_named_by_option_then_variable_then_found(folder: Path) -> None:
    for name in ("a.yaml", "b.yaml", "headgate.yaml"):
        (folder / name).write_text(SMALL)

    by_option = headgate(folder, "config", "check", "--config", "a.yaml", HEADGATE_CONFIG="b.yaml")
    by_variable = headgate(folder, "config", "check", HEADGATE_CONFIG="b.yaml")
    found = headgate(folder, "config", "check")

    assert [one.stdout.split()[-1] for one in (by_option, by_variable, found)] == [
        *("a.yaml", "b.yaml", "headgate.yaml")
    ]


@pytest.mark.parametrize("command", ["check", "show"])
def test_without_a_file_the_next_command_is_init(folder: Path, command: str) -> None:
    nothing = headgate(folder, "config", command)
    missing = headgate(folder, "config", command, "--config", "a b.yaml")

    assert (nothing.returncode, missing.returncode) == (2, 2)
    assert "next: headgate init" in nothing.stderr
    assert "next: headgate init 'a b.yaml'" in missing.stderr


def test_relative_paths_start_at_the_file_wherever_the_command_is_run(folder: Path) -> None:
    (folder / "headgate.yaml").write_text(SMALL)

    done = headgate(folder / "incoming", "config", "show", "--json", "--config", "../headgate.yaml")

    values = {one["place"]: one["value"] for one in json.loads(done.stdout)["values"]}
    assert values["lake.root"] == str(folder / "lake")
    assert values["store"] == f"file:{folder / 'state'}"


# ── check ─────────────────────────────────────────────────────────────────────────────────────────


def test_check_says_every_problem_and_ends_in_the_next_command(folder: Path) -> None:
    text = SMALL.replace("path:", "paht:") + "    shift: 5\n    late_records: append\n"
    (folder / "headgate.yaml").write_text(text)

    done = headgate(folder, "config", "check")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "invalid: headgate.yaml: 4 problems, so nothing of it is used",
        "  line 5: streams.orders.source.path: is missing",
        "  line 5: streams.orders.source.paht: unknown key 'paht'; the nearest known one is 'path'",
        "  line 7: streams.orders.shift: 5 has no unit: write it like 5m",
        "  line 8: streams.orders.late_records: `append` is not built yet: use divert or "
        "dead-letter",
        "next: correct it, then headgate config check --config headgate.yaml",
    ]


def test_check_as_json_has_place_line_and_variable(folder: Path) -> None:
    said = checked(folder, SMALL + "namespce: x\n", HEADGATE__STROE="x")

    assert said["problems"] == [
        {
            "place": "namespce",
            "words": "unknown key 'namespce'; the nearest known one is 'namespace'",
            "line": 7,
            "variable": None,
        },
        {
            "place": "",
            "words": "matches no setting: no key 'STROE' at the top; the nearest is 'store'",
            "line": None,
            "variable": "HEADGATE__STROE",
        },
    ]


def test_check_remarks_on_what_this_machine_lacks(folder: Path) -> None:
    text = SMALL.replace("./incoming", "./missing").replace("file:./state", "file:./no/state")
    text = text.replace("lake: ./lake", "lake: {root: ./lake, group: no-such-group}")
    text += "spark: {conf: {spark.x.password: '${env:NOT_SET_HERE}'}}\n"

    said = checked(folder, text)

    assert said["is_valid"] is True
    remarks = "\n".join(said["remarks"])
    assert f"streams.orders.source.path: there is no folder {folder / 'missing'} here" in remarks
    assert f"store: {folder / 'no'} is no folder; next: mkdir -p" in remarks
    assert "knows no group 'no-such-group'" in remarks
    assert 'spark.conf["spark.x.password"]: ${env:NOT_SET_HERE}: the variable is not set' in remarks


def test_check_refuses_files_where_folders_must_be(folder: Path) -> None:
    (folder / "file").write_text("")
    text = SMALL.replace("./incoming", "./file").replace("./lake", "./file/lake")

    said = checked(folder, text)

    words = f"{folder / 'file'} is a file, and a folder must be there; name its folder instead"
    assert [(one["place"], one["line"], one["words"]) for one in said["problems"]] == [
        ("lake", 2, words),
        ("streams.orders.source.path", 5, words),
    ]


def test_check_refuses_a_store_that_this_machine_cannot_open(folder: Path) -> None:
    (folder / "headgate.yaml").write_text(SMALL.replace("file:./state", "s3://bucket/x"), "utf-8")

    done = headgate(folder, "config", "check")

    assert done.returncode == 2
    assert "line 1: store: no store is registered here for s3: (known: " in done.stderr
    assert "write file:PATH for one machine" in done.stderr


def test_check_follows_links_between_source_and_lake(folder: Path) -> None:
    (folder / "lake").mkdir()
    (folder / "link").symlink_to("lake")

    said = checked(folder, SMALL.replace("./incoming", "./link"))

    assert any(
        "leads by a link to a place that it shares with the lake" in one for one in said["remarks"]
    )


def test_check_shows_a_file_that_cannot_be_read(folder: Path) -> None:
    done = headgate(folder, "config", "check", "--config", "incoming")

    assert done.returncode == 2
    assert "next: ls -ld incoming" in done.stderr


def test_a_bare_secret_is_in_no_output(folder: Path) -> None:
    text = SMALL + "spark: {conf: {spark.x.password: hunter2}}\n"
    (folder / "headgate.yaml").write_text(text)

    for arguments in (("check",), ("check", "--json"), ("show",), ("show", "--json")):
        for debug in ((), ("--debug",)):
            done = headgate(folder, *debug, "config", *arguments)
            assert done.returncode == 2
            assert "hunter2" not in done.stdout + done.stderr


def test_names_cannot_move_the_cursor(folder: Path) -> None:
    (folder / "headgate.yaml").write_text(SMALL.replace("  orders:", '  "\\e[2J\\n":'))

    done = headgate(folder, "config", "check")

    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == 3


# ── show and schema ───────────────────────────────────────────────────────────────────────────────


def test_show_has_each_value_with_its_origin_and_no_secret(folder: Path) -> None:
    (folder / "headgate.yaml").write_text(
        SMALL + "spark: {conf: {spark.x.password: '${env:PASSWORD}'}}\n"
    )

    done = headgate(
        folder, "config", "show", HEADGATE__STREAMS__ORDERS__SHIFT="90s", PASSWORD="hunter2"
    )

    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["streams.orders.shift", "1m30s", "HEADGATE__STREAMS__ORDERS__SHIFT"] in rows
    assert ["streams.orders.grace", "30s", "default"] in rows
    assert ['spark.conf["spark.x.password"]', "${env:PASSWORD}", "line", "7"] in rows
    assert "hunter2" not in done.stdout


def test_the_schema_is_json_and_the_page_has_every_key_with_its_default(folder: Path) -> None:
    schema = json.loads(headgate(folder, "config", "schema").stdout)
    page = PAGE.read_text("utf-8")
    sections = {part.split("\n", 1)[0]: part for part in page.split("\n### ")[1:]}
    parts = {part["title"]: part for part in (schema, *schema["$defs"].values())}

    for title, keys in every_key(schema).items():
        rows = dict(
            re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|", sections[title], re.MULTILINE)
        )
        assert list(rows) == keys, title
        for key in keys:
            default = parts[title]["properties"][key].get("default")
            if key in parts[title].get("required", ()):
                assert rows[key] == "required", (title, key)
            elif default not in (None, "", [], {}):
                spelled = json.dumps(default) if isinstance(default, bool) else default
                assert rows[key] == f"`{spelled}`", (title, key)
    assert set(sections) == set(every_key(schema))


@pytest.mark.parametrize("command", ["init", "config", "config check", "config show"])
def test_help_says_what_a_command_does(folder: Path, command: str) -> None:
    done = headgate(folder, *command.split(), "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert f"headgate {command}" in done.stdout
