"""Which Tenant owns which path and which object of a source."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.bundle import ClusterMetadata
    from gitsched.apis.gitsched.tenant import Tenant
    from gitsched.model.document import Key

PLATFORM: Final = ""
"""The owner of what belongs to no Tenant."""


class TenantPaths:
    """The Tenants by path: a path belongs to the one with the longest directory that contains it.

    Letter case and Unicode form do not count, as on the file systems where such directories are one: no directory beside that of a Tenant
    belongs to the platform because of its spelling.

    There are those of the trusted side and those of the planned commit, and what both say counts: a commit can only narrow its own rules.
    """

    def __init__(self, trusted: Iterable[Tenant], own: Iterable[Tenant]) -> None:
        self.trusted, self.own = tuple(trusted), tuple(own)
        self._sets = [_index(tenants) for tenants in (self.trusted, self.own)]
        self._found: dict[str, tuple[Tenant, ...]] = {}
        self._rules: dict[str, tuple[Tenant, ...]] = {}
        for tenant in (tenant for by_path in self._sets for tenant in by_path.values()):
            self._rules[tenant.name] = _unique((*self._rules.get(tenant.name, ()), tenant))

    @property
    def has_settled(self) -> bool:
        """Whether the rules of each path are the same once the planned commit is the trusted side."""
        later = TenantPaths(self.own, self.own)
        return all(self.find(directory) == later.find(directory) for directory in self._list_directories())

    @property
    def unsettled(self) -> tuple[Tenant, ...] | None:
        """The Tenants of the trusted side; None if the rules of each path are the same once the planned commit is that side."""
        return None if self.has_settled else self.trusted

    def has_owners_of(self, other: TenantPaths) -> bool:
        """Return whether each path has the same owner as with other Tenants, and the owners have the same order."""
        directories = {*self._list_directories(), *other._list_directories()}
        return self.list_owners() == other.list_owners() and all(
            {tenant.name for tenant in self.find(one)} == {tenant.name for tenant in other.find(one)} for one in directories
        )

    def list_changed_owners(self, other: TenantPaths) -> frozenset[str]:
        """Return the names of the Tenants whose rules differ from those that other ones have, wherever these are written."""
        rules, others = self.list_rules_by_owner(), other.list_rules_by_owner()
        return frozenset(name for name in {**rules, **others} if rules.get(name) != others.get(name))

    def _list_directories(self) -> set[str]:
        return {path for by_path in self._sets for path in by_path}

    def find(self, path: str) -> tuple[Tenant, ...]:
        """Return the Tenants whose rules count for a file or directory, the owner first; () for the platform."""
        found = self._found.get(path)
        if found is None:
            folded = fold_path(path)
            at_path = [by_path[folded] for by_path in self._sets if folded in by_path]
            parent = posixpath.dirname(path)
            inherited = self.find(parent) if parent != path and path else ()
            found = inherited if not at_path else _unique(self._find_each(folded))
            self._found[path] = found
        return found

    def _find_each(self, path: str) -> Iterable[Tenant]:
        for by_path in self._sets:
            directory = path
            while directory and directory not in by_path:
                directory = posixpath.dirname(directory)
            if directory:
                yield by_path[directory]

    def find_owner(self, path: str) -> str:
        """Return the name of the Tenant of a path; "" for the platform."""
        found = self.find(path)
        return found[0].name if found else PLATFORM

    def list_rules(self, owner: str) -> tuple[Tenant, ...]:
        """Return the Tenants of a name, that of the trusted side first."""
        return self._rules.get(owner, ())

    def list_owners(self) -> list[str]:
        """Return the names of all Tenants, by precedence and name."""
        precedence: dict[str, int] = {}
        for tenant in (tenant for by_path in self._sets for tenant in by_path.values()):
            precedence.setdefault(tenant.name, tenant.precedence)
        return sorted(precedence, key=lambda name: (-precedence[name], name))

    def list_rules_by_owner(self) -> dict[str, tuple[Tenant, ...]]:
        """Return the rules of each Tenant, wherever these are written."""
        return {name: list_plain(self.list_rules(name)) for name in self.list_owners()}

    def may_read(self, owner: str, path: str) -> bool:
        """Return whether builds of an owner may read a file: its own, those that its Tenants name, and for the platform its own only."""
        found = self.find_owner(path)
        if found == owner:
            return True
        rules = self.list_rules(owner)
        return bool(rules) and all(any(is_below(path, directory) for directory in tenant.reads) for tenant in rules)


def _unique(tenants: Iterable[Tenant]) -> tuple[Tenant, ...]:
    found: list[Tenant] = []
    found.extend(tenant for tenant in tenants if tenant not in found)
    return tuple(found)


def list_plain(rules: Iterable[Tenant]) -> tuple[Tenant, ...]:
    """Return Tenants without the places where they are written."""
    return _unique(tenant._replace(location=None, fields={}) for tenant in rules)


def _index(tenants: tuple[Tenant, ...]) -> dict[str, Tenant]:
    by_path: dict[str, Tenant] = {}
    for tenant in tenants:
        for path in tenant.paths:
            by_path.setdefault(fold_path(path), tenant)
    return by_path


def fold_path(path: str) -> str:
    """Return what paths share that differ in letter case or Unicode form only."""
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def is_below(path: str, directory: str) -> bool:
    """Return whether a path is a directory or below it; "." is the root."""
    return directory == "." or path == directory or path.startswith(f"{directory}/")


class Tenancy(NamedTuple):
    """The owners of the objects of a source: Tenants by the keys of their documents; all others are the platform's."""

    paths: TenantPaths
    owners: Mapping[Key, str] = {}

    def find_owner(self, key: Key) -> str:
        """Return the name of the Tenant that owns an object; "" for the platform."""
        return self.owners.get(key, PLATFORM)

    def with_owners_of(self, other: Tenancy, keys: Collection[Key]) -> Tenancy:
        """Return the Tenants with the owners that other ones have of some objects."""
        owners = {key: owner for key, owner in self.owners.items() if key not in keys}
        return self._replace(owners=owners | {key: other.owners[key] for key in keys if key in other.owners})

    def list_rules(self, owner: str) -> tuple[Tenant, ...]:
        """Return the Tenants of a name; () for the platform."""
        return self.paths.list_rules(owner)

    def find_forbidding(self, owner: str, cluster: ClusterMetadata) -> Tenant | None:
        """Return the Tenant that keeps the objects of an owner from a cluster; None if they may be there."""
        return next((tenant for tenant in self.list_rules(owner) if not tenant.allows_cluster(cluster)), None)


def find_owner(tenancy: Tenancy | None, key: Key) -> str:
    """Return the name of the Tenant that owns an object; "" for the platform, and in a source without Tenants."""
    return PLATFORM if tenancy is None else tenancy.find_owner(key)
