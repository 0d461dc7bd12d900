"""Why a workload is where it is: the session's own steps, told for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.activation import is_lazy
from gitsched.apis.karmada.arithmetic import tell_division, tell_room, tell_selection
from gitsched.apis.karmada.attachment import Attachment
from gitsched.apis.karmada.binding import Memory
from gitsched.apis.karmada.blame import find_rule
from gitsched.apis.karmada.eviction import FAILURE
from gitsched.apis.karmada.failback import read_clocks
from gitsched.apis.karmada.policy import Policy, Rule
from gitsched.apis.karmada.suspension import find_suspended
from gitsched.apis.karmada.triggers import REBALANCE, is_rebalance_pending
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.explanation import Attempt, Candidate, Explanation, Loser, Override, Share
from gitsched.model.finding import locate
from gitsched.model.outcome import Outcome
from gitsched.model.request import Group, Request
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE
from gitsched.model.time import format_time, later
from gitsched.schedule import pipeline
from gitsched.schedule.filters import feasible, rejections
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.select import select
from gitsched.schedule.survey import survey

if TYPE_CHECKING:  # the session calls this module
    from gitsched.apis.karmada.session import KarmadaSession, Step

_SELECTS = {3: "by name", 2: "by labels", 1: "by kind"}


def explain(session: KarmadaSession, template: Document) -> Explanation | None:
    """The whole way of a workload; None when no policy selects it and none claimed it."""
    previous = session.world.previous.get(names.binding_key(template.key))
    policy, claim = session.governing(template, previous)
    attachment = session.relations.attachment(template)
    start = Explanation(str(template.key), _place(template), attached=_tell_owners(session, attachment))
    if policy is None:
        return _explain_without_policy(session, template, claim, start)
    steps = session.steps(template, policy, session.demand(template), previous, attachment)
    step = next((s for s in reversed(steps) if s.decision is not None), steps[-1])
    outcome = session.place(template) or steps[-1].outcome
    request, group = step.request, _shown(step.request, step)
    selection, rule, division = _divide(session.fleet, request, group, step)
    rules = _best(session.policies.candidates(template))
    return start._replace(
        policy=policy.key.title,
        policy_reason=_why_policy(policy, claim, rules),
        losers=tuple(Loser(r.policy.key.title, _why_not(r, policy, claim, rules)) for r in rules if r.policy.key != policy.key),
        claim=_tell_claim(session, policy, claim),
        attempts=_attempts(request, session.fleet, step),
        candidates=tuple(_all_candidates(session, policy, request, group, step, _Exiles(session, template, policy, steps[-1]))),
        selection=tuple(selection),
        division=division,
        division_rule=tuple(rule),
        trigger=_tell_trigger(session, policy, step, outcome)
        + _tell_clocks(session, outcome)
        + _tell_tolerances(session, step.moment, outcome)
        + _tell_health(session, template, policy, outcome),
        result=_result(outcome),
        overrides=_overrides(session, template, outcome),
        findings=(*outcome.findings, *find_suspended([policy])),
    )


def _overrides(session: KarmadaSession, template: Document, outcome: Outcome) -> tuple[Override, ...]:
    return session.overrides.explain(template, sorted(place.cluster for place in outcome.placed))


def _tell_owners(session: KarmadaSession, attachment: Attachment | None) -> tuple[str, ...]:
    """Each workload that brings this one along, and where that puts it."""
    lines = []
    for owner in attachment.owners if attachment else ():
        clusters = ", ".join(str(cluster.get("name")) for cluster in member(owner.body, "spec", "clusters") or ())
        location = _place(session.world.templates.get(owner.key))
        lines.append(f"{owner.key}{f' ({location})' if location else ''}: {clusters or 'placed nowhere itself'}")
    return tuple(lines)


def _explain_without_policy(
    session: KarmadaSession, template: Document, claim: Key | None, start: Explanation
) -> Explanation | None:
    outcome = session.place(template)
    if outcome is not None and start.attached and not outcome.policy:
        told = "Not scheduled: it goes where the workloads go that need it."
        return start._replace(
            trigger=told, result=_result(outcome), overrides=_overrides(session, template, outcome), findings=outcome.findings
        )
    if claim is None:
        return None
    if outcome is None:
        return start._replace(claim=_ended(session, None, claim), trigger="Not scheduled: no policy selects it any more.")
    text = f"{claim.title} claimed it in an earlier run, but its document is broken now"
    trigger = "Not scheduled: the earlier decision is kept until the policy is repaired."
    return start._replace(claim=text, trigger=trigger, result=_result(outcome), findings=outcome.findings)


def _place(document: Document | None) -> str:
    location = locate(document) if document else None
    return f"{location.path}:{location.line}" if location else ""


def _best(rules: list[Rule]) -> list[Rule]:
    """The most specific rule of each policy, the winner of an open competition first."""
    best: dict[Key, Rule] = {}
    for rule in rules:
        best.setdefault(rule.policy.key, rule)
    return list(best.values())


def _why_policy(policy: Policy, claim: Key | None, rules: list[Rule]) -> str:
    mine = next((rule for rule in rules if rule.policy.key == policy.key), None)
    selects = (
        f"it selects the workload {_SELECTS[mine.implicit]} with priority {policy.priority}" if mine else "it selects the workload"
    )
    if claim == policy.key:
        return f"{selects}, and claimed it in an earlier run"
    others = [rule for rule in rules if rule.policy.key != policy.key]
    if not others:
        return f"{selects}; no other policy does"
    return f"{selects}; {_advantage(policy, mine, others[0])}" if mine else selects


def _advantage(policy: Policy, mine: Rule, other: Rule) -> str:
    """By what a policy comes before the next best one."""
    if policy.namespaced and not other.policy.namespaced:
        return "a PropagationPolicy comes before every ClusterPropagationPolicy"
    if policy.priority != other.policy.priority:
        return f"the next priority is {other.policy.priority}"
    if mine.implicit != other.implicit:
        return f"with the same priority, {_SELECTS[mine.implicit]} is more specific than {_SELECTS[other.implicit]}"
    return "with the same priority and specificity, its name comes first"


def _why_not(rule: Rule, policy: Policy, claim: Key | None, rules: list[Rule]) -> str:
    if claim == policy.key:
        return f"{policy.key.title} claimed the workload earlier, and a claim is kept whatever the priorities"
    winner = next(r for r in rules if r.policy.key == policy.key)
    if policy.namespaced and not rule.policy.namespaced:
        return "a ClusterPropagationPolicy comes after every PropagationPolicy of the workload's namespace"
    if rule.policy.priority != policy.priority:
        return f"its priority {rule.policy.priority} is lower than {policy.priority}"
    if rule.implicit != winner.implicit:
        return f"it selects the workload {_SELECTS[rule.implicit]}, which is less specific than {_SELECTS[winner.implicit]}"
    return f"its name comes after {policy.key.name}, with the same priority and specificity"


def _tell_claim(session: KarmadaSession, policy: Policy, claim: Key | None) -> str:
    if claim is None:
        return ""
    lazy = ""
    if is_lazy(policy):
        changed = policy.applied != session.policies.policies[policy.key].applied
        waits = "its last edit waits until then" if changed else "nothing waits now"
        lazy = f"; it is Lazy, so that an edit of it counts only when the workload is edited: {waits}"
    if claim == policy.key:
        return f"{claim.title} claimed it in an earlier run and keeps it as long as it selects it{lazy}"
    return f"{_ended(session, policy, claim)}{lazy}"


def _ended(session: KarmadaSession, policy: Policy | None, claim: Key) -> str:
    if policy is not None and session.settings.preemption and policy.spec.get("preemption") == "Always":
        return f"{policy.key.title} preempts {claim.title}, which had claimed it"
    why = "it does not select the workload any more" if claim in session.policies.policies else "that policy is gone"
    return f"the claim of {claim.title} has ended: {why}"


def _shown(request: Request, step: Step) -> Group:
    """The group whose candidates are worth seeing: the one that was used, else the first that failed."""
    named = step.decision.group if step.decision else step.memory.observed
    return next((group for group in request.groups if group.name == named), request.groups[request.start])


def _attempts(request: Request, fleet: Fleet, step: Step) -> tuple[Attempt, ...]:
    if step.decision is None:
        used = request.groups.index(_shown(request, step))
        skipped = [_skipped(request, group, step, fleet) for group in request.groups[:used]]
        kept = Attempt(request.groups[used].name, "kept" if step.memory.clusters else "not tried")
        return (*skipped, kept, *(Attempt(group.name, "not tried") for group in request.groups[used + 1 :]))
    attempts = [_skipped(request, group, step, fleet) for group in request.groups[: request.start]]
    done = False
    for group in request.groups[request.start :]:
        if done:
            attempts.append(Attempt(group.name, "not tried", "an earlier group was taken"))
            continue
        decision = pipeline.with_reasons(pipeline.attempt(request, group, fleet), group, request, fleet)
        attempts.append(Attempt(group.name, decision.outcome, decision.message))
        done = decision.outcome == "scheduled"
    return tuple(attempts)


def _skipped(request: Request, group: Group, step: Step, fleet: Fleet) -> Attempt:
    """A group that comes before the one in use: what it would be worth now says why it was left, or that it could be had again."""
    decision = pipeline.with_reasons(pipeline.attempt(request, group, fleet), group, request, fleet)
    why = f": {decision.message}" if decision.message else ""
    used = _shown(request, step).name if step.decision is None else request.groups[request.start].name
    resumes = (
        f"scheduling resumes at {used}, which was used last" if used == step.memory.observed else "not fit for long enough yet"
    )
    return Attempt(group.name, "not tried", f"{resumes}; tried now it would be {decision.outcome}{why}")


def _all_candidates(
    session: KarmadaSession, policy: Policy, request: Request, shown: Group, step: Step, exiles: _Exiles
) -> Iterator[Candidate]:
    """Every cluster in the group that is shown; in the groups before it, and in all where all failed, those that the group is for."""
    failed = step.decision is not None and step.decision.outcome != "scheduled"
    before = True
    for group in request.groups:
        if group == shown:
            before = False
            yield from _candidates(session, policy, request, group, exiles)
        elif before or failed:
            out = {
                i
                for r in rejections(request, group, session.fleet)
                if r.filter.name == "ClusterAffinity"
                for i in session.fleet.members(r.mask)
            }
            yield from (c for i, c in enumerate(_candidates(session, policy, request, group, exiles)) if i not in out)


def _candidates(session: KarmadaSession, policy: Policy, request: Request, group: Group, exiles: _Exiles) -> list[Candidate]:
    fleet = session.fleet
    documents = {d.key.name: d for d in session.world.documents.get((names.CLUSTER_GROUP, names.CLUSTER), ())}
    refused = {
        index: rejection.filter.name for rejection in rejections(request, group, fleet) for index in fleet.members(rejection.mask)
    }
    candidates = []
    for index, verdict in enumerate(pipeline.explain(request, group, fleet)):
        if verdict.eligible:
            room = tell_room(request, fleet.candidates[index].room)
            candidates.append(Candidate(verdict, group=group.name, room=room))
            continue
        name = refused.get(index, "")
        more = _tell_origin(session, request, verdict.name) if name == "TaintToleration" else ""
        said = verdict.reason
        if name == "ClusterEviction":
            said = exiles.tell(verdict.name) or said
        reason = f"{name}: {said}{more}" if name else said
        rule = find_rule(name, fleet.candidates[index], request, group, policy, documents.get(verdict.name))
        where = f"{rule.origin.path}:{rule.origin.line}" if rule else ""
        candidates.append(Candidate(verdict._replace(reason=reason), where, group.name, rule))
    return candidates


class _Exiles:
    """The clusters that one workload is kept out of because of an eviction, as its last pass left them."""

    def __init__(self, session: KarmadaSession, template: Document, policy: Policy, last: Step) -> None:
        self._failover, self._asked, self._moment = session.failover, (template, policy, last.memory), last.moment

    def tell(self, cluster: str) -> str:
        exile = self._failover.find_exile(*self._asked, cluster, self._moment)
        match exile:
            case None:
                return ""
            case ("evicted", end):
                until = f"until {format_time(end)}" if end is not None else "until a person ends that"
                return f"cluster(s) is in the process of eviction {until}"
            case ("ill", _):
                return "the workload was unhealthy there for too long, and no report says that it is well"
        return "the workload's toleration of a NoExecute taint has run out there"


def _tell_origin(session: KarmadaSession, request: Request, cluster: str) -> str:
    """Who added the taint that keeps a workload away, where the cluster's document does not have it."""
    harmful = (NO_SCHEDULE, NO_EXECUTE)
    taints = session.fleet.candidates[session.fleet.index[cluster]].taints
    first = next(t for t in taints if t.effect in harmful and not any(other.tolerates(t) for other in request.tolerations))
    return next((f" ({entry.by})" for entry in session.added.get(cluster, ()) if entry.taint == first), "")


