"""What is in a cluster, and where a workload is, as indented text and as `kind: FleetTree` of docs/development/json.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gitsched.model.changes import RetainedCopy
from gitsched.model.explanation import ExplainedReference
from gitsched.model.finding import format_count, format_part
from gitsched.model.fleet_tree import ClusterTree, WorkloadTree
from gitsched.model.scheduling import total_replicas
from gitsched.model.time import format_age, format_time
from gitsched.report.explanation import describe_reference
from gitsched.report.fleet_problems import UNPUSHED, describe_freeze
from gitsched.report.fleet_status import serialize_cluster_status, serialize_workload_status
from gitsched.report.held import describe_hold_place, describe_target, serialize_held
from gitsched.report.lines import escape_unprintable, format_key, list_limited, serialize_replicas
from gitsched.report.retained_copies import describe_retained_copies
from gitsched.report.serialization import API_VERSION, serialize_key

if TYPE_CHECKING:
    from gitsched.report.paint import Paint

MAX_ROWS = 200
"""Workloads of a namespace, and clusters of a workload, that the text lists; JSON contains all."""
MAX_NAMESPACE_ROWS = 50
"""Namespaces of a cluster that the text lists."""


def write_fleet_tree(tree: ClusterTree | WorkloadTree, paint: Paint | None = None) -> str:
    """Return a cluster with its workloads by namespace, or a workload with its policy, clusters and what belongs to it. What is wrong with
    it comes first."""
    title, *lines = _list_cluster_lines(tree) if isinstance(tree, ClusterTree) else _list_workload_lines(tree)
    problems = [f"  frozen: {describe_freeze(freeze, tree.now)}" for freeze in tree.freezes]
    problems += [f"  not pushed: {UNPUSHED.format(freeze.push)}" for freeze in tree.freezes if freeze.push]
    problems += [f"  {edit}" for edit in tree.edits]
    problems += _list_workload_problems(tree) if isinstance(tree, WorkloadTree) else []
    first, *rest = map(escape_unprintable, (title, *problems, *lines))
    if paint is not None:
        first = paint(first, "heading")
        rest = [paint(line, "error") if index < len(problems) else line for index, line in enumerate(rest)]
    return "".join(f"{line}\n" for line in (first, *rest))


def _list_workload_problems(tree: WorkloadTree) -> list[str]:
    lines = []
    if tree.held is not None:
        where, release = describe_hold_place(tree.workload.key, tree.held)
        lines += [f"  held: {where}", f"  {release}"]
    if tree.withheld is not None:
        lines.append(
            f"  withheld: {tree.withheld_by} withholds that it {describe_target(tree.withheld)}; to allow it, {tree.allowance}"
        )
    return lines


def _list_cluster_lines(tree: ClusterTree) -> list[str]:
    name = tree.cluster.name
    replicas = total_replicas(one.clusters[name] for one in tree.workloads)
    namespaces: dict[str, list[str]] = {}
    for one in sorted(tree.workloads, key=lambda each: (each.key.namespace, each.key.kind, each.key.name)):
        count = one.clusters[name]
        namespaces.setdefault(one.key.namespace, []).append(
            f"    {one.key.kind} {one.key.name}{_format_amount(count)}{f'  {one.state}' if one.state else ''}"
        )
    total = f"{format_count(len(tree.workloads), 'workload')}, {format_count(replicas, 'replica')}"
    total += f", {format_count(len(tree.copies), 'copy that stays', 'copies that stay')}" if tree.copies else ""
    lines = [f"cluster {name}: {'; '.join((*_list_states(tree), total))}"]
    for namespace, rows in list(namespaces.items())[:MAX_NAMESPACE_ROWS]:
        lines += [f"  {namespace or 'without a namespace'}", *list_limited(rows, MAX_ROWS, "    and {} more; use -o json for all")]
    if len(namespaces) > MAX_NAMESPACE_ROWS:
        lines.append(f"  and {format_count(len(namespaces) - MAX_NAMESPACE_ROWS, 'more namespace')}; use -o json for all")
    return [*lines, *_list_section("copies that stay", describe_retained_copies(tree.copies))]


def _list_states(tree: ClusterTree) -> list[str]:
    """Return whether a cluster is ready, since when that is known, and its taints."""
    one = tree.cluster
    observed = f", observed {format_age(one.observed, tree.now)} ago" if one.observed is not None else ""
    why = one.unready.removeprefix("it is ") if one.unready.startswith("it is not ready") else f"not ready: {one.unready}"
    ready = {"True": "ready", "Unknown": "readiness unknown", "Gone": f"gone: {one.unready}"}
    text = why.removesuffix(": ") if one.is_unready else ready[one.ready]
    return [f"{text}{observed}", *map(str, one.taints)]


def _list_workload_lines(tree: WorkloadTree) -> list[str]:
    one = tree.workload
    none = f"none ({tree.reason})" if one.clusters and tree.reason else "no policy"
    policy = f"{one.policy or none}{f', group {tree.group}' if tree.group else ''}"
    clusters = [f"    {name}{_format_amount(count)}" for name, count in one.clusters.items()]
    short = [f"  missing: {format_part(one.missing, one.replicas, 'replica')}: {one.reason}"] if one.missing else []
    lines = [format_key(one.key), f"  policy: {policy}", *short, *(["  clusters:"] if clusters else [f"  unplaced: {tree.reason}"])]
    lines += list_limited(clusters, MAX_ROWS, "    and {} more; use -o json for all")
    lines += _list_section("waits for a wave of a rollout", one.waiting)
    lines += _list_section("copies that stay", describe_retained_copies(tree.copies))
    for title, references in (("companions", tree.companions), ("targets", tree.targets), ("refers to", tree.references)):
        lines += _list_section(title, map(describe_reference, references))
    return lines


def _format_amount(count: int | None) -> str:
    return "" if count is None else f"  {format_count(count, 'replica')}"


def _list_section(title: str, rows: Iterable[str]) -> list[str]:
    lines = list_limited([f"    {row}" for row in rows], MAX_ROWS, "    and {} more; use -o json for all")
    return [f"  {title}:", *lines] if lines else []


def serialize_fleet_tree(tree: ClusterTree | WorkloadTree) -> dict[str, Any]:
    """Return the tree as data, with everything."""
    head: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "FleetTree"}
    copies = [_serialize_copy(copy) for copy in tree.copies]
    if isinstance(tree, ClusterTree):
        workloads = [serialize_workload_status(one) for one in tree.workloads]
        cluster = serialize_cluster_status(tree.cluster)
        return {**head, "cluster": cluster, "workloads": workloads, "copies": copies, "edits": list(tree.edits)}
    return {
        **head,
        "workload": {**serialize_workload_status(tree.workload), "affinityGroup": tree.group, "reason": tree.reason},
        "held": serialize_held({tree.workload.key: tree.held})[0] if tree.held is not None else None,
        "copies": copies,
        "companions": _serialize_references(tree.companions),
        "targets": _serialize_references(tree.targets),
        "references": _serialize_references(tree.references),
        "edits": list(tree.edits),
    }


def _serialize_copy(copy: RetainedCopy) -> dict[str, Any]:
    end = {"until": format_time(copy.until) if copy.until is not None else None, "release": copy.release}
    return {**serialize_key(copy.workload), "cluster": copy.cluster, **serialize_replicas(copy.replicas), **end}


def _serialize_references(references: Sequence[ExplainedReference]) -> list[dict[str, Any]]:
    return [reference._asdict() for reference in references]
