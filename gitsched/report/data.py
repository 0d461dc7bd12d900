"""The documented shape of `-o json` and `-o yaml`: plain data, members in reading order, lists in the plan's order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from gitsched.model.document import Key
from gitsched.model.explanation import Explanation, Share
from gitsched.model.finding import SEVERITIES, Finding
from gitsched.model.time import format_time
from gitsched.report.review import STATES, Review
from gitsched.report.tally import classify, tally

API_VERSION = "gitsched.io/v1alpha1"


def describe_review(review: Review) -> dict[str, Any]:
    """A Plan: `kind: Plan` of docs/cli.md."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "source": review.source,
        "time": format_time(review.time),
        "output": {"branch": review.branch, "place": review.place, "before": review.before, "after": review.after},
        "changed": review.changed,
        "refused": review.refused,
        "base": {
            "commit": review.base.commit,
            "merged": review.base.merged,
            "workloads": None if review.base.states is None else {state: review.base.states.get(state, 0) for state in STATES},
        },
        "digest": review.digest,
        "reviewed": list(review.reviewed),
        "notes": list(review.notes),
        "summary": _describe_tally(review),
        "workloads": {"total": len(review.outcomes), **review.states, "unclaimed": review.unclaimed},
        "moves": [
            {
                "workload": _describe_key(move.key),
                "before": _describe_places(move.before),
                "after": _describe_places(move.after),
                "kind": classify(move),
                "reason": move.reason,
                "causes": [
                    {"text": cause.text, "location": cause.location._asdict() if cause.location else None, "gone": cause.gone}
                    for cause in move.causes
                ],
            }
            for move in review.moves
        ],
        "placements": [
            {
                "workload": _describe_key(outcome.key),
                "state": outcome.state,
                "policy": outcome.policy,
                "group": outcome.group,
                "clusters": _describe_places(outcome.shares),
                "leaving": [place.cluster for place in outcome.placed if place.leaving],
                "reason": outcome.reason,
            }
            for outcome in review.outcomes
        ],
        "choices": [
            {"by": _describe_key(choice.key), "before": list(choice.before), "after": list(choice.after)}
            for choice in review.choices
        ],
        "stays": [
            {
                "workload": _describe_key(stay.key),
                "clusters": _describe_places(stay.places),
                "anew": _describe_places(stay.anew),
                "remedy": stay.remedy,
            }
            for stay in review.stays
        ],
        "findings": _describe_all(review),
        "manifests": [
            entry._asdict() | {"clusters": list(entry.clusters), "verb": entry.verb} for entry in review.delivery.rendered
        ],
        "nextWakeup": format_time(review.next_wakeup) if review.next_wakeup else None,
    }


def _describe_tally(review: Review) -> dict[str, Any]:
    counts = tally(review.moves)
    return {
        **dict(zip(_COUNTED, counts, strict=False)),
        "clusters": [
            {
                "cluster": name,
                "workloads": {"gained": balance.gained, "lost": balance.lost},
                "replicas": {"gained": balance.replicas_gained, "lost": balance.replicas_lost},
            }
            for name, balance in counts.clusters.items()
        ],
        "joined": list(review.joined),
        "gone": list(review.gone),
        "files": review.delivery.files,
        "findings": {"new": len(review.fresh), "mended": review.mended},
    }


_COUNTED = ("moved", "resized", "first", "lost", "replicasMoved", "replicasAdded", "replicasRemoved")


def _describe_all(review: Review) -> list[dict[str, Any]]:
    """Every finding; `new` is null where nobody knows what stood before."""
    if review.base.findings is None:
        return [_describe_finding(finding) | {"new": None} for finding in review.findings]
    fresh = {id(finding) for finding in review.fresh}
    return [_describe_finding(finding) | {"new": id(finding) in fresh} for finding in review.findings]


def describe_findings(findings: Iterable[Finding]) -> dict[str, Any]:
    """Findings alone, with their counts by severity: `kind: Findings` of docs/cli.md."""
    entries = list(findings)
    counts = Counter(finding.severity for finding in entries)
    return {
        "apiVersion": API_VERSION,
        "kind": "Findings",
        "counts": {severity: counts[severity] for severity in SEVERITIES},
        "findings": [_describe_finding(finding) for finding in entries],
    }


def describe_explanation(value: Explanation) -> dict[str, Any]:
    """Why a workload is where it is: `kind: Explanation` of docs/cli.md."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        "workload": value.workload,
        "location": value.location,
        "policy": {
            "name": value.policy,
            "reason": value.policy_reason,
            "claim": value.claim,
            "losers": [loser._asdict() for loser in value.losers],
        },
        "attachedTo": list(value.attached),
        "groups": [attempt._asdict() for attempt in value.attempts],
        "clusters": [
            candidate.verdict._asdict() | {"location": candidate.location, "group": candidate.group, "room": candidate.room}
            for candidate in value.candidates
        ],
        "selection": list(value.selection),
        "division": {"rule": list(value.division_rule), "shares": [share._asdict() for share in value.division]},
        "trigger": value.trigger,
        "result": [_describe_share(share) for share in value.result],
        "overrides": [override._asdict() for override in value.overrides],
        "advice": [
            {
                "cluster": entry.cluster,
                "changes": [{"text": change.text, "location": change.location} for change in entry.changes],
                "enough": entry.enough,
                "replicas": entry.gets,
            }
            for entry in value.advice
        ],
        "unasked": value.unasked,
        "tables": [
            {"title": table.title, "rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows]}
            for table in value.tables
        ],
        "findings": [_describe_finding(finding) for finding in value.findings],
    }


def _describe_share(share: Share) -> dict[str, Any]:
    return {"cluster": share.cluster, "replicas": share.replicas}


def _describe_key(key: Key) -> dict[str, str]:
    return key._asdict()


def _describe_places(places: Mapping[str, int | None]) -> list[dict[str, Any]]:
    return [{"cluster": cluster, "replicas": places[cluster]} for cluster in sorted(places)]


def _describe_finding(finding: Finding) -> dict[str, Any]:
    kind, namespace, name = finding.resource or ("", "", "")
    return {
        "severity": finding.severity,
        "code": finding.code,
        "message": finding.message,
        "location": finding.location._asdict() if finding.location else None,
        "resource": {"kind": kind, "namespace": namespace, "name": name} if finding.resource else None,
    }
