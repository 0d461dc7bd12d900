"""The manifests that an outcome delivers, and the clusters that each goes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.model.document import Document, Key
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body
    from gitsched.model.scheduling import Outcome
    from gitsched.model.variants import TemplateVariants, WorkloadVariants

Clusters = frozenset[str]
NO_CLUSTERS: Clusters = frozenset()
NO_MOVES: Mapping[Key, Clusters] = {}
"""No move: each object is where the plan places it."""


class DeliveredManifest(NamedTuple):
    """A manifest that goes to `clusters`. In those that are not `active` its workload is being evicted. `variant` is the path of the
    variant that has it, or ""."""

    document: Document
    clusters: Clusters
    active: Clusters
    variant: str = ""


def list_manifests(outcome: Outcome, template: Document, variants: TemplateVariants) -> Iterator[DeliveredManifest]:
    """Yield the manifests that an outcome delivers: the template, the objects that it consists of, or those of its variants."""
    targets = frozenset([target.cluster for target in outcome.targets if not target.waits])
    active = targets - {target.cluster for target in outcome.targets if target.evicting}
    varied = outcome.bundles or ((outcome.key,) if outcome.key in variants else ())
    for key in varied:
        if key in variants:
            yield from _list_variant_manifests(outcome, variants[key])
    if outcome.manifests is not None:
        others = (entry for entry in outcome.manifests if entry[0] not in outcome.bundles)
        yield from (DeliveredManifest(Document(key, "", body), targets, active) for key, body in others)
    elif not varied:
        yield DeliveredManifest(template, targets, active)


def _list_variant_manifests(outcome: Outcome, variants: WorkloadVariants) -> Iterator[DeliveredManifest]:
    """Yield the objects of the variants. A cluster that keeps what the previous output has may have the objects of any variant, and their
    references do not count."""
    kept = frozenset([target.cluster for target in outcome.targets if target.keeps_manifest])
    evicting = frozenset([target.cluster for target in outcome.targets if target.evicting])
    for index, variant in enumerate(variants.variants):
        clusters = frozenset([target.cluster for target in outcome.targets if variants.by_cluster.get(target.cluster) == index])
        if clusters or kept:
            active = clusters - kept - evicting
            changed = _list_changed_objects(outcome, active)
            for one in variant.objects:
                rest = active
                for body, names in changed.get(one.key, ()):
                    yield DeliveredManifest(one._replace(body=body), names, names, f"{variant.path} in {min(names)}")
                    rest = rest - names
                yield DeliveredManifest(one, clusters | kept, rest, variant.path)


def _list_changed_objects(outcome: Outcome, clusters: Clusters) -> dict[Key, list[tuple[Body, Clusters]]]:
    """Return the objects of Bundles that differ in some of the clusters, with their clusters."""
    found: dict[tuple[Key, int], tuple[Body, list[str]]] = {}
    for target in outcome.targets:
        for key, body in target.bodies if target.cluster in clusters else ():
            found.setdefault((key, id(body)), (body, []))[1].append(target.cluster)
    by_key: dict[Key, list[tuple[Body, Clusters]]] = {}
    for (key, _), (body, names) in found.items():
        by_key.setdefault(key, []).append((body, frozenset(names)))
    return by_key


def list_changed_bodies(outcome: Outcome) -> Iterator[tuple[Body, Clusters]]:
    """Yield each manifest that differs from the template, with its clusters."""
    clusters: dict[int, tuple[Body, list[str]]] = {}
    for target in outcome.targets:
        if target.body is not None and not target.evicting:
            clusters.setdefault(id(target.body), (target.body, []))[1].append(target.cluster)
    return ((body, frozenset(names)) for body, names in clusters.values())
