"""Take the steps of rollouts in an incremental plan, from what each of them selected in the last one.

The files of a workload that was not decided again are those of the previous output, unless a cluster waits for them. So workloads that wait
are decided in each run, and of the others only the clusters count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.gitsched.rollout import RolloutSpec, parse_rollout
from gitsched.decide.incremental.plan_state import NO_OUTPUT, PlanTimes
from gitsched.decide.registry import policy_apis
from gitsched.decide.relations.object_queries import list_referrers
from gitsched.decide.rollouts.lost_clusters import read_cluster_states
from gitsched.decide.rollouts.rollout_findings import STEP_CODES
from gitsched.decide.rollouts.rollout_source import RolloutSource
from gitsched.decide.rollouts.rollout_steps import UNGATED, RolloutMembers, RolloutSteps
from gitsched.decide.rollouts.workload_policies import WorkloadPolicies
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Body, Document, Key
from gitsched.model.rollouts import ROLLOUT_KIND, RolloutResult, RolloutTargets

if TYPE_CHECKING:
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.decide.rendered_tree import BlobLookup
    from gitsched.decide.workload_files import WorkloadFiles
    from gitsched.model.changes import CopyRetention, Move
    from gitsched.model.finding import Finding
    from gitsched.model.rollouts import RolloutInput
    from gitsched.model.scheduling import Outcome


class ContinuedRollouts(NamedTuple):
    """The files of the decided workloads, with those of the previous output where a cluster waits, and what came of the rollouts."""

    workloads: Mapping[Key, WorkloadFiles]
    result: RolloutResult

    def update_findings(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return findings with those about the steps of rollouts as they are now."""
        return *(finding for finding in findings if finding.code not in STEP_CODES), *self.result.findings


def list_waiting(given: RolloutInput, totals: Totals, diff: SourceDiff, snapshot: Snapshot) -> list[Key] | None:
    """Return the workloads that rollouts have recorded, because a cluster waits for them or was lost with them, which are decided again;
    None if one of them is no template."""
    waiting = sorted({key for record in given.records for key in record.workloads})
    known = [key for key in waiting if key not in diff.templates or diff.templates[key][1] is not None]
    return known if all(key in snapshot.templates and key not in totals.engines.own for key in known) else None


def continue_rollouts(
    changes: IncrementalChanges, given: RolloutInput, moves: Iterable[Move], retention: CopyRetention, find_blob: BlobLookup
) -> ContinuedRollouts | None:
    """Take the steps of all rollouts; None if only a complete plan can tell what they select."""
    totals, diff, snapshot = changes.totals, changes.diff, changes.snapshot
    recorded = {key for record in given.records for key in record.workloads}
    if any(copy.start is None and copy.workload in recorded for copy in totals.retained):
        return None  # what a copy waits for may wait for a wave
    if totals.owners or any(key[:2] == ROLLOUT_KIND for key in totals.source.unused):
        return None
    specs = [parse_rollout(document) for document in snapshot.documents.get(ROLLOUT_KIND, ())]
    if not (_keep_selectors(changes) and _are_decided_again(_list_reselected(changes, specs), changes)):
        return None
    members = _list_members(changes, specs)
    if members is None:
        return None
    has_news = any(key[:2] in (CLUSTER_REPORT, ROLLOUT_KIND) for key in diff.api_documents)
    if not (given.records or has_news or any(found.files for found in members.values())) and all(
        found.targets == totals.rollouts.get(name, found.targets) for name, found in members.items()
    ):
        findings = tuple(finding for finding in totals.other_findings if finding.code in STEP_CODES)
        return ContinuedRollouts(changes.workloads, RolloutResult(findings=findings, targets=totals.rollouts))
    steps = RolloutSteps(
        RolloutSource(
            given,
            NO_OUTPUT._replace(records=snapshot.previous, find_blob=find_blob),
            snapshot.documents.get(CLUSTER_REPORT, ()),
            snapshot.observations,
            totals.config,
            PlanTimes(snapshot.at, snapshot.now),
            read_cluster_states(changes.continued.engines),
            WorkloadPolicies(changes.continued.engines, snapshot.templates, snapshot.variants, totals.config.delivery, find_blob),
            moves,
            retention,
        )
    )
    files = dict(changes.workloads)
    result = steps.summarize(steps.take(specs, members, files), members, ())
    if (given.records or result.records or result.statuses) and (changes.withheld.moves or totals.adopted):
        return None  # what is withheld keeps its files, too
    if result.waiting or steps.concern_autoscalers:
        return None  # copies elsewhere stay until then, or workloads that were not decided again have other replicas
    return ContinuedRollouts(files, result)


