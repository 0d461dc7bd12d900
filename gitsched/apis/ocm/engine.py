"""The policy engine of Open Cluster Management: schedule all Placements of a snapshot, decide workloads from their decisions,
report findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from gitsched.apis.engine import ChangeProposal, PolicyEngine, Snapshot, list_previous_records
from gitsched.apis.gitsched.config import GROUP as CONFIG_GROUP
from gitsched.apis.ocm import names
from gitsched.apis.ocm.cel.cluster_expressions import ExpressionCompiler
from gitsched.apis.ocm.managed_clusters import ClusterSets, read_managed_clusters
from gitsched.apis.ocm.manifestworkreplicaset import (
    OcmWorkload,
    PlacementState,
    make_outcome,
    make_stale_outcome,
    read_placement_annotation,
    read_replica_set,
    read_template,
    roll_out_workload,
)
from gitsched.apis.ocm.placement import Misconfiguration, parse_placement
from gitsched.apis.ocm.previous_decisions import DecisionIndex, digest_documents, merge_decisions, write_basis
from gitsched.apis.ocm.prioritizers import PrioritizerScores
from gitsched.apis.ocm.rollout import read_previous_rollout, read_reports
from gitsched.apis.ocm.scheduling import (
    PlacementResult,
    SchedulingRun,
    SkippedPlacement,
    schedule_placements,
)
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.finding import FieldOrigin, Finding, Pointer, Severity, locate_document
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.selection import SELECTION_FILTERS


class OcmEngine(PolicyEngine):
    """See `gitsched.apis.engine.PolicyEngine`."""

    name = "ocm"

    def __init__(self, world: Snapshot) -> None:
        self.snapshot = world
        self._clusters = read_managed_clusters(self._documents(names.MANAGED_CLUSTER))
        self.fleet = self._clusters.fleet
        placements = [parse_placement(document) for document in self._documents(names.PLACEMENT)]
        self._broken = sorted(key for key in world.quarantined if (key.group, key.kind) == (names.GROUP, names.PLACEMENT))
        known = frozenset((key.namespace, key.name) for key in (*(placement.key for placement in placements), *self._broken))
        past = list_previous_records(world.previous, names.GROUP, names.PLACEMENT_DECISION)
        self._decision_index = DecisionIndex(merge_decisions(past, self._documents(names.PLACEMENT_DECISION)), known)
        scores = PrioritizerScores(self._documents(names.ADDON_SCORE), self.fleet.names, self._clusters.bodies)
        self.cluster_sets = ClusterSets(self._documents(names.CLUSTER_SET), self._documents(names.CLUSTER_SET_BINDING), self.fleet)
        self._compiler = ExpressionCompiler(self._clusters.bodies, scores.list_addon_scores)
        self.run = schedule_placements(
            placements,
            self.cluster_sets,
            self.fleet,
            scores,
            self._compiler.compile,
            self._decision_index,
            world.previous.get,
            digest_documents(world.documents, world.quarantined),
            world.at,
            world.now,
        )
        self.findings = tuple(list_findings(self.run, self.fleet, self._compiler.exceeded_limit))
        self._placement_states = dict(self._list_placement_states())
        written = world.documents.get((CONFIG_GROUP, names.ROLLOUT_REPORT), ())
        self._reports = read_reports(written, world.observations)
        self.wakeup, self.time = self.run.wakeup, self.run.time

    def update(self, world: Snapshot, /) -> bool:
        """The Placements stand as long as nothing is due; ManifestWorkReplicaSets are no templates, and have to be asked for anew."""
        due = self.wakeup is not None and self.wakeup <= world.now
        if (
            due
            or (names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET) in world.documents
            or world.observations != self.snapshot.observations
        ):
            return False
        self.snapshot, self.time = world, None
        return True

    def own_workloads(self) -> Iterator[tuple[Document, Outcome]]:
        for document in self.snapshot.documents.get((names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET), ()):
            yield document, self._make_outcome(read_replica_set(document))

    def clusters(self) -> Mapping[str, ClusterInfo]:
        return self._clusters.facts

    def records(self) -> Iterator[tuple[Key, Body]]:
        for key, standing in self._placement_states.items():
            found = self.run.results.get(key)
            record = self.snapshot.previous.get(key) if found is None else found.record
            if record is not None:
                yield key, record
            yield from standing.decisions
        if self.run.basis is not None:
            yield write_basis(self.run.basis)

    def selects(self, template: Document, /) -> bool:
        return read_placement_annotation(template) is not None

    def decide(self, template: Document, /) -> Outcome | None:
        workload = read_template(template)
        return None if workload is None else self._make_outcome(workload)

    def decision_inputs(self, template: Document) -> tuple[object, ...]:
        """The decisions that a template follows."""
        placement = read_placement_annotation(template)
        found = None if placement is None else self._placement_states.get(placement)
        return () if found is None else (found.decisions,)

    @property
    def revision(self) -> int:
        return 0

    def affected_by(self, _dirty: frozenset[Key]) -> frozenset[Key]:
        return frozenset()

    def keep_previous(self, template: Document, why: str) -> Outcome | None:
        own = (template.key.group, template.key.kind) == (names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET)
        workload = None if own else read_template(template)
        record = template.key if own else workload.record if workload is not None else None
        previous = None if record is None else self.snapshot.previous.get(record)
        if record is None or previous is None:
            return None
        return make_stale_outcome(template, record, read_previous_rollout(previous), previous, why, self.snapshot.at)

    def evaluate_candidates(self, template: Document, /) -> list[CandidateResult]:
        workload = self._read_workload(template)
        if workload is None:
            return []
        placement = workload.references[0][0]
        return self.evaluate_own(names.PLACEMENT, placement.name, placement.namespace) or []

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:
        from gitsched.apis.ocm.explanation import evaluate_clusters

        key = names.placement_key(namespace or "default", name)
        found = self.run.results.get(key)
        if kind != names.PLACEMENT or found is None:
            return None
        return evaluate_clusters(found, self.fleet)

    def propose(self, template: Document, cluster: str, /) -> ChangeProposal | None:
        from gitsched.apis.ocm.explanation import ProposalInputs, propose_change  # loaded only when changes are proposed

        workload = self._read_workload(template)
        found = None if workload is None else self.run.results.get(workload.references[0][0])
        inputs = ProposalInputs(self.fleet, self.cluster_sets, self.snapshot.documents)
        return None if found is None else propose_change(inputs, found, cluster)

    def explain(self, template: Document) -> Explanation | None:
        from gitsched.apis.ocm.explanation import explain_placement, explain_workload  # only the verb explain needs it

        def tell(placement: Key) -> Explanation | None:
            found = self.run.results.get(placement)
            return None if found is None else explain_placement(found.placement.document, found, self.fleet, self.findings)

        if (template.key.group, template.key.kind) == (names.GROUP, names.PLACEMENT):
            return tell(template.key)
        workload = self._read_workload(template)
        if workload is None:
            return None
        first = workload.references[0][0]
        return explain_workload(workload, self._make_outcome(workload), tell(first))

    def _read_workload(self, document: Document) -> OcmWorkload | None:
        own = (document.key.group, document.key.kind) == (names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET)
        workload = read_replica_set(document) if own else read_template(document)
        return workload if workload is not None and workload.references else None

    def _make_outcome(self, workload: OcmWorkload) -> Outcome:
        world, previous = self.snapshot, self.snapshot.previous.get(workload.record)
        memory = read_previous_rollout(previous)
        spreading = roll_out_workload(
            workload, self._placement_states, memory, self._reports, self._clusters.facts, world.at, world.now
        )
        return make_outcome(workload, spreading, memory, self._placement_states, previous)

    def _list_placement_states(self) -> Iterator[tuple[Key, PlacementState]]:
        """Every Placement with its decisions, those that are left alone or broken with what they had decided."""
        for key, found in self.run.results.items():
            yield key, PlacementState(found.decisions, found.placement.clusters_per_group, found.wakeup)
        for key, blocked in self.run.skipped.items():
            yield key, PlacementState(tuple(self._list_previous_decisions(key)), blocked.placement.clusters_per_group)
        for key in self._broken:
            yield key, PlacementState(tuple(self._list_previous_decisions(key)))

    def _documents(self, kind: str) -> tuple[Document, ...]:
        return self.snapshot.documents.get((names.GROUP, kind), ())

    def _list_previous_decisions(self, key: Key) -> Iterator[tuple[Key, Body]]:
        yield from self._decision_index.find((key.namespace, key.name)).records(key.namespace)


_MAX_LISTED = 5
_POINTERS: Mapping[str, Pointer] = {"Predicate": ("spec", "predicates"), "TaintToleration": ("spec", "tolerations")}


def list_findings(run: SchedulingRun, fleet: Fleet, overspent: Callable[[tuple[str, ...]], bool]) -> Iterator[Finding]:
    """Findings in the order of the Placements."""
    for found in run.results.values():
        yield from _list_result_findings(found, overspent)
        if found.choice is not None and not found.choice.selected and found.placement.number_of_clusters != 0:
            document = found.placement.document
            message = f"{document.key} chooses no cluster: {_describe_no_clusters(found, fleet)}"
            yield _make_finding("warning", "ocm-nothing-chosen", message, document)
    for blocked in run.skipped.values():
        yield from _list_skipped_findings(blocked)


def _list_result_findings(found: PlacementResult, overspent: Callable[[tuple[str, ...]], bool]) -> Iterator[Finding]:
    document = found.placement.document
    if found.misconfiguration is not None:
        message = f"{document.key} is misconfigured and keeps what it had decided: {str(found.misconfiguration).removeprefix(':')}"
        mistake = found.misconfiguration
        pointer = _POINTERS.get(mistake.plugin, ("spec",))
        rule = FieldOrigin(document.origin, pointer) if document.origin is not None else None
        finding = _make_finding("error", mistake.code if mistake.code else "ocm-misconfigured", message, document)
        yield finding._replace(field=rule)
        return
    predicates = found.placement.predicates
    if not isinstance(predicates, Misconfiguration) and any(overspent(predicate.expressions) for predicate in predicates):
        message = f"{document.key} has an expression that takes too many steps: it holds for none of the clusters where it does"
        yield _make_finding("warning", "cel-cost", message, document)
    if found.expired_scores:
        told = ", ".join(f"{cluster}/{resource}" for cluster, resource in found.expired_scores[:_MAX_LISTED])
        more = f" and {len(found.expired_scores) - _MAX_LISTED} more" if len(found.expired_scores) > _MAX_LISTED else ""
        message = f"{document.key} counts AddOnPlacementScores that have expired as 0: {told}{more}"
        yield _make_finding("warning", "ocm-scores-expired", message, document)


def _describe_no_clusters(found: PlacementResult, fleet: Fleet) -> str:
    """Where all clusters were lost; upstream's status says only that none matches, be it for a binding, a predicate or a taint."""
    offer, request, choice = found.eligible, found.request, found.choice
    if not offer.bound_sets:
        return f"the namespace {found.placement.key.namespace} is bound to no cluster set; a ManagedClusterSetBinding is missing"
    if not offer.eligible_sets:
        return f"it wants {', '.join(found.placement.cluster_sets)}, and its namespace is bound to {', '.join(offer.bound_sets)}"
    if request is None or choice is None or not offer.clusters:
        return f"{', '.join(offer.eligible_sets)} has no cluster"
    matched = choice.remaining[0]
    reasons = Counter(SELECTION_FILTERS[1].reason(request, fleet, index) for index in fleet.members(matched & ~choice.remaining[1]))
    told = [f"{count} because {reason}" for reason, count in sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))]
    lost = offer.clusters.bit_count() - matched.bit_count()
    parts = [*([f"{lost} do not meet its predicates"] if lost else []), *told[:_MAX_LISTED]]
    return (
        f"of {offer.clusters.bit_count()}, {'; '.join(parts)}"
        if parts
        else "none of those that are left may be, to be spread evenly"
    )


def _list_skipped_findings(blocked: SkippedPlacement) -> Iterator[Finding]:
    if blocked.invalid_set is None:
        return
    unusable, document = blocked.invalid_set, blocked.placement.document
    message = f"{unusable.key} selects no clusters that can be known: {blocked.reason}"
    yield _make_finding("error", "ocm-set-unusable", message, unusable)
    message = f"{document.key} keeps what it had decided: {unusable.key} cannot be used"
    yield _make_finding("warning", "stale-decision", message, document)


def _make_finding(severity: Severity, code: str, message: str, document: Document) -> Finding:
    return Finding(severity, code, message, locate_document(document), document.key.resource)
