"""Default (native) resource interpreter: the operations GetReplicas and ReviseReplica of a workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

from gitsched.kinds.kind import Replicas
from gitsched.kinds.replicas import divide_component, read_replicas
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Document, get_field, list_objects
from gitsched.model.quantity import Quantity, add_quantities, count_quantity, parse_quantity
from gitsched.model.scheduling import Assignment, EqualPods
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.dispenser import dispense, prefers_descending

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config

_NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")


class WorkloadPaths(NamedTuple):
    """The paths of a kind's replicas and pod spec, as member names."""

    replicas: tuple[str, ...]
    pod_spec: tuple[str, ...]


ResourceRequest = tuple[tuple[str, int], ...]
"""What one pod requests, by resource (see `Request`)."""


class WorkloadComponent(NamedTuple):
    """One of several groups of pods: `requirements` is its replicaRequirements in the binding."""

    name: str
    replicas: int
    requirements: Body | None

    @property
    def pods(self) -> EqualPods:
        return read_pods(self.replicas, (self.requirements or {}).get("resourceRequest"))


class ReplicaRequirements(NamedTuple):
    """Replicas and requirements of a workload.

    `replicas` is None for a kind without replicas. `requirements` is spec.replicaRequirements of the binding; `resource_request` is what
    one replica requests (see `Request`). `invalid_replicas` says that the manifest has something else than a number at
    `replicas_path`. `rule` is that of a kind whose replicas are in several fields. `components` are
    given for a workload that clusters get whole; it has no replicas of its own then.
    """

    replicas: int | None
    requirements: Body | None
    replicas_path: str | None
    invalid_replicas: bool = False
    resource_request: ResourceRequest | None = None
    rule: Replicas | None = None
    components: tuple[WorkloadComponent, ...] = ()

    @property
    def is_workload(self) -> bool:
        """Whether Karmada schedules it with replicas: it has replicas or requirements."""
        return bool(self.replicas) or self.requirements is not None or bool(self.components)


_NO_REPLICAS = ReplicaRequirements(None, None, None)

POD_TEMPLATE_SPEC = ("spec", "template", "spec")


DEFAULT_PATHS: dict[tuple[str, str], WorkloadPaths] = {
    ("apps/v1", "Deployment"): WorkloadPaths(("spec", "replicas"), POD_TEMPLATE_SPEC),
    ("apps/v1", "ReplicaSet"): WorkloadPaths(("spec", "replicas"), POD_TEMPLATE_SPEC),
    ("apps/v1", "StatefulSet"): WorkloadPaths(("spec", "replicas"), POD_TEMPLATE_SPEC),
    ("batch/v1", "Job"): WorkloadPaths(("spec", "parallelism"), POD_TEMPLATE_SPEC),
    ("v1", "Pod"): WorkloadPaths((), ("spec",)),
}


def read_declared_paths(config: Config) -> dict[tuple[str, str], WorkloadPaths]:
    """Return where the kinds that gitsched.yaml declares have their replicas and pod specs."""
    return {
        (workload.api_version, workload.kind): WorkloadPaths(
            _split_path(workload.replicas_path), _split_path(workload.pod_template_path)
        )
        for workload in config.workloads
    }


def _split_path(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(".") if part)


def read_replica_requirements(template: Document, declared: Mapping[tuple[str, str], WorkloadPaths]) -> ReplicaRequirements:
    """GetReplicas: return replicas and requirements by the kind of a workload; missing replicas are 1, an unknown kind has none.

    `declared` are the kinds that gitsched.yaml declares; the kinds of other operators are in the table of kinds.
    """
    kind = (template.api_version, template.key.kind)
    paths = declared.get(kind) or DEFAULT_PATHS.get(kind)
    if paths is None:
        row = find_kind(template.key.group, template.key.kind)
        return _read_by_rule(template, row.replicas) if row is not None and row.replicas is not None else _NO_REPLICAS
    requirements, request = read_pod_requirements(get_field(template.body, *paths.pod_spec)) if paths.pod_spec else (None, None)
    if not paths.replicas:
        return ReplicaRequirements(1, requirements, None, resource_request=request)
    path = ".".join(paths.replicas)
    value = get_field(template.body, *paths.replicas)
    if value is not None and not _is_count(value):
        return ReplicaRequirements(None, None, path, invalid_replicas=True)
    replicas = 1 if value is None else int(value)
    if kind == ("batch/v1", "Job"):
        completions = get_field(template.body, "spec", "completions")
        replicas = min(replicas, int(completions)) if _is_count(completions) else replicas
    return ReplicaRequirements(replicas, requirements, path, resource_request=request)


