"""Progress of long work: which stage it is at, and how much of it is done. Nothing that is computed depends on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

T = TypeVar("T")
PUBLISHING = "publishing the commit"
"""The only stage of a run that writes what others see; a run that ends before it has changed nothing."""
Progress = Callable[[str, int, int], None]
"""Is called with a stage, the number of entries that are done, and their total; 0 of 0 for a stage without entries.

It is called often, so it has to be quick."""


def follow(entries: Collection[T], stage: str, progress: Progress) -> Iterator[T]:
    """Yield entries, and report before each of them how many are done."""
    total = len(entries)
    for done, entry in enumerate(entries):
        progress(stage, done, total)
        yield entry
