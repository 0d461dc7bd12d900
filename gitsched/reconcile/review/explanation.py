"""Explain the placement of a workload, or describe a cluster, from a plan of the source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial

from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.capacity.capacity_explanation import ExplainedCapacity
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.garbage_collection import gc_paused
from gitsched.decide.incremental.plan_contents import make_template_index
from gitsched.decide.plan_result import Plan, PlanDetails, mark_awaited
from gitsched.decide.relations.companion_explanation import explain_companions
from gitsched.decide.relations.reference_explanation import explain_references
from gitsched.decide.variants.built_parts import PartOwner, PartOwners
from gitsched.decide.variants.kustomized_parts import explain_part
from gitsched.decide.workload_explanation import explain_policy, explain_workload, list_near_selections
from gitsched.git import Repository
from gitsched.model.document import Document, Key, workload_sort_key
from gitsched.model.errors import Permanent, UnknownCluster, UnknownObject
from gitsched.model.explanation import ClusterExplanation, ExplainedCandidate, ExplainedDelivery, Explanation, ReplicaShare
from gitsched.model.finding import LAST_VALID_USED, Finding, format_names, list_faults
from gitsched.model.mistakes import MISTAKES
from gitsched.model.progress import Progress, follow
from gitsched.model.scheduling import Outcome
from gitsched.model.template_index import TemplateIndex
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.incremental.planned_workloads import PlannedWorkloads
from gitsched.reconcile.incremental.state_plan import plan_from_state, try_with_state
from gitsched.reconcile.output.edited_objects import describe_cluster_edits, describe_object_edits
from gitsched.reconcile.output.output_edits import find_record_edit
from gitsched.reconcile.output.patched_manifests import describe_refusal
from gitsched.reconcile.output.removed_documents import describe_removed_cluster, name_removal
from gitsched.reconcile.plan_baseline import make_plan_baseline
from gitsched.reconcile.review.ignored_settings import log_ignored_settings
from gitsched.reconcile.review.removed_workloads import describe_last_placement, describe_removed
from gitsched.reconcile.review.resource_names import complete_name, describe_missing, find_key, matches_name
from gitsched.reconcile.review.selected_clusters import complete_clusters, select_clusters
from gitsched.reconcile.review.waiting_stages import add_rollout_histories, list_rollouts
from gitsched.reconcile.run import Fetched, Planned, RunContext, StateUpdate, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.source_locations import RuleLocations, locate_explanation, locate_taints, make_blob_finder
from gitsched.reconcile.source_plan import use_plan
from gitsched.report.explained_rollouts import describe_stage
from gitsched.report.held import add_hold, add_waiting, add_withheld, describe_state, describe_unfit
from gitsched.report.history import describe_source
from gitsched.report.lines import format_clusters, format_key, format_words
from gitsched.report.recent_runs import describe_revert
from gitsched.report.retained_copies import describe_retained_copies
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.cluster_description import describe_cluster
from gitsched.simulate.continued_plan import NeedsNewEngines
from gitsched.simulate.counterfactuals import find_counterfactuals
from gitsched.simulate.failure_domains import index_clusters

MAX_NAMES = 5
"""Locations or names in one message."""
MAX_COUNTERFACTUALS = 8
"""Clusters whose counterfactuals an explanation has by default."""


_CLUSTER_WORDS = ("", "cluster")


def explain_resource(
    settings: RunSettings, kind: str, namespace: str | None, name: str, why_not: tuple[str, ...] = ()
) -> Explanation | ClusterExplanation:
    """Explain the placement of a workload, or describe a cluster.

    The kind is case-insensitive; KIND.GROUP names the group, too; `complete_name` says what may be left out. `why_not` are the clusters to
    explain; by default all of them. Raise Permanent when there is no such workload or cluster.
    """
    context = open_context(settings)

    def explain(planned: Planned) -> Explanation | ClusterExplanation:
        return _explain(context, planned, kind, namespace, name, why_not)

    with gc_paused():
        fetched = fetch(context)
        try:
            known: Explanation | ClusterExplanation | None = try_with_state(
                partial(_explain_from_state, context, fetched, kind, namespace, name, why_not)
            )
            if known is not None:
                return _add_sources(context, fetched, known)
            planned, found = use_plan(context, fetched, settings.now, explain, withholds=True, written=False)
        except UnknownObject as error:
            removed = "" if context.caches.files.quarantine else describe_removed(context, fetched, kind, namespace, name)
            if removed:
                raise Permanent(removed) from error
            asked = name if kind.lower() in _CLUSTER_WORDS and not why_not else ""  # which is of workloads
            cluster = error.name if isinstance(error, UnknownCluster) else asked
            gone = describe_removed_cluster(context, fetched, cluster) if cluster else ""
            if gone:
                raise Permanent(gone) from error
            raise
        log_ignored_settings(planned.plan)
        return _add_sources(context, fetched, found)


def _add_sources(
    context: RunContext, fetched: Fetched, found: Explanation | ClusterExplanation
) -> Explanation | ClusterExplanation:
    """Return the explanation of a cluster with the lines of its taints, or that of a workload with the commits that removed its policy,
    edited its record and began its rollouts; and what people changed there on the output branch."""
    if not isinstance(found, ClusterExplanation):
        found = _add_last_placement(context, fetched, name_removal(context, fetched, found))
        found = _add_edits(context, fetched, _add_record_edit(fetched, found))
        return add_rollout_histories(context, fetched, found)
    locations, find_blob = (
        RuleLocations(context.source.repository),
        make_blob_finder(context.source.repository, fetched.source.tree),
    )
    edits = describe_cluster_edits(fetched, found.name, context.settings.now)
    return found._replace(
        taints=locate_taints(found.taints, locations, find_blob),
        remarks=(*edits, *found.remarks),
        is_first=fetched.output_head is None,
    )


def _add_last_placement(context: RunContext, fetched: Fetched, found: Explanation) -> Explanation:
    """Return the explanation of a workload, if no policy selects it any more with where it was last. What nearly selects it now is no cure
    where its policy was removed."""
    is_known = found.policy or found.result or found.claim or found.attached_to or found.tables or found.delivery.is_part
    if is_known or found.only_some_clusters or fetched.output_head is None:
        return found
    last, is_removed = describe_last_placement(context, fetched, _read_key(found))
    reason = "" if is_removed else found.policy_reason
    return found._replace(state=" ".join(filter(None, (last, found.state))), policy_reason=reason)


def _add_edits(context: RunContext, fetched: Fetched, found: Explanation) -> Explanation:
    """Return the explanation of a workload with what people changed of its manifests on the output branch."""
    edits = describe_object_edits(fetched, _read_key(found), context.settings.now)
    texts = (f"{edit[0].upper()}{edit[1:]}." for edit in edits)
    return found._replace(state=" ".join(filter(None, (found.state, *texts))))


def _read_key(found: Explanation) -> Key:
    kind, *namespace, name = found.workload.split("/")
    kind, _, group = kind.partition(".")
    return Key(group, kind, "".join(namespace), name)


def _add_record_edit(fetched: Fetched, found: Explanation) -> Explanation:
    """Return the explanation of a workload with the commit of people on the output branch that edited its record."""
    edit = find_record_edit(fetched, _read_key(found))
    if edit is None:
        return found
    text = (
        f"People edited its record on the output branch, from which runs decide: {describe_source(edit)}; unless that is meant, "
        f"{describe_revert(edit)} on that branch, and gitsched reconcile."
    )
    return found._replace(trigger=" ".join(filter(None, (found.trigger, text))))


def _explain_from_state(
    context: RunContext, fetched: Fetched, kind: str, namespace: str | None, name: str, why_not: tuple[str, ...]
) -> Explanation | ClusterExplanation | None:
    """Explain an object without a complete plan; None where that is needed."""
    known = plan_from_state(context, fetched)
    workloads = PlannedWorkloads(context, fetched, known.planned.plan, known.update)
    own = workloads.catalog.api_documents_by_key
    asked = kind
    kind, namespace, name = complete_name((*workloads.index, *own), kind, namespace, name)
    found_keys = [key for key in own if matches_name(key, kind, name) and key.namespace in (namespace, "")]
    matching = sorted((key for key in workloads.index if matches_name(key, kind, name)), key=workload_sort_key)
    key = find_key((*matching, *found_keys), kind, namespace, name)
    if (key in own and len(found_keys) > 1) or list_faults(workloads.plan.findings):
        return None
    if key in own and not asked and key[:2] not in list_cluster_kinds():
        return None  # a workload that is not used, because it is broken or not unique, may have the name as well
    if key is None:
        is_cluster = kind.lower() in _CLUSTER_WORDS and not why_not
        return _describe_other(workloads, [*workloads.index, *own], (kind, namespace, name), known.update, is_cluster=is_cluster)
    decisions, baseline = workloads.decide_few([] if key in own else [key])
    document = own[key] if key in own else decisions.templates[key]
    found = explain_workload(decisions, document, _read_capacity(workloads, decisions, baseline))
    if found is None and key in own:
        cluster = _find_cluster(decisions, key)
        if cluster is None or why_not:
            return _explain_policy(workloads.engines, document, asked, workloads.index, workloads.plan.findings)
        return _describe_from_state(workloads, cluster)
    found = _explain_selection(decisions, document, found)
    details = workloads.describe(decisions)
    if found.overrides:
        details = details._replace(rendered=workloads.render(key, decisions))
    plan = workloads.plan._replace(details=details)
    try:
        found = _complete(context, plan, baseline, key, found, why_not)
    except NeedsNewEngines:
        return None
    log_ignored_settings(plan)
    return found


def _read_capacity(workloads: PlannedWorkloads, decisions: DecisionSet, baseline: Baseline) -> ExplainedCapacity | None:
    """Return the capacity that workloads share; None if they do not."""
    if not any(engine.shares_capacity for engine in decisions.engines):
        return None
    return ExplainedCapacity(decisions, workloads.list_placed(), baseline.find_use)


def _describe_other(
    workloads: PlannedWorkloads, known: Iterable[Key], wanted: tuple[str, str, str], update: StateUpdate, *, is_cluster: bool
) -> ClusterExplanation | None:
    """Describe a cluster that is no known document; None if only a complete plan can tell what is wanted."""
    totals = workloads.plan.totals
    if totals.source.repeated or totals.source.unused or totals.source.with_variants or totals.source.part_kinds:
        return None
    if is_cluster and wanted[2] in index_clusters(workloads.catalog):
        return _describe_from_state(workloads, wanted[2])
    if update.reading_rules is None:
        return None  # a file may have it as a part of what is built
    raise UnknownObject(describe_missing(known, *wanted, index_clusters(workloads.catalog)))


def _find_cluster(decisions: DecisionSet, key: Key) -> str | None:
    """Return the cluster that a document is about; None if it is about something else."""
    clusters = index_clusters(decisions.catalog).items()
    return next((name for name, sites in clusters if any(document.key == key for _, document, _ in sites)), None)


def _describe_from_state(workloads: PlannedWorkloads, cluster: str) -> ClusterExplanation:
    plan = workloads.plan
    log_ignored_settings(plan)
    baseline = workloads.make_fleet_baseline()._replace(decisions=workloads.decisions)
    return describe_cluster(baseline, cluster, plan.findings, workloads.split_settled())


def _explain_policy(
    engines: Iterable[PolicyEngine], document: Document, asked: str, index: TemplateIndex, findings: Iterable[Finding]
) -> Explanation:
    """Explain a policy with the findings about it. Raise UnknownObject for a document that is none, and where the kind that was `asked` for
    is not that of the policy: a name alone is that of a workload, which may be gone."""
    key = document.key
    found = explain_policy(engines, document, index) if matches_name(key, asked, key.name) else None
    if found is None:
        raise UnknownObject(
            f"{key} is not a workload, and no API decides where it runs; gitsched explain KIND/NAME shows what it changes for a workload"
        )
    return found._replace(findings=tuple(finding for finding in findings if finding.resource == key.resource))


def _explain_selection(decisions: DecisionSet, template: Document, found: Explanation | None) -> Explanation:
    """Return the explanation of an object, if no policy selects it with the policy that nearly does."""
    if found is None:
        origin = template.origin
        found = Explanation(str(template.key), location=f"{origin.path}:{origin.line}" if origin else "")
    elif not found.claim or found.policy or found.policy_reason or found.attached_to:
        return found
    return found._replace(policy_reason=_describe_nearest(decisions, template.key))  # a claim is that of an earlier policy


def _describe_nearest(decisions: DecisionSet, key: Key) -> str:
    """Return what the policy selects that nearly selects an object, and what the object has instead; "" without one."""
    nearest = list_near_selections(decisions, [key]).get(key)
    return nearest.text if nearest is not None else ""


def _explain(
    context: RunContext, planned: Planned, kind: str, namespace: str | None, name: str, why_not: tuple[str, ...]
) -> Explanation | ClusterExplanation:
    settings, plan = context.settings, planned.plan
    decisions = plan.decisions
    own = decisions.catalog.api_documents_by_key
    known = dict.fromkeys((*decisions.templates, *own, *decisions.catalog.duplicate_templates, *decisions.catalog.broken))
    known |= dict.fromkeys(sorted(decisions.kustomized))
    owners = PartOwners(decisions, planned.config)
    known |= dict.fromkeys(key for key in owners.list_keys() if key not in known)
    baseline = make_plan_baseline(settings, plan, planned.config)
    asked = kind
    kind, namespace, name = complete_name(known, kind, namespace, name)
    key = find_key(known, kind, namespace, name)
    if key is None:
        return _explain_other(
            baseline._replace(decisions=decisions), plan, known, (kind, namespace, name), can_be_cluster=not why_not
        )
    template = decisions.templates.get(key) or own.get(key)
    if template is None:
        findings = tuple(finding for finding in plan.findings if finding.resource == key.resource)
        owner = owners.find(key)
        unused = Explanation(str(key), policy_reason=_describe_quarantine(decisions, owner, key), findings=findings)
        if owner is None and key not in decisions.kustomized:
            return unused
        unused = unused._replace(delivery=ExplainedDelivery(is_part=True))
        return _add_part(unused, decisions, key) if owner is None else _add_built(unused, decisions, owner)
    capacity = ExplainedCapacity(decisions, None, baseline.find_use) if decisions.shared is not None else None
    found = explain_workload(decisions, template, capacity)
    if found is None and key in own:
        cluster = _find_cluster(decisions, key)
        if cluster is None or why_not:
            index = make_template_index(decisions.catalog.templates, decisions.outcomes)
            return _explain_policy(decisions.engines, template, asked, index, plan.findings)
        return describe_cluster(baseline._replace(decisions=decisions), cluster, plan.findings)
    found = _explain_selection(decisions, template, found)
    return _complete(context, plan, baseline, key, found, why_not)


def _explain_other(
    baseline: Baseline, plan: Plan, known: Iterable[Key], wanted: tuple[str, str, str], *, can_be_cluster: bool
) -> Explanation | ClusterExplanation:
    """Explain what is `wanted` by kind, namespace and name, and is no known document: one on which a bug shows, or a cluster."""
    faults = list_faults(plan.findings)
    skipped = find_key((Key("", *each.resource) for each in faults if each.resource), *wanted)
    if skipped is not None:
        own = tuple(finding for finding in faults if finding.resource == skipped.resource)
        return Explanation(str(skipped), policy_reason="a bug of gitsched shows on its document; its files stay", findings=own)
    kind, _, name = wanted
    if kind.lower() not in _CLUSTER_WORDS or not can_be_cluster or name not in index_clusters(baseline.decisions.catalog):
        unread = "".join(f"\n{finding}" for finding in faults[:MAX_NAMES])
        raise UnknownObject(f"{describe_missing(known, *wanted, index_clusters(baseline.decisions.catalog))}{unread}")
    return describe_cluster(baseline, name, plan.findings)  # its document may be of any kind


def _complete(
    context: RunContext, plan: Plan, baseline: Baseline, key: Key, found: Explanation, why_not: tuple[str, ...]
) -> Explanation:
    """Add to an explanation what the plan has about the document besides the decision of its API."""
    decisions = plan.decisions
    template = decisions.templates.get(key) or decisions.catalog.api_documents_by_key[key]
    found = _add_document_findings(found._replace(origin=template.origin), key, baseline, plan.findings)
    if plan.details is not None and not why_not:
        found = _add_related_objects(found, plan.details, key)
    copied = {copy.cluster: copy.replicas for copy in plan.retained if copy.workload == key}
    result = _list_delivered(found.result, decisions.outcomes.get(key), copied)
    rollouts = list_rollouts(plan, key, result, copied, context.settings.now)
    rewritten = _find_refusal(context, plan.details, key) if found.overrides and plan.details is not None else ""
    delivery = ExplainedDelivery(_list_copies(plan, key), rollouts, rewritten, copied=copied)
    found = found._replace(delivery=delivery, result=result)
    found = _add_counterfactuals(baseline, key, found, why_not)
    held = plan.totals.held.get(key)
    if held is not None:
        found = add_hold(found, key, held)
    move = next((move for move in plan.withheld.moves if move.key == key), None)
    if move is not None:
        found = add_withheld(found, move, plan.withheld)
    waiting = next((move for move in plan.withheld.waiting if move.key == key), None)
    if waiting is not None:
        found = add_waiting(found, waiting, plan.withheld.next_period)
    found = locate_explanation(found, RuleLocations(context.source.repository))
    if why_not:
        return found
    outcome = decisions.outcomes.get(key)
    wanted = outcome.replicas if outcome is not None and outcome.unassigned else None
    state = describe_state(found, held, move, waiting is not None, plan.freeze, wanted)
    unfit = describe_unfit(found) if held is None else ""
    return found._replace(state=" ".join(filter(None, (state, unfit, *map(describe_stage, rollouts)))))


def _list_delivered(
    result: Iterable[ReplicaShare], outcome: Outcome | None, copied: Mapping[str, int | None]
) -> tuple[ReplicaShare, ...]:
    """Return the shares of clusters with the replicas of their manifests, and 0 where a cluster has nothing of the workload yet. `copied`
    are the replicas of copies that stay for an overlap."""
    delivered = {target.cluster: 0 if target.waits else target.replicas for target in outcome.targets} if outcome else {}
    shares = []
    for share in result:
        replicas = delivered.get(share.cluster, share.replicas)
        is_other = replicas != share.replicas
        is_other &= share.replicas is not None and outcome is not None and outcome.replicas is not None  # else sets of objects
        copy = copied.get(share.cluster) if outcome is not None and outcome.replicas is not None else None
        shares.append(share._replace(replicas=replicas, assigned=share.replicas if is_other else None, copied=copy))
    return tuple(shares)


def _add_related_objects(found: Explanation, details: PlanDetails, key: Key) -> Explanation:
    """Add what an object refers to, its targets and its companions."""
    relations, outcomes = details.relations.database, details.decisions.outcomes
    related = explain_companions(relations, outcomes, key)
    references = explain_references(relations, outcomes, key)
    return found._replace(references=references, targets=related.targets, targeted_by=related.targeted_by)


def _find_refusal(context: RunContext, details: PlanDetails, key: Key) -> str:
    """Return why the manifest of a workload with overrides is not edited in place; "" if it is."""
    workload = details.rendered.workloads.get(key)
    files = [file for files in workload.manifests.values() for file in files.values()] if workload is not None else []
    return next(filter(None, (describe_refusal(context, file) for file in files)), "")


def _list_copies(plan: Plan, key: Key) -> tuple[str, ...]:
    """Return where copies of a workload stay for an overlap, also those with its former name."""
    copies = tuple(copy for copy in plan.retained if key in (copy.workload, copy.follows))
    return tuple(describe_retained_copies(mark_awaited(copies, plan.findings)))


def _add_document_findings(found: Explanation, key: Key, baseline: Baseline, findings: Iterable[Finding]) -> Explanation:
    """Add the errors of the documents of the object and of its policies, of which earlier, valid versions may be in use, and the findings
    about the selectors of these policies; of an object that none selects, those of the policy that nearly does."""
    known = {(finding.code, finding.message) for finding in found.findings}
    api_documents = baseline.decisions.catalog.api_documents_by_key.items()
    origins = (found.origin, *(document.origin for policy, document in api_documents if policy.title in found.policy.split(", ")))
    paths = {origin.path for origin in origins if origin is not None}

    def concerns(finding: Finding) -> bool:
        if finding.resource is None:
            is_about_file = finding.severity == "error" or finding.code == LAST_VALID_USED
            return is_about_file and finding.location is not None and finding.location.path in paths
        if finding.severity == "warning" and finding.code.endswith("-selects-nothing") and not found.policy:
            return found.policy_reason.startswith(f"{'/'.join(filter(None, finding.resource))} selects ")
        is_mistake = finding.code in MISTAKES
        return (finding.severity == "error" or is_mistake) and (
            finding.resource == key.resource or _is_policy(finding.resource, found)
        )

    more = [finding for finding in findings if concerns(finding) and (finding.code, finding.message) not in known]
    return found._replace(findings=(*more, *found.findings))


def _is_policy(resource: tuple[str, str, str], found: Explanation) -> bool:
    """Return whether a policy, by kind, namespace and name, is that of an explanation."""
    kind, *path = resource
    rest = "/".join(filter(None, path))
    return any(
        text == f"{kind}/{rest}" or (text.startswith(f"{kind}.") and text.endswith(f"/{rest}")) for text in found.policy.split(", ")
    )


def explain_workloads(
    repository: Repository, plan: Plan, outcomes: Collection[Outcome], progress: Progress | None = None
) -> dict[Key, Explanation]:
    """Explain the workloads with these outcomes of a complete plan, for the HTML report."""
    decisions = plan.decisions
    found: dict[Key, Explanation] = {}
    locations = RuleLocations(repository)
    own = decisions.catalog.api_documents_by_key
    assert plan.details is not None, "only a complete plan has all references"
    relations = plan.details.relations.database
    keys = [outcome.key for outcome in outcomes]
    capacity = ExplainedCapacity(decisions) if decisions.shared is not None else None
    for key in keys if progress is None else follow(keys, "explaining workloads", progress):
        template = decisions.templates.get(key) or own.get(key)
        explanation = explain_workload(decisions, template, capacity) if template else None
        if explanation:
            related = explain_companions(relations, decisions.outcomes, key)
            explanation = explanation._replace(
                references=explain_references(relations, decisions.outcomes, key),
                targets=related.targets,
                targeted_by=related.targeted_by,
                delivery=ExplainedDelivery(_list_copies(plan, key)),
            )
            found[key] = locate_explanation(explanation, locations)
    return found


def _add_built(found: Explanation, decisions: DecisionSet, owner: PartOwner) -> Explanation:
    """Return the explanation of a document that builds read with the line of its file, and what kustomizations build from it."""
    found = found._replace(location=f"{owner.location.path}:{owner.location.line}" if owner.location is not None else "")
    names = []
    for key, root in owner.built:
        outcome = decisions.outcomes.get(key)
        clusters = format_clusters(outcome.replicas_by_cluster) if outcome is not None and outcome.targets else "nowhere"
        names.append(f"{format_key(key)} ({root}; {clusters})")
    if not names:
        return found
    return found._replace(
        state=f"Built from it: {format_names(names, MAX_NAMES)}. Did you mean gitsched explain {format_words(owner.built[0][0])}?"
    )


def _add_part(found: Explanation, decisions: DecisionSet, key: Key) -> Explanation:
    """Return the explanation of an object that is not placed because a kustomization or chart changes it, with what to do."""
    assert decisions.input is not None, "the decisions of a plan have an input"
    origin, part = next((document.origin, part) for document, part in decisions.input.parts if document.key == key)
    location = f"{origin.path}:{origin.line}" if origin is not None else ""
    return found._replace(location=location, policy_reason=f"it {explain_part(part)}")


def _describe_quarantine(decisions: DecisionSet, owner: PartOwner | None, key: Key) -> str:
    catalog = decisions.catalog
    if owner is not None and owner.bundles:
        where = f"brings it to {format_names(sorted(owner.replicas))}" if owner.replicas else "no cluster gets"
        if owner.bundle_clusters and not owner.replicas:
            where = f"goes to {format_names(owner.bundle_clusters)}"
        return f"it is {owner.reason}, which {where}: see gitsched explain {format_words(owner.bundles[0])}"
    if owner is not None:
        return f"it is {owner.reason}, and no object of its own"
    if key not in catalog.duplicate_templates:
        return "its document is broken"
    origins = [document.origin for document in catalog.duplicate_templates[key] if document.origin]
    locations = ", ".join(f"{origin.path}:{origin.line}" for origin in origins[:MAX_NAMES])
    return f"it is defined more than once and no document is used: {locations}"


def _add_counterfactuals(baseline: Baseline, key: Key, found: Explanation, why_not: tuple[str, ...]) -> Explanation:
    """Add what would bring a workload to the clusters in `why_not`, by default to the first ones that it does not run on."""
    if key not in baseline.decisions.templates or found.candidate_kind != "cluster":
        if why_not:
            raise Permanent(f"{key} is not a workload that is placed on clusters")
        return found
    known = index_clusters(baseline.decisions.catalog)
    if why_not:
        clusters = complete_clusters(why_not, key.namespace, known)
        found = select_clusters(found, clusters, key.namespace, known)
        return found._replace(counterfactuals=find_counterfactuals(baseline, key, clusters))
    placed = {target.cluster for target in found.result}
    wanted = [name for name in _sort_clusters(found.candidates) if name not in placed and name in known]
    return found._replace(
        counterfactuals=find_counterfactuals(baseline, key, wanted[:MAX_COUNTERFACTUALS]),
        unexamined=len(wanted[MAX_COUNTERFACTUALS:]),
    )


def _sort_clusters(candidates: Iterable[ExplainedCandidate]) -> list[str]:
    """Sort the clusters: eligible ones first, then by name."""
    eligible: dict[str, bool] = {}
    for candidate in candidates:
        eligible[candidate.result.name] = eligible.get(candidate.result.name, False) or candidate.result.eligible
    return sorted(eligible, key=lambda name: (not eligible[name], name))
