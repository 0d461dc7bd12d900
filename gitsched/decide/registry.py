"""The registered policy APIs, in the order in which they decide a workload. A new API is one package under apis/ and one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import GROUP, add_settings_section
from gitsched.apis.karmada.registration import API as KARMADA
from gitsched.apis.knative.registration import API as KNATIVE
from gitsched.apis.krake.registration import API as KRAKE
from gitsched.apis.ocm.registration import API as OCM
from gitsched.apis.topology import add_cluster_kind
from gitsched.model.document import add_kinds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gitsched.apis.cluster_format import ClusterFormat
    from gitsched.apis.policy_api import PolicyAPI
    from gitsched.model.document import Body

policy_apis: dict[str, PolicyAPI] = {}
"""The registered APIs by name, in the order of registration. Only `register` adds one."""
apis_by_group: dict[str, PolicyAPI] = {}
"""The API that reads each API group."""
reserved_groups: set[str] = {GROUP}
"""The API groups whose documents are read by gitsched and never delivered as they are."""


def list_absence_codes() -> frozenset[str]:
    """Return the codes of findings that something is missing, which count only where the source has all of its objects."""
    return frozenset[str]().union(*(api.absence_codes for api in policy_apis.values()))


def register(api: PolicyAPI) -> None:
    """Add a policy API. An API outside of this package is registered before anything is read: see docs/development/architecture.md.

    Raise ValueError if an API of this name or one that reads the same API group is registered already.
    """
    if api.name in policy_apis or not api.groups.isdisjoint(reserved_groups):
        raise ValueError(f"the policy API {api.name!r} or one of its groups is registered already")
    policy_apis[api.name] = api
    apis_by_group.update(dict.fromkeys(api.groups, api))
    reserved_groups.update(api.groups)
    add_kinds(api.kinds._replace(groups=api.kinds.groups | api.groups))
    if api.topology is not None:
        add_cluster_kind(api.topology)
    if api.settings is not None:
        add_settings_section(api.settings)


def read_required_by(api: str, records: Iterable[Body]) -> frozenset[tuple[str, str]]:
    """Return the records of the workloads that bring a workload along, as (namespace, name), given its own records of an API."""
    read = policy_apis[api].read_removed_workload
    found = [workload for body in records if (workload := read(body)) is not None] if read is not None else ()
    return frozenset[tuple[str, str]]().union(*(workload.required_by for workload in found))


def is_active(api: PolicyAPI, kinds: Collection[tuple[str, str]]) -> bool:
    """Return whether documents of these kinds make an API active."""
    if api.active_kinds is not None:
        return not api.active_kinds.isdisjoint(kinds)
    return any(group in api.groups for group, _ in kinds)


def load_cluster_formats() -> dict[str, ClusterFormat]:
    """Return how the APIs that have clusters write them as documents, by API."""
    return {name: api.load_cluster_format() for name, api in policy_apis.items() if api.load_cluster_format is not None}


BUILT_IN = (KARMADA, KRAKE, OCM, KNATIVE)
for _api in BUILT_IN:
    register(_api)
