"""Karmada over one commit: from a workload to its binding.

A workload goes through, in this order: the policy that governs it, the end of graceful evictions, eviction by taints, the triggers, the
scheduler, the binding. When a deadline lies between the source's moment and now, the same steps are taken again at that deadline, so
that a late run writes what a punctual one would have written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.karmada import failback, holding, names
from gitsched.apis.karmada.activation import activate
from gitsched.apis.karmada.attachment import Attachment, place_attached, was_placed
from gitsched.apis.karmada.binding import Memory, Result, recall, write_binding
from gitsched.apis.karmada.failover import Failover
from gitsched.apis.karmada.fleet import read_clusters
from gitsched.apis.karmada.overrides import read_overrides
from gitsched.apis.karmada.places import find_places, identify
from gitsched.apis.karmada.policy import Policy, PolicyIndex, is_skipped, parse_policy
from gitsched.apis.karmada.preemption import preempt
from gitsched.apis.karmada.preservation import hand_over
from gitsched.apis.karmada.rebalancing import Rebalancing
from gitsched.apis.karmada.recollection import recollect
from gitsched.apis.karmada.relations import Relations
from gitsched.apis.karmada.reminding import Stock, remind
from gitsched.apis.karmada.renewal import ask_anew, tell_remedy
from gitsched.apis.karmada.settling import settle
from gitsched.apis.karmada.suspension import hold
from gitsched.apis.karmada.taint_policy import read_taint_policies
from gitsched.apis.karmada.triggers import is_rebalance_pending, why_schedule
from gitsched.apis.karmada.workload import Demand, Shape, read_demand
from gitsched.apis.world import Edit, World
from gitsched.model.cluster import ClusterFacts
from gitsched.model.decision import Decision, Verdict
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding, locate
from gitsched.model.outcome import Outcome
from gitsched.model.request import Request, Target
from gitsched.schedule import pipeline
from gitsched.schedule.room import Room

_DEADLINES = 64
"""Deadlines that one run makes up for at most, for one workload."""


class Step(NamedTuple):
    """One pass over a workload: `before` it, `memory` after evictions, what the scheduler would be asked, `why` it was (None: no need),
    what was decided (None: the scheduler was not asked) and what came of it."""

    moment: datetime
    before: Memory
    memory: Memory
    request: Request
    why: str | None
    decision: Decision | None
    outcome: Outcome

    @property
    def gave_up(self) -> bool:
        """Whether the scheduler took the workload away from a cluster."""
        if self.decision is None or self.decision.outcome not in ("scheduled", "no-fit"):
            return False
        return not {target.name for target in self.memory.clusters} <= {target.name for target in self.decision.targets}


class KarmadaSession:
    """See `gitsched.apis.world.Session`."""

    name = "karmada"

    def __init__(self, world: World) -> None:
        settings = world.config.karmada
        self.world = recollect(world)
        self.settings = settings
        self._taint_policies = read_taint_policies(
            world.documents.get((names.POLICY_GROUP, names.TAINT_POLICY), ()),
            (key for key in world.broken if (key.group, key.kind) == (names.POLICY_GROUP, names.TAINT_POLICY)),
            world.previous,
            world.at,
        )
        self._clusters = read_clusters(
            world.documents.get((names.CLUSTER_GROUP, names.CLUSTER), ()),
            world.broken,
            world.previous,
            settings.missing_facts == "assume",
            world.at,
            self._taint_policies,
        )
        self.fleet = self._clusters.fleet
        self.added = self._clusters.added
        self.leaving = frozenset(candidate.name for candidate in self.fleet.candidates if candidate.leaving)
        kinds = (names.BINDING, names.CLUSTER_BINDING)
        self.failover = Failover(
            self.fleet, settings, (document for kind in kinds for document in world.documents.get((names.WORK_GROUP, kind), ()))
        )
        kinds = (names.POLICY, names.CLUSTER_POLICY)
        self.policies = PolicyIndex(
            parse_policy(document) for kind in kinds for document in world.documents.get((names.POLICY_GROUP, kind), ())
        )
        self.overrides = read_overrides(world, self.fleet)
        self.declared = {
            (w.api_version, w.kind): Shape(_path(w.replicas_path), _path(w.pod_template_path)) for w in world.config.workloads
        }
        stock = Stock(world.templates, (*world.documents, *((key.group, key.kind) for key in world.broken)))
        self._reminders = remind(self.policies.policies.values(), settings.preemption, self.fleet.names, stock)
        self.relations = Relations(self)
        self._rebalance()

    def renew(self, world: World) -> bool:
        self.world = recollect(world)
        before = self.rebalancing
        self._rebalance()
        # Whether a workload has a binding is asked of a new session: this one has yet to learn what the changed workloads need.
        same = (self.rebalancing.records, self.rebalancing.findings) == (before.records, before.findings)
        return same and not self.rebalancing.pending

    @property
    def learned(self) -> int:
        return self.relations.learned

    def further(self, dirty: frozenset[Key]) -> frozenset[Key]:
        return self.relations.further(dirty)

    def basis(self, template: Document) -> tuple[object, ...]:
        return self.relations.basis(template)

    def _rebalance(self) -> None:
        self.rebalancing = Rebalancing(self.world)
        self.relations.forget()
        self.rebalancing.settle(self.world, self.place)
        self.findings: tuple[Finding, ...] = (*self._clusters.findings, *self._reminders, *self.rebalancing.findings)
        self.wakeup: datetime | None = self.rebalancing.wakeup
        self.time: datetime | None = self.rebalancing.time

    def own(self) -> Iterable[tuple[Document, Outcome]]:
        return ()

    def clusters(self) -> Mapping[str, ClusterFacts]:
        return self._clusters.facts

    def documents(self) -> Iterable[tuple[Key, Body]]:
        return (*self._clusters.records, *self._taint_policies.records, *self.rebalancing.records)

    def selects(self, template: Document) -> bool:
        return self.governing(template)[0] is not None

    def place(self, template: Document) -> Outcome | None:
        return self.relations.place(template)

    def decide(self, template: Document) -> Outcome | None:
        """Decide one workload, its owners first."""
        previous = self.world.previous.get(names.binding_key(template.key))
        attachment = self.relations.attachment(template)
        outcome = self._decide(template, previous, attachment)
        if outcome is None or not outcome.documents:
            return outcome
        outcome = outcome._replace(placed=hold(outcome.placed, outcome.documents[0][1]))
        return self.relations.settle(template, outcome) if attachment is not None else outcome

    def _decide(self, template: Document, previous: Body | None, attachment: Attachment | None) -> Outcome | None:
        policy, claim = self.governing(template, previous)
        if policy is None:
            if claim is not None and claim in self.world.broken:
                return self.keep(template, f"its policy {claim} is broken")
            return place_attached(self, template, attachment, previous) if attachment else None
        missing = holding.find_missing(self, template, policy)
        if missing is not None:
            return holding.wait(self, template, policy, missing)
        steps = self.steps(template, policy, self.demand(template), previous, attachment)
        kept = holding.hold_back(self, template, (step.outcome for step in steps), previous)
        cause = next((found for step in reversed(steps) if (found := self._find_cause(template, step))), "")
        return kept or steps[-1].outcome._replace(before=was_placed(steps[0].before.clusters, previous), cause=cause)

    def _find_cause(self, template: Document, step: Step) -> str:
        """What made a pass forget the assignment: a request to rebalance, or a return to an earlier group."""
        if step.decision is None or not step.request.fresh:
            return ""
        asked = is_rebalance_pending(step.memory)
        return self.rebalancing.tell(names.binding_key(template.key), step.memory) if asked else step.why or ""

    def steps(
        self, template: Document, policy: Policy, demand: Demand, previous: Body | None, attachment: Attachment | None
    ) -> list[Step]:
        """The pass at the source's moment, and one at each deadline between it and now.

        A cluster that holds the workload is let in where another would not be. So where one was given up, the next pass may choose
        otherwise; upstream makes it at once, since the binding changed, and here the next run would move the workload for no reason.
        """
        steps = [self._step(template, policy, demand, previous, attachment, self.world.at)]
        for _ in range(_DEADLINES):
            last = steps[-1]
            if last.gave_up and not self.world.once:
                again = self._step(template, policy, demand, last.outcome.documents[0][1], attachment, last.moment)
                if again.outcome.documents != last.outcome.documents:
                    steps.append(again)
                    continue
            if last.outcome.wakeup is None or last.outcome.wakeup > self.world.now:
                break
            steps.append(self._step(template, policy, demand, last.outcome.documents[0][1], attachment, last.outcome.wakeup))
        return steps

    def keep(self, template: Document, why: str) -> Outcome | None:
        return holding.keep(self, template, why)

    def candidates(self, template: Document) -> list[Verdict]:
        previous = self.world.previous.get(names.binding_key(template.key))
        policy, _ = self.governing(template, previous)
        if policy is None:
            return []
        request = self.request(template, policy, self.demand(template), self._recall(template, previous), self.world.now)
        decision = pipeline.schedule(request, self.fleet)
        group = next((g for g in request.groups if g.name == decision.group), request.groups[request.start])
        return pipeline.explain(request, group, self.fleet)

    def verdicts(self, _kind: str, _name: str, _namespace: str, /) -> list[Verdict] | None:
        return None

    def explain(self, template: Document) -> Explanation | None:
        from gitsched.apis.karmada.explanation import explain  # only the verb explain needs it

        return explain(self, template)

    def room(self) -> Mapping[str, Room | None]:
        from gitsched.apis.karmada.foresight import list_room  # only simulations need it

        return list_room(self)

    def ask(self, template: Document) -> tuple[tuple[str, int], ...]:
        from gitsched.apis.karmada.foresight import read_ask

        return read_ask(self, template)

    def reach(self, template: Document) -> frozenset[str] | None:
        from gitsched.apis.karmada.foresight import find_reach

        return find_reach(self, template)

    def ask_anew(self, templates: Iterable[Document]) -> Document:
        return ask_anew(templates)

    def tell_remedy(self, template: Document, stays: Outcome, anew: Outcome | None, wanted: Outcome) -> str:
        return tell_remedy(self, template, stays, anew, wanted)

    def propose(self, template: Document, cluster: str) -> Edit | None:
        from gitsched.apis.karmada.advice import propose  # only the verb explain needs it

        return propose(self, template, cluster)

    def demand(self, template: Document) -> Demand:
        """What a workload asks for."""
        return read_demand(template, self.declared)

    def governing(self, template: Document, previous: Body | None = None) -> tuple[Policy | None, Key | None]:
        """The policy of a workload, and the one that claimed it before. A claim holds as long as its policy selects the workload."""
        annotations = text_map(member(previous or template.body, "metadata", "annotations"))
        claim = names.claimed_policy(annotations)
        if claim is not None:
            claim = _in_namespace(claim, template.key.namespace)
            policy = self.policies.policies.get(claim)
            if policy is not None and not is_skipped(template.key) and self.policies.selects(policy, template):
                if self.settings.preemption:
                    policy = preempt(policy, self.policies.naming(template))
                return activate(policy, template, previous), claim
            if policy is None and claim in self.world.broken:
                return None, claim
        matched = self.policies.match(template)
        return activate(matched, template, previous) if matched else None, claim

    def request(self, template: Document, policy: Policy, demand: Demand, memory: Memory, moment: datetime) -> Request:
        """What the scheduler is asked for a binding."""
        placement = policy.placement
        pending = is_rebalance_pending(memory)
        return Request(
            identity=identify(template),
            replicas=demand.replicas or 0,
            division=placement.division if demand.workload else "everywhere",
            groups=placement.groups,
            divides=placement.divided,
            demand=demand.request,
            start=0 if pending else placement.start(memory.observed),
            tolerations=placement.tolerations,
            feature=(template.api_version, template.key.kind),
            fields=placement.fields,
            evicted=(
                *(str(task.get("fromCluster")) for task in memory.tasks),
                *self.failover.doomed(template, policy, memory, moment),
            ),
            held=memory.clusters,
            weights=placement.weights,
            spreads=() if placement.division == "static" else placement.spreads,
            fresh=pending,
            keep_empty=self.settings.enable_empty_workload_propagation,
        )

    def _step(
        self,
        template: Document,
        policy: Policy,
        demand: Demand,
        previous: Body | None,
        attachment: Attachment | None,
        moment: datetime,
    ) -> Step:
        before = self._recall(template, previous)._replace(required_by=attachment.required_by if attachment else None)
        memory = self.failover.evict(template, policy, self.failover.sweep(template, before, moment), moment)
        why = why_schedule(policy, demand, memory, memory.clusters, self.leaving)
        request, settings = self.request(template, policy, demand, memory, moment), self.settings.failback
        if self.ignores(policy, memory):
            turn = failback.Turn(request, why, None)
        else:
            turn = failback.take_turn(settings, request, why, failback.read_clocks(memory.annotations), self.fleet, moment)
        if settings.mode != "Never" and self.failover.purge_mode(policy) != "Directly":
            left = failback.leave(turn, memory.observed, memory.clusters, self.fleet.index, moment)
            memory = memory._replace(tasks=(*memory.tasks, *left))
        result = settle(turn.decision, policy, before, memory, moment)
        result = result._replace(clocks=self._run_clocks(template, policy, demand, memory, result, moment))
        result = result._replace(notes=self.failover.note(template, policy, before, result, moment))
        body = write_binding(template, policy, demand, memory, result)
        self.relations.note(body, template, policy, attachment)
        outcome = self._outcome(template, policy, demand, result, body, moment, attachment)
        return Step(moment, before, memory, *turn, outcome)

    def _recall(self, template: Document, previous: Body | None) -> Memory:
        return self.rebalancing.ask(names.binding_key(template.key), recall(previous))

    def _run_clocks(
        self, template: Document, policy: Policy, demand: Demand, memory: Memory, result: Result, moment: datetime
    ) -> failback.Clocks:
        """The clocks of earlier groups as the next run will find them: asked of the binding as it is after this pass."""
        if self.settings.failback.mode != "AfterStabilization" or self.ignores(policy, memory):
            return ()
        after = memory._replace(clusters=result.clusters, observed=result.observed, scheduled=result.scheduled)
        request = self.request(template, policy, demand, after, moment)
        return failback.run_clocks(self.settings.failback, request, failback.read_clocks(memory.annotations), self.fleet, moment)

    def ignores(self, policy: Policy, memory: Memory) -> bool:
        """Whether the binding is not for this scheduler: suspended, or another one's."""
        scheduler = policy.spec.get("schedulerName") or names.DEFAULT_SCHEDULER
        return memory.suspended or scheduler != names.DEFAULT_SCHEDULER

    def _outcome(
        self,
        template: Document,
        policy: Policy,
        demand: Demand,
        result: Result,
        body: Body,
        moment: datetime,
        attachment: Attachment | None,
    ) -> Outcome:
        divided = demand.workload and policy.placement.divided
        placed, findings = find_places(self, template, result.clusters, result.tasks, demand, divided, attachment)
        placed = hand_over(template, placed, result.notes)
        if result.reason not in ("Success", ""):
            message = f"{template.key} could not be scheduled: {result.message}{_tell_missing(demand, divided, result.clusters)}"
            findings = (*findings, Finding("warning", "unschedulable", message, locate(template), template.key.resource))
        if demand.opaque and policy.placement.divided:
            message = f"{template.key} has no number at {demand.path}: its replicas are not divided"
            findings = (*findings, Finding("warning", "opaque-replicas", message, locate(template), template.key.resource))
        findings = (*findings, *self.failover.complain(template, policy, result.tasks))
        group = f" in group {result.observed}" if result.observed else ""
        return Outcome(
            key=template.key,
            api=self.name,
            state="placed" if result.clusters or (attachment and attachment.clusters) else "pending",
            policy=policy.key.title,
            group=result.observed,
            placed=placed,
            replicas=demand.replicas,
            documents=((names.binding_key(template.key), body),),
            reason=f"{policy.key.title}{group}" + (f", {attachment.reason}" if attachment else ""),
            time=moment,
            wakeup=self._wakeup(template, policy, result, moment),
            findings=findings,
        )

    def _wakeup(self, template: Document, policy: Policy, result: Result, moment: datetime) -> datetime | None:
        """The next deadline; `moment` itself where one has passed already."""
        ends = (self.failover.wakeup(template, policy, result, moment), failback.end_of(self.settings.failback, result.clocks))
        return min((end for end in ends if end is not None), default=None)


def _tell_missing(demand: Demand, divided: bool, clusters: tuple[Target, ...]) -> str:
    """How many replicas are left without a place; of what is not divided all are, or none."""
    replicas = demand.replicas or 0
    missing = replicas - sum(target.replicas for target in clusters) if divided or not clusters else 0
    return f" ({missing} of {replicas} replicas have no place)" if missing > 0 else ""


def _path(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(".") if part)


def _in_namespace(claim: Key, namespace: str) -> Key:
    return claim._replace(namespace=claim.namespace or namespace) if claim.kind == names.POLICY else claim
