"""What Open Cluster Management refuses that a schema cannot say, and what it accepts and then does not do as written.

The rules read a document after `default` that its schema accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gitsched.apis.ocm.names import (
    BINDING,
    CLUSTER,
    DECISION,
    GROUP,
    LONGEST_NAME,
    PLACEMENT,
    REPLICA_SET,
    SCORE,
    SET,
    SPREAD,
    WORK_GROUP,
)
from gitsched.apis.ocm.placement import is_spread
from gitsched.apis.ocm.producing import GROUP_OWN, judge_measures
from gitsched.apis.ocm.producing import KIND as CLUSTER_SCORES
from gitsched.manifests.identity import check_identity
from gitsched.model.document import Body, member
from gitsched.model.issue import Issue
from gitsched.model.time import parse_time

Pointer = tuple[str | int, ...]
_OPERATORS = ("Exists", "Equal", "")
_LONGEST_WAIT = 9_223_372_036
"""Seconds that fit into a Go duration; beyond, upstream's arithmetic wraps around."""


def judge_cluster(body: Body) -> Iterator[Issue]:
    """A ManagedCluster."""
    for index, taint in enumerate(member(body, "spec", "taints") or ()):
        yield from _judge_time(taint.get("timeAdded"), ("spec", "taints", index, "timeAdded"))


def judge_score(body: Body) -> Iterator[Issue]:
    """An AddOnPlacementScore."""
    status = body.get("status") or {}
    yield from _judge_time(status.get("validUntil"), ("status", "validUntil"))
    seen: set[str] = set()
    for index, score in enumerate(status.get("scores") or ()):
        if score["name"] in seen:
            yield _error("ocm-score-duplicate", f"the score {score['name']!r} is there twice", "status", "scores", index, "name")
        seen.add(score["name"])


def judge_binding(body: Body) -> Iterator[Issue]:
    """A ManagedClusterSetBinding."""
    name, bound = body["metadata"]["name"], member(body, "spec", "clusterSet")
    if name != bound:
        message = f"the binding must have the name of its set: it is {name!r}, and clusterSet is {bound or ''!r}"
        yield _error("ocm-binding-name", message, "spec", "clusterSet")


def judge_placement(body: Body) -> Iterator[Issue]:
    """A Placement."""
    name, spec = body["metadata"]["name"], body["spec"]
    if len(name) > LONGEST_NAME:
        message = f"a Placement's name may have {LONGEST_NAME} characters: its decisions carry it as the value of a label"
        yield _error("ocm-placement-name", message, "metadata", "name")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _judge_toleration(toleration, ("spec", "tolerations", index))
    if member(spec, "spreadPolicy", "spreadConstraints") and not is_spread(body):
        why = f'Open Cluster Management\'s controller does not read it; the annotation {SPREAD}: "true" lets it count here'
        yield _inert("spreadPolicy", why)


def judge_nothing(_: Body) -> Iterator[Issue]:
    """A kind that its schema says everything about."""
    return iter(())


def _judge_toleration(toleration: Body, at: Pointer) -> Iterator[Issue]:
    operator, seconds = toleration["operator"], toleration.get("tolerationSeconds")
    if operator not in _OPERATORS:
        yield Issue(
            "warning", "ocm-toleration-inert", f"the operator {operator!r} never matches; it is Exists or Equal", (*at, "operator")
        )
    if seconds is not None and (seconds <= 0 or seconds > _LONGEST_WAIT):
        message = f"{seconds} seconds never tolerate anything: leave tolerationSeconds out to tolerate for ever"
        yield Issue("warning", "ocm-toleration-inert", message, (*at, "tolerationSeconds"))


def _inert(name: str, why: str) -> Issue:
    return Issue("warning", "ocm-field-inert", f"{name} has no effect: {why}", ("spec", name))


def _judge_time(value: Any, at: Pointer) -> Iterator[Issue]:
    if value is not None and parse_time(value) is None:
        yield _error("wrong-format", f"{value!r} is no RFC 3339 time such as 2026-03-01T08:00:00Z", *at)


def _error(code: str, message: str, *pointer: str | int) -> Issue:
    return Issue("error", code, message, pointer)


def _judged(rule: Callable[[Body], Iterator[Issue]]) -> Callable[[Body], Iterator[Issue]]:
    """The rule of a kind after what holds for every kind: names that a server accepts."""

    def judge(body: Body) -> Iterator[Issue]:
        yield from check_identity(body)
        yield from rule(body)

    return judge


RULES: Mapping[tuple[str, str], Callable[[Body], Iterator[Issue]]] = {
    (GROUP, CLUSTER): _judged(judge_cluster),
    (GROUP, SET): _judged(judge_nothing),
    (GROUP, BINDING): _judged(judge_binding),
    (GROUP, PLACEMENT): _judged(judge_placement),
    (GROUP, DECISION): _judged(judge_nothing),
    (GROUP, SCORE): _judged(judge_score),
    (WORK_GROUP, REPLICA_SET): _judged(judge_nothing),
    (GROUP_OWN, CLUSTER_SCORES): judge_measures,
}
"""By API group and kind: what is wrong with a defaulted document that its schema accepts."""
