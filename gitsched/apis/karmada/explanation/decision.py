"""Explain the scheduling decision of a workload: policy, candidates, division of replicas and trigger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.resource_binding import (
    SchedulingPass,
    binding_key,
    read_previous,
)
from gitsched.apis.karmada.binding.scheduling_pass import find_decisive_pass
from gitsched.apis.karmada.dependencies.attached_binding import Attachment
from gitsched.apis.karmada.explanation.reasons import describe_capacity, describe_division, describe_selection, find_excluding_rule
from gitsched.apis.karmada.explanation.triggers import (
    describe_failback_timers,
    describe_health_timers,
    describe_toleration_timers,
    describe_trigger,
)
from gitsched.apis.karmada.failover.graceful_eviction import UNLIMITED_EVICTION_END
from gitsched.apis.karmada.overrides.variant_overrides import explain_variants
from gitsched.apis.karmada.policy.policy_options import describe_takeover
from gitsched.apis.karmada.policy.propagation_policy import BY_NAME, PropagationPolicy, SelectorRule
from gitsched.apis.karmada.state import KarmadaState
from gitsched.apis.karmada.warnings import find_suspended_policies
from gitsched.model.document import Document, Key, get_field
from gitsched.model.explanation import (
    CLAIM_OF,
    POLICY_DELETED,
    AppliedOverride,
    ExplainedCandidate,
    Explanation,
    GroupAttempt,
    RejectedPolicy,
    ReplicaShare,
)
from gitsched.model.finding import locate_document
from gitsched.model.scheduling import AffinityGroup, Outcome, Request
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE
from gitsched.model.time import format_time
from gitsched.schedule import pipeline
from gitsched.schedule.assignment import rank_candidates
from gitsched.schedule.fleet import ClusterAffinityFilter, Fleet, find_feasible
from gitsched.schedule.rejections import list_rejections
from gitsched.schedule.spread_constraints import select_candidates

_SPECIFICITY_TEXTS = {3: "by name", 2: "by labels", 1: "by kind"}


def explain(
    state: KarmadaState,
    template: Document,
    passes: Sequence[SchedulingPass],
    attachment: Attachment | None,
    outcome: Outcome | None,
) -> Explanation | None:
    """Explain the decision about a workload; None when no policy selects it or claimed it.

    `passes` are those of this run, none without a policy; `outcome` is what came of them.
    """
    policy, claim = state.find_policy(template, state.find_record(template))
    start = Explanation(str(template.key), _format_location(template), attached_to=_describe_dependents(state, attachment))
    if policy is None:
        return _explain_without_policy(state, template, claim, start, outcome)
    decisive = find_decisive_pass(passes)
    outcome = outcome or passes[-1].outcome
    request, group = decisive.request, _find_shown_group(decisive.request, decisive)
    selection, rule, division = _explain_division(state.fleet, request, group, decisive)
    rules = _list_best_rules(state.policies.list_matching_rules(template))
    exclusions = _Exclusions(state, template, policy, passes[-1])
    return start._replace(
        policy=policy.key.title,
        policy_reason=_explain_policy(policy, claim, rules),
        rejected_policies=tuple(
            RejectedPolicy(r.policy.key.title, _explain_lost_rule(r, policy, claim, rules, enabled=state.settings.preemption))
            for r in rules
            if r.policy.key != policy.key
        ),
        claim=_describe_claim(state, policy, claim),
        attempts=_list_attempts(state, request, decisive),
        candidates=tuple(_list_candidates(state, policy, request, group, decisive, exclusions)),
        selection=tuple(selection),
        division=division,
        division_rule=tuple(rule),
        trigger=describe_trigger(state, policy, decisive, outcome)
        + describe_failback_timers(state, outcome)
        + describe_toleration_timers(state, decisive.time, outcome)
        + describe_health_timers(state, template, policy, outcome),
        rescheduled=state.reschedule_triggers.describe_last(
            binding_key(outcome.key), read_previous(outcome.records[0][1] if outcome.records else None)
        ),
        result=_list_shares(outcome),
        overrides=_explain_overrides(state, template, outcome),
        findings=(*outcome.findings, *find_suspended_policies([policy])),
    )


def _explain_overrides(state: KarmadaState, template: Document, outcome: Outcome) -> tuple[AppliedOverride, ...]:
    targets = sorted(outcome.targets, key=lambda target: target.cluster)
    variants = state.read_variant_requirements(template)
    if variants is None:
        return state.overrides.explain(template, targets)
    return explain_variants(state.overrides, template, targets, variants.variants)


def _describe_dependents(state: KarmadaState, attachment: Attachment | None) -> tuple[str, ...]:
    """Return one line for each workload that depends on this one, with its clusters."""
    entries = []
    for dependent in attachment.dependents if attachment else ():
        clusters = ", ".join(str(cluster.get("name")) for cluster in get_field(dependent.body, "spec", "clusters") or ())
        location = _format_location(state.snapshot.templates.get(dependent.key))
        entries.append(f"{dependent.key}{f' ({location})' if location else ''}: {clusters or 'not placed itself'}")
    return tuple(entries)


def _explain_without_policy(
    state: KarmadaState, template: Document, claim: Key | None, start: Explanation, outcome: Outcome | None
) -> Explanation | None:
    if outcome is not None and start.attached_to and not outcome.policy:
        return start._replace(
            trigger="Not scheduled: it follows the workloads that depend on it.",
            result=_list_shares(outcome),
            overrides=_explain_overrides(state, template, outcome),
            findings=outcome.findings,
        )
    if claim is None:
        return None
    if outcome is None:
        return start._replace(claim=_describe_ended_claim(state, None, claim), trigger="Not scheduled: no policy selects it.")
    if outcome.held is not None or (outcome.state != "pending" and claim not in state.snapshot.quarantined):
        return start._replace(
            claim=_describe_ended_claim(state, None, claim),
            trigger="Not scheduled: no policy selects it.",
            result=_list_shares(outcome),
            findings=outcome.findings,
        )
    if outcome.state == "pending":
        return start._replace(
            policy=claim.title,
            policy_reason="it has errors and was never valid",
            trigger="Not scheduled: it waits until the policy is valid.",
            findings=outcome.findings,
        )
    return start._replace(
        policy=claim.title,
        policy_reason="it claimed the workload in an earlier run, but its document is invalid now",
        trigger="Not scheduled: the previous decision is kept until the policy is valid.",
        result=_list_shares(outcome),
        findings=outcome.findings,
    )


def _format_location(document: Document | None) -> str:
    location = locate_document(document) if document else None
    return f"{location.path}:{location.line}" if location else ""


def _list_best_rules(rules: list[SelectorRule]) -> list[SelectorRule]:
    """Return the most specific rule of each policy, in order of precedence."""
    best: dict[Key, SelectorRule] = {}
    for rule in rules:
        best.setdefault(rule.policy.key, rule)
    return list(best.values())


def _explain_policy(policy: PropagationPolicy, claim: Key | None, rules: list[SelectorRule]) -> str:
    own_rule = next((rule for rule in rules if rule.policy.key == policy.key), None)
    selects = (
        f"it selects the workload {_SPECIFICITY_TEXTS[own_rule.implicit_priority]} with priority {policy.priority}"
        if own_rule
        else "it selects the workload"
    )
    if claim == policy.key:
        return selects  # the next line says that it claimed the workload
    others = [rule for rule in rules if rule.policy.key != policy.key]
    if not others:
        return f"{selects}; no other policy of Karmada does"
    return f"{selects}; {_explain_precedence(policy, own_rule, others[0])}" if own_rule else selects


def _explain_precedence(policy: PropagationPolicy, own_rule: SelectorRule, other: SelectorRule) -> str:
    """Say why a policy takes precedence over the next one."""
    if policy.is_namespaced and not other.policy.is_namespaced:
        return "a PropagationPolicy comes before every ClusterPropagationPolicy"
    if policy.priority != other.policy.priority:
        return f"the next priority is {other.policy.priority}"
    if own_rule.implicit_priority != other.implicit_priority:
        specific, general = _SPECIFICITY_TEXTS[own_rule.implicit_priority], _SPECIFICITY_TEXTS[other.implicit_priority]
        return f"with the same priority, {specific} is more specific than {general}"
    return "with the same priority and specificity, its name comes first"


def _explain_lost_rule(
    rule: SelectorRule, policy: PropagationPolicy, claim: Key | None, rules: list[SelectorRule], *, enabled: bool
) -> str:
    if claim == policy.key:
        kept = f"{policy.key.title} claimed the workload earlier, and a claim is kept regardless of priorities"
        takeover = describe_takeover(rule.policy, policy, by_name=rule.implicit_priority == BY_NAME, enabled=enabled)
        return f"{kept}; to change that, {takeover}"
    winner = next(r for r in rules if r.policy.key == policy.key)
    if policy.is_namespaced and not rule.policy.is_namespaced:
        return "a ClusterPropagationPolicy comes after every PropagationPolicy of the workload's namespace"
    if rule.policy.priority != policy.priority:
        return f"its priority {rule.policy.priority} is lower than {policy.priority}"
    if rule.implicit_priority != winner.implicit_priority:
        general, specific = _SPECIFICITY_TEXTS[rule.implicit_priority], _SPECIFICITY_TEXTS[winner.implicit_priority]
        return f"it selects the workload {general}, which is less specific than {specific}"
    return f"its name comes after {policy.key.name}, with the same priority and specificity"


def _describe_claim(state: KarmadaState, policy: PropagationPolicy, claim: Key | None) -> str:
    if claim is None:
        return ""
    lazy = ""
    if policy.is_lazy:
        changed = policy.applied_placement != state.policies.policies[policy.key].applied_placement
        waits = "its last edit waits until then" if changed else "no edit is waiting"
        lazy = f"; it is Lazy, so an edit of it takes effect only when the workload is edited: {waits}"
    if claim == policy.key:
        return f"{claim.title} claimed it in an earlier run and keeps it as long as it selects it{lazy}"
    return f"{_describe_ended_claim(state, policy, claim)}{lazy}"


def _describe_ended_claim(state: KarmadaState, policy: PropagationPolicy | None, claim: Key) -> str:
    if policy is not None and state.settings.preemption and policy.spec.get("preemption") == "Always":
        return f"{policy.key.title} preempts {claim.title}, which had claimed it"
    trigger = "it no longer selects the workload" if claim in state.policies.policies else POLICY_DELETED
    return f"{CLAIM_OF}{claim.title} has ended: {trigger}"


def _find_shown_group(request: Request, decisive: SchedulingPass) -> AffinityGroup:
    """Return the affinity group whose candidates are shown: the one that was used, else the first that failed."""
    named = decisive.decision.group if decisive.decision else decisive.current.observed_group
    return next((group for group in request.groups if group.name == named), request.groups[request.first_group])


def _list_attempts(state: KarmadaState, request: Request, decisive: SchedulingPass) -> tuple[GroupAttempt, ...]:
    fleet = state.fleet
    if decisive.decision is None:
        used = request.groups.index(_find_shown_group(request, decisive))
        skipped = [_describe_skipped_group(state, request, group, decisive) for group in request.groups[:used]]
        kept = GroupAttempt(request.groups[used].name, "kept" if decisive.current.clusters else "not tried")
        return (*skipped, kept, *(GroupAttempt(group.name, "not tried") for group in request.groups[used + 1 :]))
    attempts = [_describe_skipped_group(state, request, group, decisive) for group in request.groups[: request.first_group]]
    done = False
    for group in request.groups[request.first_group :]:
        if done:
            attempts.append(GroupAttempt(group.name, "not tried", "an earlier group was used"))
            continue
        decision = pipeline.add_reasons(pipeline.schedule_in_group(request, group, fleet), group, request, fleet)
        attempts.append(GroupAttempt(group.name, decision.status, decision.message))
        done = decision.status == "scheduled"
    return tuple(attempts)


def _describe_skipped_group(state: KarmadaState, request: Request, group: AffinityGroup, decisive: SchedulingPass) -> GroupAttempt:
    """Describe a group before the one in use, with the decision that it would give now and what returns the workload to it."""
    fleet = state.fleet
    decision = pipeline.add_reasons(pipeline.schedule_in_group(request, group, fleet), group, request, fleet)
    trigger = f": {decision.message}" if decision.message else ""
    used = _find_shown_group(request, decisive).name if decisive.decision is None else request.groups[request.first_group].name
    resumes = (
        f"scheduling resumes at {used}, which was used last"
        if used == decisive.current.observed_group
        else "its failback timer has not ended"
    )
    returns = f"; {_describe_return(state, used)}" if decision.status == "scheduled" else ""
    return GroupAttempt(group.name, "not tried", f"{resumes}; tried now it would be {decision.status}{trigger}{returns}")


def _describe_return(state: KarmadaState, used: str) -> str:
    """Say what returns a workload to a group before the one in use."""
    rebalance = "a WorkloadRebalancer that names the workload returns it to this group"
    match state.settings.failback.mode:
        case "WhenUnschedulable":
            return f"it returns when neither {used} nor a later group can run it; before that, {rebalance}"
        case "AfterStabilization":
            return f"it returns when the time of karmada.failback is over; before that, {rebalance}"
    return (
        f"{rebalance}; so does spec.karmada.failback: WhenUnschedulable when neither {used} nor a later group can run it, and "
        "spec.karmada.failback: {AfterStabilization: 10m} when this group could run it for that time"
    )


def _list_candidates(
    state: KarmadaState,
    policy: PropagationPolicy,
    request: Request,
    shown: AffinityGroup,
    decisive: SchedulingPass,
    exclusions: _Exclusions,
) -> Iterator[ExplainedCandidate]:
    """Yield every cluster, for the group that is shown; also those that the groups before it select, or all groups if all failed.

    A cluster of a later group that the workload returns from is listed for that group: this says why the workload left it.
    """
    failed = decisive.decision is not None and decisive.decision.status != "scheduled"
    position = request.groups.index(shown)
    masks = [ClusterAffinityFilter().mask(request, group, state.fleet, 0) for group in request.groups]
    for number, group in enumerate(request.groups):
        if number > position and not failed:
            masks[number] &= ~masks[position] if group.name == decisive.current.observed_group else 0
    masks[position] = state.fleet.all
    if not failed:
        for mask in masks[position + 1 :]:
            masks[position] &= ~mask
    for group, mask in zip(request.groups, masks, strict=True):
        if mask:
            candidates = _list_group_candidates(state, policy, request, group, exclusions)
            yield from (candidate for index, candidate in enumerate(candidates) if mask >> index & 1)


def _list_group_candidates(
    state: KarmadaState, policy: PropagationPolicy, request: Request, group: AffinityGroup, exclusions: _Exclusions
) -> list[ExplainedCandidate]:
    fleet = state.fleet
    documents = {d.key.name: d for d in state.snapshot.documents.get((names.CLUSTER_GROUP, names.CLUSTER), ())}
    rejected = {
        index: rejection.filter.name
        for rejection in list_rejections(request, group, fleet)
        for index in fleet.members(rejection.mask)
    }
    candidates = []
    for index, result in enumerate(pipeline.explain_group(request, group, fleet)):
        if result.eligible:
            known = fleet.candidates[index].capacity if request.remaining is None else request.remaining.read_capacity(index)
            capacity = describe_capacity(request, fleet.names[index], known)
            candidates.append(ExplainedCandidate(result, group=group.name, capacity=capacity))
            continue
        name = rejected.get(index, "")
        origin = _describe_taint_origin(state, request, result.name) if name == "TaintToleration" else ""
        reason_text = result.reason
        if name == "ClusterEviction":
            reason_text = exclusions.describe(result.name) or reason_text
        reason = f"{name}: {reason_text}{origin}" if name else reason_text
        rule = find_excluding_rule(name, fleet.candidates[index], request, group, policy, documents.get(result.name))
        location = f"{rule.origin.path}:{rule.origin.line}" if rule else ""
        candidates.append(ExplainedCandidate(result._replace(reason=reason), location, group.name, rule))
    return candidates


class _Exclusions:
    """The clusters that the scheduler must not choose for a workload because of evictions, after its last pass."""

    def __init__(self, state: KarmadaState, template: Document, policy: PropagationPolicy, last: SchedulingPass) -> None:
        self._failover, self._arguments, self._time = state.failover, (template, policy, last.current), last.time

    def describe(self, cluster: str) -> str:
        exclusion = self._failover.find_exclusion(*self._arguments, cluster, self._time)
        match exclusion:
            case None:
                return ""
            case ("evicted", end):
                until = f"until {format_time(end)}" if end is not None else f"until {UNLIMITED_EVICTION_END}"
                return f"cluster(s) is in the process of eviction {until}"
            case ("unhealthy", _):
                return "the workload was unhealthy there for too long and has not been reported healthy since"
        return "the workload's toleration of a NoExecute taint has expired there"


def _describe_taint_origin(state: KarmadaState, request: Request, cluster: str) -> str:
    """Say what added the taint that rejects a workload, if it is not in the cluster's document."""
    effects = (NO_SCHEDULE, NO_EXECUTE)
    taints = state.fleet.candidates[state.fleet.index[cluster]].taints
    first = next(t for t in taints if t.effect in effects and not any(other.tolerates(t) for other in request.tolerations))
    return next((f" ({entry.added_by})" for entry in state.added_taints.get(cluster, ()) if entry.taint == first), "")


