"""Measure how many applications a second the Krake profile decides, compared with Krake's own scheduler on the same inputs.

    python -m benchmarks.krake

The reference figures were taken once from Krake 92f8648 (Python, its API in memory) on one core of a quiet two-core machine; times differ
between machines, so read the ratio as an order of magnitude. Krake reads all clusters and metrics again for every application; here that is
done once in a run, so that there are two ratios: of a run for one application, and of one application among a thousand.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import gitsched
from benchmarks.stopwatch import clock
from gitsched.apis.krake.engine import KrakeEngine
from gitsched.model.time import parse_time

INPUTS = Path(__file__).with_name("inputs") / "krake"
UPSTREAM = {10: 0.0020, 100: 0.0177, 1000: 0.467}
"""CPU seconds of Krake for one application with five metrics per cluster, by number of clusters."""
CROWD = 1000
ROUNDS = 5


class Cost(NamedTuple):
    """CPU seconds of a run: of the scheduler alone, and from documents to documents (validated, decided, written)."""

    core: float
    total: float


def read(clusters: int) -> dict[str, Any]:
    """Read the recorded input: clusters with five metrics each, and one application."""
    with lzma.open(INPUTS / f"clusters-{clusters}.json.xz", "rt", encoding="utf-8") as file:
        case: dict[str, Any] = json.load(file)
    return case


def multiply_applications(case: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Return the documents of an input with `count` applications that differ only in their names."""
    rest = [document for document in case["resources"] if document["kind"] != "Application"]
    (one,) = (document for document in case["resources"] if document["kind"] == "Application")
    return rest + [{**one, "metadata": {**one["metadata"], "name": f"app-{number}"}} for number in range(count)]


def measure(case: dict[str, Any], count: int) -> Cost:
    """Decide `count` applications in one run, without caches."""
    documents = multiply_applications(case, count)
    with clock(KrakeEngine, "__init__") as spent:
        start = process_time()
        result = gitsched.schedule(documents, now=parse_time(case["now"]))
        total = process_time() - start
    applications = [document for document in result.documents if document["kind"] == "Application"]
    if len(applications) != count or not all(document["status"].get("scheduled_to") for document in applications):
        raise RuntimeError(f"{count} applications were to be placed")
    return Cost(sum(spent), total)


def best(case: dict[str, Any], count: int) -> Cost:
    """Return the minimum of several runs for each figure."""
    costs = [measure(case, count) for _ in range(ROUNDS)]
    return Cost(min(cost.core for cost in costs), min(cost.total for cost in costs))


def main() -> None:
    print(f"{'clusters':>8} {'applications':>12} {'scheduler/s':>12} {'total/s':>9} {'Krake/s':>8} {'ratio':>7} {'total':>7}")
    for clusters, upstream in UPSTREAM.items():
        case = read(clusters)
        for count in (1, CROWD):
            core, total = (count / seconds for seconds in best(case, count))
            print(
                f"{clusters:8} {count:12} {core:12.0f} {total:9.0f} {1 / upstream:8.1f} {core * upstream:7.0f} {total * upstream:7.0f}"
            )


if __name__ == "__main__":
    main()
