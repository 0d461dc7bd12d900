"""Workloads whose replicas an autoscaler sets that another workload brings into the cluster.

An API that assigns replicas knows the autoscalers of its workloads. Here are those of other workloads, such as the objects of a
ManifestWorkReplicaSet, an Application or a Bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.replicas import AUTOSCALER_KINDS, read_scale_limits, read_scale_target
from gitsched.decide.delivered_replicas import count_delivered
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Body, Document, Key
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.variants import TemplateVariants
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.snapshot import Snapshot

Objects = Mapping[Key, Body]


class ScaledWorkloads(NamedTuple):
    """The outcomes of all workloads. `depend_on_others`: an autoscaler of one sets, or may set, the replicas of another."""

    outcomes: dict[Key, Outcome]
    depend_on_others: bool = False


def count_scaled(outcomes: dict[Key, Outcome], templates: Mapping[Key, Document], snapshot: Snapshot) -> ScaledWorkloads:
    """Return the outcomes with the minima of autoscalers that other workloads bring along."""
    minima: dict[str, dict[Key, int]] = {}
    for key, outcome in outcomes.items():
        for cluster, scaled, low in list_foreign_autoscalers(outcome, templates[key], snapshot.variants, outcomes.get):
            known = minima.setdefault(cluster, {})
            known[scaled] = max(low, known.get(scaled, 0))
    has_objects = bool(minima) and any(outcome.manifests is not None or outcome.bundles for outcome in outcomes.values())
    wanted = {scaled for known in minima.values() for scaled in known if has_objects or scaled in outcomes}
    if not wanted:
        return ScaledWorkloads(outcomes)
    changed = {
        key: count_delivered(templates[key], _forget_counts(outcome), snapshot, minima=minima)
        for key, outcome in outcomes.items()
        if not knows_autoscalers(outcome)
        and outcome.state != "stale"
        and not wanted.isdisjoint(list_object_keys(outcome, snapshot.variants))
    }
    return ScaledWorkloads({**outcomes, **changed}, depend_on_others=True)


def may_scale_others(workload: Key) -> bool:
    """Return whether a workload is an autoscaler, or of a kind whose objects may be autoscalers."""
    return workload[:2] in AUTOSCALER_KINDS or any(workload[:2] in api.embedded_objects for api in policy_apis.values())


def knows_autoscalers(outcome: Outcome) -> bool:
    """Return whether the API of a workload assigns its replicas, and so knows its autoscaler. It knows none of the objects of a Bundle."""
    return not policy_apis[outcome.api].embedded_objects and not outcome.bundles


def list_foreign_autoscalers(
    outcome: Outcome, template: Document, variants: TemplateVariants, find_outcome: Callable[[Key], Outcome | None]
) -> Iterator[tuple[str, Key, int]]:
    """Yield for each autoscaler that an outcome brings into a cluster the cluster, the workload that it scales, and the minimum. Those of
    objects of the same workload are left out, and of workloads whose API knows them."""
    is_template = outcome.manifests is None and not outcome.bundles
    if is_template and outcome.key[:2] not in AUTOSCALER_KINDS:
        return
    for target in outcome.targets:
        if target.evicting or target.waits:
            continue
        if is_template:
            objects: Objects = {template.key: template.body if target.body is None else target.body}
        else:
            objects = _list_objects(outcome, target.cluster, variants)
        for key, low in _list_scaled(objects):
            other = find_outcome(key)
            if other is None or not knows_autoscalers(other):
                yield target.cluster, key, low


def _list_scaled(objects: Objects) -> Iterator[tuple[Key, int]]:
    for key, body in objects.items():
        if key[:2] in AUTOSCALER_KINDS:
            scaled, (low, _) = read_scale_target(key, body), read_scale_limits(key[:2], body)
            if scaled is not None and low is not None and scaled not in objects:
                yield scaled, low


def _list_objects(outcome: Outcome, cluster: str, variants: TemplateVariants) -> Objects:
    found = dict(outcome.manifests or ())
    for bundle in outcome.bundles:
        variant = variants[bundle].find(cluster) if bundle in variants else None
        found |= {built.key: built.body for built in variant.objects} if variant is not None else {}
    return found


def list_object_keys(outcome: Outcome, variants: TemplateVariants) -> Iterable[Key]:
    """Return the keys of the objects that a workload consists of."""
    bundled = (variants[bundle].variants for bundle in outcome.bundles if bundle in variants)
    built = (one.key for found in bundled for variant in found for one in variant.objects)
    return {outcome.key, *(key for key, _ in outcome.manifests or ()), *built}


def _forget_counts(outcome: Outcome) -> Outcome:
    """Return the outcome of an API that assigns no replicas as the API gives it."""
    targets: tuple[TargetCluster, ...] = tuple(
        target._replace(replicas=None, wanted=None, waits=False) for target in outcome.targets
    )
    return outcome._replace(targets=targets)
