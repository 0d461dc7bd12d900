"""The Tenant: which documents of some directories count, on which clusters, and up to which amounts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

from gitsched.apis.gitsched.bundle import EVERY_CLUSTER, ClusterMetadata, ClusterRule, normalize_path, parse_cluster_rule
from gitsched.model.document import Body, as_object, get_field, get_text, list_objects
from gitsched.model.finding import Issue, Location, Pointer
from gitsched.model.labels import parse_selector
from gitsched.model.quantity import Quantity, parse_quantity
from gitsched.named_tuples import NamedTuple

_WILDCARDS = frozenset("*?[")
PolicyScope = Literal["None", "Namespaced", "Cluster"]


class KindRule(NamedTuple):
    """Cluster-scoped objects that a tenant may define: a kind as KIND or KIND.GROUP, and patterns for their names."""

    kind: str
    names: tuple[str, ...] = ("*",)


class TenantLimits(NamedTuple):
    """What all workloads of a tenant may have together in all clusters; `replicas` is None without a limit. `requests` are by resource."""

    replicas: int | None = None
    requests: Mapping[str, Quantity] = {}


class Tenant(NamedTuple):
    """A Tenant in force. `location` is where it is defined, `fields` are line and column of its fields by their dotted path, and `closed`
    says why nothing is allowed, or is "". `reserve` is the loss that its workloads have to survive, one of RESERVE_LOSSES, "" for none.

    `kinds` are the namespaced kinds that are allowed, None for all but those that make a delivery tool deliver; `denied_kinds` are
    exceptions from these.
    """

    name: str
    paths: tuple[str, ...]
    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] | None = None
    denied_kinds: tuple[str, ...] = ()
    cluster_kinds: tuple[KindRule, ...] = ()
    clusters: ClusterRule = EVERY_CLUSTER
    policies: PolicyScope = "Namespaced"
    limits: TenantLimits = TenantLimits()
    reads: tuple[str, ...] = ()
    precedence: int = 0
    priority_classes: tuple[str, ...] = ()
    reserve: str = ""
    location: Location | None = None
    closed: str = ""
    fields: Mapping[str, tuple[int, int]] = {}

    @property
    def title(self) -> str:
        """Its name with the file and line, as messages show it."""
        return f"Tenant {self.name} ({self.location.path}:{self.location.line})" if self.location else f"Tenant {self.name}"

    def describe_rule(self, field: str) -> str:
        """Return its name with the file, line and column of a field, or of the nearest one around it that it has."""
        while field and field not in self.fields:
            field = field.rpartition(".")[0]
        if self.location is None or not field:
            return self.title
        line, column = self.fields[field]
        return f"Tenant {self.name} ({self.location.path}:{line}:{column})"

    def has_rules_of(self, other: Tenant) -> bool:
        """Return whether both allow the same, wherever they are written."""
        return self._replace(location=None, fields={}) == other._replace(location=None, fields={})

    def allows_namespace(self, namespace: str) -> bool:
        """Return whether the tenant may define objects in a namespace."""
        return not self.closed and any(fnmatchcase(namespace, pattern) for pattern in self.namespaces)

    def select_namespaces(self, namespaces: Collection[str]) -> frozenset[str]:
        """Return those of some namespaces in which the tenant may define objects."""
        patterns = () if self.closed else self.namespaces
        with_wildcards = [pattern for pattern in patterns if not _WILDCARDS.isdisjoint(pattern)]
        named = (pattern for pattern in patterns if pattern in namespaces and _WILDCARDS.isdisjoint(pattern))
        compared = namespaces if with_wildcards else ()
        return frozenset((*named, *(one for one in compared if any(fnmatchcase(one, pattern) for pattern in with_wildcards))))

    def allows_kind(self, group: str, kind: str, delivers: bool) -> bool:
        """Return whether the tenant may define objects of a namespaced kind. One that `delivers` others must be named."""
        if self.closed or self.find_denied(group, kind) is not None:
            return False
        if self.kinds is None:
            return not delivers
        return any(matches_kind(pattern, group, kind) for pattern in self.kinds if not delivers or pattern.strip("*."))

    def find_denied(self, group: str, kind: str) -> int | None:
        """Return the index of the first pattern that denies a kind; None if none does."""
        return next((index for index, pattern in enumerate(self.denied_kinds) if matches_kind(pattern, group, kind)), None)

    def allows_cluster_object(self, group: str, kind: str, name: str) -> bool:
        """Return whether the tenant may define an object of a cluster-scoped kind."""
        return not self.closed and any(
            matches_kind(rule.kind, group, kind) and any(fnmatchcase(name, pattern) for pattern in rule.names)
            for rule in self.cluster_kinds
        )

    def allows_priority_class(self, name: str) -> bool:
        """Return whether policies of the tenant may name a PriorityClass."""
        return not self.closed and any(fnmatchcase(name, pattern) for pattern in self.priority_classes)

    def allows_cluster(self, cluster: ClusterMetadata) -> bool:
        """Return whether objects of the tenant may be placed in a cluster."""
        return not self.closed and self.clusters.matches(cluster)


def matches_kind(pattern: str, group: str, kind: str) -> bool:
    """Return whether a pattern, KIND or KIND.GROUP with `*`, matches a kind. A kind of the core group has no group in its pattern."""
    if "." not in pattern:
        return fnmatchcase(kind, pattern)
    return fnmatchcase(f"{kind}.{group}" if group else kind, pattern)


def parse_tenant(body: Body, location: Location | None = None) -> Tenant:
    """Parse a valid Tenant."""
    spec = as_object(body.get("spec"))
    kinds, limits = as_object(spec.get("kinds")), as_object(spec.get("limits"))
    replicas, precedence, policies = limits.get("replicas"), spec.get("precedence"), spec.get("policies")
    requests = {name: found for name, value in as_object(limits.get("requests")).items() if (found := parse_quantity(value))}
    scope: PolicyScope = "None" if policies == "None" else "Cluster" if policies == "Cluster" else "Namespaced"
    return Tenant(
        str(get_field(body, "metadata", "name") or ""),
        tuple(dict.fromkeys(map(normalize_path, _read_texts(spec.get("paths"))))),
        _read_texts(spec.get("namespaces")),
        _read_texts(kinds["allow"]) if isinstance(kinds.get("allow"), list) else None,
        _read_texts(kinds.get("deny")),
        tuple(
            KindRule(str(entry.get("kind") or ""), _read_texts(entry["names"]) if isinstance(entry.get("names"), list) else ("*",))
            for entry in list_objects(spec.get("clusterKinds"))
        ),
        parse_cluster_rule(spec.get("clusters")),
        scope,
        TenantLimits(replicas if type(replicas) is int else None, requests),
        tuple(dict.fromkeys(map(normalize_path, _read_texts(spec.get("reads"))))),
        precedence if type(precedence) is int else 0,
        _read_texts(spec.get("priorityClasses")),
        get_text(as_object(spec.get("reserve")), "lose"),
        location,
    )


def read_closed_tenant(body: Body, location: Location | None, reason: str) -> Tenant:
    """Return a Tenant that allows nothing below the paths of a document that cannot be used, for a `reason`."""
    paths = get_field(body, "spec", "paths")
    paths = [paths] if isinstance(paths, str) else paths
    name = str(get_field(body, "metadata", "name") or "")
    return Tenant(name, tuple(map(normalize_path, _read_texts(paths))), location=location, closed=reason)


def validate_tenant(body: Body) -> Iterator[Issue]:
    """List what is wrong with a Tenant that its schema accepts."""
    spec = as_object(body.get("spec"))
    for member in ("paths", "reads"):
        for index, path in enumerate(_read_texts(spec.get(member))):
            found = normalize_path(path)
            pointer: Pointer = ("spec", member, index)
            if found.startswith("..") or not _WILDCARDS.isdisjoint(found):
                message = f"{path} is not a directory of the repository: write it from the root, without .. and without patterns"
                yield Issue("error", "tenant-invalid", message, pointer)
            elif found == "." and member == "paths":
                message = "the root of the repository cannot belong to a tenant: name its directories"
                yield Issue("error", "tenant-invalid", message, pointer)
    clusters = as_object(spec.get("clusters"))
    if ("matchLabels" in clusters or "matchExpressions" in clusters) and parse_selector(clusters) is None:
        message = "the label selector is invalid, so it selects no cluster: correct keys, values and operators"
        yield Issue("error", "tenant-invalid", message, ("spec", "clusters"))
    for name, value in as_object(get_field(spec, "limits", "requests")).items():
        quantity = parse_quantity(value)
        if quantity is None or quantity.nano < 0:
            message = f"{value!r:.60} is not a quantity: write it as Kubernetes does, such as 20 or 64Gi"
            yield Issue("error", "tenant-invalid", message, ("spec", "limits", "requests", name))


def _read_texts(value: Any) -> tuple[str, ...]:
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()
