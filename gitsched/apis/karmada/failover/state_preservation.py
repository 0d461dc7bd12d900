"""State preservation: labels that failover takes from the status of a workload (statePreservation, with JSONPath)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gitsched.model.document import Body, Document, as_string_map, get_field, read_json
from gitsched.model.labels import is_label_value
from gitsched.model.scheduling import Assignment, TargetCluster
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import set_counts

PRESERVED_STATE = "gitsched.io/preserved-state"
"""On a binding: the labels that a failover preserved, by the cluster of the copy that has them, as JSON."""


class PreservedState(NamedTuple):
    """Preserved labels; `reason` says why there are none although there are rules, or is ""."""

    labels: Mapping[str, str]
    reason: str


def preserve_state(rules: Iterable[Body], status: Body | None, cluster: str) -> PreservedState:
    """Apply statePreservation rules to the status of the copy in a cluster; if one rule fails there are no labels."""
    labels: dict[str, str] = {}
    for rule in rules:
        if status is None:
            return PreservedState({}, f"the repository has no status of the copy in cluster {cluster}")
        name, path = str(rule.get("aliasLabelName") or ""), str(rule.get("jsonPath") or "")
        try:
            text = evaluate_jsonpath(path, status)
        except ValueError as error:
            return PreservedState({}, f"jsonPath for {name}: {error}")
        if not is_label_value(text):
            return PreservedState({}, f"jsonPath for {name} gives {text[:80]!r}, which is not a valid label value")
        labels[name] = text
    return PreservedState(labels, "")


def write_preserved_state(annotations: Mapping[str, str], clusters: tuple[Assignment, ...], tasks: tuple[Body, ...]) -> str:
    """Return the annotation with the preserved labels of the only copy, or "".

    The copy gets them when the last eviction has purgeMode Directly and the copy is in none of the clusters before the failover. Upstream
    removes them with the eviction task; here they stay with the copy, because the time of the next delivery is unknown.
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
    template: Document, targets: tuple[TargetCluster, ...], annotations: Mapping[str, str]
) -> tuple[TargetCluster, ...]:
    """Add the preserved labels in the annotations of the binding to the manifest of the copy that has them."""
    state = _read_preserved_labels(annotations)
    if not state:
        return targets
    return tuple(
        target._replace(body=_add_labels(template, target, state[target.cluster]))
        if target.cluster in state and not target.evicting
        else target
        for target in targets
    )


def _read_preserved_labels(annotations: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Read the labels by cluster; malformed text gives none."""
    try:
        value: Any = read_json(annotations.get(PRESERVED_STATE, "{}"))
    except ValueError:
        return {}
    return {name: as_string_map(labels) for name, labels in value.items()} if isinstance(value, dict) else {}


def _add_labels(template: Document, target: TargetCluster, labels: Mapping[str, str]) -> Body:
    body = set_counts(template.body, target.edits) if target.body is None else target.body
    metadata = body.get("metadata") or {}
    return {**body, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}


_JSONPATH_STEP = re.compile(
    r"""\.((?:\\.|[^\s.\[\]{}'"*@$\\])+)|\[\s*(-?\d+)\s*\]|\[\s*'((?:\\.|[^'\\])*)'\s*\]|\[\s*"((?:\\.|[^"\\])*)"\s*\]"""
)


_JSONPATH_PIECE = re.compile(r"""\{((?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^{}'"])*)\}|[^{}]+""")


_MAX_JSONPATH_LENGTH = 4096


def evaluate_jsonpath(template: str, value: Any) -> str:
    """Evaluate a JSONPath template of kubectl's syntax against a value.

    Supported are text and, in braces, a path of members and indices: {.a.b[0]['c']}. Raises ValueError, with a message for people, for
    other syntax and for a path without a value.
    """
    if len(template) > _MAX_JSONPATH_LENGTH:
        raise ValueError(f"it has more than {_MAX_JSONPATH_LENGTH} characters")
    text, position = "", 0
    while position < len(template):
        match = _JSONPATH_PIECE.match(template, position)
        if match is None:
            raise ValueError(f"unbalanced braces in {template!r}")
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
            raise ValueError(f"{path!r} is not a path of members and indices")
        name, index, *quoted = match.groups()
        if index is not None:
            value = _get_item(value, int(index), path)
        else:
            key = re.sub(r"\\(.)", r"\1", next(text for text in (name, *quoted) if text is not None))
            if not isinstance(value, dict) or key not in value:
                raise ValueError(f"{path!r}: no member {key!r}")
            value = value[key]
        position = match.end()
    return value


def _get_item(value: Any, index: int, path: str) -> Any:
    if not isinstance(value, list) or not -len(value) <= index < len(value):
        raise ValueError(f"{path!r}: no item {index}")
    return value[index]


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def list_preservation_rules(behavior: Body | None) -> list[Body]:
    """Return the statePreservation rules of failover.application or failover.cluster."""
    return list(get_field(behavior or {}, "statePreservation", "rules") or ())
