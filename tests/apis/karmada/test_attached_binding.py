"""propagateDeps: the dependencies of a workload are in the clusters of the workload."""

from __future__ import annotations

from typing import Any

import pytest

CLUSTERS = "\n---\n".join(f"kind: Cluster\nmetadata: {{name: m{i}}}" for i in (1, 2, 3))
CONFIG = "kind: ConfigMap\nmetadata: {name: conf}"
NOON = "2026-01-01T12:00:00Z"
HOT = "{key: fire, effect: NoExecute, timeAdded: '2026-01-01T12:00:00Z'}"


def deployment(name: str, *configs: str, replicas: int = 2) -> str:
    """A Deployment whose pods read these ConfigMaps."""
    sources = ", ".join(f"{{configMapRef: {{name: {config}}}}}" for config in configs)
    pod = f"{{containers: [{{name: main, envFrom: [{sources}]}}]}}"
    return f"kind: Deployment\nmetadata: {{name: {name}}}\nspec: {{replicas: {replicas}, template: {{spec: {pod}}}}}"


def policy(name: str, clusters: str = "", spec: str = "propagateDeps: true", selects: str = "", kind: str = "Deployment") -> str:
    """A policy for the Deployment of its name, on these clusters."""
    version = "v1" if kind == "ConfigMap" else "apps/v1"
    return f"""
kind: PropagationPolicy
metadata: {{name: {name}}}
spec:
  resourceSelectors: [{{apiVersion: {version}, kind: {kind}, name: {selects or name}}}]
  placement: {{clusterAffinity: {{clusterNames: [{clusters}]}}}}
  {spec}
"""


def repository(*documents: str) -> str:
    return "\n---\n".join((CLUSTERS, *documents))


def places(run: Any, name: str) -> list[str]:
    """The clusters in whose directory it lies, those it leaves in brackets."""
    outcome = run.outcome(name)
    return sorted(f"({p.cluster})" if p.evicting else p.cluster for p in outcome.targets) if outcome else []


def test_an_attached_binding_repeats_the_clusters_of_its_dependent_without_a_placement(run: Any) -> None:
    found = run(repository(CONFIG, deployment("web", "conf"), policy("web", "m1, m2")))
    spec = found.binding("conf")["spec"]
    clusters = [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 2}]
    assert spec == {
        "resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "conf"},
        "conflictResolution": "Abort",
        "preserveResourcesOnDeletion": False,
        "requiredBy": [{"namespace": "default", "name": "web-deployment", "clusters": clusters}],
    }
    assert places(found, "conf") == ["m1", "m2"]
    assert found.outcome("conf").reason == "attached to Deployment default/web"


def test_bindings_refer_to_each_other_by_label_and_annotation(run: Any) -> None:
    found = run(repository(CONFIG, deployment("web", "conf", "absent"), policy("web", "m1")))
    owner, attached = found.binding("web")["metadata"], found.binding("conf")["metadata"]
    identity = owner["labels"]["resourcebinding.karmada.io/permanent-id"]
    (label,) = (name for name in attached["labels"] if "depended-by-" in name)
    assert attached["labels"][label] == identity
    assert "annotations" not in attached, "no policy claims it"
    assert owner["annotations"]["resourcebinding.karmada.io/dependencies"] == (
        '[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"absent"},'
        '{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"conf"}]'
    )


def test_without_propagate_deps_no_dependency_is_propagated(run: Any) -> None:
    found = run(repository(CONFIG, deployment("web", "conf"), policy("web", "m1", "propagateDeps: false")))
    assert found.outcome("conf") is None
    assert "resourcebinding.karmada.io/dependencies" not in found.binding("web")["metadata"]["annotations"]


def test_dependencies_are_in_the_namespace_of_the_workload(run: Any) -> None:
    elsewhere = CONFIG.replace("{name: conf}", "{name: conf, namespace: other}")
    assert run(repository(elsewhere, deployment("web", "conf"), policy("web", "m1"))).outcome("conf") is None