def _divide(fleet: Fleet, request: Request, group: Group, step: Step) -> tuple[list[str], list[str], tuple[Share, ...]]:
    """What was selected, by which rule replicas were divided, and who got how many; nothing where the scheduler was not asked or found no
    place."""
    if step.decision is None or step.decision.outcome != "scheduled":
        return [], [], ()
    found = survey(request, group, fleet, feasible(request, group, fleet))
    chosen = select(request, fleet, found)
    seats = {target.name: target.replicas for target in step.decision.targets}
    return tell_selection(request, fleet, found, chosen), *tell_division(request, fleet, found, chosen, seats)


def _tell_trigger(session: KarmadaSession, policy: Policy, step: Step, outcome: Outcome) -> str:
    if outcome.state == "stale" or not outcome.documents:
        return f"Not carried out: {outcome.reason}."
    gone = [target.name for target in step.before.clusters if target not in step.memory.clusters]
    evicted = _tell_evictions(gone, step.memory.tasks)
    why = step.why
    if why is not None and is_rebalance_pending(step.memory):
        request = session.rebalancing.tell(names.binding_key(outcome.key), step.memory)
        why = request if why == REBALANCE else f"{why}, and from scratch because {request}"
    return f"{_why(session, policy, step.memory, why)}{evicted}"


