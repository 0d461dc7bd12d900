"""Take the steps of Rollouts in an incremental plan.

The files of a workload that was not decided again are those of the previous output, unless a cluster waits for them. So workloads that wait
are decided in each run, and of the others only the clusters count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.rollout import parse_rollout
from gitsched.decide.incremental.plan_state import NO_OUTPUT, PlanTimes
from gitsched.decide.relations.schema import PLACED, ROLLOUT, ROLLOUTS
from gitsched.decide.rollouts.lost_clusters import read_cluster_states
from gitsched.decide.rollouts.rollout_findings import OVERLAP, STEP_CODES, find_overlaps
from gitsched.decide.rollouts.rollout_members import PlacedFacts, list_clusters, make_rules, read_placed_facts
from gitsched.decide.rollouts.rollout_source import RolloutSource
from gitsched.decide.rollouts.waves import roll_out
from gitsched.decide.rollouts.workload_policies import WorkloadPolicies
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Key
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.rollouts import ROLLOUT_KIND, RolloutResult
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.rollout import RolloutSpec
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.decide.relations.plan_relations import FactChanges, PlanRelations
    from gitsched.decide.rendered_tree import BlobLookup
    from gitsched.decide.workload_files import WorkloadFiles
    from gitsched.model.changes import CopyRetention, Move
    from gitsched.model.finding import Finding
    from gitsched.model.rollouts import RolloutInput


class ContinuedRollouts(NamedTuple):
    """The files of the decided workloads, with those of the previous output where a cluster waits, and what came of the rollouts."""

    workloads: Mapping[Key, WorkloadFiles]
    result: RolloutResult

    def update_findings(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return findings with those about the steps of rollouts as they are now."""
        return *(finding for finding in findings if finding.code not in STEP_CODES), *self.result.findings


def list_waiting(given: RolloutInput, totals: Totals, diff: SourceDiff, snapshot: Snapshot) -> list[Key]:
    """Return the workloads that rollouts have recorded, because a cluster waits for them or was lost with them, which are decided again.
    Raise NeedsCompletePlan if one of them is no template."""
    waiting = sorted({key for record in given.records for key in record.workloads})
    known = [key for key in waiting if key not in diff.templates or diff.templates[key][1] is not None]
    if not all(key in snapshot.templates and key not in totals.engines.own for key in known):
        raise NeedsCompletePlan("a cluster waits for a workload that the source does not have as one document")
    return known


def add_changed_rollouts(facts: FactChanges, changes: IncrementalChanges) -> FactChanges:
    """Return facts with what Rollouts select now, and what they read of changed workloads. Raise NeedsCompletePlan if what they read of the
    others is not known, because the last plan had no Rollout, or if one is broken."""
    snapshot, database = changes.snapshot, changes.rows.relations.database
    if any(key[:2] == ROLLOUT_KIND for key in changes.totals.source.unused):
        raise NeedsCompletePlan("a Rollout is broken")
    rules, known = make_rules(_list_rollouts(snapshot), snapshot.documents, snapshot.tenancy), database.list_inputs(ROLLOUTS)
    if not rules:
        return facts._replace(placed={Key(*key): None for key in database.list_inputs(PLACED)})
    if not known:
        raise NeedsCompletePlan("the last plan had no Rollout")
    placed: dict[Key, PlacedFacts | None] = dict.fromkeys(changes.removed)
    for key, outcome in changes.outcomes.items():
        placed[key] = read_placed_facts(outcome, changes.documents[key], snapshot.tenancy)
    return facts._replace(rules=rules, placed=placed)


def _list_rollouts(snapshot: Snapshot) -> list[RolloutSpec]:
    return [parse_rollout(document) for document in snapshot.documents.get(ROLLOUT_KIND, ())]


def continue_rollouts(
    changes: IncrementalChanges,
    given: RolloutInput,
    moves: Iterable[Move],
    retention: CopyRetention,
    find_blob: BlobLookup,
    relations: PlanRelations,
) -> ContinuedRollouts:
    """Take the steps of all rollouts. Raise NeedsCompletePlan if only a complete plan can tell what happens to other workloads."""
    totals, diff, snapshot = changes.totals, changes.diff, changes.snapshot
    recorded = {key for record in given.records for key in record.workloads}
    if any(copy.start is None and copy.workload in recorded for copy in totals.retained):
        raise NeedsCompletePlan("what replaces a copy that stays may wait for a wave")
    specs, database = _list_rollouts(snapshot), relations.database
    has_news = any(key[:2] in (CLUSTER_REPORT, ROLLOUT_KIND) for key in diff.api_documents)
    has_files = any(database.read(ROLLOUT, tuple(key)) for key in changes.workloads)
    if not (given.records or has_news or has_files) and _keep_clusters(changes, specs, relations):
        kept = (finding for finding in totals.other_findings if finding.code in STEP_CODES and finding.code != OVERLAP)
        return ContinuedRollouts(changes.workloads, RolloutResult(findings=(*kept, *find_overlaps(database, specs))))
    source = RolloutSource(
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
    files = dict(changes.workloads)
    result = roll_out(source, specs, database, files, snapshot.tenancy)
    if (given.records or result.records or result.statuses) and (changes.withheld.moves or totals.adopted):
        raise NeedsCompletePlan("changes are withheld during a rollout")
    if result.waiting:
        raise NeedsCompletePlan("copies stay elsewhere until a cluster has had its turn in a rollout")
    if result.concerns_autoscalers:
        raise NeedsCompletePlan("a rollout of an autoscaler changes the replicas of other workloads")
    return ContinuedRollouts(files, result)


def _keep_clusters(changes: IncrementalChanges, specs: Iterable[RolloutSpec], relations: PlanRelations) -> bool:
    """Return whether the workloads of each Rollout are in the same clusters as in the last plan."""
    before, after = changes.rows.relations.database, relations.database
    return all(list_clusters(before, spec.name) == list_clusters(after, spec.name) for spec in specs)
