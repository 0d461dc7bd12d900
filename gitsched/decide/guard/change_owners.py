"""Divide the changes that exceed a limit of the guard by their owners, tenants or namespaces, so that the mistake of one does not withhold
the changes of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gitsched.apis.gitsched.guard_config import MIN_PERCENT_SIZE, MIN_SCOPE_SIZE
from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy
from gitsched.decide.guard.scope_sizes import MeasuredAmount
from gitsched.model.document import Key

FindOwner = Callable[[Key], str | None]
"""Returns the owner of an object that the source no longer has; None if it is not known."""


class ChangeOwners:
    """The owners of changes: the tenant of a workload, or its namespace where it has none."""

    def __init__(self, tenancy: Tenancy | None = None, find_former: FindOwner | None = None) -> None:
        self._tenancy, self._find_former = tenancy, find_former
        self._found: dict[Key, str] = {}

    def name_owner(self, key: Key) -> str:
        """Return `tenant NAME` or `namespace NAME`."""
        if key not in self._found:
            tenant = self._find_tenant(key) if self._tenancy is not None else PLATFORM
            self._found[key] = f"tenant {tenant}" if tenant else f"namespace {key.namespace or '(none)'}"
        return self._found[key]

    def _find_tenant(self, key: Key) -> str:
        """Return the tenant of a workload. That of a removed one is the tenant whose path had its document, and where that is not known the
        first tenant that may define it."""
        assert self._tenancy is not None, "only called with tenants"
        if owner := self._tenancy.find_owner(key):
            return owner
        former = self._find_former(key) if self._find_former is not None else None
        if former is not None:
            return former
        for owner in self._tenancy.paths.list_owners():
            rules = self._tenancy.list_rules(owner)
            if key.namespace and all(tenant.allows_namespace(key.namespace) for tenant in rules):
                return owner
            if not key.namespace and all(tenant.allows_cluster_object(key.group, key.kind, key.name) for tenant in rules):
                return owner
        return PLATFORM


def choose_withheld_owners(amounts: Mapping[str, MeasuredAmount], size: int, workloads: int, percent: float) -> frozenset[str]:
    """Return the owners whose changes are withheld where all changes together exceed a limit, `percent` of `size`.

    These are the owners that exceed the limit on their own, in percent of what they have. What passes is within the limit; what is withheld
    exceeds it, so that it is also withheld in the next run, when the rest is done.
    """
    everyone = frozenset(amounts)
    if workloads <= MIN_PERCENT_SIZE:
        return everyone
    total = sum(one.amount for one in amounts.values())
    chosen = {owner for owner, one in amounts.items() if _exceeds(one, percent, exempts_small=True)}
    if 100 * (total - _add(amounts, chosen)) > percent * size:
        chosen = {owner for owner, one in amounts.items() if _exceeds(one, percent, exempts_small=False)}
    for owner in sorted(everyone - chosen, key=lambda name: (-amounts[name].amount, name)):
        if 100 * _add(amounts, chosen) > percent * size:
            break
        chosen.add(owner)
    passing = sum(min(one.amount, one.workloads) for owner, one in amounts.items() if owner not in chosen)
    return frozenset(chosen) if workloads - passing > MIN_PERCENT_SIZE else everyone


def _exceeds(one: MeasuredAmount, percent: float, *, exempts_small: bool) -> bool:
    if exempts_small and one.workloads <= MIN_PERCENT_SIZE:
        return MIN_SCOPE_SIZE < one.size <= one.amount
    return 100 * one.amount > percent * one.size


def _add(amounts: Mapping[str, MeasuredAmount], owners: Iterable[str]) -> int:
    return sum(amounts[owner].amount for owner in owners)
