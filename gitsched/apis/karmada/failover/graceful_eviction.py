"""Graceful eviction tasks and the state they preserve (statePreservation, with JSONPath)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.model.document import Body, Document, as_string_map
from gitsched.model.labels import is_label_value
from gitsched.model.scheduling import Assignment, TargetCluster
from gitsched.model.taints import NO_EXECUTE, Taint, Toleration, parse_toleration
from gitsched.model.time import add_duration, format_time, parse_time
from gitsched.render.cluster_directory import set_counts

TAINT_UNTOLERATED, APPLICATION_FAILURE = "TaintUntolerated", "ApplicationFailure"
"""Reasons of evictions."""


class EvictionTasks(NamedTuple):
    """Graceful eviction tasks that still live, and the first moment at which one of them ends."""

    active: tuple[Body, ...]
    wakeup: datetime | None


def read_applied_tolerations(applied: str | None) -> tuple[Toleration, ...] | None:
    """The tolerations of the placement last acted on: those, not the present policy's, decide about eviction.

    None where nobody knows them: then nothing is evicted, until the workload was scheduled under a placement that is known.
    """
    try:
        placement: Any = json.loads(applied) if applied else None
    except ValueError:
        return None
    if not isinstance(placement, dict):
        return None
    entries = placement.get("clusterTolerations")
    return tuple(map(parse_toleration, entries if isinstance(entries, list) else ()))


def find_eviction_time(taints: Iterable[Taint], tolerations: tuple[Toleration, ...], moment: datetime) -> datetime | None:
    """When a placement must leave a cluster with these taints: a moment, `moment` itself for now, or None for never.

    Each NoExecute taint needs a toleration; the first that tolerates it is used. A used toleration with seconds ends that long after each
    taint it tolerates was added.
    """
    harmful = [taint for taint in taints if taint.effect == NO_EXECUTE]
    used: list[Toleration] = []
    for taint in harmful:
        toleration = next((t for t in tolerations if t.tolerates(taint)), None)
        if toleration is None:
            return moment
        used.append(toleration)
    ends = [
        add_duration(taint.since or moment, max(toleration.seconds, 0))
        for toleration in used
        if toleration.seconds is not None
        for taint in harmful
        if toleration.tolerates(taint)
    ]
    return max(min(ends), moment) if ends else None


def make_eviction_task(
    target: Assignment,
    purge_mode: str,
    moment: datetime,
    reason: str = TAINT_UNTOLERATED,
    producer: str = "TaintManager",
    **more: Any,
) -> Body:
    """The graceful eviction task that one of Karmada's controllers writes, by default its taint manager; `more` are members of its own,
    of which empty ones are left out."""
    task: Body = {"fromCluster": target.name, "purgeMode": purge_mode}
    if target.replicas:
        task["replicas"] = target.replicas
    task |= {"reason": reason, "producer": producer}
    return {**task, **{name: value for name, value in more.items() if value}, "creationTimestamp": format_time(moment)}


def drop_expired_tasks(tasks: Iterable[Body], timeout: timedelta, moment: datetime) -> EvictionTasks:
    """Drop the tasks that are over at `moment`; one without a creation time starts now.

    suppressDeletion true keeps a task for ever and false ends it; otherwise it ends gracePeriodSeconds (or `timeout`) after its creation.
    """
    live: list[Body] = []
    ends: list[datetime] = []
    for task in tasks:
        created = parse_time(task.get("creationTimestamp"))
        entry = task if created else {**task, "creationTimestamp": format_time(moment)}
        suppressed = task.get("suppressDeletion")
        if suppressed is False:
            continue
        if suppressed is not True:
            grace = task.get("gracePeriodSeconds")
            end = add_duration(created or moment, max(grace, 0) if isinstance(grace, int) else timeout)
            if end <= moment:
                continue
            ends.append(end)
        live.append(entry)
    return EvictionTasks(tuple(live), min(ends, default=None))


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
