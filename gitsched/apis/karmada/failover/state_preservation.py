"""State preservation: labels that failover takes from the status of a workload (statePreservation, with JSONPath)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gitsched.model.document import Body, Document, as_string_map, get_field
from gitsched.model.labels import is_label_value
from gitsched.model.scheduling import Assignment, TargetCluster
from gitsched.render.cluster_directory import set_counts

PRESERVED_STATE = "gitsched.io/preserved-state"
"""On a binding: the labels that a failover handed over, by the cluster of the copy that has them, as JSON."""


class PreservedState(NamedTuple):
    """`why` tells why there are no labels although there are rules, or is ""."""

    labels: Mapping[str, str]
    reason: str


def preserve_state(rules: Iterable[Body], status: Body | None, cluster: str) -> PreservedState:
    """The labels that the rules make of the status of the copy in a cluster; all of them, or none."""
    labels: dict[str, str] = {}
    for rule in rules:
        if status is None:
            return PreservedState({}, f"the repository has no status of its copy in cluster {cluster}")
        name, path = str(rule.get("aliasLabelName") or ""), str(rule.get("jsonPath") or "")
        try:
            text = evaluate_jsonpath(path, status)
        except ValueError as error:
            return PreservedState({}, f"jsonPath for {name}: {error}")
        if not is_label_value(text):
            return PreservedState({}, f"jsonPath for {name} gives {text[:80]!r}, which cannot be the value of a label")
        labels[name] = text
    return PreservedState(labels, "")


def write_preserved_state(annotations: Mapping[str, str], clusters: tuple[Assignment, ...], tasks: tuple[Body, ...]) -> str:
    """The preserved labels of the only copy as an annotation of the binding, or "".

    It gets them where the last eviction was one with purgeMode Directly, and it is in none of the clusters that it was in before. Upstream
    takes them away with the eviction task; here they stay with the copy, for nobody knows when a delivery tool comes by.
    """
    if len(clusters) != 1:
        return ""
    (target,) = clusters
    last = tasks[-1] if tasks else {}
    labels = as_string_map(last.get("preservedLabelState"))
    if labels and last.get("purgeMode") == "Directly" and target.name not in (last.get("clustersBeforeFailover") or ()):
        return json.dumps({target.name: labels}, sort_keys=True, separators=(",", ":"))
    return annotations.get(PRESERVED_STATE, "") if target.name in _read_preserved_labels(annotations) else ""


def add_preserved_labels(
    template: Document, placed: tuple[TargetCluster, ...], annotations: Mapping[str, str]
) -> tuple[TargetCluster, ...]:
    """The places with the preserved labels, which the annotations of the binding note, on the copy that they are for."""
    state = _read_preserved_labels(annotations)
    if not state:
        return placed
    return tuple(
        place._replace(body=_add_labels(template, place, state[place.cluster]))
        if place.cluster in state and not place.evicting
        else place
        for place in placed
    )


def _read_preserved_labels(annotations: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Labels by cluster; anything malformed is left out."""
    try:
        noted: Any = json.loads(annotations.get(PRESERVED_STATE, "{}"))
    except ValueError:
        return {}
    return {name: as_string_map(labels) for name, labels in noted.items()} if isinstance(noted, dict) else {}


def _add_labels(template: Document, place: TargetCluster, labels: Mapping[str, str]) -> Body:
    body = set_counts(template.body, place.edits) if place.body is None else place.body
    metadata = body.get("metadata") or {}
    return {**body, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}


_JSONPATH_STEP = re.compile(
    r"""\.((?:\\.|[^\s.\[\]{}'"*@$\\])+)|\[\s*(-?\d+)\s*\]|\[\s*'((?:\\.|[^'\\])*)'\s*\]|\[\s*"((?:\\.|[^"\\])*)"\s*\]"""
)


_JSONPATH_PIECE = re.compile(r"""\{((?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^{}'"])*)\}|[^{}]+""")


_MAX_JSONPATH_LENGTH = 4096


def evaluate_jsonpath(template: str, value: Any) -> str:
    """The text that a template makes of a value. ValueError, with a reason for people, where it leads nowhere or is not understood."""
    if len(template) > _MAX_JSONPATH_LENGTH:
        raise ValueError(f"it has more than {_MAX_JSONPATH_LENGTH} characters")
    text, position = "", 0
    while position < len(template):
        match = _JSONPATH_PIECE.match(template, position)
        if match is None:
            raise ValueError(f"the braces of {template!r} do not match")
        inner = match.group(1)
        text += match.group(0) if inner is None else _format_value(_walk_path(inner.strip(), value))
        position = match.end()
    return text


def _walk_path(path: str, value: Any) -> Any:
    rest = path[1:] if path[:1] in ("$", "@") else path
    position = len(rest) if rest == "." else 0
    while position < len(rest):
        match = _JSONPATH_STEP.match(rest, position)
        if match is None:
            raise ValueError(f"{path!r} is no path of members and indices")
        name, index, *quoted = match.groups()
        if index is not None:
            value = _get_item(value, int(index), path)
        else:
            key = re.sub(r"\\(.)", r"\1", next(text for text in (name, *quoted) if text is not None))
            if not isinstance(value, dict) or key not in value:
                raise ValueError(f"there is no {key!r} where {path!r} leads")
            value = value[key]
        position = match.end()
    return value


def _get_item(value: Any, index: int, path: str) -> Any:
    if not isinstance(value, list) or not -len(value) <= index < len(value):
        raise ValueError(f"there is no item {index} where {path!r} leads")
    return value[index]


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def list_preservation_rules(behavior: Body | None) -> list[Body]:
    """The rules of statePreservation in one of the two parts of a policy's failover."""
    return list(get_field(behavior or {}, "statePreservation", "rules") or ())
