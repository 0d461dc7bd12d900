"""The documented JSON and YAML of `-o json` and `-o yaml`: plans and findings as plain data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gitsched.model.finding import SEVERITIES, Finding
from gitsched.model.time import format_duration, format_time
from gitsched.report.consequences import list_consequences, serialize_consequence
from gitsched.report.held import serialize_held
from gitsched.report.images import serialize_images
from gitsched.report.lines import classify_move, list_cluster_changes, serialize_clusters, serialize_replicas
from gitsched.report.retained_copies import count_after_run
from gitsched.report.review import WORKLOAD_STATES, Review
from gitsched.report.rollouts import serialize_rollouts
from gitsched.report.summary import count_moves

if TYPE_CHECKING:
    from gitsched.model.changes import Cause, ChangedField, Move, RecordChange, RetainedCopy, WithheldChanges
    from gitsched.model.document import Key
    from gitsched.model.history import SourceChange
    from gitsched.model.scheduling import RecordTarget

API_VERSION = "gitsched.io/v1alpha1"


def _serialize_move(move: Move) -> dict[str, Any]:
    changes, unchanged = list_cluster_changes(move)
    return {
        "workload": serialize_key(move.key),
        "before": serialize_clusters(move.before),
        "after": serialize_clusters(move.after),
        "kind": classify_move(move),
        "changes": [change.serialize() for change in changes],
        "unchanged": unchanged,
        "intended": move.intended,
        "preserved": move.preserved,
        "copies": serialize_clusters(move.copies),
        "reason": move.reason,
        "causes": serialize_causes(move.causes),
    }


def serialize_withheld(withheld: WithheldChanges) -> dict[str, Any]:
    """Return the member `withheld` of a Plan."""
    return {
        "digest": withheld.digest,
        "freeze": withheld.freeze,
        "lift": withheld.lift,
        "unavailable": {name: withheld.unavailable[name] for name in sorted(_list_left(withheld))},
        "limits": [{**limit._asdict(), "cause": str(limit.cause or "")} for limit in withheld.limits],
        "moves": list(map(_serialize_move, withheld.moves)),
        "ofBase": list(map(_serialize_move, withheld.of_base)),
        "waiting": list(map(_serialize_move, withheld.waiting)),
        "nextPeriod": format_time(withheld.next_period) if withheld.next_period else None,
    }


def _list_left(withheld: WithheldChanges) -> frozenset[str]:
    """Return the clusters that workloads of withheld moves have to leave."""
    left = frozenset[str]().union(*(move.before.keys() - move.after.keys() for move in withheld.moves))
    return left & withheld.unavailable.keys()


def serialize_source(source: SourceChange) -> dict[str, Any]:
    """Return a commit of the source as the member `source` of reports."""
    time = format_time(source.time) if source.time is not None else None
    found = {"commit": source.commit, "subject": source.subject, "author": source.author, "time": time}
    return {**found, "merged": list(source.merged)} if source.merged else found


def serialize_review(review: Review) -> dict[str, Any]:
    """Return a plan as `kind: Plan` of docs/development/json.md."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "source": review.source,
        "time": format_time(review.time),
        "output": {
            "branch": review.branch,
            "place": review.output_repository,
            "before": review.before,
            "after": review.after,
            "race": review.race or None,
            "edits": list(review.comparison.edits),
        },
        "changed": review.changed,
        "refused": review.refused,
        "withheld": serialize_withheld(review.withheld),
        "held": serialize_held(review.held),
        "base": {
            "commit": review.base.commit,
            "merged": review.base.merged,
            "workloads": None
            if review.base.states is None
            else {state: review.base.states.get(state, 0) for state in WORKLOAD_STATES},
            "unclaimed": review.base.unclaimed,
        },
        "digest": review.comparison.digest,
        "reviewed": list(review.review_messages),
        "notes": list(review.comparison.notes),
        "settings": [
            {**serialize_changed_field(one.change), "effect": one.effect, "sensitive": one.sensitive}
            for one in review.setting_changes
        ],
        "summary": _serialize_summary(review),
        "workloads": {"total": len(review.outcomes), **review.states, "unclaimed": review.unclaimed},
        "moves": list(map(_serialize_move, review.moves)),
        "placements": [
            {
                "workload": serialize_key(outcome.key),
                "state": outcome.state,
                "policy": outcome.policy,
                "group": outcome.group,
                "clusters": serialize_clusters(outcome.replicas_by_cluster),
                "replicas": outcome.replicas,
                "leaving": [target.cluster for target in outcome.targets if target.evicting],
                "reason": outcome.reason,
            }
            for outcome in review.outcomes
        ],
        "consequences": list(map(serialize_consequence, list_consequences(review))),
        "unplaced": [
            {"object": serialize_key(one.key), "selected": one.selected, "cause": serialize_causes([one.cause])[0]}
            for one in review.comparison.unplaced
        ],
        "stoppedObjects": list(map(_serialize_move, review.comparison.stopped)),
        "recordChanges": list(map(serialize_record_change, review.record_changes)),
        "records": [
            {
                "subject": serialize_key(decision.subject),
                "target": decision.target_kind,
                "targets": _serialize_targets(decision.targets),
            }
            for decision in review.recorded
        ],
        "choices": list(_serialize_choices(review.record_changes)),
        "stays": [
            {
                "workload": serialize_key(workload.key),
                "clusters": serialize_clusters(workload.current),
                "anew": serialize_clusters(workload.if_rescheduled),
                "remedy": workload.remedy,
                "causes": serialize_causes(workload.causes),
            }
            for workload in review.retained
        ],
        "retainedCopies": [_serialize_retained_copy(copy, review.unmerged) for copy in review.retained_copies],
        "rollouts": serialize_rollouts(review.rollouts),
        "findings": _serialize_review_findings(review),
        "images": serialize_images(review.comparison.delivery.images),
        "manifests": [
            entry._asdict() | {"clusters": list(entry.clusters), "verb": entry.verb}
            for entry in review.comparison.delivery.rendered
        ],
        "nextWakeup": format_time(review.next_wakeup) if review.next_wakeup else None,
    }


