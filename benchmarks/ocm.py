"""Measure how fast Placements are decided, compared with Open Cluster Management's own controller on the same inputs.

    python -m benchmarks.ocm

The reference figures were taken once from Open Cluster Management 00f84c3 (Go) on one core of a quiet two-core machine: the best wall
time of Schedule() for one Placement, with all objects decoded in its cache. Times differ between machines, so read the ratio as an order
of magnitude.
"""

from __future__ import annotations

import copy
import json
import lzma
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import gitsched
from benchmarks.stopwatch import clock
from gitsched.apis.ocm import scheduling
from gitsched.model.time import parse_time

INPUTS = Path(__file__).with_name("inputs") / "ocm"
UPSTREAM = {
    "default": {100: 0.57, 1000: 6.7, 5000: 51},
    "addon": {100: 0.60, 1000: 6.7, 5000: 57},
    "full": {100: 0.62, 1000: 7.2, 5000: 57},
}
"""Milliseconds of the upstream controller for a Placement, by input and number of clusters."""
PLACEMENTS = 21
CLAIM = "id.k8s.io"


class Times(NamedTuple):
    """CPU milliseconds: `first` for the first Placement of a run, which reads scores and capacities into columns; `further` the median
    of the others, each with its own predicates; `total` from documents to documents, all Placements together."""

    first: float
    further: float
    total: float


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
        gitsched.schedule(case["resources"], previous=case["previous"], now=parse_time(case["now"]))
        total = process_time() - start
    return Times(spent[0] * 1000, median(spent[1:]) * 1000, total * 1000)


def read(name: str, clusters: int) -> dict[str, Any]:
    with lzma.open(INPUTS / f"{name}-{clusters}.json.xz", "rt", encoding="utf-8") as file:
        case: dict[str, Any] = json.load(file)
    return multiply(case)


def main() -> None:
    print(f"{'input':9}{'clusters':>9}{'first':>11}{'further':>11}{'total':>11}{'upstream':>11}{'placements/s':>14}{'ratio':>7}")
    for name, references in UPSTREAM.items():
        for clusters, upstream in references.items():
            case = read(name, clusters)
            runs = [measure(case) for _ in range(3)]
            first, further, total = (min(times) for times in zip(*runs, strict=True))
            cells = "".join(f"{value:8.2f} ms" for value in (first, further, total, upstream))
            print(f"{name:9}{clusters:9}{cells}{1000 / further:14.0f}{upstream / further:7.1f}")


if __name__ == "__main__":
    main()
