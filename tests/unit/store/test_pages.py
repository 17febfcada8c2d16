import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Corrupt, Invalid
from headgate.store import PAGE_DOCUMENTS_MAX, Page
from headgate.store.memory import MemoryStore, Shelf
from headgate.store.pages import check_limit, pages
from headgate.testing.planted import ForwardingStore


class StandsStill(ForwardingStore):
    def list(
        self, prefix: str = "", *, after: str = "", limit: int = 1, timeout_ms: int = 0
    ) -> Page:
        return Page((), (), next_after="same")


def test_a_store_that_repeats_a_page_is_not_followed_for_ever() -> None:
    store = StandsStill(MemoryStore(Shelf(), "n", SystemAmbient()))
    with pytest.raises(Corrupt, match="stands still"):
        list(pages(store))


@pytest.mark.parametrize("limit", [0, -1, PAGE_DOCUMENTS_MAX + 1])
def test_a_page_has_a_limit(limit: int) -> None:
    with pytest.raises(Invalid):
        check_limit(limit)
