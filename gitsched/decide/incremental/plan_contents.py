"""What the state of a complete plan keeps, and whether the next plan may be an incremental one that starts from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from gitsched.decide.guard.guard_settings import GUARD_CODES
from gitsched.decide.incremental.plan_state import NO_OUTPUT, ClusterRow, WorkloadRow
from gitsched.decide.plan_totals import list_plan_findings
from gitsched.decide.registry import apis_by_group, policy_apis, reserved_groups
from gitsched.decide.workload_decision import TWO_CLAIMS
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.model.document import Body, Document, Key, is_known_group, parse_api_group, read_annotations, read_labels
from gitsched.model.scheduling import strip_outcome
from gitsched.model.template_index import PlacementSummary, TemplateEntry, TemplateIndex
from gitsched.model.tenants import TENANT_CHANGED
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import status_path

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.engines import EngineRecords
    from gitsched.decide.incremental.plan_state import PreviousOutput, Totals
    from gitsched.decide.relations.plan_relations import PlanRelations
    from gitsched.decide.rendered_tree import RenderedTree
    from gitsched.decide.tenants.tenant_amounts import Amounts
    from gitsched.decide.workload_files import WorkloadFiles
    from gitsched.model.scheduling import Outcome


PASSING_CODES = (*GUARD_CODES, TENANT_CHANGED)
"""Codes of findings that the next plan does not take over: those about the guard, and about changes of Tenants."""


class PlanContents(NamedTuple):
    """Everything that the state of a complete plan keeps besides its totals; `paths` are the source files that were read."""

    paths: Iterable[str]
    workloads: Mapping[Key, WorkloadRow]
    clusters: Mapping[str, ClusterRow]
    templates: Mapping[Key, TemplateEntry]
    relations: PlanRelations
    api_documents: Mapping[tuple[str, str], tuple[Document, ...]]
    engines: tuple[PolicyEngine, ...]


def can_continue(decisions: DecisionSet, rendered: RenderedTree, totals: Totals, previous: PreviousOutput) -> bool:
    """Return whether the next plan may be an incremental one that starts from this complete plan.

    It may not when a document of a policy API is broken or defined more than once, or a workload that was placed, when two objects have the
    same path or several workloads deliver one object, when an autoscaler of one workload sets the replicas of another that its API does not
    divide, when a finding is about a change of this plan, when all records of a kind are removed, or while a workload has another
    placement, or none, because of what others use.
    """
    catalog = decisions.catalog
    return not (
        catalog.duplicate_api_documents
        or decisions.depend_on_others
        or not decisions.quarantined <= decisions.withheld
        or not _are_ignored(totals.source.unused, decisions.engines)
        or rendered.findings
        or rendered.has_shared_objects
        or _has_change_findings(totals)
        or any(finding.code == TWO_CLAIMS for finding in decisions.findings)
        or _share_record_paths(rendered, totals.engines.records)
        or (decisions.tenancy is not None and not _keeps_tenants(decisions, totals))
        or (decisions.withheld and not _can_stay_withheld(decisions))
    ) and _keeps_record_kinds(decisions.outcomes, totals.engines.records, previous)


def _keeps_tenants(decisions: DecisionSet, totals: Totals) -> bool:
    from gitsched.decide.incremental.changed_tenants import keeps_tenants  # few sources have tenants

    return keeps_tenants(decisions, list_plan_findings(totals))


def _can_stay_withheld(decisions: DecisionSet) -> bool:
    from gitsched.decide.incremental.withheld_workloads import can_stay_withheld  # few changes exceed a limit of the guard

    return can_stay_withheld(decisions)


def has_new_records(totals: Totals, previous: PreviousOutput) -> bool:
    """Return whether a plan changes records that belong to no workload, so that the engines have not read what they write, or whether they
    say what it changes."""
    changes = any(finding.is_change for finding in totals.engines.findings)
    return changes or any(previous.records.get(key) != body for key, body in totals.engines.records)


def _are_ignored(unused: Iterable[Key], engines: Iterable[PolicyEngine]) -> bool:
    """Return whether no engine reads objects that are not placed because their documents are broken or differ, unless it selects them."""
    kinds = {key[:2] for key in unused}
    if not kinds:
        return True
    if any(group in reserved_groups or not is_known_group(group) for group, _ in kinds) or not kinds.isdisjoint(COMPANION_KINDS):
        return False
    names = {engine.name for engine in engines}
    active = {kind for api in policy_apis.values() for kind in api.active_templates}
    # An API that does not say what its documents select may select anything.
    return kinds.isdisjoint(active) and not any(
        tuple(policy_apis[name].list_selectors([{}])) for name in names & policy_apis.keys()
    )


def may_select(changed: Iterable[DocumentPair], unused: Iterable[Key]) -> bool:
    """Return whether one of the changed documents may select an object that is not placed, before or after its change."""
    unused = tuple(unused)
    if not unused:
        return False
    for document in (document for pair in changed for document in pair if document is not None):
        api = apis_by_group.get(document.key.group)
        for selector in api.list_selectors([document.body]) if api is not None else ():
            if any(
                selector.annotation
                or (selector.group in ("", key.group) and selector.kind in ("", key.kind) and selector.name in ("", key.name))
                for key in unused
            ):
                return True
    return False


def _has_change_findings(totals: Totals) -> bool:
    """Return whether a finding says what this plan changes, which the next one does not repeat. Engines find out again what they change."""
    groups = (totals.other_findings, *totals.findings_by_workload.values())
    return any(finding.is_change and finding.code not in PASSING_CODES for group in groups for finding in group)


def _share_record_paths(rendered: RenderedTree, records: Iterable[tuple[Key, Body]]) -> bool:
    """Return whether two workloads, or a workload and an engine, write the same record. The later one wins then."""
    paths = [path for files in rendered.workloads.values() for path in files.records]
    paths += [status_path(key) for key, _ in records]
    return len(set(paths)) < len(paths)


def _keeps_record_kinds(outcomes: Mapping[Key, Outcome], records: EngineRecords, previous: PreviousOutput) -> bool:
    """Return whether records are left of each kind of which this plan removes one: some policy APIs are active only because of records."""
    if previous is NO_OUTPUT:
        return True
    written = [key for outcome in outcomes.values() for key, _ in outcome.records]
    kinds = {(key.group, key.kind) for key in written}
    removed = previous.list_other_records([*written, *(key for key, _ in records)])
    return all(
        (parse_api_group(str(body.get("apiVersion") or body.get("api") or "")), body.get("kind")) in kinds for body in removed
    )


def make_plan_contents(
    decisions: DecisionSet,
    rendered: RenderedTree,
    relations: PlanRelations,
    paths: Iterable[str],
) -> PlanContents:
    """Return the state of a complete plan: a row for every workload, in their order, for every cluster and for every template."""
    workloads = {}
    amounts: Mapping[Key, Amounts] = {}
    if decisions.tenancy is not None:
        from gitsched.decide.incremental.changed_tenants import measure_limited  # few sources have tenants

        amounts = measure_limited(decisions)
    for key, files in rendered.workloads.items():
        origin = decisions.templates[key].origin
        workloads[key] = make_workload_row(files, origin.path if origin else "", amounts.get(key))
    clusters = {
        name: ClusterRow(facts, frozenset(rendered.manifests.get(name, ()))) for name, facts in rendered.cluster_facts.items()
    }
    templates = make_template_index(decisions.catalog.templates, decisions.outcomes)
    if relations.is_stored and decisions.input is not None:
        from gitsched.decide.relations.plan_relations import relate_decisions  # a plan that another state was made from

        relations, _, _ = relate_decisions(decisions, decisions.input.config)
    return PlanContents(paths, workloads, clusters, templates, relations, decisions.catalog.api_documents, decisions.engines)


def make_workload_row(
    files: WorkloadFiles,
    source_path: str,
    amounts: Amounts | None = None,
) -> WorkloadRow:
    """Return the row of a workload."""
    paths: dict[int, tuple[str, ...]] = {}  # most clusters have the same manifests
    return WorkloadRow(
        strip_outcome(files.outcome),
        source_path,
        tuple(files.records),
        {cluster: paths.setdefault(id(manifests), tuple(manifests)) for cluster, manifests in files.manifests.items()},
        tuple(key for key, _ in files.outcome.records),
        amounts,
    )


def make_template_index(templates: Mapping[Key, Document], outcomes: Mapping[Key, Outcome]) -> dict[Key, TemplateEntry]:
    """Return the entry of every template. Equal summaries of placements are one object."""
    shared: dict[PlacementSummary, PlacementSummary] = {}
    entries = {}
    for key, template in templates.items():
        outcome = outcomes.get(key)
        placement = None if outcome is None else summarize_placement(outcome)
        entries[key] = _make_entry(template, None if placement is None else shared.setdefault(placement, placement))
    return entries


def summarize_placement(outcome: Outcome) -> PlacementSummary:
    """Return what a plan keeps of an outcome."""
    settled = outcome.state == "placed" and not (
        outcome.findings or outcome.has_preference or outcome.held or outcome.suspended or outcome.wakeup or outcome.absent
    )
    shares = [target.replicas or 0 for target in outcome.targets if not target.evicting]
    return PlacementSummary(
        outcome.api,
        outcome.policy,
        outcome.group,
        tuple(target.cluster for target in outcome.targets),
        settled,
        bool(outcome.replicas) and sum(shares) == outcome.replicas,
    )


def update_template_index(known: TemplateIndex, changed: Mapping[Key, TemplateEntry | None]) -> TemplateIndex:
    """Return an index with changed entries, None for a template that is gone."""
    if not changed:
        return known
    kept = {key: entry for key, entry in known.items() if key not in changed}
    return kept | {key: entry for key, entry in changed.items() if entry is not None}


def make_template_entry(template: Document, outcome: Outcome | None) -> TemplateEntry:
    """Return the entry of a template; `outcome` is None if no API decides it."""
    return _make_entry(template, summarize_placement(outcome) if outcome is not None else None)


def _make_entry(template: Document, placement: PlacementSummary | None) -> TemplateEntry:
    return TemplateEntry(
        template.api_version,
        read_labels(template.body),
        {name: value for name, value in read_annotations(template.body).items() if _is_of_policy_api(name)},
        template.origin.path if template.origin else "",
        placement,
    )


def _is_of_policy_api(annotation: str) -> bool:
    """Return whether the prefix of an annotation is in the domain of a policy API, such as karmada.io."""
    prefix, slash, _ = annotation.rpartition("/")
    return bool(slash) and any(prefix == domain or prefix.endswith(f".{domain}") for domain in _list_domains())


@cache
def _list_domains() -> tuple[str, ...]:
    return tuple(sorted({".".join(group.split(".")[-2:]) for group in reserved_groups if "." in group}))
