"""Workloads of tenants that share a capacity and ask for more of it than their Tenants allow."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy
from gitsched.apis.snapshot import Snapshot
from gitsched.decide.tenants.tenant_admission import Violation
from gitsched.model.document import Key
from gitsched.model.finding import Finding, format_count, locate_document
from gitsched.model.tenants import TENANT_LIMIT


def find_excess(amounts: Mapping[Key, int], shared: Snapshot, tenancy: Tenancy) -> tuple[frozenset[Key], list[Finding]]:
    """Return the workloads of tenants that ask for more of a shared capacity than their Tenants allow, with findings."""
    totals: dict[str, int] = {}
    excess: set[Key] = set()
    findings: list[Finding] = []
    for key in sorted(amounts, key=lambda key: (key not in shared.previous, key)):
        owner = tenancy.find_owner(key)
        limits = ((tenant.limits.replicas, tenant) for tenant in tenancy.list_rules(owner))
        limited = [(limit, tenant) for limit, tenant in limits if limit is not None]
        if owner == PLATFORM or not limited:
            continue
        limit, tenant = min(limited, key=lambda entry: entry[0])
        total = totals.get(owner, 0) + amounts[key]
        if total <= limit:
            totals[owner] = total
            continue
        excess.add(key)
        document = shared.templates[key]
        message = f"{key}: with it the tenant asks for {format_count(total, 'replica')}, more than {limit}"
        violation = Violation(TENANT_LIMIT, tenant, message, "request fewer, or raise spec.limits.replicas", "spec.limits.replicas")
        findings.append(Finding("error", violation.code, violation.text, locate_document(document), key.resource))
    return frozenset(excess), findings
