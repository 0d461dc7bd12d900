"""Check the rules of Tenants for an incremental plan. Where a change could break one, or concern another owner, a complete plan is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.tenancy import PLATFORM, list_plain
from gitsched.apis.gitsched.tenant import TenantLimits
from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.incremental.affected_workloads import have_taken_paths
from gitsched.decide.incremental.changed_namespaces import NAMESPACE
from gitsched.decide.incremental.continued_views import find_document_owner, list_former_documents
from gitsched.decide.plan_totals import list_plan_findings
from gitsched.decide.registry import policy_apis
from gitsched.decide.tenants.tenant_admission import check_object, is_about_one_document
from gitsched.decide.tenants.tenant_amounts import exceeds_limits, has_limits, list_limited_owners, measure_outcome
from gitsched.decide.tenants.tenant_outcomes import obeys_rules
from gitsched.decide.tenants.tenant_views import TenantClusters
from gitsched.kinds.table import is_namespaced as is_namespaced_by_table
from gitsched.model.changes import RENAMED_FROM
from gitsched.model.document import Document, Key, is_namespaced, parse_api_group, read_annotations
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.tenants import TENANT_CHANGED, TENANT_KIND
from gitsched.render.output_files import escape_segment

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.apis.gitsched.tenant import Tenant
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.changed_documents import ChangedTenants, SourceDiff
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.plan_state import PlanRows, Totals
    from gitsched.decide.tenants.tenant_amounts import Amounts
    from gitsched.model.finding import Finding

NO_LIMITS = TenantLimits()


def keeps_tenants(decisions: DecisionSet, findings: tuple[Finding, ...]) -> bool:
    """Return whether the next plan may continue one with tenants: a Tenant refuses at most documents that break a rule by themselves, and
    each workload is a template that its owner's engines decide alone. `findings` are all of the plan."""
    decided = frozenset(decisions.findings)
    return not (
        decisions.refused
        or decisions.own_workloads
        or any(
            finding.code.startswith("tenant-") and (finding in decided or not is_about_one_document(finding))
            for finding in findings
            if finding.code != TENANT_CHANGED
        )
        or any(_is_escaped_namespace(key) for key in decisions.catalog.templates)
        or any(policy_apis[engine.name].shared_workloads is not None for engine in decisions.engines)
    )


def _is_escaped_namespace(key: Key) -> bool:
    """Return whether a key is that of a Namespace whose directory has another name."""
    return key[:2] == NAMESPACE and escape_segment(key.name) != key.name


def measure_limited(decisions: DecisionSet) -> Mapping[Key, Amounts]:
    """Return what each workload of a tenant with limits has in its clusters."""
    tenancy = decisions.tenancy
    if tenancy is None:
        return {}
    limited = list_limited_owners(tenancy)
    variants, config = decisions.variants, decisions.input.config if decisions.input is not None else None
    assert config is not None, "a source with tenants is an input"
    return {
        key: measure_outcome(outcome, decisions.templates[key], variants, config)
        for key, outcome in decisions.outcomes.items()
        if tenancy.find_owner(key) in limited
    }


def list_concerned(rows: PlanRows, changed: ChangedTenants, tenancy: Tenancy) -> list[Key]:
    """Return the placed workloads of tenants whose rules differ in more than amounts that are measured already."""
    owners = {
        owner
        for owner in changed.owners
        if not _differ_in_limits_alone(changed.before.list_rules(owner), tenancy.list_rules(owner))
    }
    index = rows.template_index.items() if owners else ()
    return [key for key, entry in index if entry.placement is not None and tenancy.paths.find_owner(entry.path) in owners]


def _differ_in_limits_alone(before: tuple[Tenant, ...], after: tuple[Tenant, ...]) -> bool:
    """Return whether only the limits of a tenant differ, and the amounts of its workloads are known."""
    plain = (list_plain(tenant._replace(limits=NO_LIMITS) for tenant in rules) for rules in (before, after))
    return next(plain) == next(plain) and (has_limits(before) or not has_limits(after))


def list_namespaces(totals: Totals, changed: ChangedTenants, snapshot: Snapshot) -> Iterator[Key]:
    """Yield the Namespaces of tenants whose rules differ: other clusters may get them."""
    assert snapshot.tenancy is not None, "the source has tenants"
    keys = (Key(*NAMESPACE, "", directory) for directory in totals.namespace_manifests)
    return (key for key in keys if snapshot.tenancy.find_owner(key) in changed.owners)


def _may_change_rules(totals: Totals, rows: PlanRows, diff: SourceDiff, changed: ChangedTenants, snapshot: Snapshot) -> bool:
    """Return whether changed Tenants allow the same documents as before, wherever workloads may go and in whatever amounts."""
    tenancy = snapshot.tenancy
    assert tenancy is not None, "the source has tenants"
    if totals.source.with_variants:
        return False
    paths = {one.location.path for one in list_plan_findings(totals) if is_about_one_document(one) and one.location}
    refusing = {tenant.name for path in paths for tenant in tenancy.paths.find(path)}
    written = {key.name for key in diff.api_documents if key[:2] == TENANT_KIND}
    if refusing & (changed.owners | written):  # the findings name the lines of the rules
        return False
    for owner in changed.owners:
        before, after = changed.before.list_rules(owner), tenancy.list_rules(owner)
        if {tenant.reads for tenant in before} != {tenant.reads for tenant in after}:
            return False
        own = (document for listed in snapshot.documents.values() for document in listed)
        if any(tenancy.find_owner(one.key) == owner and check_object(one.key, one, after) is not None for one in own):
            return False
        for key, entry in rows.template_index.items():
            if tenancy.paths.find_owner(entry.path) != owner:
                continue
            if RENAMED_FROM in entry.annotations or check_object(key, Document(key, "", {}, None), after) is not None:
                return False
    return True


