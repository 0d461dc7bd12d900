"""`gitsched tree` and the totals of `gitsched status`: what is in a cluster, and where a workload is."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitsched.model.errors import Permanent
from gitsched.reconcile import RunSettings
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.review.fleet_tree import read_fleet_tree
from gitsched.report.fleet_status import write_fleet_status
from gitsched.report.fleet_tree import write_fleet_tree
from tests.cli.conftest import CLUSTER, POLICY, TAINT, WORKLOAD, Run

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}}\n"
POD = "  template: {metadata: {labels: {app: web}}}\n"
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: web, namespace: shop}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: web}]}}}
"""


@pytest.fixture
def settings(fleet: Path, commit: Callable[..., None], gitsched: Run) -> RunSettings:
    """A fleet with a Deployment that has moved, its Service, and a Job that no cluster fits."""
    policy = POLICY.replace("Deployment, name: web}", "Deployment, name: web}\n    - {apiVersion: v1, kind: Service, name: web}")
    nowhere = POLICY.replace("name: web\n  name", "name: job\n  name").replace("apps/v1, kind: Deployment", "batch/v1, kind: Job")
    nowhere = nowhere.replace("{ownership: private}", "{ownership: none}").replace("{ownership: cloud}", "{ownership: none}")
    commit(fleet, web=WORKLOAD + POD, service=SERVICE, policy=policy, job=JOB, nowhere=nowhere)
    gitsched("reconcile", "--now", "2026-03-02T09:00:30Z")
    commit(fleet, one=CLUSTER.format(name="one", owner="private") + TAINT)
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    return RunSettings(now=datetime(2026, 3, 2, 9, 1, tzinfo=UTC), location=str(fleet), cache=fleet.parent / "cache")


def test_a_tree_has_what_a_cluster_has_and_where_a_workload_is(settings: RunSettings, gitsched: Run) -> None:
    assert (
        write_fleet_tree(read_fleet_tree(settings, "", None, "two"))
        == """\
cluster two: readiness unknown; 2 workloads, 2 replicas
  shop
    Deployment web  2 replicas
    Service web
"""
    )
    assert (
        write_fleet_tree(read_fleet_tree(settings, "", None, "one"))
        == """\
cluster one: readiness unknown; drained by the taint power:NoExecute (one.yaml:9); 0 workloads, 0 replicas, 2 copies that stay
  copies that stay:
    Service shop/web stays in one until 2026-03-02T09:10:30Z
    Deployment shop/web stays in one with 2 replicas until 2026-03-02T09:10:30Z
"""
    )
    assert (
        write_fleet_tree(read_fleet_tree(settings, "Deployment", None, "web"))
        == """\
Deployment shop/web
  policy: PropagationPolicy/shop/web, group cloud
  clusters:
    two  2 replicas
  copies that stay:
    Deployment shop/web stays in one with 2 replicas until 2026-03-02T09:10:30Z
  companions:
    Service/shop/web: goes along to two (PropagationPolicy/shop/web in group cloud)
"""
    )
    unplaced = write_fleet_tree(read_fleet_tree(settings, "Job", "shop", "web"))
    assert unplaced.startswith(
        "Job shop/web\n  policy: PropagationPolicy/shop/job\n  unplaced: PropagationPolicy/shop/job: no cluster has ownership=none; the "
        "fleet has cloud, private (nowhere.yaml:12); 0/2 clusters are"
    )
    done = gitsched("tree", "svc/shop/web", "-o", "json")
    found = json.loads(done.stdout)
    assert (found["kind"], found["workload"]["clusters"]) == ("FleetTree", [{"name": "two", "replicas": None}])
    assert found["copies"][0]["until"] == "2026-03-02T09:10:30Z"
    totals = write_fleet_status(read_fleet_status(settings)).splitlines()[-3]
    assert totals == "3 workloads: 2 placed (2 replicas), 1 unplaced."


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "message"),
    [
        ("", None, "web", "'web' stands for deployment/shop/web, job/shop/web, service/shop/web: give the kind and the namespace"),
        ("", None, "twoo", "there is no workload and no cluster 'twoo'; did you mean two?"),
        ("Job", "shop", "wbe", "there is no Job shop/wbe in the source; did you mean web?"),
        ("", None, "zzz", "there is no workload and no cluster 'zzz'; `gitsched status --workloads` lists the workloads"),
        (
            "",
            None,
            "lonely",
            "no policy selects ConfigMap/shop/lonely, so it is in no cluster: `gitsched explain configmap/shop/lonely`",
        ),
    ],
)
def test_a_name_that_is_not_one_thing_gets_a_suggestion(
    settings: RunSettings, commit: Callable[..., None], kind: str, namespace: str | None, name: str, message: str
) -> None:
    commit(Path(settings.location), lonely="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lonely, namespace: shop}\n")
    with pytest.raises(Permanent) as caught:
        read_fleet_tree(settings, kind, namespace, name)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("cache", ["cache", "none"])
