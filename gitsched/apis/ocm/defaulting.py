"""Defaulting of Open Cluster Management's kinds as their CRDs do it, and conversion of documents of earlier versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gitsched.apis.ocm.names import (
    ADDON_SCORE,
    CLUSTER_SET,
    CLUSTER_SET_BINDING,
    GROUP,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    OLD_VERSIONS,
    PLACEMENT,
    PLACEMENT_DECISION,
    VERSIONS,
    WORK_GROUP,
)
from gitsched.model.document import Body, parse_api_group

_CONTAINERS = (dict, list)


def default(body: Body) -> Body:
    """Return the document as an API server would store it: null fields removed, defaults set, earlier versions converted.

    Invalid values stay; the schema and the validators report them. Returns the same object if nothing changes, and for documents of
    other APIs.
    """
    api_version = str(body.get("apiVersion"))
    set_defaults = _DEFAULTERS.get((parse_api_group(api_version), str(body.get("kind"))))
    if set_defaults is None:
        return body
    if any(value is None or (name != "metadata" and _has_nulls(value)) for name, value in body.items()):
        body = {name: value if name == "metadata" else _drop_nulls(value) for name, value in body.items() if value is not None}
    group, _, version = api_version.rpartition("/")
    key = group, str(body["kind"])
    if version in OLD_VERSIONS.get(key, ()):
        body = _CONVERTERS[key]({**body, "apiVersion": f"{group}/{VERSIONS[key]}"})
    return set_defaults(body)


def _has_nulls(value: Any) -> bool:
    """Report whether there are null fields to drop. They are rare, so nothing is copied to find out."""
    if isinstance(value, dict):
        if _is_object(value):
            return False
        if None in value.values():
            return True
        return any(map(_has_nulls, [entry for entry in value.values() if entry.__class__ in _CONTAINERS]))
    return isinstance(value, list) and any(map(_has_nulls, [entry for entry in value if entry.__class__ in _CONTAINERS]))


def _drop_nulls(value: Any) -> Any:
    """Return a copy without null fields; null list entries and embedded Kubernetes objects stay unchanged."""
    if isinstance(value, dict) and not _is_object(value):
        return {name: _drop_nulls(entry) for name, entry in value.items() if entry is not None}
    return [_drop_nulls(entry) for entry in value] if isinstance(value, list) else value


def _is_object(value: Body) -> bool:
    """Report whether the value is itself a Kubernetes object."""
    return bool(value.get("kind") and value.get("apiVersion"))


def _set_defaults(body: Body, **defaults: Any) -> Body:
    """Return the object with defaults for missing fields."""
    missing = {name: value for name, value in defaults.items() if name not in body}
    return {**body, **missing} if missing else body


def _default_field(body: Body, name: str, set_defaults: Callable[[Body], Body]) -> Body:
    """Return the object with defaults set in one field, which is an object or a list of objects; the same object if nothing changes."""
    value = body.get(name)
    if isinstance(value, dict):
        changed = set_defaults(value)
        return body if changed is value else {**body, name: changed}
    if isinstance(value, list):
        entries = [set_defaults(entry) if isinstance(entry, dict) else entry for entry in value]
        return body if all(new is old for new, old in zip(entries, value, strict=True)) else {**body, name: entries}
    return body


def _default_cluster_set(body: Body) -> Body:
    body = _set_defaults(body, spec={})
    return _default_field(
        body,
        "spec",
        lambda spec: _default_field(_set_defaults(spec, clusterSelector={}), "clusterSelector", _default_set_selector),
    )


def _default_set_selector(selector: Body) -> Body:
    return _set_defaults(selector, selectorType="ExclusiveClusterSetLabel")


def _default_managed_cluster(body: Body) -> Body:
    # hubAcceptsClient stays unset: scheduling does not read it, and only a written `false` misleads people.
    return _default_field(body, "spec", lambda spec: _set_defaults(spec, leaseDurationSeconds=60))


def _default_placement(body: Body) -> Body:
    return _default_field(body, "spec", _default_placement_spec)


def _default_placement_spec(spec: Body) -> Body:
    spec = _default_field(
        _set_defaults(spec, sortBy="ClusterName", scoreRateLimit="1m"), "prioritizerPolicy", _default_prioritizer_policy
    )
    spec = _default_field(spec, "tolerations", lambda toleration: _set_defaults(toleration, operator="Equal"))
    spec = _default_field(
        spec, "spreadPolicy", lambda policy: _default_field(policy, "spreadConstraints", _default_spread_constraint)
    )
    return _default_field(
        spec, "decisionStrategy", lambda strategy: _default_field(strategy, "groupStrategy", _default_group_strategy)
    )


def _default_prioritizer_policy(policy: Body) -> Body:
    return _default_field(_set_defaults(policy, mode="Additive"), "configurations", _default_prioritizer)


def _default_prioritizer(configuration: Body) -> Body:
    return _default_field(
        _set_defaults(configuration, weight=1), "scoreCoordinate", lambda coordinate: _set_defaults(coordinate, type="BuiltIn")
    )


def _default_spread_constraint(constraint: Body) -> Body:
    return _set_defaults(constraint, maxSkew=1, whenUnsatisfiable="ScheduleAnyway")


def _default_group_strategy(strategy: Body) -> Body:
    return _set_defaults(strategy, clustersPerDecisionGroup="100%")


def _default_replica_set(body: Body) -> Body:
    return _default_field(
        body,
        "spec",
        lambda spec: _default_field(
            spec, "placementRefs", lambda reference: _set_defaults(reference, rolloutStrategy={"type": "All"})
        ),
    )


def _convert_placement(body: Body) -> Body:
    """Convert the spec of a v1alpha1 Placement to v1beta1."""
    return _default_field(
        body,
        "spec",
        lambda spec: _default_field(
            spec, "prioritizerPolicy", lambda policy: _default_field(policy, "configurations", _convert_prioritizer)
        ),
    )


def _convert_prioritizer(configuration: Body) -> Body:
    name = configuration.get("name")
    coordinate = configuration.get("scoreCoordinate")
    rest = {field: value for field, value in configuration.items() if field != "name"}
    if coordinate is None and isinstance(name, str):
        coordinate = {}
    if not isinstance(coordinate, dict):
        return rest
    converted = {"builtIn" if field == "buildIn" else field: value for field, value in coordinate.items()}
    if converted.get("type", "") in ("", "BuildIn"):
        converted["type"] = "BuiltIn"
    if isinstance(name, str) and not converted.get("builtIn") and converted["type"] != "AddOn":
        converted["builtIn"] = name
    return {**rest, "scoreCoordinate": converted}


def _convert_cluster_set(body: Body) -> Body:
    """Convert the spec of a ManagedClusterSet of v1alpha1 or v1beta1, whose members always were found by the label of the set.

    v1beta1 also has the type LabelSelector. Source: open-cluster-management-io/api, cluster/v1beta1/types_managedclusterset.go.
    """
    return _default_field(body, "spec", lambda spec: _default_field(spec, "clusterSelector", _convert_set_selector))


def _convert_set_selector(selector: Body) -> Body:
    return (
        {**selector, "selectorType": "ExclusiveClusterSetLabel"} if selector.get("selectorType") == _LEGACY_SELECTOR else selector
    )


_LEGACY_SELECTOR = "LegacyClusterSetLabel"
_CONVERTERS: Mapping[tuple[str, str], Callable[[Body], Body]] = {
    (GROUP, PLACEMENT): _convert_placement,
    (GROUP, CLUSTER_SET): _convert_cluster_set,
    (GROUP, CLUSTER_SET_BINDING): lambda body: body,
}
_DEFAULTERS: Mapping[tuple[str, str], Callable[[Body], Body]] = {
    (GROUP, MANAGED_CLUSTER): _default_managed_cluster,
    (GROUP, CLUSTER_SET): _default_cluster_set,
    (GROUP, PLACEMENT): _default_placement,
    (WORK_GROUP, MANIFEST_WORK_REPLICA_SET): _default_replica_set,
    (GROUP, CLUSTER_SET_BINDING): lambda body: body,
    (GROUP, ADDON_SCORE): lambda body: body,
    (GROUP, PLACEMENT_DECISION): lambda body: body,
}
