"""Describe one cluster of a plan: its workloads, its free capacity, and why other workloads do not run there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from gitsched.decide.cluster_conditions import list_cluster_taints
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Body, Key, get_field, list_objects, read_labels, workload_sort_key
from gitsched.model.explanation import AbsenceReason, ClusterExplanation, ClusterWorkload, EligibleWorkload, FreeResource
from gitsched.model.finding import Finding
from gitsched.model.quantity import describe_amount
from gitsched.model.scheduling import Outcome
from gitsched.model.taints import Taint, parse_taint
from gitsched.model.template_index import PlacementSummary, TemplateIndex
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.estimator import Capacity
from gitsched.simulate.baseline import Baseline, list_capacity_reporters
from gitsched.simulate.capacity_check import count_fitting_replicas
from gitsched.simulate.failure_domains import index_clusters
from gitsched.simulate.simulated_capacity import list_planned

MAX_EXAMPLES = 3
"""The number of workloads listed for one reason."""
FITS = "could run there, and run elsewhere"
"""The reason for an eligible workload that runs on other clusters."""


class KnownPlacements(NamedTuple):
    """The workloads of a baseline: those that run as the last plan decided, with their entries, and the others."""

    settled: TemplateIndex
    others: Collection[Key]


def describe_cluster(
    baseline: Baseline, cluster: str, findings: Iterable[Finding] = (), known: KnownPlacements | None = None
) -> ClusterExplanation:
    """Describe a cluster of the plan. Of `findings`, those about the cluster are included. Of the workloads that are `known` to be
    settled, only those are read that run on the cluster or could."""
    entries = index_clusters(baseline.decisions.catalog)[cluster]
    bodies = [document.body for _, document, _ in entries]
    origin = entries[0][1].origin
    resources = {document.key.resource for _, document, _ in entries}
    own_findings = (finding.message for finding in findings if finding.resource in resources)
    locations = [location for _, _, location in entries]
    taints = tuple(taint for topology, document, _ in entries for taint in list_cluster_taints(topology, document))
    remaining = _measure_free_capacity(baseline, cluster)
    standing = _compare_placements(baseline, cluster, known or KnownPlacements({}, baseline.decisions.outcomes.keys()))
    return ClusterExplanation(
        name=cluster,
        location=f"{origin.path}:{origin.line}" if origin else "",
        region=next((location.region for location in locations if location.region), ""),
        provider=next((location.provider for location in locations if location.provider), ""),
        zones=next((location.zones for location in locations if location.zones), ()),
        labels={name: text for body in bodies for name, text in read_labels(body).items()},
        taints=taints,
        remarks=(*_list_remarks(bodies, [each.taint for each in taints]), *own_findings),
        running=tuple(_list_workloads(baseline, cluster, standing.present)),
        free_resources=None if remaining is None else tuple(_list_resources(remaining.capacity, remaining.planned)),
        eligible=tuple(_list_candidates(baseline, standing, remaining)),
        absence_reasons=_group_absences(standing.absence_reasons),
    )


def _list_remarks(bodies: Iterable[Body], known: Collection[Taint]) -> Iterator[str]:
    """Yield what else the documents say: a deletion, and taints that are not `known` as those of people that keep workloads away."""
    for body in bodies:
        if get_field(body, "metadata", "deletionTimestamp"):
            yield "it is being deleted"
        taints = map(parse_taint, list_objects(get_field(body, "spec", "taints")))
        yield from (f"taint {taint}" for taint in taints if taint not in known)


def _list_workloads(baseline: Baseline, cluster: str, present: Iterable[Key]) -> Iterator[ClusterWorkload]:
    for key in sorted(present, key=workload_sort_key):
        outcome = baseline.decisions.outcomes[key]
        for target in outcome.targets:
            if target.cluster == cluster:
                known = cluster in baseline.running_replicas.get(key, {})
                yield ClusterWorkload(key, target.replicas, outcome.policy, not known and not target.evicting, target.evicting)


class RemainingCapacity(NamedTuple):
    """The free capacity of a cluster according to a policy API, and the part that the plan is going to use."""

    api: str
    cluster: str
    capacity: Capacity
    planned: Mapping[str, int]


def _measure_free_capacity(baseline: Baseline, cluster: str) -> RemainingCapacity | None:
    """Return the free capacity according to the first policy API that reports it."""
    for api, engine in list_capacity_reporters(baseline.decisions.engines).items():
        capacity = engine.free_capacity().get(cluster)
        if capacity is None:
            continue
        reserved: dict[str, int] = {}
        decisions = baseline.decisions
        left = list_planned(decisions, baseline.find_use).get(cluster)
        if left is not None:
            planned = {name: amount - left.free.get(name, amount) for name, amount in capacity.free.items()}
            return RemainingCapacity(api, cluster, capacity, planned)
        starting = ((key, more) for key, name, more in baseline.started if name == cluster and decisions.outcomes[key].api == api)
        for key, more in starting:
            for name, amount in engine.resource_request(decisions.templates[key], cluster):
                reserved[name] = reserved.get(name, 0) + amount * more
        return RemainingCapacity(api, cluster, capacity, reserved)
    return None


def _list_resources(capacity: Capacity, reserved: Mapping[str, int]) -> Iterator[FreeResource]:
    for name, amount in sorted(capacity.free.items()):
        yield FreeResource(name, describe_amount(name, amount), describe_amount(name, amount - reserved.get(name, 0)))


def _list_candidates(baseline: Baseline, standing: _Standing, remaining: RemainingCapacity | None) -> Iterator[EligibleWorkload]:
    """Yield the workloads that run on the cluster, and those that could."""
    eligible = (key for key, reason in standing.absence_reasons.items() if reason == FITS)
    for key in sorted((*standing.present, *eligible), key=workload_sort_key):
        outcome, more = baseline.decisions.outcomes[key], None
        if remaining is not None and outcome.api == remaining.api and outcome.replicas is not None:
            engine = list_capacity_reporters(baseline.decisions.engines)[remaining.api]
            more = count_fitting_replicas(
                remaining.capacity, remaining.planned, engine.resource_request(baseline.decisions.templates[key], remaining.cluster)
            )[0]
        yield EligibleWorkload(key, key not in standing.absence_reasons, more)


class _Standing(NamedTuple):
    """The workloads that a cluster has, and for the others the reason why it does not."""

    present: Collection[Key]
    absence_reasons: Mapping[Key, str]


def _compare_placements(baseline: Baseline, cluster: str, known: KnownPlacements) -> _Standing:
    outcomes, present, reasons = baseline.decisions.outcomes, list[Key](), dict[Key, str]()
    shared: dict[tuple[PlacementSummary, str, str], str | None] = {}
    absences = _Absences(baseline, cluster)
    for key, entry in known.settled.items():
        placement = entry.placement
        assert placement is not None, "it is settled"
        if cluster in placement.clusters:
            present.append(key)
            continue
        alike = placement._replace(clusters=()), entry.api_version, key.kind
        if alike not in shared:
            shared[alike] = absences.explain(key, outcomes[key]) if absences.are_alike(placement, alike[1:]) else None
        reasons[key] = shared[alike] or absences.explain(key, outcomes[key])
    for key in known.others:
        if any(target.cluster == cluster for target in outcomes[key].targets):
            present.append(key)
        else:
            reasons[key] = absences.explain(key, outcomes[key])
    return _Standing(present, reasons)


class _Absences:
    """Explains why workloads do not run on a cluster."""

    def __init__(self, baseline: Baseline, cluster: str) -> None:
        self._cluster, self._templates = cluster, baseline.decisions.templates
        self._engines = {engine.name: engine for engine in baseline.decisions.engines}
        groups = {document.key.group for _, document, _ in index_clusters(baseline.decisions.catalog)[cluster]}
        self._apis = frozenset(api.name for api in policy_apis.values() if not groups.isdisjoint(api.groups))

    def are_alike(self, placement: PlacementSummary, api: tuple[str, str]) -> bool:
        """Return whether the reason is the same for all settled workloads of an API (apiVersion, kind) with a summary."""
        return placement.api not in self._apis or self._engines[placement.api].evaluates_alike(placement, api, self._cluster)

    def explain(self, key: Key, outcome: Outcome) -> str:
        """Return the reason for a workload."""
        engine = self._engines[outcome.api]
        verdicts = engine.evaluate_own(key.kind, key.name, key.namespace)
        if verdicts:
            verdict = next((verdict for verdict in verdicts if verdict.name == self._cluster), None)
        else:
            verdict = engine.evaluate_candidate(self._templates[key], self._cluster)
        if verdict is not None:
            return verdict.reason or (FITS if verdict.eligible else "no reason reported")
        if outcome.api not in self._apis:
            return f"decided by {outcome.api}, which has no such cluster"
        return outcome.reason if outcome.state != "placed" else "decided among other clusters"


def _group_absences(reasons: Mapping[Key, str]) -> tuple[AbsenceReason, ...]:
    by_reason: dict[str, list[Key]] = {}
    for key, reason in reasons.items():
        by_reason.setdefault(reason, []).append(key)
    found = [AbsenceReason(reason, len(keys), tuple(sorted(keys)[:MAX_EXAMPLES])) for reason, keys in by_reason.items()]
    return tuple(sorted(found, key=lambda absence: (-absence.workloads, absence.reason)))
