"""preserveResourcesOnDeletion: a workload whose template or policy is deleted stays in its clusters, whatever tool prunes there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scenarios.conftest import Fleet, at_hour, cluster, deployment, policy
from tests.scenarios.test_dependencies import workload
from tests.scenarios.test_incremental_plan import ThreeVariants

PRESERVE = "  preserveResourcesOnDeletion: true\n"
SELECTION = policy("ash,bru", more=PRESERVE)
Identity = tuple[str, str, str]


class PruningTool:
    """A tool that applies a directory and prunes, as Flux does by the annotation `prune`, or Argo CD by its sync options: what it applied
    and does not find any more is deleted, unless the object in the cluster says otherwise."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.objects: dict[Identity, dict[str, Any]] = {}

    def follow(self, fleet: Fleet, cluster_name: str, at: str = "placements") -> None:
        directory = f"clusters/{cluster_name}/"
        paths = [path for path in fleet.files(at) if path.startswith(directory) and path.count("/") == 3]
        desired = {self._identify(body): body for path in paths for body in [yaml.safe_load(fleet.read(path, at))]}
        keeping = {key: body for key, body in self.objects.items() if key not in desired and self._keeps(body)}
        self.objects = {**keeping, **desired}

    def _keeps(self, body: dict[str, Any]) -> bool:
        annotations = body["metadata"].get("annotations", {})
        if self.name == "flux":
            return bool(annotations.get("kustomize.toolkit.fluxcd.io/prune") == "disabled")
        return "Prune=false" in annotations.get("argocd.argoproj.io/sync-options", "").split(",")

    @staticmethod
    def _identify(body: dict[str, Any]) -> Identity:
        return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]

    @property
    def names(self) -> set[str]:
        return {name for kind, _, name in self.objects if kind != "Namespace"}


def fill(fleet: Fleet, **files: str) -> None:
    fleets = {"clusters.yaml": f"{cluster('ash')}---\n{cluster('bru')}", "policy.yaml": SELECTION}
    fleet.commit({**fleets, "web.yaml": deployment("web"), "api.yaml": deployment("api"), **files})
    fleet.reconcile()


@pytest.mark.parametrize("tool", ["flux", "argocd"])
@pytest.mark.parametrize(
    ("changes", "kept", "gone"),
    [
        pytest.param({"web.yaml": None}, {"web", "api"}, set(), id="the template is deleted"),
        pytest.param({"policy.yaml": None}, {"web", "api"}, set(), id="the policy is deleted"),
        pytest.param({"policy.yaml": policy("ash,bru"), "web.yaml": None}, {"web", "api"}, set(), id="with the field"),
    ],
)
def test_what_is_deleted_is_kept_in_its_clusters(
    fleet: Fleet, tool: str, changes: dict[str, str | None], kept: set[str], gone: set[str]
) -> None:
    clusters = {name: PruningTool(tool) for name in ("ash", "bru")}
    fill(fleet)
    for name, one in clusters.items():
        one.follow(fleet, name)
    fleet.commit(changes, hour=1)
    run = fleet.reconcile(1)
    assert not run.plan.withheld.moves
    assert run.plan.next_wakeup == at_hour(25)
    assert all("is kept in the cluster (preserveResourcesOnDeletion)" in move.reason for move in run.plan.moves)
    for name, one in clusters.items():
        one.follow(fleet, name)
    assert fleet.reconcile(24.9).after is None
    assert fleet.reconcile(26).after is not None
    assert "retainedCopies" not in fleet.load("gitsched.json")
    if "web.yaml" in changes:
        assert fleet.delivered("default/deployment-web") == []
    for name, one in clusters.items():
        one.follow(fleet, name)
        assert (one.names & {"web", "api"}, gone - one.names) == (kept, gone)
    assert fleet.reconcile(50).after is None


def test_without_the_field_a_pruning_tool_deletes_it(fleet: Fleet) -> None:
    flux = PruningTool("flux")
    fill(fleet, **{"policy.yaml": policy("ash,bru")})
    flux.follow(fleet, "ash")
    fleet.commit({"web.yaml": None}, hour=1)
    fleet.reconcile(1)
    flux.follow(fleet, "ash")
    assert flux.names & {"web", "api"} == {"api"}


def test_what_a_workload_brought_along_is_kept_with_it(fleet: Fleet) -> None:
    more = PRESERVE + "  propagateDeps: true\n"
    conf = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: default}\n"
    fill(fleet, **{"policy.yaml": policy("ash,bru", more=more), "web.yaml": workload("web", "configmap/conf"), "conf.yaml": conf})
    assert fleet.delivered("default/configmap-conf") == ["ash", "bru"]
    fleet.commit({"web.yaml": None}, hour=1)
    fleet.reconcile(1)
    for name in ("configmap-conf", "deployment-web"):
        annotations = fleet.load(f"clusters/ash/default/{name}.yaml")["metadata"]["annotations"]
        assert annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
        assert "Prune=false" in annotations["argocd.argoproj.io/sync-options"].split(",")


def test_it_does_not_count_as_placed_and_returns_without_the_annotations(fleet: Fleet, tmp_path: Path) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    files = {f"w{number}.yaml": deployment(f"w{number}") for number in range(12)}
    fleet.commit({"clusters.yaml": f"{cluster('ash')}---\n{cluster('bru')}", "policy.yaml": SELECTION, **files})
    variants.run(0, "first")
    fleet.commit(dict.fromkeys(list(files)[:8]), hour=1)
    for run in variants.run(1, "deleted"):
        assert not run.plan.withheld.moves  # two thirds of a namespace, all of which stay in their clusters
        assert run.plan.state_counts["placed"] == 4
        assert {copy.workload.name for copy in run.plan.totals.retained} == {f"w{number}" for number in range(8)}
        assert dict(run.plan.first_clusters)["ash"].workloads == 4
    fleet.commit({"w9.yaml": deployment("w9", 5)}, hour=2)
    variants.run(2, "an edit")
    variants.run(3, "idle")
    fleet.commit({"w0.yaml": deployment("w0", 1)}, hour=4)
    for run in variants.run(4, "returned"):
        assert "w0" not in {copy.workload.name for copy in run.plan.totals.retained}
    for run in variants.run(30, "over"):
        assert not run.plan.totals.retained


def test_overlap_of_zero_and_hooks_of_the_source_do_not_end_it(fleet: Fleet) -> None:
    settings = (
        "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: a}\nspec: {output: {overlap: 0s, retireAfter: 2h}}\n"
    )
    own = deployment("web").replace(
        "  namespace: default\n",
        "  namespace: default\n  annotations: {argocd.argoproj.io/sync-options: 'Prune=true,Replace=true'}\n",
    )
    fill(fleet, **{"gitsched.yaml": settings, "web.yaml": own})
    fleet.commit({"web.yaml": None}, hour=1)
    assert fleet.reconcile(1).plan.next_wakeup == at_hour(3)
    annotations = fleet.load("clusters/ash/default/deployment-web.yaml")["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/sync-options"] == "Replace=true,Prune=false,Delete=false"
    fleet.reconcile(3)
    assert fleet.delivered("default/deployment-web") == []
