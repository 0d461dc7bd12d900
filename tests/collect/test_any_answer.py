"""Whatever JSON a server answers, reading it ends with facts that are valid, or with a reason."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gitsched.collect.argo_cd import read_secrets
from gitsched.collect.cluster_report import read_report
from gitsched.collect.collector import ClusterResult, settle_hub_cluster
from gitsched.collect.discovery import read_apis
from gitsched.collect.observation import observe_cluster
from gitsched.collect.sources import read_hub, read_profiles
from gitsched.decide.registry import policy_apis
from gitsched.kubectl.client import KubectlOptions
from gitsched.kubectl.proxy import Answer, ClusterReader
from gitsched.model.cluster_facts import CollectedCluster
from gitsched.model.errors import GitschedError
from gitsched.reconcile.facts.collection import check_result
from tests.builders.recorded_cluster import make_discovery, make_node, make_pod
from tests.collect.test_collection import HUB_CLUSTER, MANAGED_CLUSTER, PROFILE, make_flux, make_secret, make_workload

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONSTANTS = ([], {}, [[]], [{}], {"a": 1}, "-1", "9E", 10**400, 1e308)
values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.sampled_from(CONSTANTS)
)


class AnsweringReader(ClusterReader):
    """Answers every request with the same objects."""

    def __init__(self, answers: dict[str, Any]) -> None:
        super().__init__(KubectlOptions(), 60)
        self.answers = answers

    def request(self, path: str, accept: str = "application/json") -> Answer:
        found = self.answers.get(path.partition("?")[0], {})
        return Answer(found, b"") if isinstance(found, int) else Answer(200, json.dumps(found).encode())


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in items for found in list_paths(child, (*path, key)))]


def replace(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, dict):
        return {key: replace(child, path[1:], new) if key == path[0] else child for key, child in value.items()}
    return [replace(child, path[1:], new) if index == path[0] else child for index, child in enumerate(value)]


CORE, GROUPS = make_discovery({"v1": ["ConfigMap"], "apps/v1": ["Deployment"]})
ANSWERS: dict[str, Any] = {
    "/version": {"gitVersion": "v1.34.1"},
    "/readyz": {},
    "/api": CORE,
    "/apis": GROUPS,
    "/api/v1/nodes": {"items": [make_node("n1")]},
    "/api/v1/pods": {"items": [make_pod("web", overhead={"cpu": "1"}, initContainers=[{"restartPolicy": "Always"}])]},
    "/apis/cluster.karmada.io/v1alpha1/clusters": {"items": [HUB_CLUSTER]},
    "/apis/cluster.open-cluster-management.io/v1/managedclusters": {"items": [MANAGED_CLUSTER]},
    "/apis/multicluster.x-k8s.io/v1alpha1/clusterprofiles": {"items": [PROFILE]},
    "/api/v1/namespaces/argocd/secrets": {"items": [make_secret("dub", "https://a.example.com", {"tlsClientConfig": {}})]},
    "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations": {"items": [make_flux()]},
    "/apis/argoproj.io/v1alpha1/applications": {"items": []},
    "/apis/apps/v1/deployments": {"items": [make_workload("web", 3, 1, reason="ProgressDeadlineExceeded")]},
    "/apis/apps/v1/statefulsets": {"items": [make_workload("db", 1, 1)]},
}
PATHS = list_paths(ANSWERS)[1:]
HUBS = [api.load_cluster_format() for api in policy_apis.values() if api.load_cluster_format is not None]


def read_everything(reader: ClusterReader) -> None:
    """Read all that `gitsched collect` reads; what is found is valid, or not accepted."""
    for hub in HUBS:
        if hub.hub is None:
            continue
        for origin, cluster in read_hub(reader, hub.hub, "hub", NOW).clusters:
            check_all(origin, cluster)
            hub.write(cluster)
    for origin, cluster in read_profiles(reader, "profiles", NOW).clusters:
        check_all(origin, cluster)
    read_secrets(reader, "argocd", NOW)
    found = observe_cluster(reader, "dub", None, NOW).cluster
    check_all("dub", observe_cluster(reader, "dub", found.facts, NOW).cluster)
    read_report(reader, "dub", "placements", None, NOW, lambda _: None)


def check_all(origin: str, cluster: CollectedCluster) -> None:
    result = check_result(settle_hub_cluster(origin, cluster, None))
    assert isinstance(result, ClusterResult)
    assert (result.collected is None) == bool(result.failure)


def test_the_recorded_answers_are_read() -> None:
    read_everything(AnsweringReader(ANSWERS))


@given(st.sampled_from(PATHS), values)
def test_any_value_in_any_place_is_survived(path: tuple[Any, ...], value: Any) -> None:
    with contextlib.suppress(GitschedError):
        read_everything(AnsweringReader(replace(ANSWERS, path, value)))


def test_servers_without_aggregated_discovery_and_groups_that_do_not_answer() -> None:
    groups = [{"name": "apps", "versions": [{"version": "v1"}]}, {"name": "metrics.k8s.io", "versions": [{"version": "v1beta1"}]}]
    answers = {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": {"resources": [{"name": "pods", "kind": "Pod"}, {"name": "pods/log", "kind": "PodLog"}]},
        "/apis": {"kind": "APIGroupList", "groups": groups},
        "/apis/apps/v1": {"resources": [{"name": "deployments", "kind": "Deployment"}]},
        "/apis/metrics.k8s.io/v1beta1": 503,
    }
    before, notes = {"metrics.k8s.io/v1beta1": ("NodeMetrics",)}, list[str]()
    found = read_apis(AnsweringReader(answers), before, notes.append)
    assert found == {"apps/v1": ("Deployment",), **before, "v1": ("Pod",)}
    assert notes == ["the server of metrics.k8s.io/v1beta1 does not answer: its kinds are those of the last time"]
