"""Growth: settings with the streams that came into being with their topics.

the cluster's topics ── match ──▶ noted in the store ──▶ settings with a stream for each
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from headgate.ambient import Ambient
from headgate.cluster.nudge import Nudge
from headgate.errors import Conflict, Invalid, OutcomeUnknown, Unavailable
from headgate.landing import StreamSettings
from headgate.settings import Settings, rules
from headgate.sources import KafkaSettings
from headgate.sources.kafka import Cluster
from headgate.sources.kafka.templates import matching, note_topics, read_topics, stream_name
from headgate.store import DocumentStore

LOOK_MS = 30_000

Topics = Mapping[str, tuple[str, ...]]
"""By template."""

OpenCluster = Callable[[KafkaSettings], Cluster]

log = logging.getLogger(__name__)


def grown(settings: Settings, topics: Topics) -> Settings:
    """With a stream for each topic. One that the settings name themselves goes before. Pure."""
    found: dict[str, StreamSettings] = {}
    own = {one.word for one in settings.streams.values()}
    for template, one in settings.templates.items():
        for topic in topics.get(template, ()):
            name = stream_name(template, topic)
            source = one.source
            if name in own or not isinstance(source, KafkaSettings):
                continue
            try:
                rules.stream_name(name)
            except Invalid as error:
                log.warning("template.topic_refused", extra={"topic": topic, "why": str(error)})
                continue
            found[name] = replace(
                one, name=name, source=replace(source, topics=(topic,), pattern="")
            )
    return replace(settings, streams={**settings.streams, **found}) if found else settings


def grown_from(settings: Settings, store: DocumentStore) -> Settings:
    """By what is noted in the store; no cluster is asked. Raises Unavailable, Corrupt."""
    if not settings.templates:
        return settings
    return grown(settings, read_topics(store, settings.templates))


def discover(settings: Settings, store: DocumentStore, open_cluster: OpenCluster) -> Topics:
    """What is noted, with what the clusters have now. A cluster that does not answer adds nothing.
    Raises Unavailable (the store), OutcomeUnknown, Corrupt, Invalid."""
    found = dict(read_topics(store, settings.templates))
    for template, one in settings.templates.items():
        if not isinstance(one.source, KafkaSettings):
            continue
        try:
            names = open_cluster(one.source).names()
        except Unavailable as error:
            log.warning("template.not_looked", extra={"template": template, "why": str(error)})
            continue
        matched = matching(names, one.source.pattern)
        if not set(matched) <= set(found[template]):
            found[template] = note_topics(store, template, matched)
    return found


class TopicWatch:
    """A loop of the node: whether there are topics that it was not started with."""

    def __init__(
        self,
        settings: Settings,
        known: Topics,
        store: DocumentStore,
        open_cluster: OpenCluster,
        ambient: Ambient,
    ) -> None:
        """`settings`: as they were written, with their templates."""
        self._settings = settings
        self._known = {name: set(topics) for name, topics in known.items()}
        self._store = store
        self._open_cluster = open_cluster
        self._ambient = ambient
        self._due_ms = ambient.monotonic_ms() + LOOK_MS
        self.nudge = Nudge()
        self.has_news = False

    def tick(self) -> int:
        now_ms = self._ambient.monotonic_ms()
        if now_ms >= self._due_ms and not self.has_news:
            self._due_ms = now_ms + LOOK_MS
            try:
                found = discover(self._settings, self._store, self._open_cluster)
            except (Unavailable, OutcomeUnknown, Conflict):
                return self._due_ms  # the next look will tell
            self.has_news = any(set(found[one]) - self._known.get(one, set()) for one in found)
        return self._due_ms
