"""State that a workload takes along when it fails over: values of its old status as labels of the new copy (statePreservation)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gitsched.apis.karmada.jsonpath import evaluate
from gitsched.model.document import Body, Document, text_map
from gitsched.model.labels import is_label_value
from gitsched.model.outcome import Placed
from gitsched.model.request import Target
from gitsched.render.manifest import put_counts

STATE = "gitsched.io/preserved-state"
"""On a binding: the labels that a failover handed over, by the cluster of the copy that has them, as JSON."""


class Preserved(NamedTuple):
    """`why` tells why there are no labels although there are rules, or is ""."""

    labels: Mapping[str, str]
    why: str


def preserve_state(rules: Iterable[Body], status: Body | None, cluster: str) -> Preserved:
    """The labels that the rules make of the status of the copy in a cluster; all of them, or none."""
    labels: dict[str, str] = {}
    for rule in rules:
        if status is None:
            return Preserved({}, f"the repository has no status of its copy in cluster {cluster}")
        name, path = str(rule.get("aliasLabelName") or ""), str(rule.get("jsonPath") or "")
        try:
            text = evaluate(path, status)
        except ValueError as error:
            return Preserved({}, f"jsonPath for {name}: {error}")
        if not is_label_value(text):
            return Preserved({}, f"jsonPath for {name} gives {text[:80]!r}, which cannot be the value of a label")
        labels[name] = text
    return Preserved(labels, "")


def note_state(annotations: Mapping[str, str], clusters: tuple[Target, ...], tasks: tuple[Body, ...]) -> str:
    """The preserved labels of the only copy as an annotation of the binding, or "".

    It gets them where the last eviction was one with purgeMode Directly, and it is in none of the clusters that it was in before. Upstream
    takes them away with the eviction task; here they stay with the copy, for nobody knows when a delivery tool comes by.
    """
    if len(clusters) != 1:
        return ""
    (target,) = clusters
    last = tasks[-1] if tasks else {}
    labels = text_map(last.get("preservedLabelState"))
    if labels and last.get("purgeMode") == "Directly" and target.name not in (last.get("clustersBeforeFailover") or ()):
        return json.dumps({target.name: labels}, sort_keys=True, separators=(",", ":"))
    return annotations.get(STATE, "") if target.name in _recall(annotations) else ""


def hand_over(template: Document, placed: tuple[Placed, ...], annotations: Mapping[str, str]) -> tuple[Placed, ...]:
    """The places with the preserved labels, which the annotations of the binding note, on the copy that they are for."""
    state = _recall(annotations)
    if not state:
        return placed
    return tuple(
        place._replace(body=_label(template, place, state[place.cluster]))
        if place.cluster in state and not place.leaving
        else place
        for place in placed
    )


def _recall(annotations: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Labels by cluster; anything malformed is left out."""
    try:
        noted: Any = json.loads(annotations.get(STATE, "{}"))
    except ValueError:
        return {}
    return {name: text_map(labels) for name, labels in noted.items()} if isinstance(noted, dict) else {}


def _label(template: Document, place: Placed, labels: Mapping[str, str]) -> Body:
    body = put_counts(template.body, place.edits) if place.body is None else place.body
    metadata = body.get("metadata") or {}
    return {**body, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}
