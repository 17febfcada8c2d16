"""Clusters: how a Kafka cluster of the settings is opened. Spark is not needed for it."""

from headgate.ambient import Ambient
from headgate.errors import Invalid
from headgate.settings.secrecy import resolved_values
from headgate.sources import KafkaSettings
from headgate.sources.kafka import ShowingCluster


def open_cluster(settings: KafkaSettings, ambient: Ambient) -> ShowingCluster:
    """Raises Invalid."""
    try:
        from headgate.sources.kafka.client import KafkaCluster
    except ImportError as error:
        raise Invalid(
            "the Kafka client is not installed here; next: pip install 'headgate[kafka]'"
        ) from error
    return KafkaCluster(
        settings.brokers, resolved_values(settings.options), settings.isolation, ambient
    )