def _read_by_rule(template: Document, rule: Replicas) -> ReplicaRequirements:
    """GetReplicas of a kind of the table.

    Source: karmada/pkg/resourceinterpreter/default/thirdparty/resourcecustomizations.
    """
    found = read_replicas(template.body, rule)
    if found is None:
        path = rule.path or rule.components[0].path or rule.components[0].replicas
        return ReplicaRequirements(None, None, path, invalid_replicas=True)
    if rule.fixed == 0:
        return _NO_REPLICAS
    pods = [pod for pod in found.pods if isinstance(pod, dict)]
    requirements, request = _combine_requirements(pods, found.resources)
    if found.resources:
        names = {"namespace": template.key.namespace, "priorityClassName": pods[0].get("priorityClassName") if pods else None}
        requirements = {**(requirements or {}), **{name: value for name, value in names.items() if value}}
    return ReplicaRequirements(
        found.replicas, requirements, found.path or None, False, request, rule if rule.revised is not None else None
    )


def _combine_requirements(
    pods: Sequence[Body], resources: Iterable[Body]
) -> tuple[Body | None, tuple[tuple[str, int], ...] | None]:
    """Return the requirements of the first pod spec, with the largest cpu and memory of all of them and of `resources`."""
    requests = [*(_sum_resource_requests(pod) for pod in pods), *(parse_quantities(resource) for resource in resources)]
    claim = _read_node_claim(pods[0]) if pods else {}
    request = dict(requests[0]) if requests else {}
    if not request and not claim and len(requests) == len(pods):
        return None, None
    for name in ("cpu", "memory"):
        known = [found[name] for found in requests if name in found]
        if known:
            request[name] = max(known, key=lambda quantity: quantity.nano)
    return write_requirements(claim, request)


def revise_replicas(
    template: Document, requirements: ReplicaRequirements, targets: Sequence[Assignment], identity: str | None = None
) -> dict[str, tuple[tuple[str, int], ...]]:
    """ReviseReplica: return the changes to the manifest of each cluster when replicas are divided: its replicas, and a Job's completions.

    Completions are divided in proportion to the replicas, with the same dispenser and tie-breaking. `identity` is what breaks ties; None
    is the uid of the template.
    """
    if requirements.rule is not None:
        return {target.name: revise_copy(template, requirements, target.replicas) for target in targets if target.replicas}
    if requirements.replicas_path is None:
        return {}
    edits = {target.name: ((requirements.replicas_path, target.replicas),) for target in targets if target.replicas}
    completions = get_field(template.body, "spec", "completions")
    if (template.api_version, template.key.kind) == ("batch/v1", "Job") and _is_count(completions):
        names = sorted(edits)
        descending = prefers_descending(read_uid(template) if identity is None else identity)
        shares = dispense(completions, [edits[name][0][1] for name in names], descending)
        return {name: (*edits[name], ("spec.completions", share)) for name, share in zip(names, shares, strict=True)}
    return dict(edits)


def revise_copy(template: Document, requirements: ReplicaRequirements, replicas: int) -> tuple[tuple[str, int], ...]:
    """Return the changes to one copy of a manifest that give it this many replicas, without a Job's completions."""
    if requirements.rule is not None:
        return divide_component(template.body, requirements.rule, replicas)
    return ((requirements.replicas_path, replicas),) if requirements.replicas_path is not None else ()


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def read_pod_requirements(pod: object) -> tuple[Body | None, ResourceRequest | None]:
    """Return the replicaRequirements of a pod spec in a binding, and what a pod requests."""
    if not isinstance(pod, dict):
        return None, None
    return write_requirements(_read_node_claim(pod), _sum_resource_requests(pod))