def _keep_selectors(changes: IncrementalChanges) -> bool:
    """Return whether each changed Rollout selects what it did, and waits for reports before and after."""
    for key, pair in changes.diff.api_documents.items():
        if key[:2] != ROLLOUT_KIND:
            continue
        before, after = (parse_rollout(document) if document is not None else None for document in pair)
        if before is None or after is None or before.selectors != after.selectors:
            return False
        if UNGATED in (before.strategy.type, after.strategy.type):
            return False  # what it selects is not in the state
    return True


def _list_reselected(changes: IncrementalChanges, specs: Iterable[RolloutSpec]) -> frozenset[str]:
    """Return the names of the policies that a Rollout selected, and does not any more, or the other way round."""
    found = set[str]()
    for key, pair in changes.diff.api_documents.items():
        for spec in specs:
            before, after = (document is not None and spec.selects(document) for document in pair)
            if before != after:
                found.update((key.title, str(key)))
    return frozenset(found)


def _are_decided_again(policies: frozenset[str], changes: IncrementalChanges) -> bool:
    """Return whether all workloads that had one of these policies were decided again."""
    if not policies:
        return True
    decided = changes.outcomes.keys() | changes.removed.keys()
    placements = ((key, entry.placement) for key, entry in changes.rows.template_index.items() if entry.placement is not None)
    return not changes.totals.engines.own and all(
        key in decided or policies.isdisjoint(placement.policy.split(", ")) for key, placement in placements
    )


def _list_members(changes: IncrementalChanges, specs: list[RolloutSpec]) -> dict[str, RolloutMembers] | None:
    """Return what each rollout selects; None if that is not known, or if several select a workload that was decided again."""
    selection, totals = _Selection(changes, specs), changes.totals
    counts = {spec.name: 0 for spec in specs}
    clusters = {spec.name: Counter[str]() for spec in specs}
    files: dict[str, list[WorkloadFiles]] = {spec.name: [] for spec in specs}
    for key in (*changes.outcomes, *changes.removed):
        before, after = selection.find_before(key), selection.find_after(key)
        row = changes.rows.read_workload(key)
        if before is None or after is None or max(len(before.names), len(after.names)) > 1:
            return None
        if row is not None and key in changes.outcomes and before.direct != after.direct:
            return None  # and so may be what it brings along
        former = row.outcome.targets if row is not None else ()
        for name in before.names:
            counts[name] -= 1
            clusters[name].subtract(target.cluster for target in former if not target.evicting)
        for name in after.names:
            counts[name] += 1
            clusters[name].update(changes.outcomes[key].replicas_by_cluster.keys())
            files[name].append(changes.workloads[key])
    found = {}
    for name in counts:
        known = totals.rollouts.get(name, RolloutTargets(0, {}))
        sums = {
            cluster: known.clusters.get(cluster, 0) + clusters[name][cluster] for cluster in {**known.clusters, **clusters[name]}
        }
        targets = RolloutTargets(known.workloads + counts[name], {cluster: count for cluster, count in sums.items() if count})
        found[name] = RolloutMembers(files[name], targets)
    return found


class _Selected(NamedTuple):
    """The rollouts that select a workload, by name. `direct`: they select the workload itself, or its policy."""

    names: frozenset[str]
    direct: frozenset[str]


_NOTHING = _Selected(frozenset(), frozenset())


