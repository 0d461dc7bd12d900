"""Index what a plan delivers to each cluster, what the delivered objects refer to, and what their controllers write there."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from gitsched.kinds.requirements import BINDING_KINDS, PodPaths, list_subjects, read_references
from gitsched.model.document import Body, Document, Key, get_field, is_known_group
from gitsched.model.references import NO_REFERENCES, References, RequiredObject

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.scheduling import Outcome
    from gitsched.model.variants import TemplateVariants, WorkloadVariants

Clusters = frozenset[str]
NO_CLUSTERS: Clusters = frozenset()
_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")


class ReferenceCache:
    """The references of manifests, as long as their bodies stay the same."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[Key, str], tuple[Body, PodPaths, References]] = {}

    def read(self, document: Document, pod_paths: PodPaths, path: str = "") -> References:
        """Return the references of a template, or of an object that a variant at `path` has."""
        known = self._known.get((document.key, path))
        if known is None or known[0] is not document.body or known[1] != pod_paths:
            known = document.body, pod_paths, read_references(document.key, document.body, pod_paths)
            self._known[document.key, path] = known
        return known[2]


class ReferenceRequirement(NamedTuple):
    """An object that a delivered one, the `referrer`, requires in these clusters. `implied` ones are no field of the referrer: the
    definition of its kind, and the bindings of a ServiceAccount. `part` is the object that refers to it, if that is a part of the
    referrer, such as an object of a Bundle."""

    required: RequiredObject
    referrer: Key
    clusters: Clusters
    implied: bool = False
    part: Document | None = None


class DeliveredObjects:
    """The objects that a plan delivers.

    `clusters` are those of each object, `written` those where controllers write it. `requirements` are of all objects, `references` those
    of each workload by manifest. `owners` are the workloads that contain an object which is not a workload itself. `definitions` are the
    CustomResourceDefinitions of the source by kind.
    """

    def __init__(self) -> None:
        self.clusters: dict[Key, Clusters] = {}
        self.written: dict[Key, Clusters] = {}
        self.requirements: list[ReferenceRequirement] = []
        self.references: dict[Key, ManifestReferences] = {}
        self.owners: dict[Key, tuple[Key, ...]] = {}
        self.definitions: Mapping[tuple[str, str], Key] = {}

    def add(self, key: Key, owner: Key, clusters: Clusters) -> None:
        """Add an object that goes to some clusters as a part of the workload `owner`."""
        self.clusters[key] = self.clusters[key] | clusters if key in self.clusters else clusters
        if key != owner:
            self.owners[key] = tuple({**dict.fromkeys(self.owners.get(key, ())), owner: None})

    def add_written(self, references: References, clusters: Clusters) -> None:
        """Add what a controller writes in the clusters of a manifest."""
        for key in references.writes:
            self.written[key] = self.written.get(key, NO_CLUSTERS) | clusters

    def find_clusters(self, key: Key) -> Clusters:
        """Return the clusters that an object goes to, or where a controller writes it."""
        found = self.clusters.get(key, NO_CLUSTERS)
        if self.written:
            found = found | self.written.get(key, NO_CLUSTERS) | self.written.get(key._replace(namespace=""), NO_CLUSTERS)
        return found


ManifestReferences = tuple[tuple[References, Clusters], ...]
"""The references of each different manifest of a workload, with its clusters; () for a workload without references."""


class DeliveredManifest(NamedTuple):
    """A manifest that goes to `clusters`. In those that are not `active` its workload is being evicted. `variant` is the path of the
    variant that has it, or ""."""

    document: Document
    clusters: Clusters
    active: Clusters
    variant: str = ""


