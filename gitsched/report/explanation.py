"""Explanation of a workload as text, as blocks and as data: policy, groups, candidates, division, references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gitsched.model.explanation import (
    AppliedOverride,
    Counterfactual,
    ExplainedCandidate,
    ExplainedReference,
    Explanation,
    ExplanationTable,
    ReplicaShare,
)
from gitsched.model.finding import format_count, format_names
from gitsched.report.blocks import Block, ListBlock, Paragraph, TableBlock
from gitsched.report.explained_rollouts import describe_explained_rollout, serialize_explained_rollouts
from gitsched.report.lines import fits_width, format_columns, serialize_replicas
from gitsched.report.paint import Paint, Role
from gitsched.report.serialization import API_VERSION, serialize_finding
from gitsched.report.text_sections import TextSections

_NO_POLICY = "no policy selects it"
_FIT_ROLES: Mapping[str, Role] = {"yes": "added", "no": "removed"}
MAX_SINGLE_ROWS = 20
"""Up to this number, each candidate has a row of its own, and of more, each one where the workload runs."""


def write_explanation(value: Explanation, width: int, paint: Paint | None = None) -> str:
    """Return policy, groups, clusters, division and result of a workload, wrapped at `width` characters."""
    text = TextSections(width, paint)
    text.add_head(value.title, [value.state, "" if value.policy or not value.tables else value.trigger])
    if not value.policy or not value.only_some_clusters:
        text.add_findings(value.findings)
    if not value.policy and value.tables:  # a document that is not placed itself
        _add_tables(text, value)
    elif not value.policy:
        _add_unselected(text, value)
    elif value.only_some_clusters:
        text.add("Policy", [value.policy, *_list_rejected(value)])
        text.add("Last rescheduled", [value.rescheduled])
        _add_candidates(text, value)
        text.add("Selection", value.selection)
        text.add("Result", [f"runs on {_format_share(share)}" for share in value.result])
        _add_delivery(text, value)
        text.add("Would be selected if", list_counterfactuals(value))
    else:
        _add_decision(text, value)
    return text.join()


def _add_unselected(text: TextSections, value: Explanation) -> None:
    """Add what is known of an object that no policy selects."""
    text.add("Policy", _list_policies(value))
    text.add("Attached to", value.attached_to)
    if value.attached_to or value.result:
        text.add("Trigger", [value.trigger])
        text.add("Result", _list_result(value))
    _add_delivery(text, value)
    text.add("Overrides, in order", list_overrides(value))
    for title, entries in list_related_objects(value):
        text.add(title, entries)


def _add_decision(text: TextSections, value: Explanation) -> None:
    """Add everything about a workload that a policy selects."""
    text.add("Policy", _list_policies(value))
    text.add("Attached to", value.attached_to)
    text.add("Trigger", [value.trigger])
    text.add("Last rescheduled", [value.rescheduled])
    text.add("Groups, in order", _list_groups(value))
    _add_candidates(text, value)
    text.add("Selection", value.selection)
    text.add("Division", [*value.division_rule, *map(_format_weighted_share, value.division)])
    text.add("Result", _list_result(value))
    _add_delivery(text, value)
    text.add("Overrides, in order", list_overrides(value))
    for title, entries in list_related_objects(value):
        text.add(title, entries)
    text.add("Would be selected if", list_counterfactuals(value))
    _add_tables(text, value)


def _add_delivery(text: TextSections, value: Explanation) -> None:
    """Add what clusters have of a workload besides its result."""
    text.add("Rollout", list_rollouts(value))
    text.add("Copies", value.delivery.copies)


def list_rollouts(value: Explanation) -> list[str]:
    """Return the lines about each rollout that the workload waits for."""
    return [line for rollout in value.delivery.rollouts for line in describe_explained_rollout(rollout)]


def _list_policies(value: Explanation) -> list[str]:
    """Return the policy of a workload with the reason, its claim, and the policies that do not apply."""
    policy = value.policy or _NO_POLICY
    if value.delivery.is_part:
        return [value.policy_reason, value.claim]
    return [f"{policy}: {value.policy_reason}" if value.policy_reason else policy, value.claim, *_list_rejected(value)]


def _list_rejected(value: Explanation) -> list[str]:
    return [f"not {each.policy}: {each.why}" for each in value.rejected_policies]


def _list_groups(value: Explanation) -> list[str]:
    return [
        f"{attempt.name or 'the only group'}: {attempt.verdict}" + _append_message(attempt.message) for attempt in value.attempts
    ]


def _list_result(value: Explanation) -> list[str]:
    return [_format_share(share) for share in value.result] or ["nowhere"]


def list_explanation_blocks(value: Explanation) -> list[Block]:
    """Return the explanation of a workload as blocks, for Markdown."""
    head = (value.candidate_kind.capitalize(), "Group", "Fits", "Reason")
    rows = _list_candidate_rows(value)
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
        ListBlock("Findings", [] if value.only_some_clusters else [str(finding) for finding in value.findings]),
        ListBlock("Result", [] if value.has_no_result else _list_result(value)),
        ListBlock("Rollout", list_rollouts(value)),
        ListBlock("Copies", value.delivery.copies),
        ListBlock("Policy", list(filter(None, _list_policies(value)))),
        ListBlock("Attached to", value.attached_to),
        ListBlock("Trigger", [value.trigger] if value.trigger and not value.only_some_clusters else []),
        ListBlock("Last rescheduled", [value.rescheduled] if value.rescheduled else []),
        ListBlock("Groups, in order", [] if value.only_some_clusters else _list_groups(value)),
        TableBlock(head, rows),
        ListBlock("Selection", value.selection),
        ListBlock("Division", [*value.division_rule, *map(_format_weighted_share, value.division)]),
        ListBlock("Overrides, in order", [] if value.only_some_clusters else list_overrides(value)),
        *(ListBlock(title, entries) for title, entries in list_related_objects(value)),
        ListBlock("Would be selected if", list_counterfactuals(value)),
        *(TableBlock(table.columns, table.rows, caption=table.title) for table in value.tables if not value.only_some_clusters),
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


def _add_tables(text: TextSections, value: Explanation) -> None:
    for table in value.tables:
        _add_table(text, table)


def _add_table(text: TextSections, table: ExplanationTable) -> None:
    """Add a table if it fits into the width, else a paragraph for each row."""
    head, *rest = table.columns
    lines = format_columns([(f"  {head.upper()}", *map(str.upper, rest)), *((f"  {first}", *more) for first, *more in table.rows)])
    if not table.rows or fits_width(lines, text.width):
        text.add_lines(table.title, lines if table.rows else [])
        return
    text.add(
        table.title,
        [f"{row[0]}: " + ", ".join(f"{name} {cell}" for name, cell in zip(rest, row[1:], strict=True)) for row in table.rows],
    )


def _add_candidates(text: TextSections, value: Explanation) -> None:
    """Add a table if it fits into the width, else a paragraph for each candidate."""
    candidates, kind = value.candidates, value.candidate_kind
    if not candidates:
        return
    rows = _list_candidate_rows(value)
    has_groups = len({entry.group for entry in candidates}) > 1
    heads = (f"  {kind.upper()}", *(("GROUP",) if has_groups else ()), "FITS", "REASON")
    head, *lines = format_columns(
        [heads, *((f"  {name}", *((group,) if has_groups else ()), fits, reason) for name, group, fits, reason in rows)]
    )
    title = f"{kind.capitalize()}s"
    if fits_width([head, *lines], text.width):
        fits = text.paint_cells(lines, head.rindex("FITS"), [fits for _, _, fits, _ in rows], _FIT_ROLES)
        text.add_lines(title, [head, *fits])
        return
    text.add(
        title,
        [
            f"{name}{f' in {group}' if group and has_groups else ''}: {fits}" + _append_message(reason)
            for name, group, fits, reason in rows
        ],
    )


def _list_candidate_rows(value: Explanation) -> list[tuple[str, str, str, str]]:
    """Return names, group, verdict and reason; of many candidates, those with the same reason are one row, but for those where the workload
    runs. Of these, those that do not fit come first where they are many, too."""
    candidates, running = value.candidates, value.running
    single_names = {entry.result.name for entry in candidates}
    if len(candidates) > MAX_SINGLE_ROWS:
        unfit = running.difference(entry.result.name for entry in candidates if entry.result.eligible)
        single_names = {*sorted(running, key=lambda name: (name not in unfit, name))[:MAX_SINGLE_ROWS]}
    names: dict[tuple[str, str, str, str], list[str]] = {}
    for entry in candidates:
        single = entry.result.name if entry.result.name in single_names else ""
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
    rewritten = value.delivery.rewritten
    return [*map(describe_override, value.overrides), *([f"the manifest is {rewritten}"] if rewritten else [])]


def describe_override(override: AppliedOverride) -> str:
    """Return an override policy with the overriders that change a manifest, those that change nothing, and its clusters."""
    location = f" ({override.location})" if override.location else ""
    where = f" in {', '.join(override.clusters)}"
    changes, unchanged = ", ".join(override.changes), ", ".join(override.unchanged)
    parts = (f"{changes}{where}" if changes else "", f"{unchanged} changes nothing{'' if changes else where}" if unchanged else "")
    return f"{override.policy}{location}: {'; '.join(filter(None, parts)) or 'matches none of the clusters above'}"


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
    copied = "" if share.copied is None else f" ({share.copied} run there until its overlap ends)"
    return share.cluster + ("" if share.replicas is None else f": {share.replicas}") + assigned + copied


def serialize_explanation(value: Explanation) -> dict[str, Any]:
    """Return the explanation of a workload as `kind: Explanation` of docs/development/json.md."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        "workload": value.workload,
        "location": value.location,
        "state": value.state,
        **({"builtFrom": value.origin.root} if value.origin is not None and value.origin.root else {}),
        **({"changedBy": value.origin.changed_by} if value.origin is not None and value.origin.changed_by else {}),
        "policy": {
            "name": value.policy,
            "reason": value.policy_reason,
            "claim": value.claim,
            "losers": [rejected._asdict() for rejected in value.rejected_policies],
        },
        "attachedTo": list(value.attached_to),
        "groups": [attempt._asdict() for attempt in value.attempts],
        "clusters": [
            candidate.result._asdict() | {"location": candidate.location, "group": candidate.group, "room": candidate.capacity}
            for candidate in value.candidates
        ],
        "selection": list(value.selection),
        "division": {"rule": list(value.division_rule), "shares": [share._asdict() for share in value.division]},
        "trigger": value.trigger,
        "rescheduled": value.rescheduled,
        "result": [_serialize_share(share) for share in value.result],
        "overrides": [override._asdict() for override in value.overrides],
        "rewritten": value.delivery.rewritten,
        "references": [reference._asdict() for reference in value.references],
        "copies": list(value.delivery.copies),
        "rollouts": serialize_explained_rollouts(value.delivery.rollouts),
        "targets": [target._asdict() for target in value.targets],
        "targetedBy": [companion._asdict() for companion in value.targeted_by],
        "advice": [
            {
                "cluster": entry.cluster,
                "changes": [{"text": change.text, "location": change.location} for change in entry.changes],
                "enough": entry.sufficient,
                **serialize_replicas(entry.replicas),
            }
            for entry in value.counterfactuals
        ],
        "unasked": value.unexamined,
        "tables": [
            {"title": table.title, "rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows]}
            for table in value.tables
        ],
        "findings": [serialize_finding(finding) for finding in value.findings],
    }


def _serialize_share(share: ReplicaShare) -> dict[str, Any]:
    assigned = {} if share.assigned is None else {"assigned": share.assigned}
    copied = {} if share.copied is None else {"copied": share.copied}
    return {"cluster": share.cluster, **serialize_replicas(share.replicas), **assigned, **copied}