class _Selection:
    """Which rollouts select a workload, by name: directly, by its policy, or because a workload that they select brings it along."""

    def __init__(self, changes: IncrementalChanges, specs: list[RolloutSpec]) -> None:
        self._changes, self._specs = changes, specs
        wanted = {selector.kind for spec in specs for selector in spec.selectors or ()}
        documents = changes.snapshot.documents
        policies = [document for kind in documents if kind[1] in wanted for document in documents[kind]]
        replaced = {key: before for key, (before, _) in changes.diff.api_documents.items() if key.kind in wanted}
        former = [one for one in policies if one.key not in replaced] + [one for one in replaced.values() if one is not None]
        self._policies, self._former_policies = (
            [frozenset(name for one in listed if spec.selects(one) for name in (one.key.title, str(one.key))) for spec in specs]
            for listed in (policies, former)
        )
        self._owners: dict[tuple[str, str], Key] = {}
        for outcome in changes.outcomes.values():
            self._owners |= {(record.namespace, record.name): outcome.key for record, _ in outcome.records}

    def find_before(self, key: Key) -> _Selected | None:
        """Return the rollouts that selected a workload in the last plan; None if they are not known."""
        row, previous = self._changes.rows.read_workload(key), self._changes.snapshot.previous
        if row is None:
            return _NOTHING
        bodies = (body for record in row.record_keys if (body := previous.get(record)) is not None)
        changed = self._changes.diff.templates.get(key)
        return self._find(row.outcome, changed[0] if changed is not None else self._find_template(key), bodies, is_before=True)

    def find_after(self, key: Key) -> _Selected | None:
        """Return the rollouts that select a workload now; None if they are not known."""
        outcome = self._changes.outcomes.get(key)
        if outcome is None:
            return _NOTHING
        return self._find(outcome, self._changes.documents[key], (body for _, body in outcome.records), is_before=False)

    def _find_template(self, key: Key) -> Document | None:
        return self._changes.snapshot.templates.get(key)

    def _find(self, outcome: Outcome, template: Document | None, bodies: Iterable[Body], *, is_before: bool) -> _Selected | None:
        found = self._select(outcome, template, is_before=is_before)
        read = policy_apis[outcome.api].read_removed_workload
        if found or read is None:
            return _Selected(found, found)
        required = {owner for body in bodies if (workload := read(body)) is not None for owner in workload.required_by}
        if not required:
            return _NOTHING
        self._add_referrers(outcome.key)
        for owner in required:
            key = self._owners.get(owner)
            selected = None if key is None else self._find_owner(key, is_before=is_before)
            if selected is None:
                return None
            found |= selected
        return _Selected(found, frozenset())

    def _find_owner(self, key: Key, *, is_before: bool) -> frozenset[str] | None:
        """Return the rollouts that select a workload which brings others along; None if it has no template or placement."""
        changes = self._changes
        row, changed = changes.rows.read_workload(key), changes.diff.templates.get(key)
        if is_before:
            outcome, template = row.outcome if row is not None else None, changed[0] if changed else self._find_template(key)
        else:
            outcome, template = changes.find_outcome(key), changes.documents.get(key) or self._find_template(key)
        return None if outcome is None or template is None else self._select(outcome, template, is_before=is_before)

    def _select(self, outcome: Outcome, template: Document | None, *, is_before: bool) -> frozenset[str]:
        used, policies = outcome.policy.split(", "), self._former_policies if is_before else self._policies
        return frozenset(
            spec.name
            for spec, names in zip(self._specs, policies, strict=True)
            if spec.selectors is None or (template is not None and spec.selects(template)) or not names.isdisjoint(used)
        )

    def _add_referrers(self, key: Key) -> None:
        """Add the records of the workloads that refer to an object."""
        rows = self._changes.rows
        for referrer in list_referrers(rows.relations.database, key):
            row = rows.read_workload(referrer)
            for record in row.record_keys if row is not None else ():
                self._owners.setdefault((record.namespace, record.name), referrer)