def _tell_evictions(gone: list[str], tasks: tuple[Body, ...]) -> str:
    reasons = {task.get("fromCluster"): task.get("reason") for task in tasks}
    failed = [name for name in gone if reasons.get(name) == FAILURE]
    tainted = [name for name in gone if name not in failed]
    text = f" Evicted by a NoExecute taint: {', '.join(tainted)}." if tainted else ""
    return f"{text} Evicted because it was unhealthy for too long: {', '.join(failed)}." if failed else text


def _tell_health(session: KarmadaSession, template: Document, policy: Policy, outcome: Outcome) -> str:
    """When the workload leaves a cluster because of its health."""
    if outcome.state == "stale" or not outcome.documents:
        return ""
    notes = text_map(member(outcome.documents[0][1], "metadata", "annotations"))
    timers = session.failover.timers(template, policy, notes, outcome.shares)
    return "".join(
        f" It is unhealthy in {name} since {format_time(since)}, and leaves it at {format_time(end)} unless it recovers."
        for name, since, end in timers
    )


def _tell_tolerances(session: KarmadaSession, moment: datetime, outcome: Outcome) -> str:
    """When the workload leaves a cluster because it tolerates a taint for a time only."""
    if outcome.state == "stale" or not outcome.documents:
        return ""
    notes = text_map(member(outcome.documents[0][1], "metadata", "annotations"))
    timers = session.failover.tolerances(notes, outcome.shares, moment)
    return "".join(f" It leaves {name} at {format_time(end)} unless the NoExecute taint goes." for name, _, end in timers)


def _tell_clocks(session: KarmadaSession, outcome: Outcome) -> str:
    """When the workload returns to an earlier group by itself."""
    if outcome.state == "stale" or not outcome.documents:
        return ""
    settings = session.settings.failback
    clocks = read_clocks(text_map(member(outcome.documents[0][1], "metadata", "annotations")))
    return "".join(
        f" It returns to group {name} at {format_time(later(since, settings.after))} if that group can take it until then, as it could "
        f"since {format_time(since)}."
        for name, since in clocks
    )


def _why(session: KarmadaSession, policy: Policy, memory: Memory, why: str | None) -> str:
    if why is None:
        return "Not scheduled anew: placement and replicas are what they were, and no rebalance was requested."
    if session.ignores(policy, memory):
        name = policy.spec.get("schedulerName")
        return f"Not scheduled: {'scheduling is suspended' if memory.suspended else f'it is the business of scheduler {name}'}."
    return f"Scheduled because {'it never was before' if memory.applied is None else why}."


def _result(outcome: Outcome) -> tuple[Share, ...]:
    return tuple(Share(place.cluster, None, place.replicas) for place in outcome.placed if not place.leaving)
