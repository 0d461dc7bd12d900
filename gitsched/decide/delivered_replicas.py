"""The replicas that clusters get of a workload: those of its delivered manifests, counted once, where what a cluster gets is decided.

Records stay what the upstream writes, so their numbers are those that it assigns. Where clusters get others, because of an override, an
autoscaler or a manifest that does not change, or where the record has no numbers, an annotation of the record has them for the next run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, Final

from gitsched.apis.replicas import NOTHING_SCALED, count_copy_replicas
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.scheduling import AtLeast, Outcome, TargetCluster, decode_replicas, encode_replicas
from gitsched.model.variants import BUNDLE_KIND
from gitsched.render.format_versions import DELIVERED_ANNOTATION, UNRECORDED
from gitsched.render.output_files import set_counts

if TYPE_CHECKING:
    from gitsched.apis.policy_api import RemovedWorkload
    from gitsched.apis.snapshot import Snapshot

_NOTHING: Final = TargetCluster("", waits=True)


Minima = Mapping[str, Mapping[Key, int]]
"""By cluster the minima of autoscalers, by the workload that they scale."""
_NO_MINIMA: Final[Minima] = {}


def count_delivered(
    document: Document, outcome: Outcome, snapshot: Snapshot, *, keeps: bool = False, minima: Minima = _NO_MINIMA
) -> Outcome:
    """Return an outcome whose targets have the replicas of their delivered manifests, before and now. With `keeps`, no manifest changes.
    `minima` are those of autoscalers that other workloads bring into the clusters."""
    record = snapshot.previous.get(outcome.records[0][0]) if outcome.records else None
    recorded = None if record is None else get_field(record, "metadata", "annotations", DELIVERED_ANNOTATION)
    before = outcome.previous_targets
    if recorded is not None and recorded != UNRECORDED:
        before = tuple(_restore_targets(before, parse_delivered(recorded)))
    known = {target.cluster: target for target in before}
    count = _Counter(document, outcome, snapshot, minima)
    targets = []
    for target in outcome.targets:
        if not (keeps or target.keeps_manifest):
            if target.minimum is not None:
                targets.append(target._replace(replicas=AtLeast(target.minimum), wanted=target.replicas))
                continue
            replicas = count.count(target, known)
            targets.append(target if target.replicas is replicas else target._replace(replicas=replicas))
            continue
        kept = known.get(target.copied_from or target.cluster, _NOTHING)
        if kept is _NOTHING and target.evicting and record is None:  # a first run delivers what a hub was evicting
            targets.append(target._replace(replicas=count.count(target, known)))
        else:
            is_assigned = target.replicas is not None and not target.edits and target.body is None
            wanted = target.replicas if is_assigned else count.count(target, known)
            targets.append(target._replace(replicas=kept.replicas, waits=kept.waits, wanted=wanted))
    if recorded == UNRECORDED:
        now = {target.cluster: target.replicas for target in targets}
        before = tuple(target._replace(replicas=now.get(target.cluster, target.replicas)) for target in before)
    is_pending = outcome.state == "placed" and bool(targets) and all(target.waits for target in targets)
    unassigned = _count_unassigned(outcome)
    records = outcome.records if snapshot.single_cycle else _annotate(outcome.records, targets, outcome.targets)
    is_same = before is outcome.previous_targets and unassigned == outcome.unassigned and records is outcome.records
    if is_same and not is_pending and all(map(is_, targets, outcome.targets)):
        return outcome
    return outcome._replace(
        targets=tuple(targets),
        previous_targets=before,
        unassigned=unassigned,
        state="pending" if is_pending else outcome.state,
        records=records,
    )


def _count_unassigned(outcome: Outcome) -> int | None:
    """Return the replicas that no cluster gets of a workload whose replicas its API divides; None for others."""
    if not outcome.replicas:
        return None
    assigned = [target.replicas for target in outcome.targets if not target.evicting]
    if {None, outcome.replicas}.issuperset(assigned):
        return None
    return max(outcome.replicas - sum(count or 0 for count in assigned), 0)


def restore_delivered(workload: RemovedWorkload, record: Body) -> RemovedWorkload:
    """Return a workload of a previous record with the replicas that were delivered, without clusters that had nothing of it."""
    recorded = get_field(record, "metadata", "annotations", DELIVERED_ANNOTATION)
    if recorded is None or recorded == UNRECORDED:
        return workload
    delivered = parse_delivered(recorded)
    found = ((name, delivered.get(name) or TargetCluster(name, count)) for name, count in workload.replicas.items())
    return workload._replace(replicas={name: target.replicas for name, target in found if not target.waits})


def parse_delivered(text: Any) -> dict[str, TargetCluster]:
    """Return the targets of an annotation by cluster. What it does not say, or not in its form, is left out."""
    try:
        values = json.loads(text)
    except (TypeError, ValueError):
        return {}
    pairs = values.items() if isinstance(values, dict) else ()
    return {name: found for name, value in pairs if (found := _parse_count(value)) is not None}


def _parse_count(value: Any) -> TargetCluster | None:
    if value is None:
        return _NOTHING
    replicas = decode_replicas(value)
    return TargetCluster("", replicas) if replicas is not None or value == "" else None


def _restore_targets(targets: Iterable[TargetCluster], delivered: Mapping[str, TargetCluster]) -> Iterable[TargetCluster]:
    for target in targets:
        found = delivered.get(target.cluster)
        yield target if found is None else target._replace(replicas=found.replicas, waits=found.waits, wanted=target.replicas)


def _annotate(
    records: tuple[tuple[Key, Body], ...], targets: Iterable[TargetCluster], assigned: Iterable[TargetCluster]
) -> tuple[tuple[Key, Body], ...]:
    """Return the records of a workload, the first one with the replicas of `targets` that get others than those `assigned`."""
    if not records:
        return records
    differing = {
        target.cluster: None if target.waits else encode_replicas(target.replicas)
        for target, one in zip(targets, assigned, strict=True)
        if target is not one and (target.waits or target.replicas != one.replicas)
    }
    text = json.dumps(differing, sort_keys=True, separators=(",", ":")) if differing else None
    (key, body), *others = records
    metadata = body.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if annotations.get(DELIVERED_ANNOTATION) == text:
        return records
    kept = {name: value for name, value in annotations.items() if name != DELIVERED_ANNOTATION}
    kept |= {DELIVERED_ANNOTATION: text} if text is not None else {}
    return ((key, {**body, "metadata": {**metadata, "annotations": kept}}), *others)


class _Counter:
    """Counts the replicas of what clusters get of a workload. Clusters that get the same are counted once."""

    def __init__(self, document: Document, outcome: Outcome, snapshot: Snapshot, minima: Minima) -> None:
        self._document, self._outcome, self._config, self._minima = document, outcome, snapshot.config, minima
        self._variants = snapshot.variants
        self._is_varied = bool(outcome.bundles) or (bool(self._variants) and document.key in self._variants)
        self._counts: dict[Any, int | None] = {}

    def count(self, target: TargetCluster, known: Mapping[str, TargetCluster]) -> int | None:
        """Return the replicas of a target whose manifests are rendered; `known` are the previous ones by cluster."""
        if self._is_varied:
            return self._count_variant(target, known)
        if scaled := self._minima.get(target.cluster):
            return count_copy_replicas(self._list_own(target), self._config, scaled)
        identity = target.edits if target.body is None else id(target.body)
        if identity not in self._counts:
            self._counts[identity] = count_copy_replicas(self._list_own(target), self._config)
        return self._counts[identity]

    def _list_own(self, target: TargetCluster) -> Iterable[Body]:
        if self._outcome.manifests is not None:
            return (body for key, body in self._outcome.manifests if key[:2] != BUNDLE_KIND)
        return (_change(self._document.body, target),)

    def _count_variant(self, target: TargetCluster, known: Mapping[str, TargetCluster]) -> int | None:
        bodies: list[Body] = []
        if self._outcome.manifests is not None:
            bodies += self._list_own(target)
        for key in self._outcome.bundles or (self._document.key,):
            found = self._variants.get(key)
            variant = found.find(target.cluster) if found is not None else None
            if variant is None or (found is not None and target.cluster in found.failed):
                return known[target.cluster].replicas if target.cluster in known else None
            if self._is_built_by_tool(key):
                bodies.append(_BUILT_BY_TOOL)
            elif not self._outcome.bundles:
                bodies.append(_change(variant.objects[0].body, target))
            else:
                changed = dict(target.bodies)
                for built in variant.objects:
                    edits = target.edits if built.key == target.workload else ()
                    bodies.append(changed.get(built.key) or set_counts(built.body, edits))
        return count_copy_replicas(bodies, self._config, self._minima.get(target.cluster, NOTHING_SCALED))

    def _is_built_by_tool(self, bundle: Key) -> bool:
        if not self._outcome.bundles:
            return False
        from gitsched.decide.variants.bundle_delivery import find_bundle, read_delivery  # few workloads have Bundles
        from gitsched.model.variants import MANIFESTS

        return read_delivery(find_bundle(self._document, self._outcome, bundle)) != MANIFESTS


_BUILT_BY_TOOL: Final[Body] = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease"}
"""Stands for what a delivery tool builds of a Bundle."""


def _change(body: Body, target: TargetCluster) -> Body:
    changed = body if target.body is None else target.body
    return set_counts(changed, target.edits) if target.edits and target.body is None else changed
