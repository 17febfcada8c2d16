"""Templates: which topics a pattern has matched so far. `templates/<name>`.

A stream whose name has `{topic}` in it is a template: every topic that its pattern matches becomes
a stream of its own. What was found is a document, so that all nodes, and commands that ask no
cluster, know the same streams. A topic that is gone stays in it: its stream has hours that others
wait for, until a person ends it.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from headgate.store import DocumentStore
from headgate.store.changes import change, create_if_absent, read
from headgate.store.names import key

TEMPLATES: Final = "templates"
TOPIC: Final = "{topic}"


@dataclass(frozen=True, slots=True)
class TemplateDocument:
    topics: tuple[str, ...] = ()  # in the order in which they were found
    format: Literal[1] = 1


def template_key(template: str) -> str:
    return f"{TEMPLATES}/{key(template)}"


def stream_name(template: str, topic: str) -> str:
    return template.replace(TOPIC, topic)


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """Topics that the whole pattern matches; those of Kafka itself never."""
    whole = re.compile(pattern)
    return sorted(one for one in names if whole.fullmatch(one) and not one.startswith("__"))


def with_topics(found: TemplateDocument, topics: Iterable[str]) -> TemplateDocument:
    new = [one for one in topics if one not in found.topics]
    return replace(found, topics=(*found.topics, *new)) if new else found


def note_topics(store: DocumentStore, template: str, topics: Collection[str]) -> tuple[str, ...]:
    """All that were ever found. Raises Unavailable, OutcomeUnknown."""
    name = template_key(template)
    if read(store, name, TemplateDocument) is None:
        create_if_absent(store, name, TemplateDocument())
    return change(store, name, TemplateDocument, lambda one: with_topics(one, topics)).value.topics


def read_topics(store: DocumentStore, templates: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """By template. Raises Unavailable, Corrupt."""
    found = {name: read(store, template_key(name), TemplateDocument) for name in templates}
    return {name: () if one is None else one.value.topics for name, one in found.items()}
