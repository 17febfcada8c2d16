"""Parsed: the text of a settings file as a plain tree, with the line of each key.

Only data comes out: texts, numbers, true and false, null, lists and mappings. Nothing is ever
evaluated, and no tag is obeyed. Where YAML 1.1 surprises people, we do what they meant: `on`, `yes`
and `no` are texts, so are `12:30` and `2026-11-01`, `0640` is no octal number, and a key is its
spelling. A key that is there twice is refused: else the first one would be lost without a word.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from headgate.settings.problems import Place, Problem, quoted
from headgate.store import JsonValue

FILE_BYTES_MAX: Final = 1_000_000
VALUES_MAX: Final = 100_000  # an alias of an alias of an alias may stand for billions
DEPTH_MAX: Final = 32

Tree = dict[str, Any]

_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}(?:[eE][-+]?[0-9]{1,3})?")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULL = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Parsed:
    tree: Tree
    lines: Mapping[Place, int]
    problems: tuple[Problem, ...]


def parse(raw: bytes) -> Parsed:
    """What a file says. Never raises: what cannot be read is a problem."""
    if len(raw) > FILE_BYTES_MAX:
        return _nothing(f"the file has {len(raw):,} bytes, and at most {FILE_BYTES_MAX:,} are read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return _nothing("this is not UTF-8 text: save the file as UTF-8", line)
    try:
        node = yaml.compose(text, Loader=_Plain)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        return _nothing(f"the character U+{error.character:04X} cannot be in YAML", line)
    except yaml.MarkedYAMLError as error:
        return _nothing(*_refusal(error, text))
    except RecursionError:
        return _nothing(f"it nests deeper than {DEPTH_MAX}: flatten it")
    if node is None:
        return _nothing("there is nothing in it: headgate init NAME writes an example")
    if not isinstance(node, MappingNode):
        line = node.start_mark.line + 1
        return _nothing("it must be keys with values, like `store: file:./state`", line)
    return _taken(node)


def parse_value(text: str) -> JsonValue:
    """A list or a mapping on one line. Raises ValueError."""
    found = parse(f"value: {text}".encode())
    if found.problems:
        raise ValueError(found.problems[0].words)
    value: JsonValue = found.tree["value"]
    return value


class _Plain(yaml.SafeLoader):
    """Composes nodes and resolves none: what a plain text means is decided below."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # the library's own spelling


def _refusal(error: yaml.MarkedYAMLError, text: str) -> tuple[str, int]:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    lines = text.split("\n")
    typed = lines[line - 1] if line <= len(lines) else ""
    if "\t" in typed[: len(typed) - len(typed.lstrip())] or "'\\t'" in str(error.problem):
        return "there is a tab: YAML is indented with blanks", line
    if "alias" in str(error.problem):  # its own words would quote it, and it may be a secret
        return "there is a * without its &: put quotes around a text that begins with *", line
    return f"this is not YAML: {error.problem or error.context or 'it ends too early'}", line


def _nothing(words: str, line: int = 0) -> Parsed:
    return Parsed({}, {}, (Problem((), words, line),))


@dataclass(slots=True)
class _Taking:
    lines: dict[Place, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    values: int = 0


def _taken(root: MappingNode) -> Parsed:
    taking = _Taking()
    tree = _mapping(root, (), taking)
    return Parsed(tree, taking.lines, tuple(taking.problems))


def _value(node: Node, place: Place, taking: _Taking) -> Any:
    line = node.start_mark.line + 1
    taking.values += 1
    if len(place) > DEPTH_MAX or taking.values > VALUES_MAX:
        if taking.values <= VALUES_MAX + 1:
            words = f"too much: at most {VALUES_MAX:,} values, {DEPTH_MAX} levels deep"
            taking.problems.append(Problem(place[:4], words, line))
            taking.values = VALUES_MAX + 2  # said once, and nothing more is looked at
        return None
    if isinstance(node, MappingNode) and node.tag == f"{_TAG}map":
        return _mapping(node, place, taking)
    if isinstance(node, SequenceNode) and node.tag == f"{_TAG}seq":
        return [_value(one, (*place, i), taking) for i, one in enumerate(node.value)]
    if isinstance(node, ScalarNode) and node.tag == f"{_TAG}str":
        return _scalar(node)
    words = f"the tag {quoted(node.tag.replace(_TAG, '!!'))} is not allowed: leave it out"
    taking.problems.append(Problem(place, words, line))
    return None


def _mapping(node: MappingNode, place: Place, taking: _Taking) -> Tree:
    found: Tree = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, ScalarNode):
            words = "a key is a text: put quotes around it if it has brackets or braces"
            taking.problems.append(Problem(place, words, line))
            continue
        key = key_node.value
        below: Place = (*place, key)
        if key in found:
            words = f"this key is there twice, first in line {taking.lines[below]}: keep one"
            taking.problems.append(Problem(below, words, line))
            continue
        taking.lines[below] = line
        found[key] = _value(value_node, below, taking)
    return found


def _scalar(node: ScalarNode) -> str | int | float | bool | None:
    text: str = node.value
    if node.style is not None:  # quoted, or a block
        return text
    if text in _NULL:
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
