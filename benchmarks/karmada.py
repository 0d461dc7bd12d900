"""Measure how many bindings a second the Karmada profile decides, compared with Karmada's own scheduler on the same inputs.

    python -m benchmarks.karmada [--upstream CHECKOUT]

With a checkout of Karmada, its scheduler is built and measured in the same run. Without one, the rates of `RECORDED` count: they come from
another machine and another measurement, so read the ratio as an order of magnitude at most.
"""

from __future__ import annotations

import json
import lzma
import tempfile
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import click

import gitsched
from benchmarks import upstream
from benchmarks.stopwatch import clock
from gitsched.model.time import parse_time
from gitsched.schedule import pipeline
from gitsched.schedule.spread_constraints import Region, select_regions

INPUTS = Path(__file__).with_name("inputs") / "karmada"
RECORDED = {
    "duplicated-label": {10: 1249, 100: 107, 1000: 12.8},
    "static-weight": {10: 419, 100: 75, 1000: 7.6},
    "dynamic-weight": {10: 682, 100: 201, 1000: 10.3},
    "aggregated": {10: 1211, 100: 141, 1000: 10.8},
    "region-spread": {10: 581, 100: 198, 1000: 13.7},
}
"""Bindings that Karmada's scheduler (f8fdd02) decided per CPU second on another machine, by input and number of clusters."""
CONFIG = {"karmada": {"missingFacts": "strict", "taintEviction": False}}


ROUNDS = 3
"""Measurements of each input, of which the fastest counts."""


class Rate(NamedTuple):
    """Bindings per CPU second: by the scheduler alone, and from documents to documents (validated, matched, written)."""

    core: float
    total: float
    replicas: int
    """Replicas that were assigned in total."""


def measure(case: dict[str, Any]) -> Rate:
    """Decide every binding of an input once, without caches."""
    with clock(pipeline, "schedule") as spent:
        start = process_time()
        result = gitsched.schedule(case["resources"], previous=case["previous"], now=parse_time(case["now"]), config=CONFIG)
        total = process_time() - start
    bindings = [document["spec"] for document in result.documents if document["kind"] == "ResourceBinding"]
    replicas = sum(target["replicas"] for spec in bindings for target in spec["clusters"])
    return Rate(len(bindings) / sum(spent), len(bindings) / total, replicas)


def measure_upstream(scheduler: Path, case: dict[str, Any], replicas: int) -> float:
    """Return the bindings that Karmada's scheduler decides per CPU second. It must assign as many `replicas` as gitsched did."""
    rate, assigned = upstream.run(scheduler, case)
    if assigned != replicas:
        raise click.ClickException(f"Karmada assigns {assigned:.0f} replicas, gitsched {replicas}: the rates cannot be compared")
    return rate


def search_regions(count: int) -> float:
    """CPU seconds for the choice of up to half of `count` regions; upstream checks all combinations of them."""
    regions = [Region(f"r{i:03}", 1000 * (i * 7 % 11) + i % 3, list(range(1 + i * 5 % 9))) for i in range(count)]
    start = process_time()
    select_regions(regions, 3, count // 2, count)
    return process_time() - start


def print_rates(scheduler: Path | None) -> None:
    """Print a line for each input: the rates of Karmada's `scheduler`, or recorded ones, and of gitsched."""
    print(f"{'input':18} {'clusters':>8} {'Karmada/s':>10} {'scheduler/s':>12} {'ratio':>6} {'total/s':>9} {'ratio':>6}")
    for name, recorded in RECORDED.items():
        for clusters, original in recorded.items():
            with lzma.open(INPUTS / f"{name}-{clusters}.json.xz", "rt", encoding="utf-8") as file:
                case = json.load(file)
            rates = [measure(case) for _ in range(ROUNDS)]
            core, total = max(rate.core for rate in rates), max(rate.total for rate in rates)
            if scheduler:
                original = measure_upstream(scheduler, case, rates[0].replicas)
            print(
                f"{name:18} {clusters:8} {original:10.1f} {core:12.0f} {core / original:6.1f} {total:9.0f} {total / original:6.1f}"
            )


@click.command(help=__doc__)
@click.option(
    "--upstream", "checkout", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A checkout of Karmada."
)
def main(checkout: Path | None) -> None:
    """Print the rates of all inputs."""
    with tempfile.TemporaryDirectory() as directory:
        print_rates(upstream.build("karmada.go", checkout, Path(directory)) if checkout else None)
    for count in (10, 20, 40):
        print(f"choice among {count} regions: {search_regions(count) * 1000:.1f} ms")


if __name__ == "__main__":
    main()
