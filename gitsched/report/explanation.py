"""Explanations of a workload and of a cluster, as text and as blocks: policy, groups, candidates, division, capacity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gitsched.model.explanation import (
    AbsenceReason,
    AppliedOverride,
    ClusterExplanation,
    ClusterWorkload,
    Counterfactual,
    EligibleWorkload,
    ExplainedCandidate,
    ExplainedReference,
    Explanation,
    ExplanationTable,
    ReplicaShare,
)
from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.report.blocks import Block, ListBlock, Paragraph, TableBlock
from gitsched.report.lines import fits_width, format_columns, format_key, list_limited, serialize_replicas, wrap, wrap_all
from gitsched.report.serialization import API_VERSION

MAX_SINGLE_ROWS = 20
"""Up to this number, each candidate has a row of its own."""


def write_explanation(value: Explanation, width: int) -> str:
    """Return policy, groups, clusters, division and result of a workload, wrapped at `width` characters."""
    lines = [*wrap(value.title, width), *(wrap(value.state, width, "  ") if value.state else ())]
    if not value.policy and value.tables:  # a document that is not placed itself
        lines += wrap(value.trigger, width, "  ")
        lines += [line for table in value.tables for line in _write_table(table, width)]
        lines += _write_section("Findings", [str(finding) for finding in value.findings], width)
        return "\n".join(lines) + "\n"
    if not value.policy:
        lines += _write_section("Policy", ["no policy selects it", value.policy_reason], width)
        if value.attached_to:
            lines += _write_section("Attached to", list(value.attached_to), width)
            lines += _write_section("Trigger", [value.trigger], width)
            lines += _write_section("Result", [_format_share(share) for share in value.result] or ["nowhere"], width)
            lines += _write_section("Copies", list(value.copies), width)
            lines += _write_section("Overrides, in order", list_overrides(value), width)
        lines += [line for title, entries in list_related_objects(value) for line in _write_section(title, entries, width)]
        lines += _write_section("Findings", [str(finding) for finding in value.findings], width)
        return "\n".join(lines) + "\n"
    if value.only_some_clusters:
        lines += _write_section("Policy", [value.policy], width)
        lines += _write_section("Last rescheduled", [value.rescheduled], width)
        lines += _write_candidates(value.candidates, value.candidate_kind, width)
        lines += _write_section("Result", [f"runs on {_format_share(share)}" for share in value.result], width)
        lines += _write_section("Would be selected if", list_counterfactuals(value), width)
        return "\n".join(lines) + "\n"
    rejected = [f"not {each.policy}: {each.why}" for each in value.rejected_policies]
    policy = f"{value.policy}: {value.policy_reason}" if value.policy_reason else value.policy
    lines += _write_section("Policy", [policy, value.claim, *rejected], width)
    lines += _write_section("Attached to", list(value.attached_to), width)
    lines += _write_section("Trigger", [value.trigger], width)
    lines += _write_section("Last rescheduled", [value.rescheduled], width)
    groups = [
        f"{attempt.name or 'the only group'}: {attempt.verdict}" + _append_message(attempt.message) for attempt in value.attempts
    ]
    lines += _write_section("Groups, in order", groups, width)
    lines += _write_candidates(value.candidates, value.candidate_kind, width)
    lines += _write_section("Selection", [*value.selection], width)
    lines += _write_section("Division", [*value.division_rule, *map(_format_weighted_share, value.division)], width)
    lines += _write_section("Result", [_format_share(share) for share in value.result] or ["nowhere"], width)
    lines += _write_section("Copies", list(value.copies), width)
    lines += _write_section("Overrides, in order", list_overrides(value), width)
    lines += [line for title, entries in list_related_objects(value) for line in _write_section(title, entries, width)]
    lines += _write_section("Would be selected if", list_counterfactuals(value), width)
    lines += [line for table in value.tables for line in _write_table(table, width)]
    lines += _write_section("Findings", [str(finding) for finding in value.findings], width)
    return "\n".join(lines) + "\n"


def list_explanation_blocks(value: Explanation) -> list[Block]:
    """Return the explanation of a workload as blocks, for Markdown."""
    head = (value.candidate_kind.capitalize(), "Group", "Fits", "Reason")
    rows = _list_candidate_rows(value.candidates)
    policy = f"{value.policy or 'no policy selects it'}: {value.policy_reason}" if value.policy_reason else value.policy
    rejected = (f"not {each.policy}: {each.why}" for each in value.rejected_policies)
    groups = [
        f"{attempt.name or 'the only group'}: {attempt.verdict}" + _append_message(attempt.message) for attempt in value.attempts
    ]
    result = [_format_share(share) for share in value.result] or ["nowhere"]
    if not value.policy and value.tables:  # a document that is not placed itself
        return [
            Paragraph(value.title, heading=True),
            Paragraph(value.trigger),
            *(TableBlock(table.columns, table.rows, caption=table.title) for table in value.tables),
            ListBlock("Findings", [str(finding) for finding in value.findings]),
        ]
    return [
        Paragraph(value.title, heading=True),
        *([Paragraph(value.state)] if value.state else ()),
        ListBlock("Result", [] if value.only_some_clusters and not value.result else result),
        ListBlock("Copies", value.copies),
        ListBlock("Policy", list(filter(None, [policy, value.claim, *rejected]))),
        ListBlock("Attached to", value.attached_to),
        ListBlock("Trigger", [value.trigger] if value.trigger and not value.only_some_clusters else []),
        ListBlock("Last rescheduled", [value.rescheduled] if value.rescheduled else []),
        ListBlock("Groups, in order", [] if value.only_some_clusters else groups),
        TableBlock(head, rows),
        ListBlock("Selection", value.selection),
        ListBlock("Division", [*value.division_rule, *map(_format_weighted_share, value.division)]),
        ListBlock("Overrides, in order", [] if value.only_some_clusters else list_overrides(value)),
        *(ListBlock(title, entries) for title, entries in list_related_objects(value)),
        ListBlock("Would be selected if", list_counterfactuals(value)),
        *(TableBlock(table.columns, table.rows, caption=table.title) for table in value.tables if not value.only_some_clusters),
        ListBlock("Findings", [] if value.only_some_clusters else [str(finding) for finding in value.findings]),
    ]


def list_counterfactuals(value: Explanation) -> list[str]:
    """Return a line for each rejected cluster with the changes that would select it."""
    lines = [f"{entry.cluster}: {_format_counterfactual(entry)}" for entry in value.counterfactuals]
    return [*lines, f"{format_count(value.unexamined, 'more cluster')}: use --why-not CLUSTER"] if value.unexamined else lines


def _format_counterfactual(entry: Counterfactual) -> str:
    changes = " and ".join(change.text + (f" ({change.location})" if change.location else "") for change in entry.changes)
    if not changes:
        return "no such change found"
    if not entry.sufficient:
        return f"at least {changes}; more changes may be necessary"
    return changes + (f"; it would get {format_count(entry.replicas, 'replica')}" if entry.replicas is not None else "")


def _write_section(title: str, entries: list[str], width: int) -> list[str]:
    shown = [line for entry in entries if entry for line in wrap(entry, width, "  ")]
    return ["", title, *shown] if shown else []


def _write_table(table: ExplanationTable, width: int) -> list[str]:
    """Return a table if it fits into the width, else a paragraph for each row."""
    head, *rest = table.columns
    lines = format_columns([(f"  {head.upper()}", *map(str.upper, rest)), *((f"  {first}", *more) for first, *more in table.rows)])
    if not fits_width(lines, width):
        paragraphs = (
            f"{row[0]}: " + ", ".join(f"{name} {cell}" for name, cell in zip(rest, row[1:], strict=True)) for row in table.rows
        )
        lines = [line for text in paragraphs for line in wrap(text, width, "  ")]
    return ["", table.title, *lines] if table.rows else []


def _write_candidates(candidates: tuple[ExplainedCandidate, ...], kind: str, width: int) -> list[str]:
    """Return a table if it fits into the width, else a paragraph for each candidate."""
    if not candidates:
        return []
    rows = [(f"  {names}", *rest) for names, *rest in _list_candidate_rows(candidates)]
    if len({entry.group for entry in candidates}) > 1:
        table = format_columns([(f"  {kind.upper()}", "GROUP", "FITS", "REASON"), *rows])
    else:
        table = format_columns([(f"  {kind.upper()}", "FITS", "REASON"), *((name, fit, reason) for name, _, fit, reason in rows)])
        rows = [(name, "", fit, reason) for name, _, fit, reason in rows]
    if not fits_width(table, width):
        paragraphs = (
            (f"{name.strip()}{f' in {group}' if group else ''}: {fit}" + _append_message(reason))
            for name, group, fit, reason in rows
        )
        table = [line for text in paragraphs for line in wrap(text, width, "  ")]
    return ["", f"{kind.capitalize()}s", *table]


def _list_candidate_rows(candidates: Sequence[ExplainedCandidate]) -> list[tuple[str, str, str, str]]:
    """Return names, group, verdict and reason; of many candidates, those with the same reason are one row."""
    names: dict[tuple[str, str, str, str], list[str]] = {}
    for entry in candidates:
        single = entry.result.name if len(candidates) <= MAX_SINGLE_ROWS else ""
        row = single, entry.group, "yes" if entry.result.eligible else "no", describe_candidate(entry)
        names.setdefault(row, []).append(entry.result.name)
    return [(format_names(found), group, fits, reason) for (_, group, fits, reason), found in names.items()]


def describe_candidate(entry: ExplainedCandidate) -> str:
    """Return the reason why a candidate is rejected with its file:line, its score, and its capacity; "" without any of these."""
    result = entry.result
    scores = entry.score_details or ", ".join(f"{name} {score:g}" for name, score in sorted(result.scores.items()))
    total = f"score {result.total:g}" if result.total is not None else ""
    location = f"({entry.location})" if entry.location else ""
    rejection = " ".join(filter(None, [result.reason, location]))
    score = " ".join(filter(None, [total, f"= {scores}" if total and scores else scores]))
    return "; ".join(filter(None, [rejection, score, entry.capacity]))


def list_overrides(value: Explanation) -> list[str]:
    """Return the override policies of a workload in order, and why its manifest is not edited in place."""
    return [*map(describe_override, value.overrides), *([f"the manifest is {value.rewritten}"] if value.rewritten else [])]


def describe_override(override: AppliedOverride) -> str:
    """Return an override policy with the fields that it changes and the clusters that it applies to."""
    location = f" ({override.location})" if override.location else ""
    return f"{override.policy}{location}: {', '.join(override.changes)} in {', '.join(override.clusters)}"


def list_related_objects(value: Explanation) -> list[tuple[str, list[str]]]:
    """Return the sections about objects that a workload needs, and about its companions."""
    sections = (("Refers to", value.references), ("Targets", value.targets), ("Targeted by", value.targeted_by))
    return [(title, list(map(describe_reference, entries))) for title, entries in sections]


def describe_reference(reference: ExplainedReference) -> str:
    """Return an object that the workload refers to, with the clusters that have it and those that lack it."""
    parts = [
        f"goes along to {', '.join(reference.clusters)}" if reference.clusters else "",
        f"missing in {', '.join(reference.missing)}" if reference.missing else "",
    ]
    text = "; ".join(filter(None, parts))
    reason = f" ({reference.reason})" if reference.reason and text else reference.reason
    return f"{reference.object}: {text}{reason}"


def _append_message(message: str) -> str:
    return f": {message}" if message else ""


def _format_weighted_share(share: ReplicaShare) -> str:
    return _format_share(share) + (f", weight {share.weight}" if share.weight is not None else "")


def _format_share(share: ReplicaShare) -> str:
    assigned = "" if share.assigned is None else f" ({share.assigned} assigned)"
    return share.cluster + ("" if share.replicas is None else f": {share.replicas}") + assigned


WORKLOADS_SHOWN = 50
CANDIDACIES_SHOWN = 10
"""The numbers of workloads that are listed; the others are counted, and JSON contains all."""


def write_cluster_explanation(value: ClusterExplanation, width: int) -> str:
    """Return the explanation of a cluster, wrapped at `width` characters."""
    lines = wrap(_format_cluster_title(value), width)
    for line in _list_cluster_facts(value):
        lines += wrap(line, width, "  ")
    rows = [
        ("  WORKLOAD", "REPLICAS", "POLICY", ""),
        *(("  " + name, *more) for name, *more in map(_workload_cells, value.running[: _count_listed(value)])),
    ]
    lines += ["", _describe_workload_counts(value)]
    if value.running:
        table = format_columns(rows)
        if fits_width(table, width):
            lines += table
        else:
            lines += [
                line for workload in value.running[:WORKLOADS_SHOWN] for line in wrap(_describe_workload(workload), width, "  ")
            ]
    lines += [f"  {line}" for line in _list_omitted(value)]
    resources = [("  RESOURCE", "FREE", "AFTER PLAN"), *((f"  {s.resource}", s.free, s.left) for s in value.free_resources or ())]
    lines += [
        "",
        "Capacity",
        *(format_columns(resources) if value.free_resources else wrap(_describe_unknown_capacity(value), width, "  ")),
    ]
    eligible = [_describe_candidacy(entry) for entry in value.eligible if _has_capacity_for(entry)]
    if eligible:
        listed = list_limited(eligible, CANDIDACIES_SHOWN, "and {} more; use -o json for all")
        lines += ["", "Could also run here, each considered alone", *wrap_all(listed, width, "  ")]
    if value.absence_reasons:
        lines += [
            "",
            "Not running here",
            *(line for absence in value.absence_reasons for line in wrap(_describe_absence(absence), width, "  ")),
        ]
    return "\n".join(lines) + "\n"


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
    """Return the explanation of a cluster as `kind: ClusterExplanation` of docs/cli.md."""
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
    return f"Running here: {format_count(workloads, 'workload')}, {format_count(replicas, 'replica')}"


def _list_omitted(value: ClusterExplanation) -> list[str]:
    more = len(value.running) - _count_listed(value)
    return [f"and {more:,} more; use -o json for all"] if more > 0 else []


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
