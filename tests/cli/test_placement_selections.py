"""Placements without workloads in the repository: plans report the clusters that they select for other programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.builders.ocm import binding, cluster_set, managed_cluster, placement, to_yaml
from tests.cli.conftest import Run

CLUSTERS = (managed_cluster(name, cluster_set="prod") for name in ("ash", "bru"))
FLEET = to_yaml(cluster_set("prod"), binding("prod", "apps"), *CLUSTERS)


def place(count: int, name: str = "any") -> str:
    return to_yaml(placement(name, "apps", count))


def test_a_plan_lists_the_clusters_that_a_placement_selects(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, ocm=FLEET, placement=place(1))
    first = gitsched("plan")
    assert "\nPlacement apps/any selects none -> ash\n" in first.stdout, first.stdout
    gitsched("reconcile")
    assert "selects" not in gitsched("plan").stdout
    commit(fleet, placement=place(2))
    for base in ((), ("HEAD~1",)):
        output = gitsched("plan", *base, COLUMNS="200").stdout
        assert output.startswith("No workload moves, 1 Placement selects other clusters: ")
        assert "\nPlacement apps/any selects ash -> ash, bru\n" in output
        assert "- `Placement apps/any`: `ash` → `ash, bru`" in gitsched("plan", *base, "-o", "markdown").stdout
        page = gitsched("plan", *base, "-o", "html").stdout
        assert '<th scope="row">Placement apps/any</th><td>ash</td><td>ash, bru</td>' in page
        (choice,) = json.loads(gitsched("plan", *base, "-o", "json").stdout)["choices"]
        assert (choice["by"]["name"], choice["before"], choice["after"]) == ("any", ["ash"], ["ash", "bru"])


def test_a_run_reports_the_selection_of_a_placement(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, ocm=FLEET, placement=place(1))
    gitsched("reconcile")
    commit(fleet, placement=place(2))
    done = gitsched("reconcile", COLUMNS="500").stdout
    assert ": 1 Placement selects other clusters, no workload moves, from commit " in done
    assert "\nPlacement apps/any selects ash -> ash, bru\n" in done


def test_a_long_list_of_selections_is_truncated(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, ocm=FLEET, placements="---\n".join(place(1, f"p{at:02}") for at in range(25)))
    output = gitsched("plan").stdout
    assert output.count(" selects none -> ") == 20
    assert "\nand 5 more; use -o json for all\n" in output


def test_a_removed_placement_selects_no_cluster(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, ocm=FLEET, placement=place(2))
    gitsched("reconcile")
    commit(fleet, placement=None)
    assert "\nPlacement apps/any selects ash, bru -> none\n" in gitsched("plan").stdout


def test_the_plan_digest_covers_selections(
    gitsched: Run, fleet: Path, commit: Callable[..., None], git: Callable[..., str]
) -> None:
    commit(fleet, ocm=FLEET, placement=place(1))
    gitsched("reconcile")
    digests = []
    for count in (0, 2):
        commit(fleet, placement=place(count))
        digests.append(json.loads(gitsched("plan", "-o", "json").stdout)["digest"])
    assert digests[0] != digests[1]
    other, same = (gitsched("reconcile", "--require-reviewed", "--reviewed", digest) for digest in digests)
    assert (other.returncode, "Refused: the plan differs from the reviewed plan" in other.stdout) == (1, True), other.stdout
    assert (same.returncode, "As reviewed" in same.stdout) == (0, True), same.stdout
