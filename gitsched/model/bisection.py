"""Find the entry of a sequence that makes its beginning fail."""

from __future__ import annotations

from collections.abc import Callable


def bisect_failures(size: int, fails: Callable[[int], bool]) -> int:
    """Return the position whose addition makes the first entries fail, where all `size` of them fail, and none do not."""
    good, bad = 0, size
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if fails(middle) else (middle, bad)
    return good
