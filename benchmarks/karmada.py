"""Measure how many bindings a second the Karmada profile decides, compared with Karmada's own scheduler on the same inputs.

    python -m benchmarks.karmada

The reference figures were taken once from Karmada f8fdd02 (Go) on one core of a quiet two-core machine; times differ between machines,
so read the ratio as an order of magnitude.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import gitsched
from benchmarks.stopwatch import clock
from gitsched.model.time import parse_time
from gitsched.schedule import pipeline
from gitsched.schedule.spread_constraints import Region, select_regions

INPUTS = Path(__file__).with_name("inputs") / "karmada"
UPSTREAM = {
    "duplicated-label": {10: 1249, 100: 107, 1000: 12.8},
    "static-weight": {10: 419, 100: 75, 1000: 7.6},
    "dynamic-weight": {10: 682, 100: 201, 1000: 10.3},
    "aggregated": {10: 1211, 100: 141, 1000: 10.8},
    "region-spread": {10: 581, 100: 198, 1000: 13.7},
}
"""Bindings that Karmada's scheduler decides per CPU second, by input and number of clusters."""
CONFIG = {"karmada": {"missingFacts": "strict", "taintEviction": False}}


ROUNDS = 3
"""Measurements of each input, of which the fastest counts."""


class Rate(NamedTuple):
    """Bindings per CPU second: by the scheduler alone, and from documents to documents (validated, matched, written)."""

    core: float
    total: float


def measure(case: dict[str, Any]) -> Rate:
    """Decide every binding of an input once, without caches."""
    with clock(pipeline, "schedule") as spent:
        start = process_time()
        result = gitsched.schedule(case["resources"], previous=case["previous"], now=parse_time(case["now"]), config=CONFIG)
        total = process_time() - start
    bindings = sum(document["kind"] == "ResourceBinding" for document in result.documents)
    return Rate(bindings / sum(spent), bindings / total)


def search_regions(count: int) -> float:
    """CPU seconds for the choice of up to half of `count` regions; upstream checks all combinations of them."""
    regions = [Region(f"r{i:03}", 1000 * (i * 7 % 11) + i % 3, list(range(1 + i * 5 % 9))) for i in range(count)]
    start = process_time()
    select_regions(regions, 3, count // 2, count)
    return process_time() - start


def main() -> None:
    print(f"{'input':18} {'clusters':>8} {'Karmada/s':>10} {'scheduler/s':>12} {'ratio':>6} {'total/s':>9} {'ratio':>6}")
    for name, rates in UPSTREAM.items():
        for clusters, upstream in rates.items():
            with lzma.open(INPUTS / f"{name}-{clusters}.json.xz", "rt", encoding="utf-8") as file:
                case = json.load(file)
            rates_measured = [measure(case) for _ in range(ROUNDS)]
            rate = Rate(max(rate.core for rate in rates_measured), max(rate.total for rate in rates_measured))
            print(
                f"{name:18} {clusters:8} {upstream:10.1f} {rate.core:12.0f} {rate.core / upstream:6.0f} "
                f"{rate.total:9.0f} {rate.total / upstream:6.0f}"
            )
    for count in (10, 20, 40):
        print(f"choice among {count} regions: {search_regions(count) * 1000:.1f} ms")


if __name__ == "__main__":
    main()
