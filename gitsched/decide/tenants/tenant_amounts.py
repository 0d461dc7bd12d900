"""How much the workloads of a tenant have in all clusters together: replicas, and what their pods request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.tenancy import Tenancy
from gitsched.apis.gitsched.tenant import Tenant
from gitsched.apis.replicas import count_copy_replicas
from gitsched.decide.pod_amounts import PodAmounts, ScaleTarget, find_scale_target, measure_pods
from gitsched.decide.tenants.tenant_admission import Violation
from gitsched.kinds.replicas import MAX_REPLICAS
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Document, Key
from gitsched.model.finding import format_count
from gitsched.model.quantity import Quantity
from gitsched.model.scheduling import MarkedCount, Outcome, TargetCluster
from gitsched.model.tenants import TENANT_LIMIT
from gitsched.model.variants import BUNDLE_KIND, TemplateVariants
from gitsched.named_tuples import NamedTuple

_EDITS: Final = ("replicas", "parallelism")
"""The last part of the path of an edit that sets a number of replicas."""

_Object = tuple[str, Key]
"""Cluster and key."""


@dataclass(slots=True)
class Amounts:
    """The pods of each object, and the largest numbers of replicas that autoscalers set, by cluster and key of what they scale."""

    pods: dict[_Object, PodAmounts] = field(default_factory=dict)
    scales: dict[_Object, int] = field(default_factory=dict)

    def add(self, other: Amounts) -> None:
        """Add what another workload has. An autoscaler and the workload that it scales count once, with the larger number."""
        self.pods.update(other.pods)
        for name, count in other.scales.items():
            self.scales[name] = max(self.scales.get(name, 0), count)

    @property
    def total_replicas(self) -> int:
        """The replicas in all clusters."""
        return sum(self._count(name) for name in self.pods.keys() | self.scales.keys())

    def count_requests(self, resource: str) -> int:
        """Return what all replicas request of a resource, in units of a nano."""
        return sum(pods.requests.get(resource, 0) * self._count(name) for name, pods in self.pods.items())

    def _count(self, name: _Object) -> int:
        return max(self.pods[name].replicas if name in self.pods else 0, self.scales.get(name, 0))


class TotalAmounts(NamedTuple):
    """Replicas in all clusters, and what they request, in units of a nano by resource."""

    replicas: int
    requests: Mapping[str, int]


class TenantUse:
    """What the workloads of a tenant have together. The totals are updated by what is added, whatever is there already."""

    def __init__(self) -> None:
        self._amounts = Amounts()
        self.totals = TotalAmounts(0, {})

    def sum_with(self, added: Amounts) -> TotalAmounts:
        """Return the totals with what another workload has. An autoscaler and the workload that it scales count once."""
        pods, scales = self._amounts.pods, self._amounts.scales
        replicas, requests = self.totals.replicas, dict(self.totals.requests)
        for name in added.pods.keys() | added.scales.keys():
            before, scale = pods.get(name), scales.get(name, 0)
            sides = (-1, before, scale), (1, added.pods.get(name, before), max(scale, added.scales.get(name, 0)))
            for sign, one, limit in sides:
                count = sign * max(one.replicas if one is not None else 0, limit)
                replicas += count
                for resource, amount in one.requests.items() if one is not None else ():
                    requests[resource] = requests.get(resource, 0) + amount * count
        return TotalAmounts(replicas, requests)

    def add(self, added: Amounts) -> None:
        """Add what another workload has."""
        self.totals = self.sum_with(added)
        self._amounts.add(added)


def measure_outcome(outcome: Outcome, template: Document, variants: TemplateVariants, config: Config) -> Amounts:
    """Return what a workload has in its clusters."""
    found, known = Amounts(), dict[tuple[Key, int], _ObjectAmounts]()
    for target in outcome.targets:
        bodies = list(_list_bodies(outcome, template, target, variants))
        for key, body in bodies:
            name = key, id(body)  # most clusters get the same body, which the outcome keeps
            one = known.get(name)
            if one is None:
                one = known[name] = _measure_object(key, body, config)
            _add_object(found, target, key, one, divided=len(bodies) == 1)
    return found


class _ObjectAmounts(NamedTuple):
    """What an object scales, its pods, and whether the scheduler knows its replicas, so that it has divided them."""

    scaled: ScaleTarget | None
    pods: PodAmounts | None
    has_known_replicas: bool


def _list_bodies(
    outcome: Outcome, template: Document, target: TargetCluster, variants: TemplateVariants
) -> Iterator[tuple[Key, Body]]:
    """Yield the objects that a cluster gets."""
    changed = dict(target.bodies)
    if outcome.manifests is None and template.key[:2] != BUNDLE_KIND:
        yield template.key, target.body if target.body is not None else template.body
    for key, body in outcome.manifests or ():
        yield key, changed.get(key, body)
    for bundle in outcome.bundles:
        found = variants.get(bundle)
        variant = found.find(target.cluster) if found is not None else None
        for document in variant.objects if variant is not None else ():
            yield document.key, changed.get(document.key, document.body)


def _measure_object(key: Key, body: Body, config: Config) -> _ObjectAmounts:
    pods = measure_pods(key, body, config)
    return _ObjectAmounts(find_scale_target(body), pods, pods is not None and _has_known_replicas(key, body, config))


def _add_object(amounts: Amounts, target: TargetCluster, key: Key, one: _ObjectAmounts, *, divided: bool) -> None:
    if one.scaled is not None:
        name = (target.cluster, Key(one.scaled.group, one.scaled.kind, key.namespace, one.scaled.name))
        amounts.scales[name] = max(amounts.scales.get(name, 0), one.scaled.replicas)
    if one.pods is None:
        return
    count = one.pods.replicas
    # An autoscaler may set more than its minimum, up to what `scales` has.
    is_exact = target.replicas is not None and not isinstance(target.replicas, MarkedCount)
    if divided and is_exact and target.body is None and one.has_known_replicas:
        count = target.replicas or 0
    edited = [value for path, value in target.edits if path.rpartition(".")[2] in _EDITS]
    amounts.pods[target.cluster, key] = one.pods._replace(replicas=max([count, *edited]))


def _has_known_replicas(key: Key, body: Body, config: Config) -> bool:
    """Return whether the scheduler knows the replicas of an object, so that it has divided them."""
    row = find_kind(key.group, key.kind)
    return (row is not None and row.replicas is not None) or count_copy_replicas([body], config) is not None


def has_limits(rules: Iterable[Tenant]) -> bool:
    """Return whether a Tenant limits what its workloads have in all clusters together."""
    return any(tenant.limits.replicas is not None or tenant.limits.requests for tenant in rules)


def list_limited_owners(tenancy: Tenancy) -> frozenset[str]:
    """Return the tenants with a limit of what their workloads have in all clusters together."""
    return frozenset(owner for owner in tenancy.paths.list_owners() if has_limits(tenancy.list_rules(owner)))


def exceeds_limits(amounts: Iterable[Amounts], rules: Iterable[Tenant]) -> bool:
    """Return whether all workloads of a tenant together exceed a limit."""
    together = TenantUse()
    for one in amounts:
        together.add(one)
    replicas, requests = together.totals
    return any(
        (tenant.limits.replicas is not None and replicas > tenant.limits.replicas)
        or any(requests.get(resource, 0) > maximum.nano for resource, maximum in tenant.limits.requests.items())
        for tenant in rules
    )


def find_exceeded_limit(key: Key, used: TenantUse, added: Amounts, rules: Iterable[Tenant]) -> Violation | None:
    """Return the limit that a workload exceeds with what the tenant has already."""
    before, after = used.totals, used.sum_with(added)
    for tenant in rules:
        limit, total = tenant.limits.replicas, after.replicas
        if limit is not None and total > limit and total > before.replicas:
            if added.total_replicas >= MAX_REPLICAS:
                message = f"{key}: the number of its replicas has no maximum, and the tenant may have {limit} in all clusters"
                cure = "set a maximum, such as the annotation autoscaling.knative.dev/max-scale, or remove spec.limits.replicas"
                return Violation(TENANT_LIMIT, tenant, message, cure, "spec.limits.replicas")
            message = f"{key}: with it the tenant has {format_count(total, 'replica')} in all clusters, more than {limit}"
            return Violation(TENANT_LIMIT, tenant, message, "request fewer, or raise spec.limits.replicas", "spec.limits.replicas")
        for resource, maximum in sorted(tenant.limits.requests.items()):
            amount = after.requests.get(resource, 0)
            if amount > maximum.nano and amount > before.requests.get(resource, 0):
                shown = Quantity(amount, maximum.binary)
                message = f"{key}: with it the tenant requests {shown} of {resource} in all clusters, more than {maximum}"
                field = f"spec.limits.requests.{resource}"
                return Violation(TENANT_LIMIT, tenant, message, f"request less, or raise {field}", field)
    return None
