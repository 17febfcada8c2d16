"""Demo."""


def demo() -> None:
    """Not yet."""
