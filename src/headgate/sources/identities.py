"""Identities: a set of digests in about thirty bytes each, and which of them were seen lately.

A million files that are kept in their folder must not cost a million texts in memory.
"""

from collections.abc import Iterator

SIZE_BYTES = 16
SLOTS_MIN = 1_024
_EMPTY = bytes(SIZE_BYTES)


class Identities:
    """Open addressing in one array: a digest is its own hash."""

    def __init__(self) -> None:
        self._slots = bytearray(SLOTS_MIN * SIZE_BYTES)
        self._seen = bytearray(SLOTS_MIN)
        self._mask = SLOTS_MIN - 1
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self._slots), SIZE_BYTES):
            found = bytes(self._slots[start : start + SIZE_BYTES])
            if found != _EMPTY:
                yield found

    def __contains__(self, digest: bytes) -> bool:
        slot = self._find(digest)
        return self._slots[slot * SIZE_BYTES : (slot + 1) * SIZE_BYTES] == digest

    def add(self, digest: bytes) -> None:
        """Counts as seen."""
        if 5 * self._count >= 3 * len(self._seen):
            self._grow()
        slot = self._find(digest)
        if self._slots[slot * SIZE_BYTES : (slot + 1) * SIZE_BYTES] != digest:
            self._slots[slot * SIZE_BYTES : (slot + 1) * SIZE_BYTES] = digest
            self._count += 1
        self._seen[slot] = 1

    def see(self, digest: bytes) -> bool:
        """Is it one of them? From now on it counts as seen."""
        slot = self._find(digest)
        is_there = self._slots[slot * SIZE_BYTES : (slot + 1) * SIZE_BYTES] == digest
        if is_there:
            self._seen[slot] = 1
        return is_there

    def is_seen(self, digest: bytes) -> bool:
        return digest in self and self._seen[self._find(digest)] == 1

    def unseen(self) -> int:
        return self._count - self._seen.count(1)

    def look_away(self) -> None:
        """From now on, none of them was seen."""
        self._seen = bytearray(len(self._seen))

    def _find(self, digest: bytes) -> int:
        """Where it is, or where it would go."""
        slot = int.from_bytes(digest[:8], "big") & self._mask
        while True:  # ends: two slots in five are empty
            found = self._slots[slot * SIZE_BYTES : (slot + 1) * SIZE_BYTES]
            if found in (digest, _EMPTY):
                return slot
            slot = (slot + 1) & self._mask

    def _grow(self) -> None:
        old, seen = self._slots, self._seen
        self._slots = bytearray(2 * len(old))
        self._seen = bytearray(2 * len(seen))
        self._mask = len(self._seen) - 1
        for slot in range(len(seen)):
            digest = bytes(old[slot * SIZE_BYTES : (slot + 1) * SIZE_BYTES])
            if digest != _EMPTY:
                place = self._find(digest)
                self._slots[place * SIZE_BYTES : (place + 1) * SIZE_BYTES] = digest
                self._seen[place] = seen[slot]
