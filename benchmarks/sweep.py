"""Measure lists of losses of a generated fleet in which every cluster is used: single clusters, pairs and samples, by number of processes.

python -m benchmarks.sweep [--manifests N] [--clusters N] [--policies N] [--jobs N...] [--pairs]
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from benchmarks.__main__ import WIDE_POLICIES
from benchmarks.generator import Size, generate
from benchmarks.repository import START, create
from gitsched.model.losses import PAIRS, RANDOM, CommonCause, LossRequest
from gitsched.model.simulation import FailureDomain
from gitsched.reconcile import RunSettings, reconcile
from gitsched.reconcile.review.loss_runs import simulate_losses
from gitsched.reconcile.review.source_simulation import use_source_fleet
from gitsched.reconcile.run import Fetched
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.failure_domains import index_clusters
from gitsched.simulate.scenario import Scenario
from gitsched.simulate.simulation import simulate

_ALONE = 20
"""The number of losses that are simulated one by one."""
_RATES = (CommonCause("cluster", "", "4", "3"), CommonCause("zone", "", "1", "2"), CommonCause("region", "", "0.2", "6"))


class Timing(NamedTuple):
    """Wall time and processor time of all processes, in seconds, of a number of losses."""

    name: str
    losses: int
    seconds: float
    processor: float


def measure(size: Size, scratch: Path, jobs: list[int], *, pairs: bool) -> list[Timing]:
    """Measure lists of losses on the state of a reconciled fleet."""
    directory = scratch / "fleet"
    create(directory, generate(size, 1))
    settings = RunSettings(datetime.fromtimestamp(START + 86400, UTC), scratch / "cache", str(directory))
    reconcile(settings)

    def answer(baseline: Baseline, _fetched: Fetched) -> list[Timing]:
        return list(_measure_baseline(baseline, jobs, pairs=pairs))

    return use_source_fleet(settings, answer, [], lambda *_: None)


def _measure_baseline(baseline: Baseline, jobs: list[int], *, pairs: bool) -> Iterator[Timing]:
    names = sorted(index_clusters(baseline.decisions.catalog))
    alone = names[:: max(1, len(names) // _ALONE)][:_ALONE]
    start, before = perf_counter(), sum(os.times()[:4])
    for name in alone:
        simulate(baseline, Scenario(lose=(FailureDomain("cluster", name),)))
    yield Timing("clusters, one by one", len(alone), perf_counter() - start, sum(os.times()[:4]) - before)
    requests = {"clusters": LossRequest("cluster"), "10,000 samples": LossRequest(RANDOM, samples=10_000, causes=_RATES)}
    for name, request in {**requests, **({"pairs": LossRequest(PAIRS)} if pairs else {})}.items():
        for count in jobs:
            start, before = perf_counter(), sum(os.times()[:4])
            found = simulate_losses(baseline, request, count, None)
            times = perf_counter() - start, sum(os.times()[:4]) - before
            yield Timing(f"{name}, {count} process{'es' if count > 1 else ''}", len(found.rows) + found.others, *times)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=__doc__)
    sizes = Size(policies=WIDE_POLICIES)
    parser.add_argument("--manifests", type=int, default=sizes.manifests, metavar="N")
    parser.add_argument("--clusters", type=int, default=sizes.clusters, metavar="N")
    parser.add_argument("--policies", type=int, default=sizes.policies, metavar="N")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], metavar="N", help="numbers of processes")
    parser.add_argument("--pairs", action="store_true", help="also all pairs of clusters")
    arguments = parser.parse_args()
    size = Size(arguments.manifests, arguments.clusters, arguments.policies, wide=True)
    scratch = Path(tempfile.mkdtemp(prefix="gitsched-benchmark-"))
    try:
        print(f"{size.manifests} manifests, {size.clusters} clusters, {size.policies} policies")
        for name, losses, seconds, processor in measure(size, scratch, arguments.jobs, pairs=arguments.pairs):
            each = 1000 * processor / losses if losses else 0
            print(f"{name:28} {losses:7} losses {seconds:8.2f} s, {processor:8.2f} s of processor time, {each:8.3f} ms each")
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
