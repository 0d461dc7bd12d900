"""Findings about rollouts: those that stopped, those that could never go on, and those without effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.rollout import RolloutSpec
from gitsched.decide.relations.schema import ROLLOUT_OVERLAPS, ROLLOUT_RULES
from gitsched.decide.rollouts.rollout_progress import BLOCKED, RolloutStep
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, Severity, format_count, format_names, locate_document
from gitsched.model.rollouts import ACCEPT_ANNOTATION, RolloutCluster
from gitsched.model.scheduling import Outcome

if TYPE_CHECKING:
    from gitsched.decide.relations.object_queries import RelationReader

NO_REPORTS = "rollout-without-reports"
SELECTS_NOTHING = "rollout-selects-nothing"
UNUSED_ACCEPTANCE = "rollout-acceptance-unused"
CLUSTER_FAILED = "rollout-cluster-failed"
STOPPED = "rollout-stopped"
CLUSTER_SKIPPED = "rollout-cluster-skipped"
GROUP_EMPTY = "rollout-group-empty"
BLOCKED_CLUSTER = "rollout-blocked"
CONTENT_MIXED = "rollout-content-mixed"
OVERLAP = "rollout-overlap"
STEP_CODES = frozenset(
    (
        NO_REPORTS,
        SELECTS_NOTHING,
        UNUSED_ACCEPTANCE,
        CLUSTER_FAILED,
        STOPPED,
        CLUSTER_SKIPPED,
        GROUP_EMPTY,
        BLOCKED_CLUSTER,
        CONTENT_MIXED,
        OVERLAP,
    )
)
"""Codes of the findings about rollouts that each plan makes again."""


def list_rollout_findings(
    steps: Iterable[tuple[RolloutSpec, RolloutStep]], selecting: Collection[str], has_reports: bool
) -> Iterator[Finding]:
    """Yield the findings about rollouts after their steps. `selecting` are the names of those that select a workload;
    `has_reports`: clusters report, or settings say where from."""
    for spec, step in steps:
        if spec.name not in selecting:
            message = (
                f"the Rollout {spec.name} selects no workload that a policy places; correct spec.resourceSelectors, or remove it"
            )
            yield _report_rollout(spec, "warning", SELECTS_NOTHING, message)
        elif not has_reports:
            yield _report_rollout(spec, "warning", NO_REPORTS, _describe_missing_reports(spec))
        yield from _list_gap_findings(spec, step)
        failed = [one for one in step.status.clusters if one.state == "failed"]
        if failed:
            yield _make_failure_finding(spec, step, failed)
        if step.unused:
            message = (
                f"the annotation {ACCEPT_ANNOTATION} of the Rollout {spec.name} accepts failures that there are not "
                f"({format_names(step.unused)}): remove them"
            )
            yield _report_rollout(spec, "info", UNUSED_ACCEPTANCE, message)


def find_overlaps(database: RelationReader, specs: Iterable[RolloutSpec]) -> list[Finding]:
    """Return the warnings that two Rollouts select the same workloads."""
    rows: dict[tuple[str, str], list[Key]] = {}
    for first, others, *key in database.rows_of(ROLLOUT_OVERLAPS, ("",)):
        rows.setdefault((first, others), []).append(Key(*key))
    shared: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows:
        for other in database.read(ROLLOUT_RULES, ()).list_names(int(row[1], 16)):
            shared.setdefault((row[0], other), []).append(row)

    @cache
    def describe(selected: tuple[tuple[str, str], ...]) -> str:
        return format_names([str(key) for key in sorted(key for row in selected for key in rows[row])])

    by_name = {spec.name: spec for spec in specs}
    pairs = sorted(shared.items())
    return [_make_overlap_finding(by_name[other], first, describe(tuple(selected))) for (first, other), selected in pairs]


def _make_overlap_finding(other: RolloutSpec, first: str, names: str) -> Finding:
    """Return the warning that two rollouts select the same workloads."""
    message = f"the Rollouts {first} and {other.name} both select {names}: {first} rolls them out; select them in one of the Rollouts alone"
    return _report_rollout(other, "warning", OVERLAP, message)


def _describe_missing_reports(spec: RolloutSpec) -> str:
    return (
        f"the Rollout {spec.name} would never advance beyond its first wave: no reports of clusters can arrive. "
        "Set spec.observations.statuses (commit statuses of Flux or Argo CD) or spec.source.facts (`gitsched collect --self`) in "
        "gitsched.yaml, or use rolloutStrategy.type: All"
    )


def _make_failure_finding(spec: RolloutSpec, step: RolloutStep, failed: Sequence[RolloutCluster]) -> Finding:
    """Return what failed, what it keeps back, and how to go on or back."""
    reasons = [f"{one.cluster} ({one.detail})" if one.detail else one.cluster for one in failed]
    waiting = [one.cluster for one in step.status.clusters if one.state == "waiting"]
    if step.status.state != "stopped":
        message = f"the change of the Rollout {spec.name} failed in {format_names(reasons)}; check these clusters, or push a fix"
        return _report_rollout(spec, "warning", CLUSTER_FAILED, message)
    message = (
        f"the Rollout {spec.name} has stopped: the change failed in {format_names(reasons)}, and {format_names(waiting)} "
        f"{'keeps' if len(waiting) == 1 else 'keep'} the previous content; {step.status.remedy}"
    )
    return _report_rollout(spec, "warning", STOPPED, message)


def _list_gap_findings(spec: RolloutSpec, step: RolloutStep) -> Iterator[Finding]:
    """Yield the notes about clusters and mandatory groups that a rollout in progress goes on without."""
    clusters = step.status.clusters
    for one in clusters:
        if one.state == "skipped":
            message = (
                f"the Rollout {spec.name} goes on without {one.cluster}, which had the change and has not reported that it is healthy: "
                f"{one.detail}"
            )
            yield _report_rollout(spec, "info", CLUSTER_SKIPPED, message)
        if one.state == "waiting" and one.detail.endswith(BLOCKED):
            message = (
                f"the Rollout {spec.name} waits for {one.cluster}, which must get the change before others: {one.detail}; resume "
                "dispatching to it, correct what another finding reports about the manifest, or exclude the cluster in the policy"
            )
            yield _report_rollout(spec, "warning", BLOCKED_CLUSTER, message)
    empty = step.empty_groups if clusters and step.status.state != "complete" else ()
    if empty:
        message = (
            f"the Rollout {spec.name} goes on without {format_count(len(empty), 'mandatory decision group')} ({format_names(empty)}), in "
            "which no cluster has one of its workloads; correct spec.groupStrategy, the labels of clusters, or the policies"
        )
        yield _report_rollout(spec, "info", GROUP_EMPTY, message)


def make_mixed_finding(outcome: Outcome, template: Document, cluster: str, fields: Sequence[str]) -> Finding:
    """Return the warning that the approved content for a cluster is not known in some `fields`."""
    message = (
        f"{outcome.key} replaces a copy in {cluster} with the content that was approved last, which is that of another cluster in "
        f"{format_names(fields)}: both the change and an override for {cluster} concern these fields; check them there"
    )
    return Finding("warning", CONTENT_MIXED, message, locate_document(template), outcome.key.resource)


def _report_rollout(spec: RolloutSpec, severity: Severity, code: str, message: str) -> Finding:
    return Finding(severity, code, message, locate_document(spec.document), spec.document.key.resource)
