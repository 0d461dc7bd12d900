"""Measure how fast Placements are decided, compared with Open Cluster Management's own controller on the same inputs.

    python -m benchmarks.ocm [--upstream CHECKOUT]

With a checkout of ocm, its scheduler is built and measured in the same run, with all objects decoded in its cache. Without one, the
times of `RECORDED` count: they come from another machine and another measurement, so read the ratio as an order of magnitude at most.
"""

from __future__ import annotations

import copy
import json
import lzma
import tempfile
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import click

import gitsched
from benchmarks import upstream
from benchmarks.stopwatch import clock
from gitsched.apis.ocm import scheduling
from gitsched.model.time import parse_time

INPUTS = Path(__file__).with_name("inputs") / "ocm"
RECORDED = {
    "default": {100: 0.57, 1000: 6.7, 5000: 51},
    "addon": {100: 0.60, 1000: 6.7, 5000: 57},
    "full": {100: 0.62, 1000: 7.2, 5000: 57},
}
"""Milliseconds of the controller (00f84c3) for a Placement on another machine, by input and number of clusters."""
PLACEMENTS = 21
CLAIM = "id.k8s.io"


class Times(NamedTuple):
    """CPU milliseconds: `first` for the first Placement of a run, which reads scores and capacities into columns; `further` the median
    of the others, each with its own predicates; `total` from documents to documents, all Placements together."""

    first: float
    further: float
    total: float
    decisions: int
    """Clusters that all Placements choose together."""


def multiply(case: dict[str, Any]) -> dict[str, Any]:
    """Return the input with several Placements instead of one. Each excludes another cluster, so that none reuses a selection."""
    (placement,) = (body for body in case["resources"] if body["kind"] == "Placement")
    placements = []
    for index in range(PLACEMENTS):
        body = copy.deepcopy(placement)
        body["metadata"]["name"] = f"p{index}"
        for predicate in body["spec"].setdefault("predicates", [{"requiredClusterSelector": {}}]):
            claims = predicate["requiredClusterSelector"].setdefault("claimSelector", {}).setdefault("matchExpressions", [])
            claims.append({"key": CLAIM, "operator": "NotIn", "values": [f"id-{index}"]})
        placements.append(body)
    return {**case, "resources": [body for body in case["resources"] if body is not placement] + placements}


def measure(case: dict[str, Any]) -> Times:
    """Decide every Placement of an input once, without caches."""
    with clock(scheduling, "schedule_placement") as spent:
        start = process_time()
        result = gitsched.schedule(case["resources"], previous=case["previous"], now=parse_time(case["now"]))
        total = process_time() - start
    names = {body["metadata"]["name"] for body in case["resources"] if body["kind"] == "Placement"}
    decided = [body for body in result.documents if body["kind"] == "PlacementDecision"]
    own = [body for body in decided if body["metadata"]["labels"]["cluster.open-cluster-management.io/placement"] in names]
    decisions = sum(len(body["status"]["decisions"]) for body in own)
    return Times(spent[0] * 1000, median(spent[1:]) * 1000, total * 1000, decisions)


def measure_upstream(scheduler: Path, case: dict[str, Any], decisions: int) -> float:
    """Return the CPU milliseconds of the controller for a Placement. It must make as many `decisions` as gitsched did."""
    spent, decided = upstream.run(scheduler, case)
    if decided != decisions:
        raise click.ClickException(
            f"the controller makes {decided:.0f} decisions, gitsched {decisions}: the times cannot be compared"
        )
    return spent


def read(name: str, clusters: int) -> dict[str, Any]:
    with lzma.open(INPUTS / f"{name}-{clusters}.json.xz", "rt", encoding="utf-8") as file:
        case: dict[str, Any] = json.load(file)
    return multiply(case)


def print_times(scheduler: Path | None) -> None:
    """Print a line for each input: the times of gitsched, and of the `scheduler` of ocm, or recorded ones."""
    print(
        f"{'input':9}{'clusters':>9}{'first':>11}{'further':>11}{'total':>11}{'upstream':>11}{'placements/s':>14}{'ratio':>7}{'whole':>7}"
    )
    for name, recorded in RECORDED.items():
        for clusters, original in recorded.items():
            case = read(name, clusters)
            runs = [measure(case) for _ in range(3)]
            first, further, total, _ = (min(times) for times in zip(*runs, strict=True))
            if scheduler:
                original = measure_upstream(scheduler, case, runs[0].decisions)
            cells = "".join(f"{value:8.2f} ms" for value in (first, further, total, original))
            ratios = f"{original / further:7.1f}{PLACEMENTS * original / total:7.1f}"
            print(f"{name:9}{clusters:9}{cells}{1000 / further:14.0f}{ratios}")


@click.command(help=__doc__)
@click.option("--upstream", "checkout", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A checkout of ocm.")
def main(checkout: Path | None) -> None:
    """Print the times of all inputs."""
    with tempfile.TemporaryDirectory() as directory:
        print_times(upstream.build("ocm.go", checkout, Path(directory)) if checkout else None)


if __name__ == "__main__":
    main()