def may_continue_tenants(totals: Totals, rows: PlanRows, diff: SourceDiff, snapshot: Snapshot) -> bool:
    """Return whether the changed documents count as they are, and leave all others to their owners, with the same clusters."""
    tenancy = snapshot.tenancy
    if tenancy is None or totals.engines.observations or snapshot.observations or totals.retiring:
        return False
    if diff.tenants is not None and not _may_change_rules(totals, rows, diff, diff.tenants, snapshot):
        return False
    pairs = {**diff.templates, **diff.api_documents}
    if not all(_is_admitted(pair, tenancy, totals) for pair in pairs.values()):
        return False
    came = {key for key, (before, _) in pairs.items() if before is None}
    gone = {key for key, (_, after) in pairs.items() if after is None}
    return (
        not have_taken_paths(came, rows.template_index)
        and _keep_owners(gone, pairs, rows, tenancy)
        and _keep_clusters(diff, totals, snapshot, tenancy)
    )


def _is_admitted(pair: DocumentPair, tenancy: Tenancy, totals: Totals) -> bool:
    """Return whether a changed document keeps its owner, who had something before, and whether the Tenant allows it."""
    owners = {find_document_owner(tenancy.paths, document) for document in pair if document is not None}
    owner, document = next(iter(owners)), pair[1]
    if len(owners) > 1 or owner not in totals.owners or (document is not None and _is_escaped_namespace(document.key)):
        return False
    if owner == PLATFORM:
        return True
    if any(one is not None and one.key[:2] in list_cluster_kinds() for one in pair):
        return False
    if document is None:
        return True
    rules = tenancy.paths.find(document.origin.path) if document.origin is not None else ()
    return (
        _has_known_scope(document.key, totals.config)
        and check_object(document.key, document, rules) is None
        and RENAMED_FROM not in read_annotations(document.body)
    )


def _has_known_scope(key: Key, config: Config) -> bool:
    """Return whether Kubernetes, an operator or the settings say whether a kind is namespaced, whoever uses it."""
    kind = key[:2]
    declared = ((parse_api_group(scope.api_version), scope.kind) for scope in config.kinds)
    return is_namespaced(*kind) is not None or is_namespaced_by_table(*kind) is not None or kind in declared


def _keep_owners(gone: set[Key], pairs: Mapping[Key, DocumentPair], rows: PlanRows, tenancy: Tenancy) -> bool:
    """Return whether each tenant of which a document goes has templates left."""
    losing = {tenancy.find_owner(key) for key in gone} - {PLATFORM}
    losing -= {tenancy.find_owner(key) for key, (_, after) in pairs.items() if after is not None}
    if not losing:
        return True
    for key, entry in rows.template_index.items():
        if key not in gone:
            losing.discard(tenancy.paths.find_owner(entry.path))
    return not losing


def _keep_clusters(diff: SourceDiff, totals: Totals, snapshot: Snapshot, tenancy: Tenancy) -> bool:
    """Return whether each owner may use the same clusters as before, and new ones, which nothing else is about."""
    kinds = list_cluster_kinds()
    if not any(key[:2] in kinds for key in diff.api_documents):
        return True
    after = TenantClusters(snapshot.documents, tenancy)
    before = TenantClusters(list_former_documents(kinds, snapshot.documents, diff.api_documents), tenancy)
    same = before.platform.keys() & after.platform.keys()
    changed = [name for name in same if before.platform[name] != after.platform[name]]
    for owner in totals.owners:
        if any((before.find_forbidding(owner, name) is None) != (after.find_forbidding(owner, name) is None) for name in changed):
            return False
    # The Tenants do not know the labels of a cluster that retires.
    return before.platform.keys() <= after.platform.keys()


def measure_changes(changes: IncrementalChanges) -> Mapping[Key, Amounts]:
    """Return what the decided workloads of tenants with limits have in their clusters. Raise NeedsCompletePlan if a Tenant may not allow
    something."""
    snapshot, tenancy = changes.snapshot, changes.snapshot.tenancy
    assert tenancy is not None, "the source has tenants"
    changed = changes.diff.tenants.owners if changes.diff.tenants is not None else frozenset[str]()
    named = bool(changes.diff.api_documents or changed)
    if changes.own or not obeys_rules(changes.outcomes, changes.documents, snapshot, named=named):
        raise NeedsCompletePlan("a Tenant may not allow what is decided")
    found: dict[Key, Amounts] = {}
    touched = changed.union(tenancy.find_owner(key) for key in (*changes.outcomes, *changes.removed))
    for owner in sorted(touched):
        rules = tenancy.list_rules(owner)
        if not has_limits(rules):
            continue
        own = {
            key: measure_outcome(outcome, changes.documents[key], {}, snapshot.config)
            for key, outcome in changes.outcomes.items()
            if tenancy.find_owner(key) == owner
        }
        found |= own
        if exceeds_limits((*own.values(), *_list_amounts(changes, tenancy, owner)), rules):
            raise NeedsCompletePlan(f"the tenant {owner} exceeds a limit")
    return found


def _list_amounts(changes: IncrementalChanges, tenancy: Tenancy, owner: str) -> Iterator[Amounts]:
    """Yield what the workloads of a tenant have that were not decided again."""
    for key, entry in changes.rows.template_index.items():
        if entry.placement is None or key in changes.outcomes or key in changes.removed:
            continue
        row = changes.rows.read_workload(key) if tenancy.paths.find_owner(entry.path) == owner else None
        if row is not None and row.amounts is not None:
            yield row.amounts
