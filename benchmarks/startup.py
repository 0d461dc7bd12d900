"""Measure how long a command takes to make its classes, those of `typing` and of `gitsched.named_tuples`.

python -m benchmarks.startup [--classes N] [--rounds N]
"""

from __future__ import annotations

import argparse
import time
import typing
from collections.abc import Callable

from gitsched import named_tuples

FIELDS = {
    "key": "Key",
    "clusters": "Mapping[str, int | None]",
    "reason": "str",
    "findings": "tuple[Finding, ...]",
    "time": "datetime | None",
}


def _make_of_typing() -> None:
    typing.NamedTuple("Row", list(FIELDS.items()))  # type: ignore[misc] # made while the script runs


def _make_ours() -> None:
    type(named_tuples.NamedTuple)("Row", (named_tuples.NamedTuple,), {"__annotations__": FIELDS, "__module__": __name__})


def measure(make: Callable[[], None], classes: int, rounds: int) -> float:
    """Return the least processor time of some rounds, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(classes):
            make()
        times.append(time.process_time() - start)
    return 1000 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--classes", type=int, default=500, metavar="N")
    parser.add_argument("--rounds", type=int, default=10, metavar="N")
    arguments = parser.parse_args()
    theirs, ours = (measure(make, arguments.classes, arguments.rounds) for make in (_make_of_typing, _make_ours))
    print(
        f"{arguments.classes} classes with {len(FIELDS)} fields: typing {theirs:.1f} ms, gitsched {ours:.1f} ms ({theirs / ours:.1f} times)"
    )


if __name__ == "__main__":
    main()
