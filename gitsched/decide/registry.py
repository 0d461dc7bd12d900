"""The registered policy APIs, in the order in which they decide a workload. A new API is one package under apis/ and one line here."""

from __future__ import annotations

from gitsched.apis.gitsched.config import GROUP, add_settings_section
from gitsched.apis.karmada.registration import API as KARMADA
from gitsched.apis.knative.registration import API as KNATIVE
from gitsched.apis.krake.registration import API as KRAKE
from gitsched.apis.ocm.registration import API as OCM
from gitsched.apis.policy_api import PolicyAPI, PolicyEngine, Snapshot, needs_engine
from gitsched.model.document import add_kinds

policy_apis: dict[str, PolicyAPI] = {}
"""The registered APIs by name, in the order of registration. Only `register` adds one."""
apis_by_group: dict[str, PolicyAPI] = {}
"""The API that reads each API group."""
_reserved = frozenset({GROUP})


def register(api: PolicyAPI) -> None:
    """Add a policy API. An API outside of this package is registered before anything is read: see docs/architecture.md.

    Raise ValueError if an API of this name or one that reads the same API group is registered already.
    """
    global _reserved
    if api.name in policy_apis or not api.groups.isdisjoint(_reserved):
        raise ValueError(f"the policy API {api.name!r} or one of its groups is registered already")
    policy_apis[api.name] = api
    apis_by_group.update(dict.fromkeys(api.groups, api))
    _reserved |= api.groups
    add_kinds(api.kinds._replace(groups=api.kinds.groups | api.groups))
    if api.settings is not None:
        add_settings_section(api.settings)


def reserved_groups() -> frozenset[str]:
    """Return the API groups whose documents are read by gitsched and never delivered as they are."""
    return _reserved


def create_engines(snapshot: Snapshot) -> tuple[PolicyEngine, ...]:
    """Create the engines of the APIs that a snapshot needs."""
    return tuple(api.create_engine(snapshot) for api in policy_apis.values() if needs_engine(api, snapshot))


for _api in (KARMADA, KRAKE, OCM, KNATIVE):
    register(_api)
