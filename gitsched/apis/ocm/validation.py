"""Validation of Open Cluster Management's kinds beyond their schemas, and warnings about fields that have no effect.

The rules read a document after `default` that its schema accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gitsched.apis.ocm.cluster_scores import CLUSTER_SCORES as CLUSTER_SCORES
from gitsched.apis.ocm.cluster_scores import GITSCHED_GROUP, validate_cluster_scores
from gitsched.apis.ocm.names import (
    ADDON_SCORE,
    CLUSTER_SET,
    CLUSTER_SET_BINDING,
    GROUP,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    MAX_PLACEMENT_NAME,
    PLACEMENT,
    PLACEMENT_DECISION,
    SPREAD_POLICY_ANNOTATION,
    WORK_GROUP,
)
from gitsched.apis.ocm.placement import uses_spread_policy
from gitsched.manifests.object_meta import validate_object_meta
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Issue, Pointer
from gitsched.model.time import parse_time

_OPERATORS = ("Exists", "Equal", "")
_MAX_TOLERATION_SECONDS = 9_223_372_036
"""Seconds that fit into a Go duration; beyond, upstream's arithmetic wraps around."""


def validate_managed_cluster(body: Body) -> Iterator[Issue]:
    """A ManagedCluster."""
    for index, taint in enumerate(get_field(body, "spec", "taints") or ()):
        yield from _validate_time(taint.get("timeAdded"), ("spec", "taints", index, "timeAdded"))


def validate_addon_score(body: Body) -> Iterator[Issue]:
    """An AddOnPlacementScore."""
    status = body.get("status") or {}
    yield from _validate_time(status.get("validUntil"), ("status", "validUntil"))
    seen: set[str] = set()
    for index, score in enumerate(status.get("scores") or ()):
        if score["name"] in seen:
            yield _error("ocm-score-duplicate", f"the score {score['name']!r} is there twice", "status", "scores", index, "name")
        seen.add(score["name"])


def validate_set_binding(body: Body) -> Iterator[Issue]:
    """A ManagedClusterSetBinding."""
    name, bound = body["metadata"]["name"], get_field(body, "spec", "clusterSet")
    if name != bound:
        message = f"the binding must have the name of its set: it is {name!r}, and clusterSet is {bound or ''!r}"
        yield _error("ocm-binding-name", message, "spec", "clusterSet")


def validate_placement(body: Body) -> Iterator[Issue]:
    """A Placement."""
    name, spec = body["metadata"]["name"], body["spec"]
    if len(name) > MAX_PLACEMENT_NAME:
        message = f"a Placement's name may have {MAX_PLACEMENT_NAME} characters: its decisions carry it as the value of a label"
        yield _error("ocm-placement-name", message, "metadata", "name")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _validate_toleration(toleration, ("spec", "tolerations", index))
    if get_field(spec, "spreadPolicy", "spreadConstraints") and not uses_spread_policy(body):
        annotation = f'{SPREAD_POLICY_ANNOTATION}: "true"'
        why = f"Open Cluster Management's controller does not read it; the annotation {annotation} lets it count here"
        yield _ignored_field("spreadPolicy", why)


def accept_document(_: Body) -> Iterator[Issue]:
    """A kind that its schema says everything about."""
    return iter(())


def _validate_toleration(toleration: Body, at: Pointer) -> Iterator[Issue]:
    operator, seconds = toleration["operator"], toleration.get("tolerationSeconds")
    if operator not in _OPERATORS:
        yield Issue(
            "warning", "ocm-toleration-inert", f"the operator {operator!r} never matches; it is Exists or Equal", (*at, "operator")
        )
    if seconds is not None and (seconds <= 0 or seconds > _MAX_TOLERATION_SECONDS):
        message = f"{seconds} seconds never tolerate anything: leave tolerationSeconds out to tolerate for ever"
        yield Issue("warning", "ocm-toleration-inert", message, (*at, "tolerationSeconds"))


def _ignored_field(name: str, why: str) -> Issue:
    return Issue("warning", "ocm-field-inert", f"{name} has no effect: {why}", ("spec", name))


def _validate_time(value: Any, at: Pointer) -> Iterator[Issue]:
    if value is not None and parse_time(value) is None:
        yield _error("wrong-format", f"{value!r} is no RFC 3339 time such as 2026-03-01T08:00:00Z", *at)


def _error(code: str, message: str, *pointer: str | int) -> Issue:
    return Issue("error", code, message, pointer)


def _with_identity_check(rule: Callable[[Body], Iterator[Issue]]) -> Callable[[Body], Iterator[Issue]]:
    """The rule of a kind after what holds for every kind: names that a server accepts."""

    def judge(body: Body) -> Iterator[Issue]:
        yield from validate_object_meta(body)
        yield from rule(body)

    return judge


VALIDATORS: Mapping[tuple[str, str], Callable[[Body], Iterator[Issue]]] = {
    (GROUP, MANAGED_CLUSTER): _with_identity_check(validate_managed_cluster),
    (GROUP, CLUSTER_SET): _with_identity_check(accept_document),
    (GROUP, CLUSTER_SET_BINDING): _with_identity_check(validate_set_binding),
    (GROUP, PLACEMENT): _with_identity_check(validate_placement),
    (GROUP, PLACEMENT_DECISION): _with_identity_check(accept_document),
    (GROUP, ADDON_SCORE): _with_identity_check(validate_addon_score),
    (WORK_GROUP, MANIFEST_WORK_REPLICA_SET): _with_identity_check(accept_document),
    (GITSCHED_GROUP, CLUSTER_SCORES): validate_cluster_scores,
}
"""By API group and kind: what is wrong with a defaulted document that its schema accepts."""