def write_requirements(claim: Body, request: dict[str, Quantity]) -> tuple[Body | None, ResourceRequest | None]:
    """Return the replicaRequirements of a node claim and a request, and the request as estimates count it."""
    requirements: Body = {}
    if claim:
        requirements["nodeClaim"] = claim
    if request:
        requirements["resourceRequest"] = {name: str(request[name]) for name in sorted(request)}
    if not requirements:
        return None, None
    return requirements, tuple((name, count_quantity(name, request[name])) for name in sorted(request) if request[name].value > 0)


def read_pods(replicas: int, request: object) -> EqualPods:
    """Return pods that each have a resourceRequest of a binding."""
    parsed = parse_quantities(request)
    return EqualPods(replicas, write_requirements({}, parsed)[1], frozenset(name for name, one in parsed.items() if not one.binary))


def write_replicas(requirements: ReplicaRequirements) -> Body:
    """Return the members of a binding's spec that say what a workload needs."""
    spec: Body = {}
    if requirements.replicas is not None:
        spec["replicas"] = requirements.replicas
    if requirements.requirements is not None:
        spec["replicaRequirements"] = requirements.requirements
    if requirements.components:
        spec["components"] = [
            {"name": one.name, "replicas": one.replicas, **({"replicaRequirements": one.requirements} if one.requirements else {})}
            for one in requirements.components
        ]
    return spec


def _sum_resource_requests(pod: Body) -> dict[str, Quantity]:
    """Return the sum over containers, at least that of each init container, plus overhead; limits replace missing requests."""
    total: dict[str, Quantity] = {}
    for container in list_objects(pod.get("containers")):
        for name, quantity in _read_container(container).items():
            total[name] = add_quantities(total[name], quantity) if name in total else quantity
    for container in list_objects(pod["initContainers"]) if pod.get("initContainers") else ():
        for name, quantity in _read_container(container).items():
            if name not in total or quantity.nano > total[name].nano:
                total[name] = quantity
    for name, quantity in parse_quantities(pod.get("overhead")).items():
        total[name] = add_quantities(total[name], quantity) if name in total else quantity
    return {name: quantity for name, quantity in total.items() if quantity.nano and is_counted_resource(name)}


def _read_container(container: object) -> dict[str, Quantity]:
    resources = container.get("resources") if isinstance(container, dict) else None
    if not isinstance(resources, dict):
        return {}
    return {**parse_quantities(resources.get("limits")), **parse_quantities(resources.get("requests"))}


def parse_quantities(value: object) -> dict[str, Quantity]:
    """Return the quantities of a mapping, without members that are none."""
    if not isinstance(value, dict):
        return {}
    parsed = {str(name): parse_quantity(text) for name, text in value.items()}
    return {name: quantity for name, quantity in parsed.items() if quantity is not None}


def is_counted_resource(name: str) -> bool:
    """Return whether requests of a resource count: cpu, memory, ephemeral storage, pods, and extended resources, huge pages, attachable
    volumes or other prefixed native ones."""
    return name in _NATIVE_RESOURCES or "/" in name or name.startswith(("hugepages-", "attachable-volumes-"))


def _read_node_claim(pod: Body) -> Body:
    affinity = pod.get("affinity")
    required = get_field(affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution") if affinity else None
    claim = {"hardNodeAffinity": required, "nodeSelector": pod.get("nodeSelector"), "tolerations": pod.get("tolerations")}
    return {name: value for name, value in claim.items() if value}


def read_uid(template: Document) -> str:
    """Return the uid of a workload, "" without one; it breaks ties of the dispenser."""
    metadata = template.body.get("metadata")
    return str(metadata.get("uid") or "") if isinstance(metadata, dict) else ""
