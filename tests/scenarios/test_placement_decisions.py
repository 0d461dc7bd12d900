"""The PlacementDecisions of a run name the ClusterProfiles of the namespace that the settings say."""

from __future__ import annotations

import yaml

from tests.conformance.test_placement_decisions import list_errors
from tests.scenarios.conftest import UNGUARDED, Fleet, cluster, deployment, policy


def test_a_run_writes_them_with_the_namespace_of_the_settings(fleet: Fleet) -> None:
    def list_namespaces(hour: int) -> set[str | None]:
        fleet.reconcile(hour)
        bodies = [body for path in fleet.files() if path.startswith("placements/") for body in yaml.safe_load_all(fleet.read(path))]
        assert len(bodies) == 3
        assert [error for body in bodies for error in list_errors(body)] == []
        return {one["clusterProfileRef"].get("namespace") for body in bodies for one in body["decisions"]}

    files = {
        "clusters.yaml": f"{cluster('ash')}---\n{cluster('elm')}",
        "policy.yaml": policy(""),
        **{f"{name}.yaml": deployment(name) for name in ("a", "b")},
        "role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'a:b'}\nrules: []\n",
        "roles.yaml": policy("", name="roles", kind="ClusterRole")
        .replace("PropagationPolicy", "ClusterPropagationPolicy")
        .replace("apps/v1", "rbac.authorization.k8s.io/v1"),
    }
    fleet.commit({**files, "gitsched.yaml": UNGUARDED})
    assert list_namespaces(0) == {"default"}
    fleet.commit({"gitsched.yaml": UNGUARDED + "  delivery: {clusterProfileNamespace: inventory}\n"})
    assert list_namespaces(1) == {"inventory"}
    fleet.commit({"a.yaml": deployment("a", 3)})  # an incremental plan
    assert list_namespaces(2) == {"inventory"}
    fleet.commit({"gitsched.yaml": UNGUARDED + "  delivery: {clusterProfileNamespace: ''}\n"})
    assert list_namespaces(3) == {None}
