"""What a workload asks for: Karmada's default interpreter (spec/karmada.md §2), plus kinds declared in gitsched.yaml.

The API server fills in one replica where a manifest says none; a manifest in Git has not met an API server yet, so the same default is
applied here before Karmada's rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeGuard

from gitsched.model.document import Body, Document, list_objects, member
from gitsched.model.quantity import Quantity, add, count_quantity, parse_quantity
from gitsched.model.request import Target
from gitsched.schedule.dispenser import dispense

_KEPT = ("cpu", "memory", "ephemeral-storage", "pods")


class Shape(NamedTuple):
    """Where a kind keeps its replicas and its pod template, as paths of members."""

    replicas: tuple[str, ...]
    pod: tuple[str, ...]


class Demand(NamedTuple):
    """`replicas` is None for what has none. `requirements` is replicaRequirements as the binding shows it, `request` what a replica asks
    for (see Request.demand). `opaque` says that the manifest has something else than a number where its replicas should be."""

    replicas: int | None
    requirements: Body | None
    path: str | None
    opaque: bool = False
    request: tuple[tuple[str, int], ...] | None = None

    @property
    def workload(self) -> bool:
        """Whether Karmada divides it: replicas, or a known demand."""
        return bool(self.replicas) or self.requirements is not None


_PODS = ("spec", "template", "spec")
BUILT_IN: dict[tuple[str, str], Shape] = {
    ("apps/v1", "Deployment"): Shape(("spec", "replicas"), _PODS),
    ("apps/v1", "ReplicaSet"): Shape(("spec", "replicas"), _PODS),
    ("apps/v1", "StatefulSet"): Shape(("spec", "replicas"), _PODS),
    ("batch/v1", "Job"): Shape(("spec", "parallelism"), _PODS),
    ("v1", "Pod"): Shape((), ("spec",)),
}


def read_demand(template: Document, declared: Mapping[tuple[str, str], Shape]) -> Demand:
    """Interpret a workload by its kind; a kind that nobody described has no replicas."""
    kind = (template.api_version, template.key.kind)
    shape = declared.get(kind) or BUILT_IN.get(kind)
    if shape is None:
        return Demand(None, None, None)
    requirements, request = _requirements(member(template.body, *shape.pod)) if shape.pod else (None, None)
    if not shape.replicas:
        return Demand(1, requirements, None, request=request)
    path = ".".join(shape.replicas)
    written = member(template.body, *shape.replicas)
    if written is not None and not _is_count(written):
        return Demand(None, None, path, opaque=True)
    replicas = 1 if written is None else int(written)
    if kind == ("batch/v1", "Job"):
        completions = member(template.body, "spec", "completions")
        replicas = min(replicas, int(completions)) if _is_count(completions) else replicas
    return Demand(replicas, requirements, path, request=request)


def share_out(
    template: Document, demand: Demand, targets: Sequence[Target], descending: bool
) -> dict[str, tuple[tuple[str, int], ...]]:
    """What the manifest of each cluster says when replicas are divided, by cluster: its replicas, and a Job's share of completions.

    Completions are divided in proportion to the replicas, with the same dispenser and tie-break.
    """
    if demand.path is None:
        return {}
    edits = {target.name: ((demand.path, target.replicas),) for target in targets if target.replicas}
    completions = member(template.body, "spec", "completions")
    if (template.api_version, template.key.kind) == ("batch/v1", "Job") and _is_count(completions):
        names = sorted(edits)
        shares = dispense(completions, [edits[name][0][1] for name in names], descending)
        return {name: (*edits[name], ("spec.completions", share)) for name, share in zip(names, shares, strict=True)}
    return dict(edits)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _requirements(pod: object) -> tuple[Body | None, tuple[tuple[str, int], ...] | None]:
    if not isinstance(pod, dict):
        return None, None
    request = _resource_request(pod)
    claim = _node_claim(pod)
    requirements: Body = {}
    if claim:
        requirements["nodeClaim"] = claim
    if request:
        requirements["resourceRequest"] = {name: str(request[name]) for name in sorted(request)}
    if not requirements:
        return None, None
    return requirements, tuple((name, count_quantity(name, request[name])) for name in sorted(request) if request[name].value > 0)


def _resource_request(pod: Body) -> dict[str, Quantity]:
    """The sum over containers, at least each init container, plus overhead; limits stand in for missing requests."""
    total: dict[str, Quantity] = {}
    for container in list_objects(pod.get("containers")):
        for name, quantity in _container(container).items():
            total[name] = add(total[name], quantity) if name in total else quantity
    for container in list_objects(pod.get("initContainers")):
        for name, quantity in _container(container).items():
            if name not in total or quantity.nano > total[name].nano:
                total[name] = quantity
    for name, quantity in _quantities(pod.get("overhead")).items():
        total[name] = add(total[name], quantity) if name in total else quantity
    return {name: quantity for name, quantity in total.items() if quantity.nano and (name in _KEPT or _is_scalar(name))}


def _container(container: object) -> dict[str, Quantity]:
    resources = container.get("resources") if isinstance(container, dict) else None
    if not isinstance(resources, dict):
        return {}
    return {**_quantities(resources.get("limits")), **_quantities(resources.get("requests"))}


def _quantities(value: object) -> dict[str, Quantity]:
    if not isinstance(value, dict):
        return {}
    parsed = {str(name): parse_quantity(text) for name, text in value.items()}
    return {name: quantity for name, quantity in parsed.items() if quantity is not None}


def _is_scalar(name: str) -> bool:
    """Extended resources, huge pages, attachable volumes and other prefixed native resources."""
    return "/" in name or name.startswith(("hugepages-", "attachable-volumes-"))


def _node_claim(pod: Body) -> Body:
    required = member(pod, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    claim = {"hardNodeAffinity": required, "nodeSelector": pod.get("nodeSelector"), "tolerations": pod.get("tolerations")}
    return {name: value for name, value in claim.items() if value}
