"""Krake's PolicyEngine: the decisions over one snapshot as outcomes and records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from gitsched.apis.engine import ChangeProposal, Snapshot
from gitsched.apis.krake import applications, names
from gitsched.apis.krake.candidates import ResourceCandidate, is_deleted
from gitsched.apis.krake.constraints import describe_mismatch
from gitsched.apis.krake.metrics import NO_METRICS
from gitsched.apis.krake.names import ResourceRef, cluster_directory
from gitsched.apis.krake.scheduler import ApplicationDecision, KrakeScheduler, evaluate_application
from gitsched.apis.krake.scheduling_status import read_previous
from gitsched.apis.krake.status import (
    index_clouds_and_projects,
    make_application_record,
    make_cluster_record,
    make_failing_metrics_records,
    make_magnum_cluster_record,
    report_application,
    report_resources,
)
from gitsched.model.document import Body, Document, Key, is_namespaced, parse_api_group
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding, locate_document
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome, TargetCluster

PLACED_REASON = "best by its constraints and metrics"
"""Why an application is where it is, in words that do not change as long as it stays: they are committed."""


class KrakeEngine:
    """See `gitsched.apis.engine.PolicyEngine`."""

    name = "krake"
    wakeup: datetime | None = None  # every deadline is an application's, and stands in its outcome

    def __init__(self, world: Snapshot) -> None:
        self.snapshot = world
        self.scheduler = KrakeScheduler(world)
        self.findings: tuple[Finding, ...] = tuple(report_resources(self.scheduler))
        made = (binding.status.scheduled for _, binding in self.scheduler.bindings.values() if binding.action == "bind")
        self.time: datetime | None = max((moment for moment in made if moment and moment > world.at), default=None)

    def update(self, _world: Snapshot, /) -> bool:
        """Applications are in no catalog of templates, so a new session has to decide them."""
        return False

    def own_workloads(self) -> Iterable[tuple[Document, Outcome]]:
        return [(decided.app.document, self._make_outcome(decided)) for decided in self.scheduler.applications.values()]

    def clusters(self) -> Mapping[str, ClusterInfo]:
        known = ((key, cluster.candidate.labels) for key, cluster in self.scheduler.clusters.items())
        unread: list[tuple[Key, Mapping[str, str]]] = [(key, {}) for key in sorted(self.scheduler.quarantined_clusters)]
        facts = (ClusterInfo(cluster_directory(key.namespace, key.name), labels) for key, labels in (*known, *unread))
        return {fact.name: fact for fact in facts}

    def records(self) -> Iterable[tuple[Key, Body]]:
        decisions = self.scheduler
        owners = index_clouds_and_projects(self.snapshot.documents)
        for key, (document, binding) in decisions.bindings.items():
            cluster = decisions.clusters.get(key)
            spec = document.body["spec"] if key in decisions.created_clusters else None
            body = make_cluster_record(document, binding, self._hide_provider_failure(cluster.candidate) if cluster else None, spec)
            if body is not None:
                yield key, body
        for key, (document, binding) in decisions.magnum_bindings.items():
            yield key, make_magnum_cluster_record(document, binding, owners)
        yield from make_failing_metrics_records(map(self._hide_provider_failure, decisions.clouds_and_projects), owners)

    def decide(self, _template: Document, /) -> Outcome | None:
        return None

    def selects(self, _template: Document, /) -> bool:
        return False

    def keep_previous(self, template: Document, why: str) -> Outcome | None:
        key = template.key
        previous = self.snapshot.previous.get(key)
        if (key.group, key.kind) != names.APPLICATION or previous is None:
            return None
        memory = read_previous(template, previous, self.snapshot.at, applications.FINAL_STATES)
        placed = self._list_targets(memory.target)
        message = f"{key} keeps its previous placement: {why}"
        return Outcome(
            key=key,
            api=self.name,
            state="stale",
            policy="",
            group="",
            targets=placed,
            replicas=None,
            records=((key, previous),),
            reason=why,
            time=memory.scheduled or self.snapshot.at,
            findings=(Finding("warning", "stale-decision", message, locate_document(template), key.resource),),
            previous_targets=placed,
            manifests=_index_manifests(template),
        )

    def evaluate_candidates(self, _template: Document, /) -> list[CandidateResult]:
        return []

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:
        wanted = (kind, name, namespace)
        for key, decided in self.scheduler.applications.items():
            if (key.kind, key.name, key.namespace) == wanted:
                return evaluate_application(decided)
        known = (*self.scheduler.bindings, *self.scheduler.magnum_bindings)
        found = next((key for key in known if (key.kind, key.name, key.namespace) == wanted), None)
        return self.scheduler.evaluate_backends(found) if found else None

    def propose(self, template: Document, cluster: str) -> ChangeProposal | None:
        from gitsched.apis.krake.explanation import propose_change  # only the verb explain needs it

        decided = self.scheduler.applications.get(template.key)
        return propose_change(decided, self.snapshot.documents, cluster) if decided is not None else None

    def explain(self, template: Document) -> Explanation | None:
        from gitsched.apis.krake.explanation import explain_application, explain_binding  # only the verb explain needs it

        decided = self.scheduler.applications.get(template.key)
        observed = getattr(self.snapshot.observations, "time", None)
        return explain_application(decided, observed) if decided is not None else explain_binding(self.scheduler, template)

    def _make_outcome(self, decided: ApplicationDecision) -> Outcome:
        document, step = decided.app.document, decided.attempts[-1]
        key, memory = document.key, step.status
        placed = () if is_deleted(document.body) else self._list_targets(memory.target)
        gone = memory.target is not None and not placed and not is_deleted(document.body)
        last = decided.decisive_attempt
        return Outcome(
            key=key,
            api=self.name,
            state="pending" if not placed else "stale" if step.action == "hold" else "placed",
            policy="",
            group="",
            targets=placed,
            replicas=None,
            records=((key, make_application_record(document, memory)),),
            reason=PLACED_REASON if placed else step.reason or "it is not placed",
            time=last.time if last.changes_status else self.snapshot.at,
            wakeup=step.next_change,
            findings=tuple(report_application(decided, Key(*memory.target) if gone and memory.target else None, bool(placed))),
            previous_targets=tuple(
                TargetCluster(cluster_directory(ref.namespace, ref.name)) for ref in (decided.previous.target,) if ref
            ),
            manifests=_index_manifests(document),
            trigger=_describe_move(decided) if placed else "",
        )

    def _hide_provider_failure(self, site: ResourceCandidate) -> ResourceCandidate:
        """A site as records show it: where placements are held, an outage of a provider is no news of a cluster, and no commit."""
        if self.scheduler.hold_on_failure and site.metrics.provider_failed:
            return site._replace(metrics=NO_METRICS, state="ONLINE" if site.awaits_metrics else site.reported_state)
        return site

    def _list_targets(self, target: ResourceRef | None) -> tuple[TargetCluster, ...]:
        if target is None or not (Key(*target) in self.scheduler.clusters or Key(*target) in self.scheduler.quarantined_clusters):
            return ()
        return (TargetCluster(cluster_directory(target.namespace, target.name)),)


def _describe_move(decided: ApplicationDecision) -> str:
    """Why an application left the cluster where it was; "" where it did not."""
    step, arena, former = decided.decisive_attempt, decided.context.clusters, decided.previous.target
    if step.action != "bind" or former is None or step.status.target is None:
        return ""
    if not step.scores_compared:
        return step.reason
    if step.current is None:
        return f"{former.name} is not there any more"
    if not step.matching >> step.current & 1:
        site = arena.candidates[step.current]
        why = site.reason or describe_mismatch(
            decided.app.constraints, site.labels, site.custom_resources, arena.constraint_values[step.current]
        )
        return f"{former.name} does not fit: {why}"
    chosen = arena.find_index(step.status.target)
    scores = [arena.ranking.score_among(at, step.matching, step.current) for at in (chosen, step.current) if at is not None]
    mine, its = (f"scores {score:.4g}" if score is not None else "has no score" for score in scores)
    return f"{step.status.target.name} {mine}, {former.name} {its} with its stickiness"


def _index_manifests(document: Document) -> tuple[tuple[Key, Body], ...]:
    """The Kubernetes objects of an application, each once: of two that are the same object, the last."""
    found: dict[Key, Body] = {}
    for body in applications.list_manifests(document):
        group, kind = parse_api_group(str(body.get("apiVersion"))), str(body.get("kind"))
        metadata = body.get("metadata") or {}
        space = str(metadata.get("namespace") or ("" if is_namespaced(group, kind) is False else "default"))
        found[Key(group, kind, space if is_namespaced(group, kind) is not False else "", str(metadata.get("name")))] = body
    return tuple(found.items())