def _serialize_retained_copy(copy: RetainedCopy, unmerged: datetime | None) -> dict[str, Any]:
    stays = count_after_run(copy, unmerged)
    return {
        "workload": serialize_key(copy.workload),
        "cluster": copy.cluster,
        **serialize_replicas(copy.replicas),
        "start": format_time(copy.start) if copy.start else None,
        "until": format_time(copy.until) if copy.until else None,
        "afterRun": format_duration(stays) if stays is not None else None,
        "preserved": copy.preserved,
        "release": copy.release,
    }


def serialize_record_change(change: RecordChange) -> dict[str, Any]:
    """Return a changed recorded decision as an item of `recordChanges`."""
    return {
        "subject": serialize_key(change.subject),
        "target": change.target_kind,
        "before": _serialize_targets(change.before),
        "after": _serialize_targets(change.after),
        "reason": change.reason,
        "causes": serialize_causes(change.causes),
        "intended": change.intended,
    }


def _serialize_targets(targets: Iterable[RecordTarget]) -> list[dict[str, Any]]:
    return [{"name": target.name, "amount": target.amount, "group": target.group} for target in targets]


def _serialize_choices(changes: Iterable[RecordChange]) -> Iterator[dict[str, Any]]:
    """Yield the changes that select other clusters, by name only: the form before recorded decisions had their own member."""
    for change in changes:
        before, after = ([target.name for target in sorted(targets)] for targets in (change.before, change.after))
        if change.target_kind == "cluster" and before != after:
            yield {"by": serialize_key(change.subject), "before": before, "after": after}


def serialize_causes(causes: Iterable[Cause]) -> list[dict[str, Any]]:
    """Return the causes of a change."""
    return [
        {
            "text": cause.text,
            "location": cause.location.to_json() if cause.location else None,
            "gone": cause.removed,
            "proved": cause.proved,
            "together": cause.together or None,
            "change": serialize_changed_field(cause.change) if cause.change is not None else None,
        }
        for cause in causes
    ]


def serialize_changed_field(change: ChangedField) -> dict[str, Any]:
    """Return a changed field: its values as structured data, null where there is none, and as the text that other formats show."""
    before, after = (None if value is None else json.loads(value) for value in change.values)
    return {"path": change.path, "before": before, "after": after, "shown": [change.before, change.after]}


def _serialize_summary(review: Review) -> dict[str, Any]:
    counts = count_moves(review.allowed_moves)
    return {
        **dict(zip(_COUNT_KEYS, counts, strict=False)),
        "withheld": dict(zip(_COUNT_KEYS, count_moves(review.withheld.moves), strict=False)),
        "clusters": [
            {
                "cluster": name,
                "workloads": {"gained": delta.gained, "lost": delta.lost},
                "replicas": {"gained": delta.replicas_gained, "lost": delta.replicas_lost},
            }
            for name, delta in counts.clusters.items()
        ],
        "countsMinima": counts.has_minima,
        "countsUnknown": counts.has_unknown,
        "held": len(review.held),
        "records": len(review.record_changes),
        "joined": list(review.comparison.added_clusters),
        "empty": list(review.comparison.empty_clusters),
        "gone": list(review.comparison.removed_clusters),
        "files": review.comparison.delivery.files,
        "findings": {"new": len(review.new_findings), "changed": len(review.changed_findings), "mended": review.fixed_count},
    }


_COUNT_KEYS = ("moved", "left", "resized", "first", "again", "lost", "kept", "replicasMoved", "replicasAdded", "replicasRemoved")


def _serialize_review_findings(review: Review) -> list[dict[str, Any]]:
    """Return all findings; `new` is null if the findings of the base are unknown."""
    if review.base.findings is None:
        return [serialize_finding(finding) | {"new": None} for finding in review.findings]
    new = {id(finding) for finding in review.new_findings}
    return [serialize_finding(finding) | {"new": id(finding) in new} for finding in review.findings]


def serialize_findings(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return findings with their counts by severity as `kind: Findings` of docs/development/json.md."""
    entries = list(findings)
    counts = Counter(finding.severity for finding in entries)
    return {
        "apiVersion": API_VERSION,
        "kind": "Findings",
        "counts": {severity: counts[severity] for severity in SEVERITIES},
        "findings": [serialize_finding(finding) for finding in entries],
    }


def serialize_key(key: Key) -> dict[str, str]:
    """Return the group, kind, namespace and name of an object."""
    return key._asdict()


def serialize_finding(finding: Finding) -> dict[str, Any]:
    """Return a finding as data."""
    kind, namespace, name = finding.resource or ("", "", "")
    return {
        "severity": finding.severity,
        "code": finding.code,
        "message": finding.message,
        "location": finding.location.to_json() if finding.location else None,
        "resource": {"kind": kind, "namespace": namespace, "name": name} if finding.resource else None,
    }
