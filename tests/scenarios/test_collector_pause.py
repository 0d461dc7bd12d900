"""`gitsched.schedule` runs without Python's collector of cycles, and leaves it as it was."""

from __future__ import annotations

import gc
import weakref

import pytest

from gitsched.decide import garbage_collection
from gitsched.decide.garbage_collection import gc_paused


class Cyclic:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_on_afterwards_if_it_was_on_before(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        with gc_paused():
            assert not gc.isenabled()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_the_end_checks_no_new_objects_until_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "_FULL_COLLECTION_AT", 50_000)
    monkeypatch.setattr(garbage_collection, "_unchecked", 0)
    monkeypatch.setattr(garbage_collection, "_has_frozen", False)
    before = gc.get_stats()
    with gc_paused():
        kept = [[index] for index in range(40_000)]
        garbage = weakref.ref(Cyclic())
    assert garbage() is not None
    with gc_paused():
        kept += [[index] for index in range(40_000)]
    assert garbage() is None
    assert gc.get_stats()[2]["collections"] == before[2]["collections"] + 1
