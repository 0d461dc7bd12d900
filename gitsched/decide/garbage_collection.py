"""When Python's collector of cycles runs: not while a plan is made, and not over all new objects at its end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_FULL_COLLECTION_AT = 1_000_000
"""Objects that plans may leave behind before the collector checks all objects. Few of them are in cycles that nothing refers to."""
_MIN_SKIPPED = 20_000
"""New objects from which on it pays to skip the check: fewer take less than a millisecond."""
_unchecked = 0
_has_frozen = False
"""Whether objects are exempt from collections: gc.get_freeze_count would count all of them."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the collector inside the block: checking millions of small objects without cycles takes longer than planning.

    When it is enabled again, the new objects belong to its oldest generation: the next allocation would otherwise check them all. That
    is done at last when there are too many of them.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            _skip_new_objects()
            gc.enable()


def _skip_new_objects() -> None:
    global _unchecked
    count = gc.get_count()[0]
    if count < _MIN_SKIPPED or _has_frozen:
        return  # the collector would check what this process has frozen, too
    _unchecked += count
    if _unchecked > _FULL_COLLECTION_AT:
        _unchecked = 0
        gc.collect()
    else:
        gc.freeze()
        gc.unfreeze()


def collect_garbage() -> None:
    """Collect garbage between two runs, such as policy engines with open files, which are in cycles.

    The objects that are left are exempt from automatic collections, so that the collector does not check them between two runs.
    """
    gc.unfreeze()
    gc.collect()
    freeze_objects()


def freeze_objects() -> None:
    """Exempt all objects that there are from automatic collections, until garbage is collected between two runs."""
    global _has_frozen
    gc.freeze()
    _has_frozen = True
