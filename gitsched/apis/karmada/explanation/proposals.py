"""Propose the smallest change that brings a workload nearer to a cluster.

Changes are made to copies of documents, so the caller can schedule again with them and see whether they are sufficient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gitsched.apis.capabilities import ChangeProposal
from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.resource_binding import SchedulingPass, binding_key
from gitsched.apis.karmada.cluster.taints import READY_CONDITION
from gitsched.apis.karmada.explanation.reasons import find_excluding_rule, find_failing_member
from gitsched.apis.karmada.policy.policy_options import is_activation_pending
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.simulation import make_rescheduling_document
from gitsched.apis.karmada.state import KarmadaState
from gitsched.apis.karmada.topology import TOPOLOGY
from gitsched.apis.proposals import (
    describe_change,
    find_misspelling,
    get_at,
    make_toleration,
    propose_edit,
    propose_labels,
    propose_taint_end,
    propose_undelete,
    set_at,
)
from gitsched.model.document import Body, Document, get_field
from gitsched.model.explanation import ProposedChange
from gitsched.model.finding import Pointer, format_count, format_names
from gitsched.model.known_values import find_near
from gitsched.model.labels import Requirement
from gitsched.model.quantity import describe_amount
from gitsched.model.scheduling import Affinity, AffinityGroup, Request, StaticWeight
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE
from gitsched.schedule import pipeline
from gitsched.schedule.estimator import PODS, Capacity, ResourceRequest, estimate_replicas
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.rejections import list_rejections

_EDITED_ANNOTATION = "gitsched.io/edited"
_EXCLUSION_ENDS = {
    "evicted": "its eviction from there were over",
    "unhealthy": "it were reported healthy there",
    "toleration-expired": "its toleration of the taint there had not expired",
}
"""What ends each kind of exclusion."""


def propose(
    state: KarmadaState, template: Document, policy: PropagationPolicy, scheduling_pass: SchedulingPass, cluster: str
) -> ChangeProposal | None:
    """Return the next change that brings a workload nearer to a cluster; None when none is known."""
    return _ChangeFinder(state, template, policy, scheduling_pass, cluster).find()


class _ChangeFinder:
    """Find a change for one workload and one cluster that it is not scheduled to."""

    def __init__(
        self, state: KarmadaState, template: Document, policy: PropagationPolicy, scheduling_pass: SchedulingPass, cluster: str
    ) -> None:
        self.state, self.template, self.policy, self.cluster = state, template, policy, cluster
        self.scheduling_pass = scheduling_pass
        self.fleet, self.request = state.fleet, scheduling_pass.request
        self.index = state.fleet.index[cluster]
        self.candidate = state.fleet.candidates[self.index]
        documents = state.snapshot.documents.get((names.CLUSTER_GROUP, names.CLUSTER), ())
        self.document = next((d for d in documents if d.key.name == cluster), None)
        self.placement: Body = policy.spec.get("placement") or {}

    def find(self) -> ChangeProposal | None:
        candidate, document = self.candidate, self.document
        if candidate.frozen or document is None:
            return self._describe_change("its document were valid")
        if candidate.deleting:
            return propose_undelete(document)
        used = self._used_group()
        group = self._entry_group(used)
        rejections = list_rejections(self.request, group, self.fleet)
        rejected_by = next((one.filter.name for one in rejections if one.mask >> self.index & 1), "")
        match rejected_by:
            case "ClusterAffinity":
                intended = self._find_intended_group(group)
                return self._match_affinity(intended, is_earlier=intended is not group)
            case "TaintToleration":
                return self._add_toleration()
            case "APIEnablement":
                return self._add_api_enablement()
            case "Variant":
                return self._describe_change("the workload had a variant for it")
            case "SpreadConstraint":
                return self._set_spread_field()
            case "ClusterEviction":
                return self._end_exclusion(group, document)
            case "WorkloadAffinity":
                return self._describe_change(self._describe_peers())
        if rejected_by:
            return self._describe_change(f"the filter {rejected_by} let it pass")
        if group != used and self.request.groups.index(group) > self.request.groups.index(used):
            return self._remove_earlier_groups(group)
        if self.request.groups.index(group) < self.request.first_group:
            return self._propose_rebalancer()
        if self.scheduling_pass.decision is None and self.policy.placement.is_divided:
            return self._propose_rebalancer()
        return self._raise_quota() or self._raise_limits(group)

    def _raise_quota(self) -> ChangeProposal | None:
        """Raise the quota that stops the workload."""
        refusal = self.state.queue.quota_refusals.get(self.template.key) if self.state.queue is not None else None
        if refusal is None:
            return None
        text, place = f"{refusal.quota.key.title} allowed {refusal.amount} more", ("spec", "overall", refusal.resource)
        return ChangeProposal(describe_change(text, refusal.quota, place), refusal.raise_quota())

    def _raise_limits(self, group: AffinityGroup) -> ChangeProposal | None:
        return self._raise_static_weight(group) or self._raise_max_groups(group) or self._raise_capacity(group)

    def _describe_peers(self) -> str:
        """Say where the other workloads of the groups would have to be."""
        if self.request.peers is not None and self.cluster in self.request.peers.taken:
            return "no other workload of its anti-affinity group were there"
        return "all other workloads of its affinity group were there"

    def _used_group(self) -> AffinityGroup:
        """Return the affinity group that was used, else the first that was tried."""
        named = (
            self.scheduling_pass.decision.group if self.scheduling_pass.decision else self.scheduling_pass.current.observed_group
        )
        return next((group for group in self.request.groups if group.name == named), self.request.groups[self.request.first_group])

    def _end_exclusion(self, group: AffinityGroup, document: Document) -> ChangeProposal:
        """Describe the end of what excludes the cluster."""
        rule = find_excluding_rule("ClusterEviction", self.candidate, self.request, group, self.policy, document)
        current, time = self.scheduling_pass.current, self.scheduling_pass.time
        exclusion = self.state.failover.find_exclusion(self.template, self.policy, current, self.cluster, time)
        document = self.policy.document if rule and rule.origin == self.policy.document.origin else document
        end = _EXCLUSION_ENDS[exclusion.reason if exclusion else "evicted"]
        return ChangeProposal(describe_change(end, document, rule.pointer if rule else ()))

    def _entry_group(self, used: AffinityGroup) -> AffinityGroup:
        """Return the used group if it selects the cluster, else another group that does, else the used one."""
        groups = (used, *self.request.groups)
        return next((g for g in groups if g.affinity is None or self.fleet.matching(g.affinity) >> self.index & 1), used)

    def _find_intended_group(self, used: AffinityGroup) -> AffinityGroup:
        """Return the group to which a cluster that no group selects probably belongs: of the used one and the earlier ones that select no
        cluster, that to whose labels those of the cluster are similar, else the first one."""
        earlier = self.request.groups[: self.request.groups.index(used)]
        empty = [group for group in earlier if group.affinity is not None and not self.fleet.matching(group.affinity)]
        return next((group for group in (*empty, used) if self._has_similar_label(group)), (*empty, used)[0])

    def _has_similar_label(self, group: AffinityGroup) -> bool:
        """Return whether the cluster has a label that is probably a misspelt one of those that a group selects."""
        wanted = group.affinity.labels.requirements if group.affinity is not None and group.affinity.labels is not None else ()
        labels = self.candidate.labels
        return any(
            bool(find_near(labels[one.key], one.values) if one.key in labels else find_near(one.key, labels))
            for one in wanted
            if one.operator == "In" and not one.matches(labels)
        )

    def _match_affinity(self, group: AffinityGroup, *, is_earlier: bool = False) -> ChangeProposal | None:
        """Make a group select the cluster. `is_earlier`: it selected clusters before, perhaps, so the label of one may be the wrong one."""
        affinity = group.affinity
        if affinity is None or affinity.invalid:
            return None
        term: Pointer = ("clusterAffinities", self.request.groups.index(group)) if group.name else ("clusterAffinity",)
        refusing = find_failing_member(affinity, self.candidate)
        written = get_at(self.placement, (*term, refusing))
        match refusing:
            case "clusterNames":
                return self._edit_placement("clusterNames named it", (*term, refusing), [*(written or ()), self.cluster])
            case "exclude":
                rest = [name for name in written or () if name != self.cluster]
                return self._edit_placement("exclude did not name it", (*term, refusing), rest)
            case "labelSelector":
                requirements = affinity.labels.requirements if affinity.labels else ()
                corrected = self._correct_labels(term, requirements)
                if self.document is None or (corrected is not None and not is_earlier):
                    return corrected
                change = propose_labels(self.document, self.candidate.labels, requirements)
                if change is None or corrected is None:
                    return change
                return change._replace(change=change.change._replace(text=f"{change.change.text}, or {corrected.change.text}"))
        return self._match_field_selector(affinity, term)

    def _correct_labels(self, term: Pointer, requirements: Sequence[Requirement]) -> ChangeProposal | None:
        """Correct a label that no cluster has, and that is similar to one that some have."""
        found = find_misspelling(requirements, self.candidate.labels, (one.labels for one in self.fleet.candidates))
        if found is None:
            return None
        wrong, key, value = found
        place = *term, "labelSelector"
        selector = get_at(self.placement, place)
        labels, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
        index = next((i for i, one in enumerate(expressions) if one["key"] == wrong.key and one["operator"] == "In"), 0)
        pointer: Pointer = ("matchLabels", wrong.key) if wrong.key in labels else ("matchExpressions", index)
        corrected = {
            "matchLabels": {**{name: text for name, text in labels.items() if name != wrong.key}, key: value},
            "matchExpressions": [one for one in expressions if (one["key"], one["operator"]) != (wrong.key, "In")],
        }
        return self._edit_placement(f"its policy selected {key}={value}", place, corrected, (*place, *pointer))

    def _match_field_selector(self, affinity: Affinity, term: Pointer) -> ChangeProposal | None:
        """Set the provider, region or zone that a selector requires, unless it is probably misspelt."""
        wanted = next((r for r in affinity.fields if not _satisfies(self.candidate.fields.get(r.key, ()), r)), None)
        if wanted is None:
            return None
        own = {key: values[0] for key, values in self.candidate.fields.items() if values}
        found = find_misspelling((wanted,), own, ({wanted.key: one} for one in self.fleet.field_values(wanted.key)))
        if found is not None:
            place: Pointer = (*term, "fieldSelector", "matchExpressions")
            written = get_at(self.placement, place)
            index = next(i for i, one in enumerate(written) if (one["key"], one["operator"]) == (wanted.key, "In"))
            return self._edit_placement(f"its policy selected {wanted.key}={found[2]}", (*place, index, "values"), [found[2]])
        if wanted.operator not in ("In", "Exists"):
            return self._describe_change(f"its {wanted.key} were not {', '.join(self.candidate.fields.get(wanted.key, ()))}")
        return self._set_field(wanted.key, wanted.values[0] if wanted.values else _pick_field_value(self.fleet, wanted.key))

    def _set_spread_field(self) -> ChangeProposal | None:
        missing = next((field for field in self.request.required_fields if not self.candidate.fields.get(field)), None)
        return self._set_field(missing, _pick_field_value(self.fleet, missing)) if missing else None

    def _set_field(self, field: str, value: str) -> ChangeProposal | None:
        spec = (self.document.body.get("spec") or {}) if self.document else {}
        changed = {"zones": [value]} if field == "zone" else {field: value}
        return self._edit_cluster(f"its {field} were {value}", ("spec", *changed), {"spec": {**spec, **changed}})

    def _add_toleration(self) -> ChangeProposal | None:
        tolerations = self.request.tolerations
        rejecting = (t for t in self.candidate.taints if t.effect in (NO_SCHEDULE, NO_EXECUTE))
        taint = next((t for t in rejecting if not any(known.tolerates(t) for known in tolerations)), None)
        if taint is None:
            return None
        ended = propose_taint_end(self.document, taint, TOPOLOGY.taints, READY_CONDITION)
        if ended is not None:
            return ended
        tolerated = [*(self.placement.get("clusterTolerations") or ()), make_toleration(taint)]
        return self._edit_placement(f"its policy tolerated {taint}", ("clusterTolerations",), tolerated)

    def _add_api_enablement(self) -> ChangeProposal | None:
        if self.request.required_api is None or self.document is None:
            return None
        version, kind = self.request.required_api
        status = self.document.body.get("status") or {}
        entry = {"groupVersion": version, "resources": [{"kind": kind, "name": f"{kind.lower()}s"}]}
        served = {"status": {**status, "apiEnablements": [*(status.get("apiEnablements") or ()), entry]}}
        return self._edit_cluster(f"it served {kind} of {version}", ("status", "apiEnablements"), served)

    def _remove_earlier_groups(self, group: AffinityGroup) -> ChangeProposal:
        """Remove the groups before `group`."""
        number = self.request.groups.index(group)
        rest = (self.placement.get("clusterAffinities") or [])[number:]
        before = ", ".join(earlier.name for earlier in self.request.groups[:number])
        return self._edit_placement(
            f"no cluster of {before} could take it, so that it went to {group.name}", ("clusterAffinities",), rest
        )

    def _propose_rebalancer(self) -> ChangeProposal:
        """Request a rebalance: assigned replicas stay where they are until then."""
        existing = self.state.reschedule_triggers.list_naming(binding_key(self.template.key))
        handled = f" ({format_names([entry.title for entry in existing])} will not act again)" if existing else ""
        text = f"{'another' if existing else 'a'} WorkloadRebalancer rescheduled it{handled}"
        return ChangeProposal(ProposedChange(text), make_rescheduling_document((self.template,)))

    def _raise_static_weight(self, group: AffinityGroup) -> ChangeProposal | None:
        """Find a static weight that gives the cluster a replica."""
        if self.request.division != "static" or not self.request.replicas:
            return None
        preference = get_field(self.placement, "replicaScheduling", "weightPreference") or {}
        written = preference.get("staticWeightList") or ()
        pointer: Pointer = ("replicaScheduling", "weightPreference")

        top = max((rule.weight for rule in self.request.weights), default=1)
        for weight in sorted({1, top, top * self.request.replicas}):
            weights = (*self.request.weights, StaticWeight(Affinity((self.cluster,)), weight))
            if self._is_selected(self.request._replace(weights=weights), group, self.fleet):
                entry = {"targetCluster": {"clusterNames": [self.cluster]}, "weight": weight}
                value = {**preference, "staticWeightList": [*written, entry]}
                return self._edit_placement(f"its static weight there were {weight}", pointer, value)
        return None

    def _raise_max_groups(self, group: AffinityGroup) -> ChangeProposal | None:
        """Raise maxGroups of a spread constraint that leaves the cluster out."""
        for number, spread in enumerate(self.request.spread_constraints):
            for maximum in range(max(spread.maximum + 1, spread.minimum), len(self.fleet) + 1):
                spreads = tuple(
                    s._replace(maximum=maximum) if i == number else s for i, s in enumerate(self.request.spread_constraints)
                )
                if self._is_selected(self.request._replace(spread_constraints=spreads), group, self.fleet):
                    return self._edit_spread_constraint(spread.field, maximum)
        return None

    def _edit_spread_constraint(self, field: str, maximum: int) -> ChangeProposal:
        constraints = self.placement.get("spreadConstraints") or []
        number = next((i for i, entry in enumerate(constraints) if (entry.get("spreadByField") or "cluster") == field), 0)
        changed = [{**entry, "maxGroups": maximum} if i == number else entry for i, entry in enumerate(constraints)]
        pointer: Pointer = ("spreadConstraints", number, "maxGroups")
        before = constraints[number].get("maxGroups")
        text = f"maxGroups of {field}s were {maximum}{f' instead of {before}' if before else ''}"
        return self._edit_placement(text, ("spreadConstraints",), changed, pointer)

    def _raise_capacity(self, group: AffinityGroup) -> ChangeProposal | None:
        """Find the smallest capacity, in replicas, with which the scheduler chooses the cluster."""
        capacity, remaining = self.candidate.capacity, self.request.remaining
        is_divided = self.request.division in ("dynamic", "aggregated") and self.request.sets is None
        if not (is_divided and self.request.replicas) or capacity is None:
            return None
        resource_request: ResourceRequest = self.request.find_resource_request(self.candidate.name) or ()
        left = [one.capacity if remaining is None else remaining.read_capacity(i) for i, one in enumerate(self.fleet.candidates)]
        own = left[self.fleet.index[self.candidate.name]] or capacity
        now = estimate_replicas(own, self.request.find_resource_request(self.candidate.name))
        allocatable = self.state.inventory.allocatable.get(self.candidate.name, capacity)  # the proposed summary has nothing else
        taken = {name: amount - own.free.get(name, amount) for name, amount in allocatable.free.items()}
        request = self.request._replace(remaining=None)

        def fits(replicas: int) -> bool:
            candidates = [
                one._replace(capacity=_make_capacity(replicas, resource_request) if one is self.candidate else known)
                for one, known in zip(self.fleet.candidates, left, strict=True)
            ]
            return self._is_selected(request, group, Fleet(candidates))

        need = _find_minimum(fits, now + 1, 2 * now + 2 * self.request.replicas + sum(t.replicas for t in self.request.previous))
        if need is None:
            return None
        return self._edit_capacity(need, _make_capacity(need, resource_request), taken)

    def _edit_capacity(self, need: int, wanted: Capacity, taken: Mapping[str, int]) -> ChangeProposal | None:
        """Return the change of a Cluster after which it has a capacity free besides what is `taken`."""
        known = self.state.inventory.allocatable.get(self.candidate.name, Capacity({})).free
        amounts = {name: max(amount + max(taken.get(name, 0), 0), known.get(name, 0)) for name, amount in wanted.free.items()}
        total = {name: describe_amount(name, amount) for name, amount in amounts.items()}
        status = (self.document.body.get("status") or {}) if self.document else {}
        summary = status.get("resourceSummary") or {}
        kept = {name: value for name, value in summary.items() if name != "allocatableModelings"}
        changed = {**kept, "allocatable": {**(kept.get("allocatable") or {}), **total}}
        listed = ", ".join(f"{text} {name}" for name, text in sorted(total.items()))
        text = f"it had capacity for {format_count(need, 'replica')} (allocatable: {listed})"
        return self._edit_cluster(text, ("status", "resourceSummary"), {"status": {**status, "resourceSummary": changed}})

    def _is_selected(self, request: Request, group: AffinityGroup, fleet: Fleet) -> bool:
        decision = pipeline.schedule_in_group(request, group, fleet)
        return decision.status == "scheduled" and any(target.name == self.cluster for target in decision.assignments)

    def _describe_change(self, text: str) -> ChangeProposal:
        return ChangeProposal(describe_change(text, self.document))

    def _edit_cluster(self, text: str, pointer: Pointer, members: Body) -> ChangeProposal | None:
        document = self.document
        if document is None:
            return None
        return ChangeProposal(describe_change(text, document, pointer), document._replace(body={**document.body, **members}))

    def _edit_placement(self, text: str, path: Pointer, value: Any, pointer: Pointer | None = None) -> ChangeProposal:
        document, template = self.policy.document, self.template
        if is_activation_pending(self.policy, template, self.state.find_record(template)):
            return propose_edit(
                "it were edited, because its policy is Lazy", template, ("metadata", "annotations", _EDITED_ANNOTATION), "true", ()
            )
        body = {**document.body, "spec": {**self.policy.spec, "placement": set_at(self.placement, path, value)}}
        return ChangeProposal(
            describe_change(text, document, ("spec", "placement", *(pointer or path))), document._replace(body=body)
        )


def _satisfies(values: Sequence[str], requirement: Requirement) -> bool:
    """Return whether the values of a candidate's field satisfy a requirement."""
    known: Sequence[str | None] = values or (None,)
    return any(requirement.matches({} if value is None else {requirement.key: value}) for value in known)


def _pick_field_value(fleet: Fleet, field: str) -> str:
    """Return a value that another cluster has."""
    return min(fleet.field_values(field), default="any")


def _make_capacity(replicas: int, resource_request: ResourceRequest) -> Capacity:
    return Capacity({PODS: replicas} | {name: amount * replicas for name, amount in resource_request if name != PODS})


def _find_minimum(fits: Callable[[int], bool], low: int, high: int) -> int | None:
    """Find the smallest number for which `fits` is true by binary search; None when it is false for the highest."""
    if not fits(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low
