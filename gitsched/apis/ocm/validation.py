"""Validation of Open Cluster Management's kinds beyond their schemas, and warnings about fields that have no effect.

Validators take a defaulted document that its schema accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gitsched.apis.ocm.availability import AVAILABLE_CONDITION, NO_SELECT, TAINT_KEYS
from gitsched.apis.ocm.cluster_scores import validate_cluster_scores
from gitsched.apis.ocm.names import (
    ADDON_SCORE,
    CLUSTER_SCORES,
    CLUSTER_SET,
    CLUSTER_SET_BINDING,
    GITSCHED_GROUP,
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
from gitsched.apis.policy_api import DocumentValidator
from gitsched.manifests.object_meta import validate_object_meta
from gitsched.model.document import Body, get_field, list_objects
from gitsched.model.finding import Issue, Pointer
from gitsched.model.time import parse_time

_OPERATORS = ("Exists", "Equal", "")
_MAX_TOLERATION_SECONDS = 9_223_372_036
"""The most seconds in a Go duration; upstream's arithmetic overflows above it."""


def validate_managed_cluster(body: Body) -> Iterator[Issue]:
    """Validate a ManagedCluster."""
    for index, taint in enumerate(get_field(body, "spec", "taints") or ()):
        yield from _validate_time(taint.get("timeAdded"), ("spec", "taints", index, "timeAdded"))
    if get_field(body, "spec", "hubAcceptsClient") is False and not _is_left_out(body):
        why = (
            "Placements choose a cluster that is not accepted, as on a hub, which keeps them away by a taint once its agent no longer "
            f"reports; to leave it out here, add the taint {TAINT_KEYS['Unknown']} with the effect {NO_SELECT}"
        )
        yield _ignored_field("hubAcceptsClient", why)


def _is_left_out(cluster: Body) -> bool:
    """Return whether a taint of a ManagedCluster, or its condition, keeps it from being chosen."""
    taints = list_objects(get_field(cluster, "spec", "taints"))
    conditions = list_objects(get_field(cluster, "status", "conditions"))
    return any(taint.get("effect") == NO_SELECT for taint in taints) or any(
        condition.get("type") == AVAILABLE_CONDITION and condition.get("status") in TAINT_KEYS for condition in conditions
    )


def validate_addon_score(body: Body) -> Iterator[Issue]:
    """Validate an AddOnPlacementScore."""
    status = body.get("status") or {}
    yield from _validate_time(status.get("validUntil"), ("status", "validUntil"))
    seen: set[str] = set()
    for index, score in enumerate(status.get("scores") or ()):
        if score["name"] in seen:
            yield _error("ocm-score-duplicate", f"duplicate score {score['name']!r}", "status", "scores", index, "name")
        seen.add(score["name"])


def validate_set_binding(body: Body) -> Iterator[Issue]:
    """Validate a ManagedClusterSetBinding."""
    name, bound = body["metadata"]["name"], get_field(body, "spec", "clusterSet")
    if name != bound:
        message = f"a binding must have the name of its cluster set: the name is {name!r}, clusterSet is {bound or ''!r}"
        yield _error("ocm-binding-name", message, "spec", "clusterSet")


def validate_placement(body: Body) -> Iterator[Issue]:
    """Validate a Placement."""
    name, spec = body["metadata"]["name"], body["spec"]
    if len(name) > MAX_PLACEMENT_NAME:
        message = f"the name must be no more than {MAX_PLACEMENT_NAME} characters: PlacementDecisions have it as a label value"
        yield _error("ocm-placement-name", message, "metadata", "name")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _validate_toleration(toleration, ("spec", "tolerations", index))
    if get_field(spec, "spreadPolicy", "spreadConstraints") and not uses_spread_policy(body):
        annotation = f'{SPREAD_POLICY_ANNOTATION}: "true"'
        why = f"Open Cluster Management's controller does not read it; to apply it here, set the annotation {annotation}"
        yield _ignored_field("spreadPolicy", why)


def accept_document(_: Body) -> Iterator[Issue]:
    """Accept a kind that its schema validates completely."""
    return iter(())


def _validate_toleration(toleration: Body, pointer: Pointer) -> Iterator[Issue]:
    operator, seconds = toleration["operator"], toleration.get("tolerationSeconds")
    if operator not in _OPERATORS:
        yield Issue(
            "warning",
            "ocm-toleration-inert",
            f"the operator {operator!r} never matches: use Exists or Equal",
            (*pointer, "operator"),
        )
    if seconds is not None and (seconds <= 0 or seconds > _MAX_TOLERATION_SECONDS):
        message = f"{seconds} seconds never tolerate a taint: to tolerate it without a time limit, remove tolerationSeconds"
        yield Issue("warning", "ocm-toleration-inert", message, (*pointer, "tolerationSeconds"))


def _ignored_field(name: str, why: str) -> Issue:
    return Issue("warning", "ocm-field-inert", f"{name} has no effect: {why}", ("spec", name))


def _validate_time(value: Any, pointer: Pointer) -> Iterator[Issue]:
    if value is not None and parse_time(value) is None:
        yield _error("wrong-format", f"{value!r} is not an RFC 3339 time, for example 2026-03-01T08:00:00Z", *pointer)


def _error(code: str, message: str, *pointer: str | int) -> Issue:
    return Issue("error", code, message, pointer)


def _with_metadata(validator: Callable[[Body], Iterator[Issue]]) -> Callable[[Body], Iterator[Issue]]:
    """Return a validator that checks the metadata first, as for every kind, then applies the validator of the kind."""

    def validate(body: Body) -> Iterator[Issue]:
        yield from validate_object_meta(body)
        yield from validator(body)

    return validate


VALIDATORS: Mapping[tuple[str, str], DocumentValidator] = {
    (GROUP, MANAGED_CLUSTER): _with_metadata(validate_managed_cluster),
    (GROUP, CLUSTER_SET): _with_metadata(accept_document),
    (GROUP, CLUSTER_SET_BINDING): _with_metadata(validate_set_binding),
    (GROUP, PLACEMENT): _with_metadata(validate_placement),
    (GROUP, PLACEMENT_DECISION): _with_metadata(accept_document),
    (GROUP, ADDON_SCORE): _with_metadata(validate_addon_score),
    (WORK_GROUP, MANIFEST_WORK_REPLICA_SET): _with_metadata(accept_document),
    (GITSCHED_GROUP, CLUSTER_SCORES): validate_cluster_scores,
}
"""Validators by API group and kind."""


def find_validator(group: str, kind: str) -> DocumentValidator | None:
    """Return the validator of a kind."""
    return VALIDATORS.get((group, kind))