def test_a_dependency_of_two_workloads_is_in_the_clusters_of_both(run: Any) -> None:
    pair = (CONFIG, deployment("api", "conf"), deployment("web", "conf"))
    found = run(repository(*pair, policy("web", "m1"), policy("api", "m2")))
    assert places(found, "conf") == ["m1", "m2"]
    assert [entry["name"] for entry in found.binding("conf")["spec"]["requiredBy"]] == ["api-deployment", "web-deployment"]
    assert found.outcome("conf").reason == "attached to Deployment default/api, Deployment default/web"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ((CONFIG, deployment("api", "conf"), policy("api", "m2")), ["m2"]),
        ((CONFIG, deployment("api", "conf"), deployment("web"), policy("web", "m1"), policy("api", "m2")), ["m2"]),
        ((CONFIG, deployment("api", "conf"), deployment("web", "conf"), policy("web", "m1", ""), policy("api", "m2")), ["m2"]),
        ((CONFIG, deployment("api", "conf"), deployment("web", "conf"), policy("web", "m3"), policy("api", "m2")), ["m2", "m3"]),
        ((CONFIG,), []),
    ],
    ids=["owner deleted", "owner needs it no more", "policy brings nothing any more", "owner moved", "all owners deleted"],
)
def test_a_dependency_follows_its_dependents(run: Any, after: tuple[str, ...], expected: list[str]) -> None:
    both = (CONFIG, deployment("api", "conf"), deployment("web", "conf"), policy("web", "m1"), policy("api", "m2"))
    first = run(repository(*both))
    assert places(first, "conf") == ["m1", "m2"]
    assert places(run(repository(*after), first), "conf") == expected


def test_the_dependency_of_an_unplaced_workload_is_removed(run: Any) -> None:
    found = run(repository(CONFIG, deployment("web", "conf"), policy("web", "gone")))
    assert (found.outcome("conf").state, places(found, "conf")) == ("pending", [])
    assert found.binding("conf")["spec"]["requiredBy"] == [{"namespace": "default", "name": "web-deployment"}]


def test_a_dependency_with_its_own_policy_is_scheduled_and_required(run: Any) -> None:
    own = policy("own", "m3", "conflictResolution: Overwrite", selects="conf", kind="ConfigMap")
    found = run(repository(CONFIG, deployment("web", "conf"), policy("web", "m1"), own))
    assert places(found, "conf") == ["m1", "m3"]
    spec = found.binding("conf")["spec"]
    assert [cluster["name"] for cluster in spec["clusters"]] == ["m3"]
    assert [entry["name"] for entry in spec["requiredBy"]] == ["web-deployment"]
    assert spec["conflictResolution"] == "Overwrite"
    assert found.policy("conf") == "PropagationPolicy/default/own"
    left = run(repository(CONFIG, deployment("web", "conf"), policy("web", "m1")), found)
    assert places(left, "conf") == ["m1"]
    alone = run(repository(CONFIG, own), found)
    assert places(alone, "conf") == ["m3"]
    assert "requiredBy" not in alone.binding("conf")["spec"]


@pytest.mark.parametrize(
    ("web", "api", "expected", "warned"),
    [
        ("", "", ("Abort", False), False),
        ("conflictResolution: Overwrite", "conflictResolution: Overwrite", ("Overwrite", False), False),
        ("conflictResolution: Overwrite", "", ("Overwrite", False), True),
        ("", "preserveResourcesOnDeletion: true", ("Abort", True), True),
    ],
    ids=["defaults", "agreed", "resolution", "preservation"],
)
def test_dependents_with_conflicting_policies(run: Any, web: str, api: str, expected: Any, warned: bool) -> None:
    deps = "propagateDeps: true\n  "
    found = run(
        repository(
            CONFIG,
            deployment("web", "conf"),
            deployment("api", "conf"),
            policy("web", "m1", deps + web),
            policy("api", "m1", deps + api),
        )
    )
    spec = found.binding("conf")["spec"]
    assert (spec["conflictResolution"], spec["preserveResourcesOnDeletion"]) == expected
    assert ("karmada-dependency-conflict" in found.codes("conf")) is warned