def index_deliveries(decisions: DecisionSet, config: Config, cache: ReferenceCache | None = None) -> DeliveredObjects:
    """Return the deliveries of all policy APIs, with the requirements of every delivered object."""
    pod_paths = config.pod_paths if config.workloads else {}
    cache, found = cache or ReferenceCache(), DeliveredObjects()
    shared: dict[Clusters, Clusters] = {}
    for key, outcome in decisions.outcomes.items():
        if not outcome.targets:
            continue
        targets = frozenset([target.cluster for target in outcome.targets])
        targets = shared.setdefault(targets, targets)
        manifests: ManifestReferences
        parts: Iterable[Document | None] = repeat(None)
        if outcome.manifests is None and not outcome.bundles and key not in decisions.variants:
            found.add(key, key, targets)
            manifests = list_manifest_references(outcome, decisions.templates[key], targets, pod_paths, cache)
            for references, _ in manifests:
                found.add_written(references, targets)
        else:
            several: list[tuple[References, Clusters]] = []
            parts = objects = []
            for one in list_manifests(outcome, decisions.templates[key], decisions.variants):
                found.add(one.document.key, key, one.clusters)
                references = cache.read(one.document, pod_paths, f"{key}:{one.variant}")
                found.add_written(references, one.clusters)
                if references is not NO_REFERENCES:
                    several.append((references, one.active))
                    objects.append(one.document)
            manifests = tuple(several)
        if not manifests:
            continue
        found.references[key] = manifests
        for (references, clusters), part in zip(manifests, parts, strict=False):
            found.requirements += [ReferenceRequirement(required, key, clusters, part=part) for required in references.requires]
    _add_implied(found, decisions.catalog.templates.values(), decisions.outcomes)
    return found


def list_manifests(outcome: Outcome, template: Document, variants: TemplateVariants) -> Iterator[DeliveredManifest]:
    """Yield the manifests that an outcome delivers: the template, the objects that it consists of, or those of its variants."""
    targets = frozenset([target.cluster for target in outcome.targets])
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


def list_manifest_references(
    outcome: Outcome, template: Document, targets: Clusters, pod_paths: PodPaths, cache: ReferenceCache
) -> ManifestReferences:
    """Return the references of the manifests of one object. `targets` are all clusters of the outcome; those that it is being evicted from
    count only for what controllers write."""
    active = targets
    if any(target.evicting for target in outcome.targets):
        active = frozenset([target.cluster for target in outcome.targets if not target.evicting])
    found: list[tuple[References, Clusters]] = []
    for body, clusters in _list_changed_bodies(outcome):
        found.append((read_references(template.key, body, pod_paths), clusters))
        active -= clusters
    found.append((cache.read(template, pod_paths), active))
    return tuple(entry for entry in found if entry[0] is not NO_REFERENCES)


def _list_changed_bodies(outcome: Outcome) -> Iterator[tuple[Body, Clusters]]:
    """Yield each manifest that differs from the template, with its clusters."""
    clusters: dict[int, tuple[Body, list[str]]] = {}
    for target in outcome.targets:
        if target.body is not None and not target.evicting:
            clusters.setdefault(id(target.body), (target.body, []))[1].append(target.cluster)
    return ((body, frozenset(names)) for body, names in clusters.values())


def _add_implied(found: DeliveredObjects, templates: Iterable[Document], selected: Container[Key]) -> None:
    """Add what objects require without a field that says so, if the source has it. `selected` are objects that a policy selects."""
    bindings, definitions = _index_bindings_and_definitions(templates, selected)
    found.definitions = definitions
    if not bindings and not definitions:
        return
    for key, clusters in found.clusters.items():
        if key.kind == "ServiceAccount" and not key.group:
            implied = bindings.get(key, [])
        elif not is_known_group(key.group):
            definition = definitions.get(key[:2])
            implied = [definition] if definition is not None else []
        else:
            continue
        found.requirements += [ReferenceRequirement(RequiredObject(one, False), key, clusters, implied=True) for one in implied]


def _index_bindings_and_definitions(
    templates: Iterable[Document],
    selected: Container[Key],
) -> tuple[Mapping[Key, list[Key]], Mapping[tuple[str, str], Key]]:
    bindings: dict[Key, list[Key]] = {}
    definitions: dict[tuple[str, str], Key] = {}
    for template in templates:
        key = template.key
        if key[:2] in BINDING_KINDS:
            # Nothing sets the namespace of a document that has none, and that no policy selects: it may be a base for another one.
            guessed = bool(key.namespace) and key not in selected and not get_field(template.body, "metadata", "namespace")
            for subject in dict.fromkeys(list_subjects(template.body, key.namespace)):
                if not guessed or subject.namespace == key.namespace:
                    bindings.setdefault(subject, []).append(key)
        elif key[:2] == _DEFINITION:
            group, kind = get_field(template.body, "spec", "group"), get_field(template.body, "spec", "names", "kind")
            if isinstance(group, str) and isinstance(kind, str):
                definitions[group, kind] = key
    return bindings, definitions
