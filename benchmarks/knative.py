"""Measure how fast the vreplicas of one source are placed, compared with Knative's own scheduler on the same inputs.

    python -m benchmarks.knative [--upstream CHECKOUT]

With a checkout of knative/eventing, at the last commit with predicates and priorities (ef6b31a), its scheduler is built and measured
in the same run. Without one, the times of `RECORDED` count: they come from another machine and another measurement, so read the ratio
as an order of magnitude at most.
"""

from __future__ import annotations

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
from gitsched.apis.knative import scheduler
from gitsched.model.time import parse_time

INPUTS = Path(__file__).with_name("inputs") / "knative"
RECORDED: dict[str, dict[tuple[int, int], float | None]] = {
    "zone": {
        (100, 10): 0.005,
        (100, 100): 0.040,
        (100, 500): 1.2,
        (1000, 10): 0.028,
        (1000, 100): 1.12,
        (1000, 500): 14.6,
        (10000, 10): None,
        (10000, 100): None,
        (10000, 500): None,
    },
    "seed": {
        (100, 10): 0.007,
        (100, 100): 0.45,
        (100, 500): 8.1,
        (1000, 10): 0.36,
        (1000, 100): 4.5,
        (1000, 500): 80,
        (10000, 10): None,
        (10000, 100): None,
        (10000, 500): None,
    },
}
"""CPU seconds of one call of upstream's scheduler on another machine, by profile, vreplicas and pods; None where it takes too long.

The profile `zone` has one predicate, `seed` the three of the design document; both spread over zones and prefer low ordinals. 80 is
extrapolated."""
ROUNDS = 5


class Times(NamedTuple):
    """CPU seconds: `core` for scheduling only, `total` from documents to documents."""

    core: float
    total: float


def measure(case: dict[str, Any]) -> Times:
    """Place the source of an input once, without caches."""
    config = {"knative": {"capacity": case["config"]["capacity"], "scaleUp": "replace", "autoscaler": case["config"]["autoscaler"]}}
    with clock(scheduler, "schedule_vpod") as spent:
        start = process_time()
        result = gitsched.schedule(case["resources"], now=parse_time(case["now"]), config=config)
        total = process_time() - start
    (source,) = (document for document in result.documents if document["kind"] == "KafkaSource")
    (wanted,) = (body["spec"]["consumers"] for body in case["resources"] if body["kind"] == "KafkaSource")
    if sum(placement["vreplicas"] for placement in source["status"]["placements"]) != wanted:
        raise AssertionError("not every vreplica is placed")
    return Times(sum(spent), total)


def read(profile: str, vreplicas: int, pods: int) -> dict[str, Any]:
    """Read one input."""
    with lzma.open(INPUTS / f"{profile}-{vreplicas}v-{pods}p.json.xz", "rt", encoding="utf-8") as file:
        case: dict[str, Any] = json.load(file)
        return case


def measure_upstream(placing: Path, case: dict[str, Any], vreplicas: int) -> float:
    """Return the CPU seconds of one call of Knative's scheduler. It must place as many `vreplicas` as gitsched did."""
    spent, placed = upstream.run(placing, case)
    if placed != vreplicas:
        raise click.ClickException(f"Knative places {placed:.0f} vreplicas, gitsched {vreplicas}: the times cannot be compared")
    return spent / 1000


def print_times(placing: Path | None) -> None:
    """Print a line for each input: the times of gitsched, and of Knative's program `placing`, or recorded ones."""
    print(
        f"{'profile':8} {'vreplicas':>9} {'pods':>5} {'placing ms':>11} {'total ms':>9} {'vreplicas/s':>11} {'Knative ms':>10} {'ratio':>6}"
    )
    for profile, figures in RECORDED.items():
        for (vreplicas, pods), original in figures.items():
            case = read(profile, vreplicas, pods)
            times = [measure(case) for _ in range(ROUNDS)]
            core, total = (median(column) for column in zip(*times, strict=True))
            if placing and original:
                original = measure_upstream(placing, case, vreplicas)
            beside = f"{original * 1000:10.0f} {original / core:6.1f}" if original else f"{'-':>10} {'-':>6}"
            print(f"{profile:8} {vreplicas:9} {pods:5} {core * 1000:11.1f} {total * 1000:9.1f} {vreplicas / core:11.0f} {beside}")


@click.command(help=__doc__)
@click.option(
    "--upstream", "checkout", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A checkout of knative/eventing."
)
def main(checkout: Path | None) -> None:
    """Print the times of all inputs."""
    with tempfile.TemporaryDirectory() as directory:
        print_times(upstream.build("knative.go", checkout, Path(directory)) if checkout else None)


if __name__ == "__main__":
    main()
