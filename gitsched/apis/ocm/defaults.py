"""What the CRDs of Open Cluster Management fill in, and the v1alpha1 way to write a Placement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gitsched.apis.ocm.names import BINDING, CLUSTER, DECISION, GROUP, OLD, PLACEMENT, REPLICA_SET, SCORE, SET, WORK_GROUP
from gitsched.model.document import Body, group_of

_DEEP = (dict, list)


def default(body: Body) -> Body:
    """The document as Open Cluster Management would store it: members that are null are gone, defaults are filled in.

    A Placement of v1alpha1 becomes one of v1beta1. Mistakes are left for the schema and the rules to name. The same object when
    nothing changes; also for a document of another API.
    """
    api_version = str(body.get("apiVersion"))
    fill = _KINDS.get((group_of(api_version), str(body.get("kind"))))
    if fill is None:
        return body
    if any(value is None or (name != "metadata" and _has_nulls(value)) for name, value in body.items()):
        body = {name: value if name == "metadata" else _drop_nulls(value) for name, value in body.items() if value is not None}
    if body["kind"] == PLACEMENT and api_version == f"{GROUP}/{OLD}":
        body = _translate(body)
    return fill(body)


def _has_nulls(value: Any) -> bool:
    """Whether there are null members to drop: rarely, so that nothing is copied to find out."""
    if isinstance(value, dict):
        if _is_whole(value):
            return False
        if None in value.values():
            return True
        return any(map(_has_nulls, [entry for entry in value.values() if entry.__class__ in _DEEP]))
    return isinstance(value, list) and any(map(_has_nulls, [entry for entry in value if entry.__class__ in _DEEP]))


def _drop_nulls(value: Any) -> Any:
    """A copy in which null members are gone; null entries of a list stay, and whole objects inside stay as written."""
    if isinstance(value, dict) and not _is_whole(value):
        return {name: _drop_nulls(entry) for name, entry in value.items() if entry is not None}
    return [_drop_nulls(entry) for entry in value] if isinstance(value, list) else value


def _is_whole(value: Body) -> bool:
    """Whether it is an object of Kubernetes by itself."""
    return bool(value.get("kind") and value.get("apiVersion"))


def _with(body: Body, **members: Any) -> Body:
    """The object with members that it lacks."""
    missing = {name: value for name, value in members.items() if name not in body}
    return {**body, **missing} if missing else body


def _change(body: Body, name: str, fill: Callable[[Body], Body]) -> Body:
    """The object with one member filled, be it an object or a list of objects; the same object when nothing changes."""
    value = body.get(name)
    if isinstance(value, dict):
        filled = fill(value)
        return body if filled is value else {**body, name: filled}
    if isinstance(value, list):
        entries = [fill(entry) if isinstance(entry, dict) else entry for entry in value]
        return body if all(new is old for new, old in zip(entries, value, strict=True)) else {**body, name: entries}
    return body


def _fill_set(body: Body) -> Body:
    body = _with(body, spec={})
    return _change(body, "spec", lambda spec: _change(_with(spec, clusterSelector={}), "clusterSelector", _fill_cluster_selector))


def _fill_cluster_selector(selector: Body) -> Body:
    return _with(selector, selectorType="ExclusiveClusterSetLabel")


def _fill_cluster(body: Body) -> Body:
    return _change(body, "spec", lambda spec: _with(spec, hubAcceptsClient=False, leaseDurationSeconds=60))


def _fill_placement(body: Body) -> Body:
    return _change(body, "spec", _fill_placement_spec)


def _fill_placement_spec(spec: Body) -> Body:
    spec = _change(_with(spec, sortBy="ClusterName", scoreRateLimit="1m"), "prioritizerPolicy", _fill_policy)
    spec = _change(spec, "tolerations", lambda toleration: _with(toleration, operator="Equal"))
    spec = _change(spec, "spreadPolicy", lambda policy: _change(policy, "spreadConstraints", _fill_spread))
    return _change(spec, "decisionStrategy", lambda strategy: _change(strategy, "groupStrategy", _fill_groups))


def _fill_policy(policy: Body) -> Body:
    return _change(_with(policy, mode="Additive"), "configurations", _fill_configuration)


def _fill_configuration(configuration: Body) -> Body:
    return _change(_with(configuration, weight=1), "scoreCoordinate", lambda coordinate: _with(coordinate, type="BuiltIn"))


def _fill_spread(constraint: Body) -> Body:
    return _with(constraint, maxSkew=1, whenUnsatisfiable="ScheduleAnyway")


def _fill_groups(strategy: Body) -> Body:
    return _with(strategy, clustersPerDecisionGroup="100%")


def _fill_replica_set(body: Body) -> Body:
    return _change(
        body,
        "spec",
        lambda spec: _change(spec, "placementRefs", lambda reference: _with(reference, rolloutStrategy={"type": "All"})),
    )


def _translate(body: Body) -> Body:
    """A v1alpha1 Placement as v1beta1 writes it."""
    body = {**body, "apiVersion": f"{GROUP}/v1beta1"}
    return _change(
        body,
        "spec",
        lambda spec: _change(spec, "prioritizerPolicy", lambda policy: _change(policy, "configurations", _translate_configuration)),
    )


def _translate_configuration(configuration: Body) -> Body:
    name = configuration.get("name")
    coordinate = configuration.get("scoreCoordinate")
    rest = {member: value for member, value in configuration.items() if member != "name"}
    if coordinate is None and isinstance(name, str):
        coordinate = {}
    if not isinstance(coordinate, dict):
        return rest
    written = {"builtIn" if member == "buildIn" else member: value for member, value in coordinate.items()}
    if written.get("type", "") in ("", "BuildIn"):
        written["type"] = "BuiltIn"
    if isinstance(name, str) and "builtIn" not in written and written["type"] != "AddOn":
        written["builtIn"] = name
    return {**rest, "scoreCoordinate": written}


_KINDS: Mapping[tuple[str, str], Callable[[Body], Body]] = {
    (GROUP, CLUSTER): _fill_cluster,
    (GROUP, SET): _fill_set,
    (GROUP, PLACEMENT): _fill_placement,
    (WORK_GROUP, REPLICA_SET): _fill_replica_set,
    (GROUP, BINDING): lambda body: body,
    (GROUP, SCORE): lambda body: body,
    (GROUP, DECISION): lambda body: body,
}
