"""Replicas of manifests: which fields of a kind have the number, and how many replicas a full copy of some manifests runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from gitsched.kinds.replicas import read_replicas
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Key, get_field, get_text, parse_api_group
from gitsched.model.scheduling import UNKNOWN, AtLeast, add_replicas
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config

FieldPaths = tuple[tuple[str, ...], ...]

REPLICA_PATHS: Mapping[tuple[str, str], FieldPaths] = {
    ("apps", "Deployment"): (("spec", "replicas"),),
    ("apps", "ReplicaSet"): (("spec", "replicas"),),
    ("apps", "StatefulSet"): (("spec", "replicas"),),
    ("batch", "Job"): (("spec", "parallelism"), ("spec", "completions")),
}
"""The fields with the number of replicas of Kubernetes kinds: the first one counts, a missing number is 1, and another one limits it."""
_POD: Final = ("", "Pod")
_AUTOSCALER_NAMES: Final = ("HorizontalPodAutoscaler", "ScaledObject")
_BUILT_BY_CLUSTERS: Final = {
    ("argoproj.io", "Application"),
    ("argoproj.io", "ApplicationSet"),
    ("helm.toolkit.fluxcd.io", "HelmRelease"),
    ("kustomize.toolkit.fluxcd.io", "Kustomization"),
    ("helm.cattle.io", "HelmChart"),
}
"""Kinds whose objects have no workloads in their manifests: a controller in the cluster builds these."""


NOTHING_SCALED: Final[Mapping[Key, int]] = {}


def list_declared_paths(config: Config) -> dict[tuple[str, str], FieldPaths]:
    """Return the fields with the number of replicas of the kinds that the settings declare."""
    return {
        (parse_api_group(kind.api_version), kind.kind): (tuple(kind.replicas_path.split(".")),)
        for kind in config.workloads
        if kind.replicas_path
    }


def find_replica_paths(kind: tuple[str, str], declared: Mapping[tuple[str, str], FieldPaths]) -> FieldPaths:
    """Return the fields with the number of replicas of a kind: declared ones, those of Kubernetes, those of the table of kinds."""
    paths = declared.get(kind) or REPLICA_PATHS.get(kind)
    if paths is None:
        row = find_kind(*kind)
        path = row.replicas.path if row is not None and row.replicas is not None else ""
        return (tuple(path.split(".")),) if path else ()
    return paths


class AutoscalerKind(NamedTuple):
    """A kind of autoscalers: the members of its spec with the limits, the limits where they are missing, and the kind of a target
    that names none."""

    minimum: str
    maximum: str
    default_minimum: int
    default_maximum: int
    default_target: tuple[str, str]


AUTOSCALER_KINDS: Final = {
    # k8s.io/api/autoscaling/v2, HorizontalPodAutoscalerSpec; maxReplicas and the target are required.
    ("autoscaling", "HorizontalPodAutoscaler"): AutoscalerKind("minReplicas", "maxReplicas", 1, 0, ("apps/v1", "")),
    # kedacore/keda, apis/keda/v1alpha1, ScaledObjectSpec and ScaleTarget
    ("keda.sh", "ScaledObject"): AutoscalerKind("minReplicaCount", "maxReplicaCount", 0, 100, ("apps/v1", "Deployment")),
}


def read_scale_target(autoscaler: Key, body: Body) -> Key | None:
    """Return the workload that an object scales: a target of another kind than autoscalers, in its namespace."""
    kind = AUTOSCALER_KINDS.get((autoscaler.group, autoscaler.kind))
    reference = get_field(body, "spec", "scaleTargetRef") if kind is not None else None
    if kind is None or not isinstance(reference, dict):
        return None
    version, target = (
        get_text(reference, "apiVersion") or kind.default_target[0],
        get_text(reference, "kind") or kind.default_target[1],
    )
    name, group = get_text(reference, "name"), parse_api_group(version)
    if not name or not target or (group, target) in AUTOSCALER_KINDS:
        return None
    return Key(group, target, autoscaler.namespace, name)


def read_scale_limits(kind: tuple[str, str], body: Body) -> tuple[int | None, int | None]:
    """Return the minimum and the maximum of an autoscaler of a kind (group, kind); None for one that is not a number."""
    rule = AUTOSCALER_KINDS[kind]
    limits = (rule.minimum, rule.default_minimum), (rule.maximum, rule.default_maximum)
    values = [default if (value := get_field(body, "spec", name)) is None else value for name, default in limits]
    low, high = (value if type(value) is int and 0 <= value < 2**31 else None for value in values)
    return low, high


def count_copy_replicas(manifests: Iterable[Body], config: Config, scaled: Mapping[Key, int] = NOTHING_SCALED) -> int | None:
    """Return the number of replicas of a full copy of the manifests; None if no manifest has replicas.

    A workload that one of these manifests scales counts with the minimum of that autoscaler, and what a cluster builds itself, such as a
    HelmRelease, with 0: the sum is then `AtLeast` this number, or UNKNOWN without any other. `scaled` are the minima of other autoscalers.
    """
    declared, bodies = list_declared_paths(config), list(manifests)
    if len(bodies) == 1 and not scaled:
        return _count_object(bodies[0], declared, scaled)
    minima = _list_minima(bodies) if len(bodies) > 1 else {}
    minima |= {key: max(low, minima.get(key, 0)) for key, low in scaled.items()}
    return add_replicas([_count_object(body, declared, minima) for body in bodies])


def _list_minima(bodies: Iterable[Body]) -> dict[Key, int]:
    """Return the minima of autoscalers among some objects, by what they scale."""
    minima: dict[Key, int] = {}
    for body in bodies:
        if body.get("kind") in _AUTOSCALER_NAMES:
            key = identify_object(body)
            target = read_scale_target(key, body)
            low, _ = read_scale_limits(key[:2], body) if target is not None else (None, None)
            if target is not None and low is not None:
                minima[target] = max(low, minima.get(target, 0))
    return minima


def identify_object(body: Body) -> Key:
    """Return what identifies an object of a manifest."""
    namespace, name = (str(get_field(body, "metadata", member) or "") for member in ("namespace", "name"))
    return Key(parse_api_group(str(body.get("apiVersion"))), str(body.get("kind")), namespace, name)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _count_object(body: Body, declared: Mapping[tuple[str, str], FieldPaths], minima: Mapping[Key, int]) -> int | None:
    kind = (parse_api_group(str(body.get("apiVersion"))), str(body.get("kind")))
    if kind == _POD:
        return 1
    if kind in _BUILT_BY_CLUSTERS:
        return UNKNOWN
    if minima and (minimum := minima.get(identify_object(body))) is not None:
        return AtLeast(minimum)
    paths = declared.get(kind) or REPLICA_PATHS.get(kind)
    if paths is not None:
        counts = [count if _is_count(count := get_field(body, *path)) else None for path in paths]
        return 1 if counts[0] is None else min(count for count in counts if count is not None)
    row = find_kind(*kind)
    if row is None or row.replicas is None or row.replicas.fixed == 0:
        return None
    found = read_replicas(body, row.replicas)
    return 1 if found is None else found.replicas
