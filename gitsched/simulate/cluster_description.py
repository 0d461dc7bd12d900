"""Describe one cluster of a plan: its workloads, its free capacity, and why other workloads do not run there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gitsched.decide.registry import policy_apis
from gitsched.model.document import Body, Key, get_field, read_labels
from gitsched.model.explanation import AbsenceReason, ClusterExplanation, ClusterWorkload, EligibleWorkload, FreeResource
from gitsched.model.finding import Finding
from gitsched.model.quantity import format_resource_amount
from gitsched.model.scheduling import Outcome
from gitsched.model.taints import parse_taint
from gitsched.schedule.estimator import Capacity
from gitsched.simulate.baseline import Baseline, count_copies, list_capacity_reporters
from gitsched.simulate.capacity_check import count_fitting_replicas
from gitsched.simulate.scenario import index_clusters

MAX_EXAMPLES = 3
"""The number of workloads listed for one reason."""
FITS = "could run there, and run elsewhere"
"""The reason for an eligible workload that runs on other clusters."""


def describe_cluster(baseline: Baseline, cluster: str, findings: Iterable[Finding] = ()) -> ClusterExplanation:
    """Describe a cluster of the plan. Of `findings`, those about the cluster are included."""
    entries = index_clusters(baseline.decisions.catalog)[cluster]
    bodies = [document.body for _, document, _ in entries]
    origin = entries[0][1].origin
    resources = {document.key.resource for _, document, _ in entries}
    locations = [location for _, _, location in entries]
    remaining, reasons = _measure_free_capacity(baseline, cluster), _explain_absences(baseline, cluster)
    return ClusterExplanation(
        name=cluster,
        location=f"{origin.path}:{origin.line}" if origin else "",
        region=next((location.region for location in locations if location.region), ""),
        provider=next((location.provider for location in locations if location.provider), ""),
        zones=next((location.zones for location in locations if location.zones), ()),
        labels={name: text for body in bodies for name, text in read_labels(body).items()},
        remarks=(*_list_remarks(bodies), *(finding.message for finding in findings if finding.resource in resources)),
        running=tuple(_list_workloads(baseline, cluster)),
        free_resources=None if remaining is None else tuple(_list_resources(remaining.capacity, remaining.planned)),
        eligible=tuple(_list_candidates(baseline, reasons, remaining)),
        absence_reasons=_group_absences(reasons),
    )


def _list_remarks(bodies: Iterable[Body]) -> Iterator[str]:
    for body in bodies:
        if get_field(body, "metadata", "deletionTimestamp"):
            yield "it is being deleted"
        for taint in get_field(body, "spec", "taints") or ():
            yield f"taint {parse_taint(taint)}"


def _list_workloads(baseline: Baseline, cluster: str) -> Iterator[ClusterWorkload]:
    for key, outcome in sorted(
        baseline.decisions.outcomes.items(), key=lambda entry: (entry[0].namespace, entry[0].name, entry[0])
    ):
        for target in outcome.targets:
            if target.cluster == cluster:
                known = cluster in baseline.running_replicas.get(key, {})
                replicas = outcome.replicas if target.replicas is None else target.replicas
                yield ClusterWorkload(key, replicas, outcome.policy, not known and not target.evicting, target.evicting)


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
        for key, outcome in baseline.decisions.outcomes.items():
            more = _count_increase(outcome, baseline.running_replicas.get(key, {}), cluster) if outcome.api == api else 0
            for name, amount in engine.resource_request(baseline.decisions.templates[key], cluster) if more else ():
                reserved[name] = reserved.get(name, 0) + amount * more
        return RemainingCapacity(api, cluster, capacity, reserved)
    return None


def _list_resources(capacity: Capacity, reserved: Mapping[str, int]) -> Iterator[FreeResource]:
    for name, amount in sorted(capacity.free.items()):
        yield FreeResource(name, _format_amount(name, amount), _format_amount(name, amount - reserved.get(name, 0)))


def _list_candidates(
    baseline: Baseline, reasons: Mapping[Key, str], remaining: RemainingCapacity | None
) -> Iterator[EligibleWorkload]:
    """Yield the workloads that run on the cluster, and those that could."""
    for key, outcome in sorted(
        baseline.decisions.outcomes.items(), key=lambda entry: (entry[0].namespace, entry[0].name, entry[0])
    ):
        runs = key not in reasons
        if not runs and reasons[key] != FITS:
            continue
        more = None
        if remaining is not None and outcome.api == remaining.api and outcome.replicas is not None:
            engine = list_capacity_reporters(baseline.decisions.engines)[remaining.api]
            more = count_fitting_replicas(
                remaining.capacity, remaining.planned, engine.resource_request(baseline.decisions.templates[key], remaining.cluster)
            )[0]
        yield EligibleWorkload(key, runs, more)


def _count_increase(outcome: Outcome, running: Mapping[str, int | None], cluster: str) -> int:
    return max(count_copies(outcome.replicas_by_cluster, cluster) - count_copies(running, cluster), 0)


def _format_amount(resource: str, count: int) -> str:
    return format_resource_amount(resource, count, binary=resource in ("memory", "ephemeral-storage"))


def _explain_absences(baseline: Baseline, cluster: str) -> dict[Key, str]:
    """Return the reason for each workload that does not run on the cluster."""
    outcomes = baseline.decisions.outcomes.items()
    absent = ((key, outcome) for key, outcome in outcomes if all(target.cluster != cluster for target in outcome.targets))
    return {key: _explain_absence(baseline, key, outcome, cluster) for key, outcome in absent}


def _group_absences(reasons: Mapping[Key, str]) -> tuple[AbsenceReason, ...]:
    by_reason: dict[str, list[Key]] = {}
    for key, reason in reasons.items():
        by_reason.setdefault(reason, []).append(key)
    found = [AbsenceReason(reason, len(keys), tuple(sorted(keys)[:MAX_EXAMPLES])) for reason, keys in by_reason.items()]
    return tuple(sorted(found, key=lambda absence: (-absence.workloads, absence.reason)))


def _explain_absence(baseline: Baseline, key: Key, outcome: Outcome, cluster: str) -> str:
    engine = next(engine for engine in baseline.decisions.engines if engine.name == outcome.api)
    verdicts = engine.evaluate_own(*_make_reference(key))
    if verdicts:
        verdict = next((verdict for verdict in verdicts if verdict.name == cluster), None)
    else:
        verdict = engine.evaluate_candidate(baseline.decisions.templates[key], cluster)
    if verdict is None:
        groups = next(api.groups for api in policy_apis.values() if api.name == outcome.api)
        known = any(document.key.group in groups for _, document, _ in index_clusters(baseline.decisions.catalog)[cluster])
        if not known:
            return f"decided by {outcome.api}, which has no such cluster"
        return outcome.reason if outcome.state != "placed" else "decided among other clusters"
    return verdict.reason or (FITS if verdict.eligible else "no reason reported")


def _make_reference(key: Key) -> tuple[str, str, str]:
    return key.kind, key.name, key.namespace
