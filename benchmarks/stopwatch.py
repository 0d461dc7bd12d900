"""Measure the CPU time of calls inside a run without changing the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any


@contextmanager
def clock(owner: Any, name: str) -> Iterator[list[float]]:
    """Measure the CPU seconds of each call of `owner.name` in the block, in order. `owner` is a module or class that has this name."""
    spent: list[float] = []
    call = getattr(owner, name)

    def timed(*arguments: Any) -> Any:
        start = process_time()
        try:
            return call(*arguments)
        finally:
            spent.append(process_time() - start)

    setattr(owner, name, timed)
    try:
        yield spent
    finally:
        setattr(owner, name, call)
