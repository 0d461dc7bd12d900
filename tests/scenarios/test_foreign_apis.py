"""Documents of other tools that say where workloads run get one note for each tool, which names the page about their fields."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gitsched.kinds.foreign_apis import FOREIGN_APIS, find_foreign_api
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.test_incremental_plan import ThreeVariants

PAGE = Path(__file__).parents[2] / "docs" / "development" / "other-tools.md"
KINDS = {
    "placement.kubernetes-fleet.io/v1 ClusterResourcePlacement": "KubeFleet",
    "cluster.kubernetes-fleet.io/v1 MemberCluster": "KubeFleet",
    "config.projectsveltos.io/v1beta1 ClusterProfile": "Sveltos",
    "fleet.cattle.io/v1alpha1 Bundle": "Rancher Fleet",
    "apps.clusternet.io/v1alpha1 Subscription": "Clusternet",
    "kueue.x-k8s.io/v1beta1 ClusterQueue": "Kueue",
    "multicluster.x-k8s.io/v1alpha1 ClusterProfile": "ClusterProfile",
    "multicluster.x-k8s.io/v1alpha1 PlacementDecision": "ClusterProfile",
    "multicluster.x-k8s.io/v1alpha1 ServiceExport": "",
    "core.kubeadmiral.io/v1alpha1 FederatedCluster": "KubeAdmiral",
    "types.kubefed.io/v1beta1 FederatedDeployment": "KubeFed",
    "offloading.liqo.io/v1beta1 NamespaceOffloading": "Liqo",
    "addons.cluster.x-k8s.io/v1beta1 ClusterResourceSet": "Cluster API add-ons",
    "cluster.x-k8s.io/v1beta1 Cluster": "",
    "notfleet.cattle.io/v1 Bundle": "",
    "gitsched.io/v1alpha1 Bundle": "",
}


def foreign(kind: str, name: str = "a", more: str = "") -> str:
    version, kind = kind.split()
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{x: 1{more}}}\n"


def list_notes(findings: object) -> list[str]:
    return [f"{found.location} {found.message}" for found in findings if found.code == "foreign-api"]  # type: ignore[attr-defined]


def test_tools_are_recognized_by_group() -> None:
    for kind, name in KINDS.items():
        version, kind_name = kind.split()
        api = find_foreign_api(version.partition("/")[0], kind_name)
        assert (api.name if api else "") == name, kind


def test_a_table_says_what_to_write_instead_of_each_field() -> None:
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    assert list(sections.keys() - {api.name for api in FOREIGN_APIS}) == []
    for api in FOREIGN_APIS:
        assert "| field | instead |\n|---|---|\n| " in sections[api.name], api.name
        assert api.documentation == f"docs/development/other-tools.md#{re.sub(r' ', '-', api.name.lower())}"


def test_each_tool_has_one_note_at_its_first_document(fleet: Fleet, tmp_path: Path) -> None:
    placement, queue = "placement.kubernetes-fleet.io/v1 ClusterResourcePlacement", "kueue.x-k8s.io/v1beta1 ClusterQueue"
    variants = ThreeVariants(fleet, tmp_path)
    fleet.commit(
        {
            "clusters.yaml": cluster("ash"),
            "policy.yaml": policy(""),
            "web.yaml": deployment("web"),
            "m/two.yaml": f"{foreign(placement, 'b')}---\n{foreign(queue)}",
            "m/three.yaml": foreign(placement, "c"),
        }
    )

    def check(hour: int, *expected: str) -> None:
        for run in variants.run(hour, f"hour {hour}"):
            notes = list_notes(run.plan.findings)
            assert len(notes) == len(expected)
            assert all(any(note.startswith(start) for note in notes) for start in expected), notes

    placed, queued = "Placement.placement.kubernetes-fleet.io", "m/two.yaml:6:1 ClusterQueue.kueue.x-k8s.io/a is of Kueue, which "
    check(0, f"m/three.yaml:1:1 ClusterResource{placed}/c is of KubeFleet", queued)
    fleet.commit({"web.yaml": deployment("web", 3)}, hour=1)
    check(1, f"m/three.yaml:1:1 ClusterResource{placed}/c ", queued)
    fleet.commit({"a.yaml": foreign(placement, "a")}, hour=2)
    check(2, f"a.yaml:1:1 ClusterResource{placed}/a ", queued)
    fleet.commit({"a.yaml": foreign(placement, "a", ", y: 2"), "web.yaml": deployment("web", 1)}, hour=3)
    check(3, f"a.yaml:1:1 ClusterResource{placed}/a ", queued)
    fleet.commit({"a.yaml": None}, hour=4)
    check(4, f"m/three.yaml:1:1 ClusterResource{placed}/c ", queued)
    selects = policy("", name="queues", kind="ClusterQueue").replace("PropagationPolicy", "ClusterPropagationPolicy")
    fleet.commit({"queues.yaml": selects.replace("apps/v1", "kueue.x-k8s.io/v1beta1")}, hour=5)
    check(5, f"m/three.yaml:1:1 ClusterResource{placed}/c ")  # it is for the cluster, which may have Kueue
    fleet.commit({"queues.yaml": None, "m/three.yaml": None}, hour=6)
    check(6, f"m/two.yaml:1:1 ClusterResource{placed}/b ", queued)


@pytest.mark.parametrize("severity", ["error", "warning"])
def test_notes_fail_no_pipeline(fleet: Fleet, severity: str) -> None:
    fleet.commit({"a.yaml": foreign("kueue.x-k8s.io/v1beta1 ClusterQueue")})
    found = fleet.preview().plan.findings
    assert [finding.severity for finding in found if finding.code == "foreign-api"] == ["info"]
    assert severity not in {finding.severity for finding in found}
