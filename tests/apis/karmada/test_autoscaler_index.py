"""Autoscalers by their targets: an index that is updated is equal to a new one, and their limits follow the decision of the target."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.apis.karmada.autoscalers import AutoscalerIndex, divide_limits, find_scaled_per_cluster, read_target
from gitsched.apis.karmada.binding.resource_binding import binding_key
from gitsched.model.document import Document, Key, parse_api_group
from gitsched.model.scheduling import Assignment, Outcome, TargetCluster

WEB, API = Key("apps", "Deployment", "shop", "web"), Key("apps", "Deployment", "shop", "api")
NAMES = ("a", "b", "c")
NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)


def make(version: str, kind: str, name: str, spec: dict[str, Any], **annotations: str) -> Document:
    metadata = {"name": name, "namespace": "shop", "annotations": annotations}
    body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    return Document(Key(parse_api_group(version), kind, "shop", name), version, body)


def scaler(name: str = "a", target: str = "web", kind: str = "Deployment", **limits: int) -> Document:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": target}
    return make("autoscaling/v2", "HorizontalPodAutoscaler", name, {"scaleTargetRef": reference, **limits})


def deployment(key: Key = WEB) -> Document:
    return make("apps/v1", "Deployment", key.name, {"replicas": 6})


def outcome(key: Key, *targets: TargetCluster, hours: int = 0, wakeup: int | None = None, division: str = "Divided") -> Outcome:
    record = {"spec": {"placement": {"replicaScheduling": {"replicaSchedulingType": division}}}}
    records = ((Key("work.karmada.io", "ResourceBinding", "shop", f"{key.name}-deployment"), record),)
    end = None if wakeup is None else NOW + wakeup * HOUR
    return Outcome(key, "karmada", "placed", "", "", targets, 6, records, "", NOW + hours * HOUR, wakeup=end)


def divide(autoscaler: Document, own: Outcome, scaled: Outcome) -> Outcome:
    index = AutoscalerIndex([autoscaler], divides_limits=True)
    templates = {WEB: deployment(), autoscaler.key: autoscaler}
    return index.divide_limits(autoscaler, own, templates, lambda _: scaled)


def own_outcome(autoscaler: Document, *names: str, **more: int) -> Outcome:
    return outcome(autoscaler.key, *(TargetCluster(name, None) for name in names), **more)


@pytest.mark.parametrize(
    ("own", "scaled", "expected"),
    [((0, None), (2, None), (2, None)), ((3, 9), (2, None), (3, 9)), ((0, 7), (1, 4), (1, 4)), ((0, None), (1, 5), (1, 5))],
)
def test_divided_limits_are_as_new_as_either_decision_and_end_with_the_first(
    own: tuple[int, int | None], scaled: tuple[int, int | None], expected: tuple[int, int | None]
) -> None:
    autoscaler = scaler(maxReplicas=9)
    targets = TargetCluster("ash", 4), TargetCluster("bru", 2)
    found = divide(
        autoscaler,
        outcome(autoscaler.key, TargetCluster("ash", None), TargetCluster("bru", None), hours=own[0], wakeup=own[1]),
        outcome(WEB, *targets, hours=scaled[0], wakeup=scaled[1]),
    )
    assert [target.edits for target in found.targets] == [(("spec.maxReplicas", 6),), (("spec.maxReplicas", 3),)]
    assert (found.time, found.wakeup) == (NOW + expected[0] * HOUR, expected[1] and NOW + expected[1] * HOUR)


def test_limits_of_full_copies_and_of_clusters_that_lose_their_copy_stay() -> None:
    autoscaler = scaler(maxReplicas=9)
    own = outcome(autoscaler.key, TargetCluster("ash", None), TargetCluster("bru", None, evicting=True))
    scaled = outcome(WEB, TargetCluster("ash", 4), TargetCluster("bru", 2))
    assert [target.edits for target in divide(autoscaler, own, scaled).targets] == [(("spec.maxReplicas", 6),), ()]
    copies = outcome(WEB, TargetCluster("ash", 4), TargetCluster("bru", 2), division="Duplicated")
    assert divide(autoscaler, own, copies) == own


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"minReplicas": 5, "maxReplicas": 10}, {"ash": (4, 8), "bru": (1, 2)}),
        ({"minReplicas": 10, "maxReplicas": 5}, {"ash": (4, 4), "bru": (1, 1)}),
        ({"minReplicas": 1, "maxReplicas": 2}, {"ash": (1, 1), "bru": (1, 1)}),
        ({"minReplicas": 0, "maxReplicas": 5}, {"ash": (0, 4), "bru": (0, 1)}),
    ],
)
def test_no_minimum_exceeds_its_maximum(limits: dict[str, int], expected: dict[str, tuple[int, int]]) -> None:
    target = outcome(WEB, TargetCluster("ash", 8), TargetCluster("bru", 2))
    found = divide_limits(scaler(**limits), target)
    assert {name: tuple(count for _, count in edits) for name, edits in found.items()} == expected


def test_an_autoscaler_has_no_target_among_autoscalers() -> None:
    assert read_target(scaler()) == WEB
    reference = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web"}
    assert read_target(make("autoscaling/v2", "HorizontalPodAutoscaler", "a", {"scaleTargetRef": reference})) is None
    assert read_target(make("autoscaling/v2", "HorizontalPodAutoscaler", "a", {"scaleTargetRef": "web"})) is None
    assert read_target(deployment()) is None


def test_a_workload_of_one_cluster_is_not_reported_as_scaled_per_cluster() -> None:
    autoscaler = scaler(maxReplicas=9)
    index, templates = AutoscalerIndex([autoscaler], divides_limits=False), {autoscaler.key: autoscaler}

    def report(*assignments: Assignment) -> list[str]:
        found = find_scaled_per_cluster(index, deployment(), "spec.replicas", assignments, templates)
        return [finding.severity for finding in found]

    assert report(Assignment("ash", 6)) == report(Assignment("ash", 6), Assignment("bru", 0)) == []
    assert report(Assignment("ash", 4), Assignment("bru", 2)) == ["warning"]


def test_a_decision_depends_on_the_target_of_an_autoscaler_and_on_the_autoscalers_of_a_workload() -> None:
    autoscaler, binding = scaler(maxReplicas=9), {"kind": "ResourceBinding"}
    index = AutoscalerIndex([autoscaler], divides_limits=False)
    snapshot: Any = SimpleNamespace(templates={WEB: deployment(), autoscaler.key: autoscaler}, previous={binding_key(WEB): binding})
    assert index.decision_inputs(WEB, snapshot) == (autoscaler, None)
    assert index.decision_inputs(autoscaler.key, snapshot) == (deployment(), binding)
    assert index.decision_inputs(API, snapshot) == ()


edits = st.lists(
    st.dictionaries(st.sampled_from(NAMES), st.none() | st.sampled_from(("web", "api")), min_size=1, max_size=3), max_size=5
)


@given(edits)
def test_an_updated_index_equals_a_new_one(steps: list[dict[str, str | None]]) -> None:
    workloads = {key: deployment(key) for key in (WEB, API)}
    templates = dict(workloads)
    index = AutoscalerIndex([], divides_limits=False)
    for step in steps:
        before = {name: read_target(templates[key]) if (key := scaler(name).key) in templates else None for name in NAMES}
        for name, target in step.items():
            templates.pop(scaler(name).key, None)
            if target is not None:
                templates[scaler(name).key] = scaler(name, target)
        revision = index.revision
        affected = index.affected_by([scaler(name).key for name in step], templates)
        after = {name: read_target(templates[key]) if (key := scaler(name).key) in templates else None for name in NAMES}
        assert index.revision - revision == sum(before[name] != after[name] for name in NAMES)
        assert affected == {key for name in step for key in (before[name], after[name]) if key is not None}
        new = AutoscalerIndex(templates.values(), divides_limits=False)
        for key in (WEB, API):
            assert index.list_autoscalers(key) == new.list_autoscalers(key)
            assert index.retains_replicas(workloads[key]) == bool(new.list_autoscalers(key))
    assert index.affected_by([WEB], templates) == set(index.list_autoscalers(WEB))
