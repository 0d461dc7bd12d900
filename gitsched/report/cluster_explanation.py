"""Explanation of a cluster as text and as blocks: what runs there, its free capacity, and why other workloads do not run there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gitsched.model.explanation import AbsenceReason, ClusterExplanation, ClusterWorkload, EligibleWorkload
from gitsched.model.finding import count_shown, format_count
from gitsched.report.blocks import Block, ListBlock, Paragraph, TableBlock
from gitsched.report.lines import (
    count_omitted,
    fits_width,
    format_columns,
    format_key,
    list_limited,
    serialize_replicas,
    wrap,
    wrap_all,
)
from gitsched.report.paint import Paint
from gitsched.report.serialization import API_VERSION
from gitsched.report.text_sections import TextSections

WORKLOADS_SHOWN = 50
CANDIDACIES_SHOWN = 10
"""The numbers of workloads that are listed; the others are counted, and JSON contains all."""


def write_cluster_explanation(value: ClusterExplanation, width: int, paint: Paint | None = None) -> str:
    """Return the explanation of a cluster, wrapped at `width` characters."""
    text = TextSections(width, paint)
    text.add_head(_format_cluster_title(value), _list_cluster_facts(value))
    running = value.running[: _count_listed(value)]
    rows = [("  WORKLOAD", "REPLICAS", "POLICY", ""), *(("  " + name, *more) for name, *more in map(_workload_cells, running))]
    table = format_columns(rows) if running else []
    if not fits_width(table, width):
        table = wrap_all(map(_describe_workload, value.running[:WORKLOADS_SHOWN]), width, "  ")
    text.add_lines(_describe_workload_counts(value), [*table, *(f"  {line}" for line in _list_omitted(value))])
    resources = [("  RESOURCE", "FREE", "AFTER PLAN"), *((f"  {s.resource}", s.free, s.left) for s in value.free_resources or ())]
    unknown = wrap(_describe_unknown_capacity(value), width, "  ")
    text.add_lines("Capacity", format_columns(resources) if value.free_resources else unknown)
    eligible = [_describe_candidacy(entry) for entry in value.eligible if _has_capacity_for(entry)]
    listed = list_limited(eligible, CANDIDACIES_SHOWN, "and {} more; use -o json for all")
    text.add("Could also run here, each considered alone", listed)
    text.add("Not running here", map(_describe_absence, value.absence_reasons))
    return text.join()


def list_cluster_explanation_blocks(value: ClusterExplanation) -> list[Block]:
    """Return the explanation of a cluster as blocks, for Markdown."""
    return [
        Paragraph(_format_cluster_title(value), heading=True),
        *(Paragraph(line) for line in _list_cluster_facts(value)),
        Paragraph(_describe_workload_counts(value)),
        TableBlock(
            ("Workload", "Replicas", "Policy", "Remark"),
            [_workload_cells(workload) for workload in value.running[: _count_listed(value)]],
        ),
        *(Paragraph(line) for line in _list_omitted(value)),
        *([] if value.free_resources else [Paragraph(_describe_unknown_capacity(value))]),
        TableBlock(("Resource", "Free", "After plan"), [(s.resource, s.free, s.left) for s in value.free_resources or ()]),
        ListBlock(
            "Could also run here, each considered alone",
            list_limited([_describe_candidacy(e) for e in value.eligible if _has_capacity_for(e)], CANDIDACIES_SHOWN),
        ),
        ListBlock("Not running here", list(map(_describe_absence, value.absence_reasons))),
    ]


def serialize_cluster_explanation(value: ClusterExplanation) -> dict[str, Any]:
    """Return the explanation of a cluster as `kind: ClusterExplanation` of docs/development/json.md."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterExplanation",
        "cluster": value.name,
        "location": value.location,
        "region": value.region,
        "provider": value.provider,
        "zones": list(value.zones),
        "labels": dict(value.labels),
        "remarks": [*map(str, value.taints), *value.remarks],
        "residents": [
            {
                "workload": entry.key._asdict(),
                **serialize_replicas(entry.replicas),
                "policy": entry.policy,
                "new": entry.new,
                "leaving": entry.evicting,
            }
            for entry in value.running
        ],
        "room": None if value.free_resources is None else [resource._asdict() for resource in value.free_resources],
        "couldTake": [{"workload": e.key._asdict(), "here": e.running, "replicas": e.additional_replicas} for e in value.eligible],
        "absences": [
            {"reason": absence.reason, "count": absence.workloads, "examples": [key._asdict() for key in absence.examples]}
            for absence in value.absence_reasons
        ],
    }


def _format_cluster_title(value: ClusterExplanation) -> str:
    return f"Cluster {value.name}" + (f"  ({value.location})" if value.location else "")


def _list_cluster_facts(value: ClusterExplanation) -> list[str]:
    topology = [
        f"region {value.region}" if value.region else "",
        f"provider {value.provider}" if value.provider else "",
        f"zone {', '.join(value.zones)}" if value.zones else "",
    ]
    labels = ", ".join(f"{name}={text}" for name, text in sorted(value.labels.items()))
    return list(
        filter(
            None, ["; ".join(filter(None, topology)), f"labels {labels}" if labels else "", *map(str, value.taints), *value.remarks]
        )
    )


def _describe_workload_counts(value: ClusterExplanation) -> str:
    replicas = sum(workload.replicas or 0 for workload in value.running if not workload.evicting)
    workloads = sum(not workload.evicting for workload in value.running)
    where = "Would run here" if value.is_first else "Running here"
    return f"{where}: {format_count(workloads, 'workload')}, {format_count(replicas, 'replica')}"


def _list_omitted(value: ClusterExplanation) -> list[str]:
    return count_omitted(len(value.running) - _count_listed(value))


def _count_listed(value: ClusterExplanation) -> int:
    return count_shown(len(value.running), WORKLOADS_SHOWN)


def _describe_unknown_capacity(value: ClusterExplanation) -> str:
    return "Free capacity unknown, assumed to be sufficient." if value.free_resources is None else "No free capacity."


def _workload_cells(workload: ClusterWorkload) -> Sequence[str]:
    remark = "evicting" if workload.evicting else "new" if workload.new else ""
    return (format_key(workload.key), "" if workload.replicas is None else str(workload.replicas), workload.policy, remark)


def _describe_workload(workload: ClusterWorkload) -> str:
    name, _, policy, remark = _workload_cells(workload)
    parts = [
        format_count(workload.replicas, "replica") if workload.replicas is not None else "",
        f"by {policy}" if policy else "",
        remark,
    ]
    return ": ".join(filter(None, (name, ", ".join(filter(None, parts)))))


def _has_capacity_for(entry: EligibleWorkload) -> bool:
    """Return whether to list a workload: one that runs on the cluster and cannot grow is not listed."""
    return bool(entry.additional_replicas) or not entry.running


def _describe_candidacy(entry: EligibleWorkload) -> str:
    capacity = (
        f"capacity for {format_count(entry.additional_replicas, 'more replica' if entry.running else 'replica')}"
        if entry.additional_replicas is not None
        else "capacity unknown"
    )
    return f"{format_key(entry.key)}: {capacity}"


def _describe_absence(absence: AbsenceReason) -> str:
    examples = ", ".join(map(format_key, absence.examples))
    more = f", and {absence.workloads - len(absence.examples)} more" if absence.workloads > len(absence.examples) else ""
    return f"{format_count(absence.workloads, 'workload')}: {absence.reason} ({examples}{more})"