def _explain_division(
    fleet: Fleet, request: Request, group: AffinityGroup, decisive: SchedulingPass
) -> tuple[list[str], list[str], tuple[ReplicaShare, ...]]:
    """Return the selected clusters, the rule by which replicas are divided and the shares; nothing unless the scheduler found clusters.
    Of a workload that is not scheduled again, the selected clusters are those that it has."""
    kept = [fleet.index[target.name] for target in decisive.current.clusters if target.name in fleet.index]
    if decisive.decision is None and not (kept and request.spread_constraints):
        return [], [], ()
    if decisive.decision is not None and decisive.decision.status != "scheduled":
        return [], [], ()
    found = rank_candidates(request, group, fleet, find_feasible(request, group, fleet))
    if decisive.decision is None:
        return describe_selection(request, fleet, found, kept), [], ()
    chosen = select_candidates(request, fleet, found) if request.spread_constraints else found.order
    replicas = {target.name: target.replicas for target in decisive.decision.assignments}
    return describe_selection(request, fleet, found, chosen), *describe_division(request, fleet, found, chosen, replicas)


def _list_shares(outcome: Outcome) -> tuple[ReplicaShare, ...]:
    return tuple(ReplicaShare(target.cluster, None, target.replicas) for target in outcome.targets if not target.evicting)
