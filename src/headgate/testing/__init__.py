"""The kit for people who write a backend: contracts, fault layer, crash matrix, simulation.

A suite needs the extra `testing` (pytest). It is imported when somebody asks for it: the command
line uses other parts of the kit, and must run without.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.testing.contract.lake import LakeContract
    from headgate.testing.contract.presence import PresenceContract
    from headgate.testing.contract.source import SourceContract, SourceHarness
    from headgate.testing.contract.suite import StoreContract
    from headgate.testing.contract.table import TableContract, TableHarness
    from headgate.testing.crashes import Flow, check_every_crash, late_wakers
    from headgate.testing.faults import Calm, Crashed, Harm, Point, Scripted, wrap
    from headgate.testing.harness import LakeHarness, PresenceHarness, StoreHarness
    from headgate.testing.simulation.kernel import Simulation

__all__ = [
    "Calm",
    "Crashed",
    "Flow",
    "Harm",
    "LakeContract",
    "LakeHarness",
    "Point",
    "PresenceContract",
    "PresenceHarness",
    "Scripted",
    "Simulation",
    "SourceContract",
    "SourceHarness",
    "StoreContract",
    "StoreHarness",
    "TableContract",
    "TableHarness",
    "check_every_crash",
    "late_wakers",
    "wrap",
]

_HOMES = {
    "Calm": "headgate.testing.faults",
    "Crashed": "headgate.testing.faults",
    "Flow": "headgate.testing.crashes",
    "Harm": "headgate.testing.faults",
    "LakeContract": "headgate.testing.contract.lake",
    "LakeHarness": "headgate.testing.harness",
    "Point": "headgate.testing.faults",
    "PresenceContract": "headgate.testing.contract.presence",
    "PresenceHarness": "headgate.testing.harness",
    "Scripted": "headgate.testing.faults",
    "Simulation": "headgate.testing.simulation.kernel",
    "SourceContract": "headgate.testing.contract.source",
    "SourceHarness": "headgate.testing.contract.source",
    "StoreContract": "headgate.testing.contract.suite",
    "StoreHarness": "headgate.testing.harness",
    "TableContract": "headgate.testing.contract.table",
    "TableHarness": "headgate.testing.contract.table",
    "check_every_crash": "headgate.testing.crashes",
    "late_wakers": "headgate.testing.crashes",
    "wrap": "headgate.testing.faults",
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
