"""Pause Python's cyclic garbage collector while planning, and collect garbage between runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the collector inside the block: checking millions of small objects without cycles takes longer than planning."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def collect_garbage() -> None:
    """Collect garbage between two runs, such as policy engines with open files, which are in cycles.

    The objects that are left are exempt from automatic collections, so that the collector does not check them between two runs.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
