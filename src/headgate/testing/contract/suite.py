"""The store contract: the suite that every document store passes, whoever wrote it.

    class TestMine(StoreContract):
        @pytest.fixture
        def harness(self, tmp_path):
            return MyHarness(tmp_path)

A test's name starts with the guarantee it guards (`DocumentStore` lists them), or with the id of a
fault of an earlier system (`docs/why/faults.md`). There are no optional parts: a backend that
cannot do something fails.
"""

from headgate.testing.contract.limits import Limits
from headgate.testing.contract.listing import Listing
from headgate.testing.contract.trouble import Trouble
from headgate.testing.contract.waiting import Waiting
from headgate.testing.contract.writes import Writes


class StoreContract(Writes, Listing, Limits, Waiting, Trouble):
    """Bind it once for each backend."""
