"""How much the workloads of a tenant have in all clusters together: replicas, and what their pods request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.tenant import Tenant
from gitsched.apis.replicas import count_copy_replicas
from gitsched.decide.tenant_admission import Violation
from gitsched.model.document import Body, Document, Key, as_object, get_field, list_objects, parse_api_group
from gitsched.model.quantity import Quantity, parse_quantity
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.variants import BUNDLE_KIND, TemplateVariants

_POD_PATHS = (
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("spec", "podTemplate", "spec"),
)
_MAXIMA = ("maxReplicas", "maxReplicaCount")
"""Fields of autoscalers with the largest number of replicas of what they scale."""

_Object = tuple[str, str, str, str]
"""Cluster, kind, namespace and name."""


@dataclass(slots=True)
class Amounts:
    """Replicas by object and cluster, and the requests of one replica of it, in units of a nano by resource."""

    replicas: dict[_Object, int] = field(default_factory=dict)
    requests: dict[_Object, Mapping[str, int]] = field(default_factory=dict)

    def add(self, other: Amounts) -> None:
        """Add what another workload has. An autoscaler and the workload that it scales count once, with the larger number."""
        for name, count in other.replicas.items():
            self.replicas[name] = max(self.replicas.get(name, 0), count)
        for name, requests in other.requests.items():
            self.requests[name] = requests

    @property
    def total_replicas(self) -> int:
        """The replicas in all clusters."""
        return sum(self.replicas.values())

    def count_requests(self, resource: str) -> int:
        """Return what all replicas request of a resource, in units of a nano."""
        return sum(requests.get(resource, 0) * self.replicas.get(name, 0) for name, requests in self.requests.items())


def measure_outcome(outcome: Outcome, template: Document, variants: TemplateVariants, config: Config) -> Amounts:
    """Return what a workload has in its clusters."""
    found = Amounts()
    for target in outcome.targets:
        bodies = list(_list_bodies(outcome, template, target, variants))
        for key, body in bodies:
            _measure_object(found, target, key, body, config, divided=len(bodies) == 1)
    return found


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


def _measure_object(amounts: Amounts, target: TargetCluster, key: Key, body: Body, config: Config, *, divided: bool) -> None:
    name = (target.cluster, key.kind, key.namespace, key.name)
    reference = as_object(get_field(body, "spec", "scaleTargetRef"))
    if reference:
        largest = [count for member in _MAXIMA if type(count := get_field(body, "spec", member)) is int]
        scaled = (target.cluster, str(reference.get("kind") or "Deployment"), key.namespace, str(reference.get("name") or ""))
        amounts.replicas[scaled] = max(amounts.replicas.get(scaled, 0), *largest, 0)
        return
    pod = _find_pod(key, body, config)
    replicas = count_copy_replicas([body], config)
    if replicas is None and pod is None:
        return
    parallel = get_field(body, "spec", "jobTemplate", "spec", "parallelism")
    own = replicas if replicas is not None else parallel if type(parallel) is int else 1
    count = target.replicas if divided and target.replicas is not None and target.body is None else own
    edited = [value for path, value in target.edits if path.rpartition(".")[2] in ("replicas", "parallelism")]
    amounts.replicas[name] = max([amounts.replicas.get(name, 0), count, *edited])
    if pod is not None:
        amounts.requests[name] = _sum_requests(pod)


def _find_pod(key: Key, body: Body, config: Config) -> Body | None:
    """Return the pod spec of an object."""
    if key[:2] == ("", "Pod"):
        return as_object(body.get("spec"))
    declared = config.pod_paths.get((parse_api_group(str(body.get("apiVersion"))), key.kind))
    for path in (*((declared,) if declared else ()), *_POD_PATHS):
        pod = get_field(body, *path)
        if isinstance(pod, dict) and "containers" in pod:
            return pod
    return None


def _sum_requests(pod: Body) -> dict[str, int]:
    """Return what a pod requests: its containers together, or one of its init containers; limits stand for missing requests."""
    total: dict[str, int] = {}
    for container in list_objects(pod.get("containers")):
        for name, amount in _read_container(container).items():
            total[name] = total.get(name, 0) + amount
    for container in list_objects(pod.get("initContainers")):
        always = container.get("restartPolicy") == "Always"
        for name, amount in _read_container(container).items():
            total[name] = total.get(name, 0) + amount if always else max(total.get(name, 0), amount)
    for name, amount in _read_quantities(pod.get("overhead")).items():
        total[name] = total.get(name, 0) + amount
    return total


def _read_container(container: Body) -> dict[str, int]:
    resources = as_object(container.get("resources"))
    return {**_read_quantities(resources.get("limits")), **_read_quantities(resources.get("requests"))}


def _read_quantities(value: object) -> dict[str, int]:
    parsed = {name: parse_quantity(text) for name, text in as_object(value).items()}
    return {name: max(quantity.nano, 0) for name, quantity in parsed.items() if quantity is not None}


def find_exceeded_limit(key: Key, used: Amounts, added: Amounts, rules: Iterable[Tenant]) -> Violation | None:
    """Return the limit that a workload exceeds with what the tenant has already."""
    together = Amounts(dict(used.replicas), dict(used.requests))
    together.add(added)
    for tenant in rules:
        limit = tenant.limits.replicas
        if limit is not None and together.total_replicas > limit and added.total_replicas:
            message = f"{key}: with it the tenant has {together.total_replicas} replicas in all clusters, more than {limit}"
            return Violation("tenant-limit", tenant, message, "request fewer, or raise spec.limits.replicas")
        for resource, maximum in sorted(tenant.limits.requests.items()):
            total = together.count_requests(resource)
            if total > maximum.nano and added.count_requests(resource):
                amount = Quantity(total, maximum.binary)
                message = f"{key}: with it the tenant requests {amount} of {resource} in all clusters, more than {maximum}"
                return Violation("tenant-limit", tenant, message, f"request less, or raise spec.limits.requests.{resource}")
    return None
