"""The kit for people who write a backend: the suite that it must pass, and what the suite uses.

Needs the extra `testing` (pytest).
"""

from headgate.testing.contract.suite import StoreContract
from headgate.testing.harness import StoreHarness

__all__ = ["StoreContract", "StoreHarness"]
