"""Advice on random fleets with a random history: it is carried out, and what it promises happens."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gitsched.model.document import Document
from gitsched.model.explanation import Explanation
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.simulate import counterfactuals

from .conftest import UNGUARDED, Fleet

NAMES = ("c1", "c2", "c3", "c4")
LABELS = st.fixed_dictionaries({"tier": st.sampled_from(["a", "b"])})
TAINTS = st.sampled_from([[], [], [{"key": "power", "effect": "NoExecute"}], [{"key": "power", "effect": "NoSchedule"}]])
CLUSTERS = st.fixed_dictionaries(
    {"labels": LABELS, "region": st.sampled_from(["north", "south"]), "taints": TAINTS, "cpu": st.sampled_from([2, 5, 50])}
)
TERMS = st.one_of(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(lambda names: {"clusterNames": names}),
    st.sampled_from(["a", "b"]).map(lambda tier: {"labelSelector": {"matchLabels": {"tier": tier}}}),
    st.just({"exclude": ["c1"]}),
)
SCHEDULING = st.sampled_from(
    [
        {"replicaSchedulingType": "Duplicated"},
        {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
        {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    ]
)
SPREAD = st.sampled_from([[], [], [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]])
POLICIES = st.fixed_dictionaries({"terms": st.lists(TERMS, min_size=1, max_size=3), "scheduling": SCHEDULING, "spread": SPREAD})
FLEETS = st.fixed_dictionaries(dict.fromkeys(NAMES, CLUSTERS))


def write_cluster(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    resources = {"cpu": str(values["cpu"]), "memory": "100Gi", "pods": "100"}
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": values["labels"]},
        "spec": {"syncMode": "Push", "region": values["region"], "taints": values["taints"]},
        "status": {
            "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "resourceSummary": {"allocatable": resources},
        },
    }


def write_policy(values: Mapping[str, Any]) -> dict[str, Any]:
    terms = [{"affinityName": f"g{number}", **term} for number, term in enumerate(values["terms"])]
    placement = {"clusterAffinities": terms, "replicaScheduling": values["scheduling"]}
    if values["spread"]:
        placement["spreadConstraints"] = values["spread"]
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"resourceSelectors": selectors, "placement": placement},
    }


WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web", "resources": {"requests": {"cpu": "1"}}}]},
        },
    },
}


def write_files(fleet: Mapping[str, Any], policy: Mapping[str, Any]) -> dict[str, str]:
    documents = {f"{name}.yaml": write_cluster(name, values) for name, values in fleet.items()}
    documents |= {"policy.yaml": write_policy(policy), "web.yaml": WEB}
    return {"gitsched.yaml": UNGUARDED, **{path: yaml.safe_dump(body) for path, body in documents.items()}}


@pytest.fixture(scope="module")
def directory() -> Any:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def start(directory: Path, *versions: dict[str, str]) -> Fleet:
    """Return a fleet in which these versions were reconciled, one each hour."""
    fleet = Fleet(Path(tempfile.mkdtemp(dir=directory)), directory / "cache")
    for hour, files in enumerate(versions):
        fleet.commit(files, hour=hour)
        fleet.reconcile(hour)
        fleet.reconcile(hour + 0.5)
    return fleet


EXAMPLES = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@EXAMPLES
@given(before=FLEETS, after=FLEETS, policy=POLICIES, cluster=st.sampled_from(NAMES))
def test_a_counterfactual_places_the_workload(directory: Path, before: Any, after: Any, policy: Any, cluster: str) -> None:
    """What explain proposes for a cluster is committed: the workload runs there, with the replicas that were promised."""
    fleet = start(directory, write_files(before, policy), write_files(after, policy))
    edited: dict[Any, Document] = {}
    edit_catalog = counterfactuals.edit_catalog

    def record(catalog: Any, changes: Any, added: Any = ()) -> Any:
        edited.update(changes)
        edited.update((document.key, document) for document in added)
        return edit_catalog(catalog, changes, added)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counterfactuals, "edit_catalog", record)
        found = explain_resource(fleet.settings(1.6), "deployment", "default", "web", (cluster,))
    assert isinstance(found, Explanation)
    promised = next((entry for entry in found.counterfactuals if entry.cluster == cluster), None)
    event("runs there" if promised is None else "proposed" if promised.sufficient else "nothing proposed")
    if promised is None or not promised.sufficient:
        return
    paths = {"Cluster": "{}.yaml", "PropagationPolicy": "policy.yaml"}
    files = {
        paths.get(key.kind, "{}-new.yaml").format(key.name): yaml.safe_dump(yaml.safe_load(yaml.safe_dump(document.body)))
        for key, document in edited.items()
    }
    fleet.commit(files, hour=2)
    fleet.reconcile(2)
    shown = {entry["name"]: entry.get("replicas") for entry in fleet.binding("web-deployment")["spec"].get("clusters", ())}
    assert cluster in shown, [change.text for change in promised.changes]
    assert shown[cluster] == promised.replicas


@EXAMPLES
@given(before=FLEETS, policy=POLICIES, cpu=st.sampled_from([5, 50]))
def test_a_remedy_moves_a_retained_workload(directory: Path, before: Any, policy: Any, cpu: int) -> None:
    """Clusters recover. A WorkloadRebalancer that names the workload does what the plan says."""
    after = {name: {**values, "taints": [], "cpu": cpu} for name, values in before.items()}
    fleet = start(directory, write_files(before, policy))
    fleet.commit(write_files(after, policy), hour=1)
    review = compare_plans(fleet.settings(1, revision="HEAD"), "HEAD~1").review
    event(f"{len(review.retained)} retained")
    fleet.reconcile(1)
    fleet.reconcile(1.5)
    for entry in review.retained:
        rebalancer = {
            "apiVersion": "apps.karmada.io/v1alpha1",
            "kind": "WorkloadRebalancer",
            "metadata": {"name": "again"},
            "spec": {"workloads": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}]},
        }
        fleet.commit({"again.yaml": yaml.safe_dump(rebalancer)}, hour=2)
        fleet.reconcile(2)
        shown = {cluster["name"] for cluster in fleet.binding("web-deployment")["spec"].get("clusters", ())}
        if "brings it there" in entry.remedy:
            assert shown == entry.if_rescheduled.keys(), entry.remedy
        elif "would leave it where it is" in entry.remedy:
            assert shown == entry.current.keys(), entry.remedy
        elif found := [name for name in NAMES if f"brings it to {name}" in entry.remedy]:
            assert set(found) <= shown, entry.remedy
