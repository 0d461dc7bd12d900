"""Pause Python's cyclic garbage collector while planning, and collect garbage between runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Documents are millions of small objects without cycles; looking through them for cycles takes longer than planning."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def collect_garbage() -> None:
    """Throw away what is left over in cycles, sessions and their open files among it, in a moment when nobody waits.

    What is needed still is set aside, so that the collector does not look through it between two runs.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
