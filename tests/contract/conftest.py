"""The contract runs on memory and file, or with `--backend=servers` on the real servers only."""

import pytest

SERVERS = ("zookeeper", "opensearch", "kafka", "hdfs", "s3")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wants_servers = config.getoption("--backend") == "servers"
    left_out = [
        item
        for item in items
        if "tests/contract/" in item.nodeid
        and wants_servers != any(item.get_closest_marker(name) for name in SERVERS)
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
