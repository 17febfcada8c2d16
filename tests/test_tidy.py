"""House rules that no linter sees. A rule that nobody can explain goes."""

import ast
import re
import tomllib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

import headgate
import headgate.testing
from headgate.cluster import Presence
from headgate.lake import Lake
from headgate.sources import Source
from headgate.store import DocumentStore

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "headgate"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted([*(ROOT / "tests").rglob("test_*.py"), *(SOURCE / "testing").rglob("*.py")])
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

GLOSSARY = (ROOT / "docs/reference/glossary.md").read_text("utf-8")
FAULTS = (ROOT / "docs/why/faults.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def names_of_tests(files: Sequence[Path]) -> list[str]:
    found = [
        node.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert found
    return found


# There, `l2` is a guarantee and no fault.
LAKE_CONTRACT = [SOURCE / f"testing/contract/{name}.py" for name in ("lake", "publishing")]
TEST_NAMES = names_of_tests(TESTS)
LAKE_NAMES = names_of_tests(LAKE_CONTRACT)
FAULT_NAMES = names_of_tests([file for file in TESTS if file not in LAKE_CONTRACT])


@pytest.mark.parametrize(
    "module",
    [module for module in MODULES if module != SOURCE / "__init__.py"],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_each_module_has_a_glossary_entry(module: Path) -> None:
    word = module.parent.name if module.stem == "__init__" else module.stem
    assert f"**{word}**" in GLOSSARY, f"docs/reference/glossary.md explains no **{word}**"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_is_named_for_nothing_in_particular(module: Path) -> None:
    assert module.stem not in {"utils", "util", "helpers", "common", "misc", "manager", "tools"}


@pytest.mark.parametrize(
    "module", [m for m in MODULES if m.stem == "__init__"], ids=lambda path: path.parent.name
)
def test_an_init_holds_no_logic(module: Path) -> None:
    for node in ast.parse(module.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            is_value = any("dataclass" in ast.unparse(line) for line in node.decorator_list)
            is_protocol = any(ast.unparse(base) == "Protocol" for base in node.bases)
            assert is_value or is_protocol, f"{node.name} acts: give it a file of its own"
        else:
            is_lazy = isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__dir__")
            is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Expr)
            assert isinstance(node, allowed) or is_lazy or is_for_types, ast.unparse(node)


def test_the_public_names_are_these() -> None:
    assert headgate.__all__ == [
        *("Announced", "App", "Conflict", "Corrupt", "Document", "DocumentStore", "Fenced"),
        *("Files", "Halted", "HeadgateError", "Invalid", "JsonObject", "Kafka", "OutcomeUnknown"),
        *("Page", "RunResult", "StepKind", "Stream", "StreamResult", "Table", "Unavailable"),
        *("Version", "open_store"),
    ]
    assert headgate.testing.__all__ == [
        *("Calm", "Crashed", "Flow", "Harm", "LakeContract", "LakeHarness", "Point"),
        *("PresenceContract", "PresenceHarness", "Scripted", "Simulation"),
        *("SourceContract", "SourceHarness", "StoreContract", "StoreHarness"),
        *("TableContract", "TableHarness"),
        *("check_every_crash", "late_wakers", "wrap"),
    ]


def test_the_architecture_has_the_ten_invariants_in_order() -> None:
    assert re.findall(r"\*\*Invariant (\d+)\.\*\*", ARCHITECTURE) == [str(n) for n in range(1, 11)]


def test_each_store_guarantee_has_a_contract_test() -> None:
    numbers = re.findall(r"^    S(\d+) ", DocumentStore.__doc__ or "", re.MULTILINE)
    assert numbers == [str(n) for n in range(1, len(numbers) + 1)]
    for number in numbers:
        assert any(re.search(rf"_s{number}_", name) for name in TEST_NAMES), f"S{number}"


def test_each_presence_guarantee_has_a_contract_test() -> None:
    numbers = re.findall(r"^    P(\d+) ", Presence.__doc__ or "", re.MULTILINE)
    assert numbers == [str(n) for n in range(1, len(numbers) + 1)]
    contract = ast.parse((SOURCE / "testing/contract/presence.py").read_text("utf-8"))
    names = [node.name for node in ast.walk(contract) if isinstance(node, ast.FunctionDef)]
    for number in numbers:
        assert any(name.startswith(f"test_p{number}_") for name in names), f"P{number}"


def test_each_lake_guarantee_has_a_contract_test() -> None:
    numbers = re.findall(r"^    L(\d+) ", Lake.__doc__ or "", re.MULTILINE)
    assert numbers == [str(n) for n in range(1, len(numbers) + 1)]
    for number in numbers:
        assert any(name.startswith(f"test_l{number}_") for name in LAKE_NAMES), f"L{number}"


def test_each_source_guarantee_has_a_contract_test() -> None:
    numbers = re.findall(r"^    C(\d+) ", Source.__doc__ or "", re.MULTILINE)
    assert numbers == [str(n) for n in range(1, len(numbers) + 1)]
    names = names_of_tests([SOURCE / "testing/contract/source.py"])
    for number in numbers:
        assert any(name.startswith(f"test_c{number}_") for name in names), f"C{number}"


def fault_ids() -> list[str]:
    return re.findall(r"^### ([KLGQB]\d+) — ", FAULTS, re.MULTILINE)


def test_each_fault_of_the_originals_is_explained_once() -> None:
    expected = {"K": 24, "L": 16, "G": 14, "Q": 16, "B": 26}
    wanted = [f"{letter}{n}" for letter, count in expected.items() for n in range(1, count + 1)]
    assert sorted(fault_ids()) == sorted(wanted)


def test_each_id_in_a_tests_name_is_explained() -> None:
    known = {one.lower() for one in fault_ids()}
    for name in FAULT_NAMES:
        for found in re.findall(r"_([klgqb]\d+)(?=_)", name):
            assert found in known, f"{name}: docs/why/faults.md has no {found.upper()}"


def test_a_fault_that_is_held_today_has_its_test() -> None:
    """An entry whose rule is not marked as planned is a promise; a test's name carries its id."""
    in_names = {found for name in FAULT_NAMES for found in re.findall(r"_([klgqb]\d+)(?=_)", name)}
    entries = re.split(r"^### ", FAULTS, flags=re.MULTILINE)[1:]
    held = [entry.split(" ", 1)[0] for entry in entries if "**Rule.**" in entry]
    assert held
    assert [one for one in held if one.lower() not in in_names] == []


def test_every_dependency_has_its_reason() -> None:
    project = PYPROJECT["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    page = (ROOT / "docs/dependencies.md").read_text("utf-8")
    pins = (ROOT / "constraints.txt").read_text("utf-8")
    for requirement in wanted:
        name = re.split(r"[\[<>=~ ]", requirement)[0]
        if name == "headgate":
            continue
        assert f"`{name}`" in page or f"{name} " in page, f"docs/dependencies.md: {name}"
        assert re.search(rf"^{re.escape(name)}==", pins, re.MULTILINE), f"constraints.txt: {name}"


def test_a_room_that_is_built_is_no_longer_optional() -> None:
    layers = " ".join(PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"])
    for room in re.findall(r"\((\w+)\)", layers):
        is_built = (SOURCE / room).exists() or (SOURCE / f"{room}.py").exists()
        assert not is_built, f"{room} is built: take its parentheses away in pyproject.toml"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    text = page.read_text("utf-8")
    explicit = set(re.findall(r'(?:id|name)="([^"]+)"', text))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return explicit | {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_ci_only_calls_the_readmes_test_command() -> None:
    lines = (ROOT / ".ci/run").read_text("utf-8").splitlines()
    assert lines == ["#!/usr/bin/env bash", 'cd "$(dirname "$0")/.." && exec make test']
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in readme
    assert "make test" in readme
