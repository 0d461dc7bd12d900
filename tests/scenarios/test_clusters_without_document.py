"""A cluster whose document is deleted while many workloads run there: what each command says of all of them in a few lines, and that the
command it names has them go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gitsched.cli import cli
from tests.scenarios.conftest import UNGUARDED, Fleet, cluster, deployment, policy

MANY = 60
NAMES = [f"w{number:02}" for number in range(MANY)]
FIRST = "Deployment default/w00, Deployment default/w01, Deployment default/w02 and 57 more"
OCM_CLUSTER = (
    "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n"
    "metadata: {{name: {0}, labels: {{cluster.open-cluster-management.io/clusterset: all, site: {0}}}}}\n"
    "spec: {{hubAcceptsClient: true}}\n"
)
OCM_PLACEMENT = """\
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: all}
spec: {clusterSelector: {selectorType: ExclusiveClusterSetLabel}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: all, namespace: default}
spec: {clusterSet: all}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: c3, namespace: default}
spec:
  clusterSets: [all]
  predicates:
  - requiredClusterSelector: {labelSelector: {matchExpressions: [{key: site, operator: In, values: [c3]}]}}
"""
ONE_OF_ALL = policy("", scheduling="Divided").replace("Weighted", "Aggregated")


def with_capacity(name: str, cpu: int) -> str:
    amounts = f"{{cpu: '{cpu}', memory: 64Gi, pods: '500'}}"
    return f"{cluster(name)}status: {{resourceSummary: {{allocatable: {amounts}}}}}\n"


def with_request(name: str) -> str:
    pods = "{containers: [{name: main, image: 'a:1', resources: {requests: {cpu: 500m}}}]}"
    return f"{deployment(name)}  template: {{spec: {pods}}}\n"


def with_placement(name: str) -> str:
    named = "  annotations: {cluster.open-cluster-management.io/placement: c3}\n"
    return deployment(name).replace("  namespace: default\n", f"  namespace: default\n{named}")


CLUSTERS = {f"{name}.yaml": cluster(name) for name in ("c1", "c2", "c3")}
KARMADA = {**{f"{name}.yaml": deployment(name) for name in NAMES}, **CLUSTERS, "policy.yaml": policy("c3")}
OCM = {
    **{f"{name}.yaml": with_placement(name) for name in NAMES},
    **{f"{name}.yaml": OCM_CLUSTER.format(name) for name in ("c1", "c2", "c3")},
    "policy.yaml": OCM_PLACEMENT,
}
FULL = {
    **{f"{name}.yaml": with_request(name) for name in NAMES},
    **{f"{name}.yaml": with_capacity(name, 60 if name == "c3" else 0) for name in ("c1", "c2", "c3")},
    "policy.yaml": ONE_OF_ALL,
}
FITS = "until another cluster fits: gitsched explain deployment/default/w00 says what each one lacks"
RESCHEDULED = "until rescheduled, which no run does by itself: gitsched rebalance --all-displaced --write requests it"
FAULTS = {
    "no other cluster is allowed": (KARMADA, FITS),
    "no other cluster matches in OCM": (OCM, FITS),
    "no other cluster has capacity": (FULL, RESCHEDULED),
}


@pytest.fixture
def run(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(fleet.path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(fleet.cache))
    monkeypatch.setenv("COLUMNS", "1000")
    return CliRunner()


def read(run: CliRunner, *arguments: str) -> list[str]:
    return run.invoke(cli, arguments).output.splitlines()


def lose(fleet: Fleet, files: dict[str, str], settings: str = UNGUARDED) -> None:
    fleet.commit({"gitsched.yaml": settings, **files})
    fleet.reconcile()
    fleet.commit({"c3.yaml": None}, hour=1)


@pytest.mark.parametrize("name", FAULTS)
def test_many_copies_are_a_line_that_says_until_when_they_stay(name: str, fleet: Fleet, run: CliRunner) -> None:
    files, until = FAULTS[name]
    lose(fleet, files)
    copies = f"60 copies stay in c3 ({FIRST}) {until}"
    planned = read(run, "plan", "--now", "2026-03-02T09:00:00Z")
    assert copies in planned
    reconciled = read(run, "reconcile", "--now", "2026-03-02T09:00:00Z")
    assert copies in reconciled
    for lines in (planned, reconciled):
        assert len(lines) < 50
        about = [line for line in lines if " warning: " in line and "default/w" in line]
        assert all("default/w00" in line for line in about), "of alike warnings, one is printed"
        named = "Deployment default/w01, Deployment default/w02, Deployment default/w03 and 56 more"
        assert lines.count(f"  the same of 59 more objects: {named}") == len(about) > 0
        assert "60 workloads: 0 placed, 60 unplaced." in lines
    status = read(run, "status", "--now", "2026-03-02T10:00:00Z")
    (unplaced,) = [line for line in status if line.startswith("Unplaced: ")]
    assert unplaced.startswith(f"Unplaced: 60 workloads ({FIRST}): ")
    assert until.rpartition(": ")[2] in unplaced
    assert f"60 workloads run where they were before ({FIRST}), {until}." in status
    assert len(status) < 20
    assert f"    {copies}" in read(run, "tree", "c3")
    own = until.replace("w00", "w07")
    assert f"  Deployment default/w07 stays in c3 with 2 replicas {own}" in read(run, "explain", "default/w07")


def test_a_policy_that_matches_another_cluster_has_the_copies_replaced(fleet: Fleet) -> None:
    lose(fleet, KARMADA)
    fleet.reconcile(1)
    fleet.commit({"policy.yaml": policy("c1")}, hour=2)
    fleet.reconcile(2)
    assert fleet.where("default/deployment-w00") == ["c1"]


def test_the_named_command_places_what_a_deleted_cluster_had(fleet: Fleet, run: CliRunner) -> None:
    lose(fleet, FULL)
    fleet.reconcile(1)
    nothing = read(run, "rebalance", "--all-displaced", "--write")
    why = "60 workloads are unplaced and fit in no cluster now: "
    assert any(line.startswith(why) and line.endswith(": gitsched explain deployment/default/w00") for line in nothing)
    fleet.commit({"c1.yaml": with_capacity("c1", 90)}, hour=2)
    fleet.reconcile(2)
    assert fleet.where("default/deployment-w00") == [], "no run does it by itself"
    assert read(run, "rebalance", "--all-displaced", "--write")[0].startswith("wrote ")
    assert list(Path("rebalance").iterdir())
    fleet.commit(hour=3)
    fleet.reconcile(3)
    assert {tuple(fleet.where(f"default/deployment-{name}")) for name in NAMES} == {("c1",)}


def test_what_the_guard_withholds_stays_placed_until_it_is_allowed(fleet: Fleet, run: CliRunner) -> None:
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {}\n"
    lose(fleet, KARMADA, settings)
    planned = read(run, "plan", "--now", "2026-03-02T09:00:00Z")
    assert f"once what the guard withholds is allowed, 60 copies stay in c3 ({FIRST}) {FITS}" in planned
    withheld = fleet.reconcile(1).plan.withheld
    status = read(run, "status", "--now", "2026-03-02T10:00:00Z")
    line = f"  each of 60 workloads ({FIRST}) on c3 2 would become unplaced; it stays on c3, whose document is gone"
    assert line in status
    assert (
        f"To allow exactly these, add the trailer Gitsched-Allow: {withheld.digest} to a commit, or pass --allow {withheld.digest}."
        in (status)
    )
    assert len(status) < 25
    read(run, "reconcile", "--allow", withheld.digest, "--now", "2026-03-02T11:00:00Z")
    assert fleet.load("gitsched.json")["workloads"] == {"pending": MANY}
