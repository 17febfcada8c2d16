"""Pages: a whole listing, page by page, in memory for one page."""

from collections.abc import Iterator

from headgate.errors import Corrupt, Invalid
from headgate.store import PAGE_DOCUMENTS_MAX, TIMEOUT_MS, DocumentStore, Page


def pages(
    store: DocumentStore,
    prefix: str = "",
    *,
    after: str = "",
    limit: int = PAGE_DOCUMENTS_MAX,
    timeout_ms: int = TIMEOUT_MS,
) -> Iterator[Page]:
    """Every page from behind `after` on; `timeout_ms` is for each. Raises as `list` does."""
    while True:  # ends: each page starts behind the last one's key
        page = store.list(prefix, after=after, limit=limit, timeout_ms=timeout_ms)
        yield page
        if page.next_after is None:
            return
        if page.next_after == after:
            raise Corrupt(f"listing {prefix!r} stands still at {after!r}: the store repeats a page")
        after = page.next_after


def check_limit(limit: int) -> None:
    """Raises Invalid."""
    if not 1 <= limit <= PAGE_DOCUMENTS_MAX:
        raise Invalid(f"a page has 1 to {PAGE_DOCUMENTS_MAX:,} documents, not {limit:,}")
