"""Decisions that depend on each other: an updated engine decides as a new one after any change of manifests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.apis.gitsched.config import parse_config
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.decide.workload_decision import DecisionCache
from gitsched.model.document import Body, Key
from tests.search_depth import count_examples

START = datetime(2026, 1, 1, tzinfo=UTC)
CONFIG = parse_config({})
SHARED = {"conflictResolution": "Overwrite", "propagateDeps": True}


def make(version: str, kind: str, name: str, metadata: Body | None = None, **rest: Any) -> RawDocument:
    return make_raw_document(
        {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop", **(metadata or {})}, **rest}
    )


def make_policy(name: str, clusters: list[str], **spec: Any) -> RawDocument:
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"team": name}}}]
    placement = {"clusterAffinity": {"clusterNames": clusters}}
    return make(
        "policy.karmada.io/v1alpha1",
        "PropagationPolicy",
        name,
        spec={"resourceSelectors": selectors, "placement": placement, **spec},
    )


URGENT = {"schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "urgent"}}
PATIENCE = [{"key": "fire", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1800}]
FIRE = {"key": "fire", "effect": "NoExecute", "timeAdded": "2026-01-01T02:00:00Z"}
SETTINGS = (
    make("cluster.karmada.io/v1alpha1", "Cluster", "m1", spec={"syncMode": "Push", "taints": [FIRE]}),
    make("cluster.karmada.io/v1alpha1", "Cluster", "m2", spec={"syncMode": "Push"}),
    make("cluster.karmada.io/v1alpha1", "Cluster", "m3", spec={"syncMode": "Push"}),
    make_policy("red", ["m1", "m2"], propagateDeps=True),
    make_policy("blue", ["m3"], **SHARED, **URGENT),
    make_policy("lazy", ["m1", "m3"], propagateDeps=True, activationPreference="Lazy"),
    make_policy("bare", ["m2"]),
)


def make_deployment(name: str, team: str, configs: tuple[str, ...], replicas: int) -> RawDocument:
    sources = [{"configMapRef": {"name": config}} for config in configs]
    pod = {"containers": [{"name": "main", "envFrom": sources}]}
    return make("apps/v1", "Deployment", name, {"labels": {"team": team}}, spec={"replicas": replicas, "template": {"spec": pod}})


def make_class(value: int) -> RawDocument:
    return make_raw_document(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": value}
    )


@st.composite
def repositories(draw: st.DrawFn) -> list[tuple[RawDocument, ...]]:
    """Some commits of a repository; each edits, adds or deletes a few manifests of the one before."""
    teams = st.sampled_from(["red", "blue", "lazy", "bare", "none"])
    needs = st.lists(st.sampled_from(["one", "two", "three"]), max_size=2, unique=True).map(tuple)
    choices: dict[str, st.SearchStrategy[RawDocument | None]] = {
        name: st.none() | st.builds(make_deployment, st.just(name), teams, needs, st.integers(0, 3))
        for name in ("api", "web", "zoo")
    }
    for name in ("one", "two"):
        choices[name] = st.none() | st.builds(lambda name, data: make("v1", "ConfigMap", name, data=data), st.just(name), teams)
    choices["urgent"] = st.none() | st.builds(make_class, st.integers(1, 2))
    files: dict[str, RawDocument | None] = {name: draw(choice) for name, choice in choices.items()}
    commits = []
    for _ in range(draw(st.integers(2, 5))):
        for name in draw(st.lists(st.sampled_from(sorted(choices)), max_size=2, unique=True)):
            files[name] = draw(choices[name])
        commits.append((*SETTINGS, *(file for file in files.values() if file is not None)))
    return commits


def written(decided: DecisionSet) -> dict[Key, Body]:
    return {key: body for outcome in decided.outcomes.values() for key, body in outcome.records}


def summarize(decided: DecisionSet) -> dict[Key, Any]:
    """What a reader sees of the outcomes; when they were last looked at is no part of it."""
    return {key: outcome._replace(time=START, previous_targets=()) for key, outcome in decided.outcomes.items()}


@settings(max_examples=count_examples(25), deadline=None)
@given(repositories(), st.integers(0, 90))
def test_an_updated_engine_decides_as_a_new_one(commits: list[tuple[RawDocument, ...]], minutes: int) -> None:
    cache = DecisionCache()
    previous: Mapping[Key, Body] = {}
    last: Mapping[Key, Body] | None = None
    for number, documents in enumerate(commits):
        at = START + timedelta(hours=number + 1)
        now = at + timedelta(minutes=minutes)
        resident = decide(documents, previous, CONFIG, at, now, cache, last is not None)
        fresh = decide(documents, previous, CONFIG, at, now)
        assert summarize(resident) == summarize(fresh)
        assert list(resident.outcomes) == list(fresh.outcomes)
        assert resident.findings == fresh.findings
        previous = last = written(resident)


def test_an_endpoint_slice_is_propagated_while_it_has_its_label() -> None:
    selectors = [{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport"}]
    policy = make(
        "policy.karmada.io/v1alpha1", "PropagationPolicy", "imports", spec={"resourceSelectors": selectors, "placement": {}}
    )
    imported = make("multicluster.x-k8s.io/v1alpha1", "ServiceImport", "web", spec={"type": "ClusterSetIP"})
    service = make("v1", "Service", "derived-web", spec={})
    cache = DecisionCache()
    previous: Mapping[Key, Body] = {}
    found = []
    for number, label in enumerate(["derived-web", "derived-api", "derived-web"]):
        labels = {"labels": {"kubernetes.io/service-name": label}}
        slices = make("discovery.k8s.io/v1", "EndpointSlice", "web-1", labels, endpoints=[])
        documents = (*SETTINGS[:3], policy, imported, service, slices)
        at = START + timedelta(minutes=number)
        decided = decide(documents, previous, CONFIG, at, at, cache, number > 0)
        assert summarize(decided) == summarize(decide(documents, previous, CONFIG, at, at))
        previous = written(decided)
        found.append(sorted(key.kind for key in decided.outcomes))
    both = ["EndpointSlice", "Service", "ServiceImport"]
    assert found == [both, both[1:], both]
