"""The index of companions finds the same targets as a comparison of each object with each, also after changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.kinds import companion_index
from gitsched.kinds.companion_index import MAX_TARGETS, CompanionIndex
from gitsched.kinds.companion_targets import CompanionFeatures, read_features
from gitsched.model.document import Key
from gitsched.model.labels import Selector

NAMES = st.sampled_from(("a", "b", "c"))
LABELS = st.dictionaries(st.sampled_from(("app", "tier", "team")), NAMES, max_size=3)
EXPRESSION = st.one_of(
    st.builds(lambda key, values: {"key": key, "operator": "In", "values": values}, NAMES, st.lists(NAMES, min_size=1, max_size=2)),
    st.sampled_from(("app", "tier")).map(lambda key: {"key": key, "operator": "Exists"}),
    st.sampled_from(("app", "tier")).map(lambda key: {"key": key, "operator": "DoesNotExist"}),
    st.builds(lambda key, value: {"key": key, "operator": "NotIn", "values": [value]}, st.sampled_from(("app", "tier")), NAMES),
)
SELECTOR = st.fixed_dictionaries({"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSION, max_size=2)})


def deployment(name: str, labels: dict[str, str]) -> tuple[Key, dict[str, Any]]:
    return Key("apps", "Deployment", "shop", name), {"spec": {"template": {"metadata": {"labels": labels}, "spec": {}}}}


def service(name: str, selector: dict[str, str], labels: dict[str, str]) -> tuple[Key, dict[str, Any]]:
    return Key("", "Service", "shop", name), {"metadata": {"labels": labels}, "spec": {"selector": selector}}


def budget(name: str, selector: dict[str, Any]) -> tuple[Key, dict[str, Any]]:
    return Key("policy", "PodDisruptionBudget", "shop", name), {"spec": {"selector": selector}}


def monitor(name: str, selector: dict[str, Any], anywhere: bool) -> tuple[Key, dict[str, Any]]:
    namespaces = {"any": True} if anywhere else {"matchNames": ["shop"]}
    body = {"spec": {"selector": selector, "namespaceSelector": namespaces}}
    return Key("monitoring.coreos.com", "ServiceMonitor", "ops", name), body


def route(name: str, backend: str) -> tuple[Key, dict[str, Any]]:
    return Key("gateway.networking.k8s.io", "HTTPRoute", "shop", name), {"spec": {"rules": [{"backendRefs": [{"name": backend}]}]}}


def scaler(name: str, target: str) -> tuple[Key, dict[str, Any]]:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return Key("autoscaling", "HorizontalPodAutoscaler", "shop", name), {"spec": {"scaleTargetRef": reference}}


OBJECT = st.one_of(
    st.builds(deployment, NAMES, LABELS),
    st.builds(service, NAMES, LABELS, LABELS),
    st.builds(budget, NAMES, SELECTOR),
    st.builds(monitor, NAMES, SELECTOR, st.booleans()),
    st.builds(route, NAMES, NAMES),
    st.builds(scaler, NAMES, NAMES),
)


def find_targets(objects: dict[Key, CompanionFeatures], companion: Key) -> set[Key]:
    """Compare a companion with every object."""
    features = objects[companion]
    found = {key for key in features.names if key in objects}
    if features.selection is not None:
        for key, other in objects.items():
            labels = dict(other.pod_labels if features.selection.kind == "Pod" else other.labels)
            inside = features.selection.namespaces is None or key.namespace in features.selection.namespaces
            if inside and features.selection.selector.matches(labels):
                found.add(key)
    return found - {companion}


@settings(deadline=None)
@given(st.lists(OBJECT, min_size=1, max_size=25))
def test_targets_and_companions_are_those_of_a_comparison_of_all_pairs(changes: list[tuple[Key, dict[str, Any]]]) -> None:
    index: CompanionIndex[Key] = CompanionIndex()
    objects: dict[Key, CompanionFeatures] = {}
    for number, (key, body) in enumerate(changes):
        if number % 7 == 6:
            index.remove(key)
            objects.pop(key, None)
            continue
        objects[key] = read_features(key, body, {})
        index.add(key, key, objects[key])
    direct = {key: find_targets(objects, key) for key, features in objects.items() if features.is_companion}
    assert set(index.list_companions()) == direct.keys()
    assert {key: set(index.list_targets(key)) for key in direct} == direct
    for key in objects:
        related = {companion for companion, targets in direct.items() if key in targets}
        for _ in objects:
            related |= {companion for companion, targets in direct.items() if targets & related}
        assert index.list_related([key]) == related
    workloads = [key for key, features in objects.items() if features.is_workload]
    for key in direct:
        assert set(index.list_workloads(key)) == {workload for workload in workloads if key in index.list_related([workload])}


@pytest.mark.parametrize("count", [200, 400])
def test_the_work_grows_with_the_objects_and_not_with_their_pairs(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All objects are in one namespace and share a label."""
    compared = 0

    def count_matches(selector: Selector, labels: dict[str, str]) -> bool:
        nonlocal compared
        compared += 1
        return all(requirement.matches(labels) for requirement in selector.requirements)

    monkeypatch.setattr(Selector, "matches", count_matches)
    index: CompanionIndex[Key] = CompanionIndex()
    for number in range(count):
        labels, selector = {"app": f"w{number}", "part-of": "shop"}, {"matchLabels": {"app": f"w{number}", "part-of": "shop"}}
        negative = {**selector, "matchExpressions": [{"key": "legacy", "operator": "DoesNotExist"}]}
        for key, body in (deployment(f"w{number}", labels), service(f"w{number}", labels, labels), budget(f"w{number}", negative)):
            index.add(key, key, read_features(key, body, {}))
    targets = [index.list_targets(companion) for companion in index.list_companions()]
    assert [len(found) for found in targets] == [1] * (2 * count)
    assert all(len(index.list_related([found[0]])) == 2 for found in targets)
    assert compared <= 6 * count


def test_a_selector_of_many_objects_is_one_of_the_whole_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(companion_index, "MAX_TARGETS", 3)
    index: CompanionIndex[Key] = CompanionIndex()
    companion, body = budget("all", {"matchLabels": {"team": "a"}})
    index.add(companion, companion, read_features(companion, body, {}))
    for number, expected in enumerate((1, 2, 3, 0, 0)):
        key, body = deployment(f"w{number}", {"team": "a"})
        index.add(key, key, read_features(key, body, {}))
        assert len(index.list_targets(companion)) == expected
    assert MAX_TARGETS == 500, "the documentation names the number"