def test_an_evicted_copy_keeps_its_dependencies(run: Any) -> None:
    documents = (CONFIG, deployment("web", "conf"), policy("web", "m1, m2"))
    first = run(repository(*documents))
    hot = CLUSTERS.replace("{name: m1}", f"{{name: m1}}\nspec: {{taints: [{HOT}]}}")
    second = run("\n---\n".join((hot, *documents)), first, at=NOON)
    assert places(second, "web") == places(second, "conf") == ["(m1)", "m2"]
    assert second.outcome("conf").wakeup == second.outcome("web").wakeup is not None
    third = run("\n---\n".join((hot, *documents)), second, at="2026-01-01T13:00:00Z")
    assert places(third, "web") == places(third, "conf") == ["m2"]


def test_a_late_run_writes_the_same_attached_binding_as_a_punctual_one(run: Any) -> None:
    documents = (CONFIG, deployment("web", "conf"), policy("web", "m1, m2"))
    hot = CLUSTERS.replace("{name: m1}", f"{{name: m1}}\nspec: {{taints: [{HOT}]}}")
    first = run(repository(*documents))
    after = "\n---\n".join((hot, *documents))
    late = run(after, first, at=NOON, now="2026-01-01T20:00:00Z")
    punctual = run(after, run(after, first, at=NOON), at=NOON, now="2026-01-01T12:10:00Z")
    assert late.outcome("conf") == punctual.outcome("conf")._replace(previous_targets=late.outcome("conf").previous_targets)
    assert late.outcome("conf").time == late.outcome("web").time


def test_a_workload_that_is_defined_twice_keeps_its_dependencies(run: Any) -> None:
    documents = (CONFIG, deployment("web", "conf"), policy("web", "m1"))
    first = run(repository(*documents))
    twice = run(repository(*documents, deployment("web", replicas=9)), first)
    assert twice.outcome("web") is not None
    assert places(twice, "conf") == ["m1"]
    assert twice.binding("conf") == first.binding("conf")


def test_a_workload_with_an_invalid_policy_keeps_its_dependencies(run: Any) -> None:
    documents = (CONFIG, deployment("web", "conf"))
    first = run(repository(*documents, policy("web", "m1")))
    broken = run(repository(*documents, policy("web", "m1").replace("resourceSelectors:", "resourceSelectors: 3 #")), first)
    assert broken.outcome("web").state == "stale"
    assert places(broken, "conf") == ["m1"]


def test_a_dependency_that_is_defined_twice_keeps_its_manifest_and_follows_its_dependent(run: Any) -> None:
    copies = (CONFIG, f"{CONFIG}\ndata: {{a: b}}")
    documents = (*copies, deployment("web", "conf"))
    first = run(repository(CONFIG, deployment("web", "conf"), policy("web", "m1")))
    (key,) = (key for key in first.decisions.outcomes if key.name == "conf")
    twice = run(repository(*documents, policy("web", "m1")), first).decisions.outcomes[key]
    assert (twice.state, [place.cluster for place in twice.targets]) == ("stale", ["m1"])
    moved = run(repository(*documents, policy("web", "m2")), first).decisions.outcomes[key]
    assert [place.cluster for place in moved.targets] == ["m2"]
    assert key not in run(repository(*copies), first).decisions.outcomes


def test_a_second_run_changes_nothing(run: Any) -> None:
    documents = repository(CONFIG, deployment("web", "conf"), policy("web", "m1"))
    first = run(documents)
    assert run(documents, first, at=NOON).binding("conf") == first.binding("conf")


def test_explain_names_the_dependents(run: Any) -> None:
    found = run({"all.yaml": repository(CONFIG, deployment("web", "conf"), policy("web", "m1"))})
    explained = found.explain("conf")
    assert explained.attached_to == ("Deployment.apps/default/web (all.yaml:13): m1",)
    assert [share.cluster for share in explained.result] == ["m1"]
    assert explained.trigger == "Not scheduled: it follows the workloads that depend on it."
    own = policy("own", "m3", "", selects="conf", kind="ConfigMap")
    both = run({"all.yaml": repository(CONFIG, deployment("web", "conf"), policy("web", "m1"), own)}).explain("conf")
    assert (both.policy, len(both.attached_to)) == ("PropagationPolicy/default/own", 1)
    assert sorted(share.cluster for share in both.result) == ["m1", "m3"]