def test_the_status_names_changes_of_the_source_only_if_a_run_would_change_the_output(
    settings: RunSettings, commit: Callable[..., None], gitsched: Run, cache: str
) -> None:
    fleet = Path(settings.location)

    def is_pending() -> bool:
        status = read_fleet_status(settings._replace(cache=fleet.parent / cache))
        assert ("not reconciled" in write_fleet_status(status)) is status.pending
        return status.pending

    assert not is_pending()
    commit(fleet, README="# About the fleet\n")
    assert not is_pending()
    commit(fleet, web=WORKLOAD.replace("replicas: 2", "replicas: 4") + POD)
    assert is_pending()
    gitsched("reconcile", "--now", "2026-03-02T09:00:50Z")
    assert not is_pending()


def test_what_the_guard_keeps_without_a_policy_is_still_there(
    settings: RunSettings, commit: Callable[..., None], gitsched: Run
) -> None:
    gitsched("freeze", "network", "--now", "2026-03-02T09:02:00Z")
    commit(Path(settings.location), policy=None)
    for before in ("the run", "other questions"):
        found = read_fleet_status(settings)
        rows = [row.split() for row in write_fleet_status(found, workloads=True, namespace="shop").splitlines()]
        assert [row[-1] for row in rows if row[:4] == ["Deployment", "shop/web", "two", "2"]] == ["withheld"], before
        status = write_fleet_status(found, 1_000)
        unselected = "2 objects not selected by any policy (--unclaimed), of which 2 are still placed"
        assert f"3 workloads: 2 placed (2 replicas), 1 unplaced; {unselected}.\n" in status
        assert next(line for line in status.splitlines() if line.startswith("two ")).split()[2] == "2"
        lines = write_fleet_tree(read_fleet_tree(settings, "", None, "two")).splitlines()
        assert lines[-2:] == ["    Deployment web  2 replicas  withheld", "    Service web  withheld"]
        lines = write_fleet_tree(read_fleet_tree(settings, "deployment", "shop", "web")).splitlines()
        assert lines[2].startswith("  withheld: the freeze withholds that it becomes unplaced; to allow it, add the trailer ")
        assert lines[3:6] == ["  policy: none (no longer selected by a policy)", "  clusters:", "    two  2 replicas"]
        gitsched("reconcile", "--now", "2026-03-02T09:03:00Z")
    notes = gitsched("history", "-m", "1").stdout
    assert "; The changes of 2 workloads are withheld (Service/shop/web, Deployment.apps/shop/web): placements are frozen" in notes


def test_what_the_next_run_removes_is_still_there(settings: RunSettings, commit: Callable[..., None]) -> None:
    commit(Path(settings.location), service=None, web=None)
    assert "3 workloads: 2 placed (2 replicas), 1 unplaced." in write_fleet_status(read_fleet_status(settings))
    lines = write_fleet_tree(read_fleet_tree(settings, "", None, "two")).splitlines()
    assert lines[0] == "cluster two: readiness unknown; 2 workloads, 2 replicas"
    tree = write_fleet_tree(read_fleet_tree(settings, "deployment", "shop", "web"))
    assert "  policy: none (removed from the source)\n" in tree


@pytest.mark.parametrize("frozen", [False, True])
def test_companions_and_references_of_a_workload_are_where_they_are_before_it_moves(
    settings: RunSettings, commit: Callable[..., None], gitsched: Run, frozen: bool
) -> None:
    if frozen:
        gitsched("freeze", "network", "--now", "2026-03-02T09:02:00Z")
    policy = (
        (Path(settings.location) / "policy.yaml")
        .read_text()
        .replace("clusterAffinities:", "clusterAffinity: {clusterNames: [three]}")
    )
    policy = policy.partition("      - affinityName")[0]
    commit(Path(settings.location), policy=policy, three=CLUSTER.format(name="three", owner="cloud"))
    for kind, title, other in (("deployment", "companions", "Service"), ("service", "targets", "Deployment.apps")):
        tree = write_fleet_tree(read_fleet_tree(settings, kind, "shop", "web"))
        assert "  clusters:\n    two" in tree
        assert f"  {title}:\n    {other}/shop/web: goes along to two (" in tree, tree
