"""What would bring a workload to a cluster: one change after another, each the smallest that removes the first obstacle.

The changes are made to documents, so that whoever asks can decide once more with them and see whether they are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gitsched.apis.edits import change, edit, label, look_at, put_at, tolerate, undelete
from gitsched.apis.karmada import names
from gitsched.apis.karmada.activation import is_waiting
from gitsched.apis.karmada.arithmetic import write_amount
from gitsched.apis.karmada.blame import find_rule, refusing_member
from gitsched.apis.karmada.policy import Policy
from gitsched.apis.karmada.renewal import ask_anew
from gitsched.apis.world import Edit
from gitsched.model.document import Body, Document, member
from gitsched.model.explanation import Change
from gitsched.model.finding import Pointer
from gitsched.model.labels import Requirement
from gitsched.model.request import Affinity, Group, Request, Weight
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE
from gitsched.schedule import pipeline
from gitsched.schedule.filters import rejections
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.room import PODS, Demand, Room, estimate

if TYPE_CHECKING:  # the session calls this module
    from gitsched.apis.karmada.session import KarmadaSession, Step

_EDITED = "gitsched.io/edited"
_END_OF = {
    "evicted": "its eviction from there were over",
    "ill": "a report said that it is well there",
    "intolerant": "its toleration of the taint there had not run out",
}
"""What ends each kind of exile."""


def propose(session: KarmadaSession, template: Document, cluster: str) -> Edit | None:
    """The next change that would bring a workload nearer to a cluster; None where nobody knows one."""
    previous = session.world.previous.get(names.binding_key(template.key))
    policy, _ = session.governing(template, previous)
    if policy is None or cluster not in session.fleet.index:
        return None
    steps = session.steps(template, policy, session.demand(template), previous, session.relations.attachment(template))
    step = next((s for s in reversed(steps) if s.decision is not None), steps[-1])
    return _Advice(session, template, policy, step, cluster).find()


class _Advice:
    """One question: a workload, and a cluster that it does not go to."""

    def __init__(self, session: KarmadaSession, template: Document, policy: Policy, step: Step, cluster: str) -> None:
        self.session, self.template, self.policy, self.step, self.cluster = session, template, policy, step, cluster
        self.fleet, self.request = session.fleet, step.request
        self.index = session.fleet.index[cluster]
        self.candidate = session.fleet.candidates[self.index]
        documents = session.world.documents.get((names.CLUSTER_GROUP, names.CLUSTER), ())
        self.document = next((d for d in documents if d.key.name == cluster), None)
        self.placement: Body = policy.spec.get("placement") or {}

    def find(self) -> Edit | None:
        candidate, document = self.candidate, self.document
        if candidate.frozen or document is None:
            return self._say("its document were mended")
        if candidate.leaving:
            return undelete(document)
        used = self._used()
        group = self._group(used)
        refusal = next((r.filter.name for r in rejections(self.request, group, self.fleet) if r.mask >> self.index & 1), "")
        match refusal:
            case "ClusterAffinity":
                return self._join(group)
            case "TaintToleration":
                return self._tolerate()
            case "APIEnablement":
                return self._serve()
            case "SpreadConstraint":
                return self._stand()
            case "ClusterEviction":
                rule = find_rule(refusal, candidate, self.request, group, self.policy, document)
                exile = self.session.failover.find_exile(
                    self.template, self.policy, self.step.memory, self.cluster, self.step.moment
                )
                document = self.policy.document if rule and rule.origin == self.policy.document.origin else document
                return Edit(change(_END_OF[exile.why if exile else "evicted"], document, rule.pointer if rule else ()))
        if group != used and self.request.groups.index(group) > self.request.groups.index(used):
            return self._reach(group)
        if self.step.decision is None and self.policy.placement.divided:
            return self._rebalance()
        return self._weigh(group) or self._widen(group) or self._enlarge(group)

    def _used(self) -> Group:
        """The group that was used, else the first that was tried."""
        named = self.step.decision.group if self.step.decision else self.step.memory.observed
        return next((group for group in self.request.groups if group.name == named), self.request.groups[self.request.start])

    def _group(self, used: Group) -> Group:
        """The group to get in by: the used one if the cluster is of it, else another one that it is of, else the used one."""
        groups = (used, *self.request.groups)
        return next((g for g in groups if g.affinity is None or self.fleet.matching(g.affinity) >> self.index & 1), used)

    def _join(self, group: Group) -> Edit | None:
        affinity = group.affinity
        if affinity is None or affinity.invalid:
            return None
        term: Pointer = ("clusterAffinities", self.request.groups.index(group)) if group.name else ("clusterAffinity",)
        refusing = refusing_member(affinity, self.candidate)
        written = look_at(self.placement, (*term, refusing))
        match refusing:
            case "clusterNames":
                return self._on_placement("clusterNames named it", (*term, refusing), [*(written or ()), self.cluster])
            case "exclude":
                rest = [name for name in written or () if name != self.cluster]
                return self._on_placement("exclude did not name it", (*term, refusing), rest)
            case "labelSelector":
                asked = affinity.labels.requirements if affinity.labels else ()
                return label(self.document, self.candidate.labels, asked) if self.document else None
        return self._move(affinity)

    def _move(self, affinity: Affinity) -> Edit | None:
        """The provider, region or zone that a selector asks for."""
        wanted = next((r for r in affinity.fields if not _satisfies(self.candidate.fields.get(r.key, ()), r)), None)
        if wanted is None:
            return None
        if wanted.operator not in ("In", "Exists"):
            return self._say(f"its {wanted.key} were not {', '.join(self.candidate.fields.get(wanted.key, ()))}")
        return self._set_field(wanted.key, wanted.values[0] if wanted.values else _some_value(self.fleet, wanted.key))

    def _stand(self) -> Edit | None:
        missing = next((field for field in self.request.fields if not self.candidate.fields.get(field)), None)
        return self._set_field(missing, _some_value(self.fleet, missing)) if missing else None

    def _set_field(self, field: str, value: str) -> Edit | None:
        spec = (self.document.body.get("spec") or {}) if self.document else {}
        changed = {"zones": [value]} if field == "zone" else {field: value}
        return self._on_cluster(f"its {field} were {value}", ("spec", *changed), {"spec": {**spec, **changed}})

    def _tolerate(self) -> Edit | None:
        tolerations = self.request.tolerations
        harmful = (t for t in self.candidate.taints if t.effect in (NO_SCHEDULE, NO_EXECUTE))
        taint = next((t for t in harmful if not any(known.tolerates(t) for known in tolerations)), None)
        if taint is None:
            return None
        tolerated = [*(self.placement.get("clusterTolerations") or ()), tolerate(taint)]
        return self._on_placement(f"its policy tolerated {taint}", ("clusterTolerations",), tolerated)

    def _serve(self) -> Edit | None:
        if self.request.feature is None or self.document is None:
            return None
        version, kind = self.request.feature
        status = self.document.body.get("status") or {}
        entry = {"groupVersion": version, "resources": [{"kind": kind, "name": f"{kind.lower()}s"}]}
        served = {"status": {**status, "apiEnablements": [*(status.get("apiEnablements") or ()), entry]}}
        return self._on_cluster(f"it served {kind} of {version}", ("status", "apiEnablements"), served)

    def _reach(self, group: Group) -> Edit:
        """A group comes into its own when those before it are no choice."""
        number = self.request.groups.index(group)
        rest = (self.placement.get("clusterAffinities") or [])[number:]
        before = ", ".join(earlier.name for earlier in self.request.groups[:number])
        return self._on_placement(
            f"no cluster of {before} could take it, so that it went to {group.name}", ("clusterAffinities",), rest
        )

    def _rebalance(self) -> Edit:
        """Replicas that are placed stay where they are until somebody asks."""
        return Edit(Change("a WorkloadRebalancer had it placed anew"), ask_anew((self.template,)))

    def _weigh(self, group: Group) -> Edit | None:
        """A static weight that is enough for a replica."""
        if self.request.division != "static" or not self.request.replicas:
            return None
        preference = member(self.placement, "replicaScheduling", "weightPreference") or {}
        written = preference.get("staticWeightList") or ()
        pointer: Pointer = ("replicaScheduling", "weightPreference")

        top = max((rule.weight for rule in self.request.weights), default=1)
        for weight in sorted({1, top, top * self.request.replicas}):
            weights = (*self.request.weights, Weight(Affinity((self.cluster,)), weight))
            if self._gets_in(self.request._replace(weights=weights), group, self.fleet):
                entry = {"targetCluster": {"clusterNames": [self.cluster]}, "weight": weight}
                value = {**preference, "staticWeightList": [*written, entry]}
                return self._on_placement(f"its static weight there were {weight}", pointer, value)
        return None

    def _widen(self, group: Group) -> Edit | None:
        """A spread constraint that leaves out what is not among the best."""
        for number, spread in enumerate(self.request.spreads):
            for maximum in range(spread.maximum + 1, len(self.fleet) + 1) if spread.maximum else ():
                spreads = tuple(s._replace(maximum=maximum) if i == number else s for i, s in enumerate(self.request.spreads))
                if self._gets_in(self.request._replace(spreads=spreads), group, self.fleet):
                    return self._on_spread(spread.field, maximum)
        return None

    def _on_spread(self, field: str, maximum: int) -> Edit:
        constraints = self.placement.get("spreadConstraints") or []
        number = next((i for i, entry in enumerate(constraints) if (entry.get("spreadByField") or "cluster") == field), 0)
        changed = [{**entry, "maxGroups": maximum} if i == number else entry for i, entry in enumerate(constraints)]
        pointer: Pointer = ("spreadConstraints", number, "maxGroups")
        text = f"maxGroups of {field}s were {maximum} instead of {constraints[number].get('maxGroups')}"
        return self._on_placement(text, ("spreadConstraints",), changed, pointer)

    def _enlarge(self, group: Group) -> Edit | None:
        """The least room, in replicas, with which the scheduler would choose it."""
        if self.request.division not in ("dynamic", "aggregated") or not self.request.replicas or self.candidate.room is None:
            return None
        demand: Demand = self.request.demand or ()
        now = estimate(self.candidate.room, self.request.demand)

        def fits(replicas: int) -> bool:
            candidates = [c._replace(room=_room(replicas, demand)) if c is self.candidate else c for c in self.fleet.candidates]
            return self._gets_in(self.request, group, Fleet(candidates))

        need = _least(fits, now + 1, 2 * now + 2 * self.request.replicas + sum(t.replicas for t in self.request.held))
        if need is None:
            return None
        amounts = {name: write_amount(name, amount) for name, amount in _room(need, demand).free.items()}
        status = (self.document.body.get("status") or {}) if self.document else {}
        kept = {name: value for name, value in status.items() if name != "resourceSummary"}
        told = ", ".join(f"{text} {name}" for name, text in amounts.items() if name != PODS)
        text = f"it had room for {need} replica{'s' if need != 1 else ''} instead of {now}" + (f", {told} free" if told else "")
        summary = {"status": {**kept, "resourceSummary": {"allocatable": amounts}}}
        return self._on_cluster(text, ("status", "resourceSummary"), summary)

    def _gets_in(self, request: Request, group: Group, fleet: Fleet) -> bool:
        decision = pipeline.attempt(request, group, fleet)
        return decision.outcome == "scheduled" and any(target.name == self.cluster for target in decision.targets)

    def _say(self, text: str) -> Edit:
        return Edit(change(text, self.document))

    def _on_cluster(self, text: str, pointer: Pointer, members: Body) -> Edit | None:
        document = self.document
        if document is None:
            return None
        return Edit(change(text, document, pointer), document._replace(body={**document.body, **members}))

    def _on_placement(self, text: str, path: Pointer, value: Any, pointer: Pointer | None = None) -> Edit:
        document, template = self.policy.document, self.template
        if is_waiting(self.policy, template, self.session.world.previous.get(names.binding_key(template.key))):
            return edit("it were edited, for its policy is Lazy", template, ("metadata", "annotations", _EDITED), "true", ())
        body = {**document.body, "spec": {**self.policy.spec, "placement": put_at(self.placement, path, value)}}
        return Edit(change(text, document, ("spec", "placement", *(pointer or path))), document._replace(body=body))


def _satisfies(values: Sequence[str], requirement: Requirement) -> bool:
    """Whether a candidate's values in a field are what is asked for."""
    known: Sequence[str | None] = values or (None,)
    return any(requirement.matches({} if value is None else {requirement.key: value}) for value in known)


def _some_value(fleet: Fleet, field: str) -> str:
    """A value that another cluster has, for there has to be one."""
    return min(fleet.values(field), default="any")


def _room(replicas: int, demand: Demand) -> Room:
    return Room({PODS: replicas} | {name: amount * replicas for name, amount in demand if name != PODS})


def _least(fits: Callable[[int], bool], low: int, high: int) -> int | None:
    """The least number that is enough, by halving; None where not even the highest is."""
    if not fits(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low
