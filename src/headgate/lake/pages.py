"""Pages: everything in one folder of a lake, page by page, with only one page in memory."""

from collections.abc import Iterator

from headgate.lake import LIST_MAX, Entry, Lake


def entries_of(
    lake: Lake, folder: str, *, after: str = "", limit: int = LIST_MAX
) -> Iterator[Entry]:
    """In the order of their names, from behind the name `after` on. Raises as `list` does."""
    while True:  # ends: each page starts behind the last one's name
        page = lake.list(folder, after=after, limit=limit)
        yield from page.entries
        if page.next_after is None:
            return
        after = page.next_after
