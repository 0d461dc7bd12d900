"""Which Namespaces of the source a cluster gets in a source with tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TypeVar

from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy
from gitsched.apis.policy_api import GroupKind
from gitsched.decide.tenants.tenant_views import TenantClusters
from gitsched.model.document import Document, Key
from gitsched.render.output_files import escape_segment

V = TypeVar("V")


def make_namespace_filter(
    own: Mapping[str, V], keys: Iterable[Key], documents: Mapping[GroupKind, tuple[Document, ...]], tenancy: Tenancy
) -> Callable[[str], Mapping[str, V]]:
    """Return what gives the Namespaces of a cluster out of `own`, which has those of the source by directory, with their `keys`.
    `documents` are those of policy APIs.

    A Namespace of a tenant that may not be in the cluster is not among them: objects of the platform can be there, and what the tenant
    writes into its Namespace has no effect on them.
    """
    clusters = TenantClusters(documents, tenancy)
    owners = {escape_segment(key.name): tenancy.find_owner(key) for key in keys if (key.group, key.kind) == ("", "Namespace")}

    @cache
    def select(cluster: str) -> Mapping[str, V]:
        return {
            directory: entry
            for directory, entry in own.items()
            if clusters.find_forbidding(owners.get(directory, PLATFORM), cluster) is None
        }

    return select
