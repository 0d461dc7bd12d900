"""A job commits the health of workloads; unhealthy ones are evicted with their preserved state."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from gitsched.reconcile import Reconciler
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.fleet_status import write_fleet_status

from .conftest import Fleet, at_hour, cluster, deployment, policy
from .test_incremental_plan import ThreeVariants

MINUTE = 1 / 60
WEB = "default/deployment-web"
RULES = """\
  propagateDeps: true
  failover:
    application:
      decisionConditions: {tolerationSeconds: 600}
      purgeMode: %s
      statePreservation:
        rules:
        - {aliasLabelName: example.com/position, jsonPath: "{.position}"}
"""


def health(*entries: str) -> str:
    """Return the file of a health job: the health of web, each entry as cluster:health."""
    lines = "".join(
        f"  - {{clusterName: {name}, health: {text}, status: {{position: at-17}}}}\n"
        for name, text in (e.split(":") for e in entries)
    )
    return (
        "apiVersion: work.karmada.io/v1alpha2\nkind: ResourceBinding\nmetadata: {name: web-deployment, namespace: default}\nspec:\n"
        "  resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}\nstatus:\n"
        + (f"  aggregatedStatus:\n{lines}" if lines else "  aggregatedStatus: []\n")
    )


def fill(fleet: Fleet, mode: str = "Gracefully") -> None:
    """A fleet with web on `first`, reported as healthy."""
    files = {"web.yaml": deployment("web"), "policy.yaml": policy("first", "second", more=RULES % mode)}
    fleet.commit(
        {**files, "first.yaml": cluster("first"), "second.yaml": cluster("second"), "health.yaml": health("first:Healthy")}
    )
    fleet.reconcile()
    assert fleet.where(WEB) == ["first"]


def test_an_unhealthy_workload_moves_and_its_eviction_ends_when_it_is_healthy(fleet: Fleet) -> None:
    fill(fleet)
    fleet.commit({"health.yaml": health("first:Unhealthy")}, hour=1)
    assert fleet.reconcile(1).plan.next_wakeup == at_hour(1 + 10 * MINUTE)
    assert fleet.reconcile(1 + 9 * MINUTE).after is None
    fleet.reconcile(1 + 10 * MINUTE)
    assert fleet.delivered(WEB) == ["first", "second"]
    assert fleet.trailers()["Gitsched-Cause"] == "deadline"
    fleet.commit({"health.yaml": health("first:Unhealthy", "second:Healthy")}, hour=1 + 12 * MINUTE)
    fleet.reconcile(1 + 12 * MINUTE)
    assert fleet.where(WEB) == ["second"]
    assert "gracefulEvictionTasks" not in fleet.binding("web-deployment")["spec"]
    fleet.reconcile(1.5)
    assert fleet.delivered(WEB) == ["second"], "the overlap ends after the eviction"
    assert fleet.reconcile(30).after is None


def test_the_manifest_of_the_new_copy_has_the_preserved_state(fleet: Fleet) -> None:
    fill(fleet, "Directly")
    fleet.commit({"health.yaml": health("first:Unhealthy")}, hour=1)
    fleet.reconcile(1.5)
    assert fleet.where(WEB) == ["second"], "the old copy goes at once"
    assert fleet.load(f"clusters/second/{WEB}.yaml")["metadata"]["labels"] == {"example.com/position": "at-17"}


@pytest.mark.parametrize("mode", ["Gracefully", "Directly", "Never"])
def test_a_late_run_writes_the_tree_of_a_timely_one(make_fleet: Callable[[str], Fleet], mode: str) -> None:
    punctual, late = make_fleet("punctual"), make_fleet("late")
    for fleet, minutes in ((punctual, (0, 5, 10, 13, 20, 40, 70)), (late, (40, 105))):
        fill(fleet, mode)  # without a report about the replacement, the copy stays for an hour
        fleet.commit({"health.yaml": health("first:Unhealthy")}, hour=1)
        for minute in minutes:
            fleet.reconcile(1 + minute * MINUTE)
    assert punctual.delivered(WEB) == (["first", "second"] if mode == "Never" else ["second"])
    accounts = {"README.md", "gitsched.json"}
    assert {path: blob for path, blob in punctual.files().items() if path not in accounts} == {
        path: blob for path, blob in late.files().items() if path not in accounts
    }


def test_a_resident_process_writes_the_bytes_of_a_new_one(make_fleet: Callable[[str], Fleet]) -> None:
    fresh, resident = make_fleet("fresh"), make_fleet("resident")
    fill(fresh)
    fill(resident)
    session = Reconciler(resident.settings())
    changes = [
        (1.0, {"health.yaml": health("first:Unhealthy")}),
        (1.1, {"web.yaml": deployment("web", 3)}),
        (1.15, {"health.yaml": health("first:Unknown")}),
        (1.2, {"health.yaml": health("first:Unhealthy")}),
        (1.4, {"web.yaml": deployment("web", 4)}),
        (1.45, {"health.yaml": health("first:Unhealthy", "second:Healthy")}),
        (2.0, {"health.yaml": None}),
    ]
    for hour, files in changes:
        for fleet in (fresh, resident):
            fleet.commit(files, hour=hour)
        fresh.reconcile(hour + MINUTE)
        session.run(at_hour(hour + MINUTE))
        assert fresh.head == resident.head
    assert fresh.where(WEB) == ["second"]


def test_an_invalid_health_file_does_not_stop_the_timer(fleet: Fleet) -> None:
    fill(fleet)
    fleet.commit({"health.yaml": health("first:Unhealthy")}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"health.yaml": health("first:Sick")}, hour=1.1)
    assert fleet.reconcile(1.1).plan.next_wakeup == at_hour(1 + 10 * MINUTE)
    fleet.reconcile(1.5)
    assert [entry["name"] for entry in fleet.binding("web-deployment")["spec"]["clusters"]] == ["second"]


@pytest.mark.parametrize("overlap", ["10m", "0s"])
@pytest.mark.parametrize(
    ("mode", "end"),
    [
        pytest.param("Never", None, id="until a person ends it"),
        pytest.param("Gracefully\n      gracePeriodSeconds: 10800", at_hour(4 + 10 * MINUTE), id="grace longer than the overlap"),
    ],
)
def test_a_copy_is_listed_as_long_as_the_eviction_keeps_it(
    fleet: Fleet, tmp_path: Path, mode: str, end: datetime | None, overlap: str
) -> None:
    """What the eviction keeps is shown with its real end, before and after the overlap, also without one."""
    fill(fleet, mode)
    variants = ThreeVariants(fleet, tmp_path)
    settings = (
        f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: fleet}}\nspec: {{output: {{overlap: {overlap}}}}}\n"
    )
    fleet.commit({"gitsched.yaml": settings, "health.yaml": health("first:Unhealthy")}, hour=1)
    variants.run(1, "unhealthy")
    changes = ((1 + 10 * MINUTE, {}), (2.5, {"other.yaml": deployment("other")}), (3.5, {"health.yaml": health("second:Unknown")}))
    for hour, files in changes:
        if files:
            fleet.commit(files, hour=hour)
        (copy,) = variants.run(hour, f"hour {hour}")[0].plan.retained
        assert (copy.cluster, copy.replicas, copy.until) == ("first", 2, end)
        assert ("suppressDeletion: false" in copy.release) == (end is None)
    if end is None:
        fleet.git("update-ref", "refs/heads/placements", "refs/heads/resident")
        found = read_fleet_status(fleet.settings(4))
        status = " ".join(write_fleet_status(found).split())
        assert "Deployment default/web stays in first with 2 replicas until somebody sets suppressDeletion: false" in status
        assert "first 2" in write_fleet_status(found, workloads=True)
        ended = health("second:Unknown").replace(
            "spec:\n", "spec:\n  gracefulEvictionTasks: [{fromCluster: first, reason: x, producer: x, suppressDeletion: false}]\n"
        )
        fleet.commit({"health.yaml": ended}, hour=5)
    assert variants.run(5, "the end")[0].plan.retained == ()
    assert fleet.delivered(WEB, "resident") == ["second"]
