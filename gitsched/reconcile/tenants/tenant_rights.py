"""Read what the Tenants of a source allow in terms of clusters, namespaces and names, for the objects of delivery tools."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from gitsched.apis.gitsched.tenancy import Tenancy
from gitsched.apis.gitsched.tenant import Tenant, matches_kind
from gitsched.decide.tenants.tenant_views import TenantClusters
from gitsched.git.remote_refs import find_remote_url
from gitsched.model.document import Key
from gitsched.model.urls import strip_credentials
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.review.ignored_settings import log_ignored_settings
from gitsched.reconcile.run import Planned, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source_plan import use_plan
from gitsched.render.tenant_objects import TenantRights

CORE_KINDS = frozenset(
    (
        *("ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod"),
        *("ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount"),
    )
)
"""Kinds of Kubernetes' core group: a pattern without a group stands for these, or for a kind of any group."""


class TenantDelivery(NamedTuple):
    """What all Tenants allow, by name; the URL of the output repository is "" if it is unknown."""

    rights: tuple[TenantRights, ...]
    url: str


def read_tenant_rights(settings: RunSettings, url: str | None) -> TenantDelivery:
    """Return what the Tenants of a source allow. Nothing is written. `url` is the address of the output for delivery tools."""
    context = open_context(settings._replace(observations="recorded"))
    fetched = fetch(context)
    known = strip_credentials(url or fetched.output.remote or find_remote_url(fetched.output.repository, "origin"))
    planned, rights = use_plan(context, fetched, settings.now, _list_rights)
    log_ignored_settings(planned.plan)
    return TenantDelivery(rights, known or "")


def _list_rights(planned: Planned) -> tuple[TenantRights, ...]:
    decisions = planned.plan.decisions
    source = decisions.input
    if source is None or source.tenancy is None:
        return ()
    tenancy, clusters = source.tenancy, TenantClusters(decisions.catalog.api_documents, source.tenancy)
    return tuple(
        make_rights(_narrow(tenant, tenancy.list_rules(tenant.name)), clusters, tenancy, planned.plan.cluster_facts)
        for tenant in sorted(tenancy.paths.own, key=lambda tenant: tenant.name)
        if not any(other.closed for other in tenancy.list_rules(tenant.name))
    )


def _narrow(tenant: Tenant, versions: tuple[Tenant, ...]) -> Tenant:
    """Return a Tenant with what its trusted version and that of the planned commit both name."""
    for other in versions:
        kinds = other.kinds if tenant.kinds is None else tenant.kinds
        tenant = tenant._replace(
            namespaces=tuple(pattern for pattern in tenant.namespaces if pattern in other.namespaces),
            kinds=kinds if kinds is None or other.kinds is None else tuple(kind for kind in kinds if kind in other.kinds),
            denied_kinds=tuple(dict.fromkeys((*tenant.denied_kinds, *other.denied_kinds))),
            cluster_kinds=tuple(rule for rule in tenant.cluster_kinds if rule in other.cluster_kinds),
        )
    return tenant


def make_rights(tenant: Tenant, clusters: TenantClusters, tenancy: Tenancy, known: Mapping[str, object]) -> TenantRights:
    """Return what a Tenant allows, with the names of the objects that its tenant has now where it has patterns."""
    own = [key for key, owner in tenancy.owners.items() if owner == tenant.name]
    full = (pattern for pattern in tenant.namespaces if not set(pattern) & set("*?["))
    used = (key.namespace for key in own if key.namespace)
    return TenantRights(
        tenant.name,
        tenant.namespaces,
        tuple(sorted({*full, *used})),
        tuple(sorted(name for name in known if clusters.find_forbidding(tenant.name, name) is None)),
        None if tenant.kinds is None else tuple(map(_split_kind, tenant.kinds)),
        tuple(map(_split_kind, tenant.denied_kinds)),
        _list_cluster_objects(tenant, own),
    )


def _split_kind(pattern: str) -> tuple[str, str]:
    kind, _, group = pattern.partition(".")
    return (group or ("" if kind in CORE_KINDS else "*")), kind


def _list_cluster_objects(tenant: Tenant, own: list[Key]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the names of cluster-scoped objects by kind: those that are named in full, and those that the tenant has now."""
    found: dict[tuple[str, str], set[str]] = {}
    for rule in tenant.cluster_kinds:
        names = found.setdefault(_split_kind(rule.kind), set())
        names |= {name for name in rule.names if not set(name) & set("*?[")}
        names |= {
            key.name
            for key in own
            if not key.namespace
            and matches_kind(rule.kind, key.group, key.kind)
            and any(fnmatchcase(key.name, pattern) for pattern in rule.names)
        }
    return {kind: tuple(sorted(names)) for kind, names in found.items()}
