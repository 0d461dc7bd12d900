"""Measure the resilience table of a generated fleet: every loss of a cluster or region, and an explanation with counterfactuals.

python -m benchmarks.simulation [--manifests N] [--clusters N]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from benchmarks.generator import Size, generate
from benchmarks.repository import START, create
from gitsched.model.losses import LossRequest
from gitsched.reconcile import RunSettings, reconcile
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.source_simulation import simulate_source_losses


class Timing(NamedTuple):
    """Wall time in seconds with a warm cache; `losses` is the number of simulated losses."""

    name: str
    losses: int
    seconds: float


def measure(size: Size, scratch: Path) -> list[Timing]:
    """Measure all losses of clusters, all losses of regions, and one explanation. Each reads and plans the commit."""
    directory = scratch / "fleet"
    create(directory, generate(size, 1))
    settings = RunSettings(datetime.fromtimestamp(START + 86400, UTC), scratch / "cache", str(directory))
    outcomes = reconcile(settings).plan.outcomes
    timings = []
    for by in ("cluster", "region"):
        start = perf_counter()
        losses = len(simulate_source_losses(settings, LossRequest(by), [], lambda *_: None).rows)
        timings.append(Timing(f"every {by}", losses, perf_counter() - start))
    key = next(key for key in outcomes if key.kind == "Deployment")
    start = perf_counter()
    explain_resource(settings, key.kind, key.namespace, key.name)
    return [*timings, Timing("explain", 0, perf_counter() - start)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("--manifests", type=int, default=1000, metavar="N")
    parser.add_argument("--clusters", type=int, default=100, metavar="N")
    arguments = parser.parse_args()
    size = Size(arguments.manifests, arguments.clusters)
    scratch = Path(tempfile.mkdtemp(prefix="gitsched-benchmark-"))
    try:
        print(f"{size.manifests} manifests, {size.clusters} clusters, {size.policies} policies")
        for name, losses, seconds in measure(size, scratch):
            each = f", {1000 * seconds / losses:.0f} ms each" if losses else ""
            print(f"{name:14} {losses:5} losses {seconds:7.2f} s{each}")
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
