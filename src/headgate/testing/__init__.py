"""The kit for people who write a backend: the suites that it must pass, and what they use.

A suite needs the extra `testing` (pytest). It is imported when somebody asks for it: the command
line uses other parts of the kit, and must run without.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.testing.contract.presence import PresenceContract
    from headgate.testing.contract.suite import StoreContract
    from headgate.testing.harness import PresenceHarness, StoreHarness

__all__ = ["PresenceContract", "PresenceHarness", "StoreContract", "StoreHarness"]

_HOMES = {
    "PresenceContract": "headgate.testing.contract.presence",
    "PresenceHarness": "headgate.testing.harness",
    "StoreContract": "headgate.testing.contract.suite",
    "StoreHarness": "headgate.testing.harness",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no {name}")
    import sys
    from importlib import import_module

    import pytest

    # Before the suite is imported: else its asserts say that something is wrong, and not what.
    if "headgate.testing.contract" not in sys.modules:
        pytest.register_assert_rewrite("headgate.testing.contract")
    return getattr(import_module(_HOMES[name]), name)
