"""FederatedResourceQuota: what the bindings of a namespace may request together in all clusters.

Amounts are in nanos where bindings are compared, and whole numbers (cpu in thousandths) in a quota.

Source: karmada/pkg/webhook/resourcebinding/validating.go and pkg/util/resource.go.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from copy import copy
from functools import lru_cache

from gitsched.apis.karmada.interpreter import is_counted_resource, parse_quantities
from gitsched.apis.karmada.queue.quota_refusal import QuotaRefusal
from gitsched.apis.karmada.static_quotas import write_assignments
from gitsched.model.document import Body, Document, Key, get_field, list_objects
from gitsched.model.quantity import Quantity, count_quantity, format_resource_amount, get_unit
from gitsched.named_tuples import NamedTuple

Usage = Mapping[str, int]
"""Amounts of resources in nanos."""


class FederatedQuota(NamedTuple):
    """A quota: what it allows and what is used, as whole numbers. `used` is None before anything was counted."""

    document: Document
    overall: Mapping[str, int]
    used: Mapping[str, int] | None

    def add(self, delta: Usage) -> Mapping[str, int] | None:
        """Return the usage with a change; None if the change is about no resource of the quota."""
        relevant = {name: amount for name, amount in delta.items() if name in self.overall and amount}
        if not relevant:
            return None
        total = dict(self.used or {})
        for name, amount in relevant.items():
            total[name] = total.get(name, 0) + count_quantity(name, Quantity(amount))
        return {name: amount for name, amount in total.items() if amount > 0 and is_counted_resource(name)}

    def find_exceeded(self, usage: Mapping[str, int], *, but: Container[str] = ()) -> str:
        """Return the first resource of which a usage is more than allowed, `but` some; "" if there is none."""
        exceeded = (name for name in sorted(usage) if usage[name] > self.overall.get(name, usage[name]))
        return next((name for name in exceeded if name not in but), "")


class FederatedQuotas:
    """The quotas of all namespaces with their usage. A change of usage makes other ones."""

    def __init__(self, documents: Iterable[Document], *, allows_less: bool = False) -> None:
        """With `allows_less` a quota that is exceeded refuses no change that requests no more of what is exceeded, unlike in Karmada."""
        self._allows_less = allows_less
        self._quotas: dict[str, tuple[FederatedQuota, ...]] = {}
        for document in sorted(documents, key=lambda one: one.key):
            overall, used = (
                _read_amounts(get_field(document.body, *path)) for path in (("spec", "overall"), ("status", "overallUsed"))
            )
            quota = FederatedQuota(document, overall or {}, used)
            self._quotas[document.key.namespace] = (*self._quotas.get(document.key.namespace, ()), quota)
        self.namespaces = frozenset(self._quotas)

    def _replace(self, namespace: str, quotas: Iterable[FederatedQuota]) -> FederatedQuotas:
        other = copy(self)
        other._quotas = {**self._quotas, namespace: tuple(quotas)}
        return other

    def list_usage(self, namespace: str) -> tuple[FederatedQuota, ...]:
        """Return the quotas of a namespace."""
        return self._quotas.get(namespace, ())

    def refuse(self, namespace: str, before: Usage, after: Usage) -> QuotaRefusal | None:
        """Return why the usage of a binding may not change; None if it may."""
        less = (
            frozenset(name for name in (*before, *after) if after.get(name, 0) <= before.get(name, 0)) if self._allows_less else ()
        )
        for quota, usage in self._change(namespace, before, after):
            same = frozenset(usage) - {*before, *after} if self._allows_less else frozenset()
            exceeded = quota.find_exceeded(usage, but={*less, *same})
            if exceeded:
                key, amounts = quota.document.key, (usage[exceeded], quota.overall[exceeded])
                total, limit = (format_resource_amount(exceeded, amount, binary=False) for amount in amounts)
                message = (
                    'admission webhook "resourcebinding.karmada.io" denied the request: '
                    f"FederatedResourceQuota({key.namespace}/{key.name}) exceeded for resource {exceeded}: "
                    f"requested sum {total}, limit {limit}."
                )
                return QuotaRefusal(message, quota.document, exceeded, amounts[0] - amounts[1])
        return None

    def add(self, namespace: str, before: Usage, after: Usage) -> FederatedQuotas:
        """Return the quotas with a change of the usage of a binding that was not refused."""
        changed = {quota.document.key: usage for quota, usage in self._change(namespace, before, after)}
        quotas = self.list_usage(namespace)
        used = (one._replace(used=changed.get(one.document.key, one.used)) for one in quotas)
        return self._replace(namespace, used) if changed else self

    def recount(self, namespace: str, usages: Iterable[Usage], recorded: Container[Key] | None = None) -> FederatedQuotas:
        """Return the quotas where the usage of those of a namespace is the sum of what its bindings request, as Karmada's controller counts
        it. If `recorded` ones are given, only those and the ones that have a usage."""
        total: dict[str, int] = {}
        for usage in usages:
            for name, amount in usage.items():
                total[name] = total.get(name, 0) + amount
        counts = {name: count_quantity(name, Quantity(amount)) for name, amount in total.items()}
        return self._replace(
            namespace,
            (
                one._replace(used={name: count for name, count in counts.items() if name in one.overall})
                if recorded is None or one.used is not None or one.document.key in recorded
                else one
                for one in self.list_usage(namespace)
            ),
        )

    def read_recorded(self, records: Mapping[Key, Body]) -> FederatedQuotas:
        """Return the quotas with the usage that their records have."""
        other = copy(self)
        other._quotas = {
            namespace: tuple(_read_recorded(one, records) for one in quotas) for namespace, quotas in self._quotas.items()
        }
        return other

    def _change(self, namespace: str, before: Usage, after: Usage) -> Iterator[tuple[FederatedQuota, Mapping[str, int]]]:
        delta = {name: after.get(name, 0) - before.get(name, 0) for name in {**before, **after}}
        for quota in self._quotas.get(namespace, ()):
            usage = quota.add(delta)
            if usage is not None:
                yield quota, usage

    @property
    def records(self) -> Iterator[tuple[Key, Body]]:
        """The quotas with their usage."""
        for quotas in self._quotas.values():
            for document, overall, used in quotas:
                body = document.body
                metadata = {"name": document.key.name, "namespace": document.key.namespace}
                status: Body = {"overall": _write_amounts(overall)}
                status |= {"overallUsed": _write_amounts(used)} if used else {}
                status |= write_assignments(document)
                yield document.key, {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata, "status": status}


def _read_recorded(quota: FederatedQuota, records: Mapping[Key, Body]) -> FederatedQuota:
    used = _read_amounts(get_field(records.get(quota.document.key) or {}, "status", "overallUsed")) or {}
    return quota._replace(used={name: amount for name, amount in used.items() if name in quota.overall})


def measure_usage(spec: Body, *, whole: bool = False) -> dict[str, int]:
    """Return what a binding requests in all of its clusters. With `whole`, the request of each pod is rounded up to whole amounts, so that
    sums of them are what quotas count."""
    clusters, components = list_objects(spec.get("clusters")), spec.get("components")
    if not components:
        return _multiply(spec, sum(map(_read_count, clusters)), whole=whole)
    found: dict[str, int] = {}
    for one in list_objects(components):
        for name, amount in _multiply(one, len(clusters) * _read_count(one), whole=whole).items():
            found[name] = found.get(name, 0) + amount
    return {name: amount for name, amount in found.items() if amount}


def _multiply(spec: Body, pods: int, *, whole: bool) -> dict[str, int]:
    """Return what some pods request together, each as its binding or component says."""
    request = get_field(spec, "replicaRequirements", "resourceRequest") if pods else None
    if not isinstance(request, dict):
        return {}
    amounts = _measure_request(tuple(request.items()), whole) if all(map(_is_text, request.values())) else _measure(request, whole)
    return {name: amount * pods for name, amount in amounts}


def _is_text(value: object) -> bool:
    return type(value) is str


@lru_cache(maxsize=1 << 12)
def _measure_request(request: tuple[tuple[str, str], ...], whole: bool) -> tuple[tuple[str, int], ...]:
    return _measure(dict(request), whole)


def _measure(request: Body, whole: bool) -> tuple[tuple[str, int], ...]:
    """Return what a pod requests, in nanos, without resources of which it is 0."""
    amounts = (
        (name, count_quantity(name, quantity) * get_unit(name) if whole else quantity.nano)
        for name, quantity in parse_quantities(request).items()
    )
    return tuple((name, amount) for name, amount in amounts if amount)


def _read_count(entry: Body) -> int:
    replicas = entry.get("replicas")
    return replicas if isinstance(replicas, int) else 0


def _read_amounts(value: object) -> dict[str, int] | None:
    if not isinstance(value, dict):
        return None
    return {name: count_quantity(name, quantity) for name, quantity in parse_quantities(value).items()}


def _write_amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: format_resource_amount(name, amounts[name], binary=False) for name in sorted(amounts)}
