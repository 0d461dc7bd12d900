"""The Tenants of a run that starts from the state of the last one, and which of their rules differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gitsched.apis.gitsched.tenancy import TenantPaths
from gitsched.decide.catalog import RawDocument
from gitsched.decide.incremental.changed_documents import ChangedTenants
from gitsched.model.document import get_field
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.tenants import TENANT_CHANGED, TENANT_KIND
from gitsched.reconcile.tenants.source_tenants import FoundTenants, read_tenants, read_trusted_tenants
from gitsched.reconcile.tenants.tenant_rules import RulePositions, make_rule_locator, read_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.git import Repository
    from gitsched.model.document import Body, Document, Origin


def read_changed_rules(
    repository: Repository,
    records: Sequence[Mapping[str, Any]],
    totals: Totals,
    diff: SourceDiff,
    documents: Mapping[tuple[str, str], tuple[Document, ...]],
) -> tuple[TenantPaths, ChangedTenants | None]:
    """Return the Tenants that count, and what changed about them since the last plan. Raise NeedsCompletePlan if only a complete plan can
    tell.

    `records` are the Tenants of the last run, as gitsched.json has them, and `documents` those of policy APIs.
    """
    known = read_trusted_tenants(records)
    changed = frozenset(key.name for key in diff.api_documents if key[:2] == TENANT_KIND)
    if not changed and totals.trusted_tenants is None:
        return TenantPaths(known, known), None
    before = TenantPaths(known if totals.trusted_tenants is None else totals.trusted_tenants, known)
    found = FoundTenants(TenantPaths(known, known), tuple(records), ())
    if changed:
        found = _read_tenants(repository, records, documents.get(TENANT_KIND, ()), changed)
    tenants = (*before.trusted, *before.own, *found.paths.trusted, *found.paths.own)
    if any(finding.code != TENANT_CHANGED for finding in found.findings) or any(tenant.closed for tenant in tenants):
        raise NeedsCompletePlan("something is found about a changed Tenant, or one is closed")
    if not before.has_owners_of(found.paths):
        raise NeedsCompletePlan("paths get another owner")
    owners = before.list_changed_owners(found.paths)
    return found.paths, ChangedTenants(before, owners, found.findings, found.records)


def _read_tenants(
    repository: Repository, records: Sequence[Mapping[str, Any]], documents: Sequence[Document], changed: frozenset[str]
) -> FoundTenants:
    """Return the Tenants of the source, of which only `changed` ones are parsed for the places of their rules."""
    locate_changed, known = make_rule_locator(repository), {str(record.get("name")): record for record in records}

    def locate(body: Body, origin: Origin | None) -> RulePositions:
        name = str(get_field(body, "metadata", "name"))
        return locate_changed(body, origin) if name in changed or name not in known else read_positions(known[name])

    raw = [RawDocument(one.body, one.origin, False, one.api_version, *one.key) for one in documents]
    return read_tenants(raw, records, locate)
