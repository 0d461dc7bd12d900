"""What the source says about an object, what a plan delivers of it, and what the delivered manifests refer to: the inputs of the queries
about relations, and the rows by which these find the object.

Facts are tuples of plain values, so that they have canonical bytes. Keys are (group, kind, namespace, name).
"""

from __future__ import annotations

import marshal
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.decide.relations.delivered_manifests import NO_CLUSTERS, Clusters, list_changed_bodies, list_manifests
from gitsched.decide.relations.schema import (
    ANNOTATIONS,
    ANY_NAMESPACE,
    BOUND,
    BUILT,
    CHARTS,
    CLAIMS,
    COMPANIONS,
    CONTAINS,
    CUSTOM,
    DEFINITIONS,
    FAR,
    MAKES,
    MEMBERS,
    NAMESPACES,
    OBJECT,
    REQUIRES,
    RESOURCES,
    SHARED,
    UNUSABLE,
    WORDS,
    WRITES,
)
from gitsched.kinds.companion_kinds import FOLLOW_ANNOTATION, SHARED_SERVICE_KINDS
from gitsched.kinds.companion_targets import (
    FOLLOW_VALUES,
    NO_FEATURES,
    CompanionFeatures,
    Selection,
    read_features,
)
from gitsched.kinds.pods import ONLY_PODS, PodPaths, read_pod_template
from gitsched.kinds.possible_creators import CreatorFeatures, read_creator_features
from gitsched.kinds.requirements import BINDING_KINDS, list_subjects, read_references
from gitsched.kinds.written_objects import list_written_objects, may_write
from gitsched.model.document import Key, get_field, is_known_group, read_annotations
from gitsched.model.finding import locate_document
from gitsched.model.labels import Requirement, Selector
from gitsched.model.references import NO_REFERENCES, References
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.model.document import Body, Document
    from gitsched.model.scheduling import Outcome
    from gitsched.model.variants import TemplateVariants
    from gitsched.query.canonical import Key as QueryKey
    from gitsched.query.reader import Reader

PlainKey = tuple[str, str, str, str]
DOCUMENT, DUPLICATE, BROKEN, PART = "document", "duplicate", "broken", "part: "
"""How the source has an object; `PART` is followed by what changes the object, or why it is not built."""
_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
DELIVERED_BY_DEFINITION = ("", "", "", "")
"""The referrer in a row of a CustomResourceDefinition: the objects of its kind."""


class PlacementFacts(NamedTuple):
    """The placement of a workload: `active` are the `clusters` from which it is not being evicted. To those that are `undelivered`, its
    policy assigns it, and no manifest of it is delivered there."""

    api: str
    policy: str
    state: str
    clusters: Clusters
    active: Clusters
    undelivered: Clusters = NO_CLUSTERS


class PartFacts(NamedTuple):
    """An object that a workload delivers, or the workload itself (`key` is None), with its clusters. `location` is that of a part."""

    key: PlainKey | None
    clusters: Clusters
    active: Clusters
    features: tuple[Any, ...] | None
    creator: tuple[Any, ...] | None
    location: tuple[Any, ...] | None = None


class ReferenceFacts(NamedTuple):
    """What a manifest requires, each with whether it must be in the source, in the `clusters` where the manifest counts; what its
    controller writes in `written_in`; and the number of the part that it is, -1 for the manifest of the workload itself."""

    requires: tuple[tuple[PlainKey, bool], ...]
    writes: tuple[PlainKey, ...]
    clusters: Clusters
    written_in: Clusters
    part: int = -1


class ObjectFacts(NamedTuple):
    """The facts of one object. The members of the lists are plain tuples of the types above.

    `source` says how the source has it, "" if it has not. `placement` is None if no policy selects it. `built` are the objects of its
    variants, and `makes` those that its controller would write. A binding has `subjects`; one that `is_base` counts only in its namespace.
    `definition` is the group and kind that a CustomResourceDefinition defines. `annotation` is a value of the annotation about companions
    that has no meaning.
    """

    source: str = ""
    placement: tuple[Any, ...] | None = None
    parts: tuple[tuple[Any, ...], ...] = ()
    references: tuple[tuple[Any, ...], ...] = ()
    built: tuple[PlainKey, ...] = ()
    makes: tuple[PlainKey, ...] = ()
    subjects: tuple[PlainKey, ...] = ()
    definition: tuple[str, str] | None = None
    annotation: str = ""
    is_refused: bool = False


NO_FACTS = ObjectFacts()


class DocumentFacts(NamedTuple):
    """What one manifest says, wherever it goes."""

    references: References
    features: tuple[Any, ...] | None
    creator: tuple[Any, ...] | None


class ManifestCache:
    """The facts of manifests, as long as their bodies stay the same."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[Key, str], tuple[Body, PodPaths, DocumentFacts]] = {}

    def read(self, document: Document, pod_paths: PodPaths, path: str = "") -> DocumentFacts:
        """Return the facts of a template, or of an object that a variant at `path` has."""
        known = self._known.get((document.key, path))
        if known is None or known[0] is not document.body or known[1] != pod_paths:
            key, body = document.key, document.body
            is_plain = key[:2] in ONLY_PODS and key[:2] not in pod_paths
            facts = _read_pods(key, body) if is_plain else _read_facts(key, body, pod_paths)
            known = self._known[key, path] = body, pod_paths, facts
        return known[2]


def _read_facts(key: Key, body: Body, pod_paths: PodPaths) -> DocumentFacts:
    features, creator = read_features(key, body, pod_paths), read_creator_features(key, body)
    return DocumentFacts(
        read_references(key, body, pod_paths),
        None if features is NO_FEATURES else _flatten_features(features),
        None if creator is None else tuple(creator),
    )


def _read_pods(key: Key, body: Body) -> DocumentFacts:
    """Return the facts of a workload that says nothing but what its pods say."""
    pods = read_pod_template(key, body)
    features = CompanionFeatures(pod_labels=tuple(sorted(pods.labels.items())), is_workload=True)
    references = References(pods.requires) if pods.requires else NO_REFERENCES
    return DocumentFacts(references, _flatten_features(features), tuple(CreatorFeatures(words=pods.words)) if pods.words else None)


class FactReader:
    """Reads the facts of the objects of one plan. Equal sets of clusters are one object."""

    def __init__(self, variants: TemplateVariants, config: Config, cache: ManifestCache | None = None) -> None:
        self._variants, self._cache = variants, cache or ManifestCache()
        self._pod_paths: PodPaths = config.pod_paths if config.workloads else {}
        self._shared: dict[Clusters, Clusters] = {}

    def read_template(self, template: Document, outcome: Outcome | None, *, is_refused: bool = False) -> ObjectFacts:
        """Return the facts of an object of the source."""
        facts = self.read_placed(template, outcome, DOCUMENT) if outcome is not None else self._read_unplaced(template)
        facts = facts._replace(is_refused=True) if is_refused else facts
        key, body = template.key, template.body
        features = facts.parts[0][3] if len(facts.parts) == 1 and facts.parts[0][0] is None else None
        if features is not None and features[1] and features[1] not in FOLLOW_VALUES:
            facts = facts._replace(annotation=features[1])
        if key in self._variants:
            objects = (one.key for variant in self._variants[key].variants for one in variant.objects)
            facts = facts._replace(built=_flatten_keys(dict.fromkeys(objects)))
        if key[:2] in BINDING_KINDS:
            # Nothing sets the namespace of a document that has none, and that no policy selects: it may be a base for another one.
            is_base = bool(key.namespace) and outcome is None and not get_field(body, "metadata", "namespace")
            subjects = dict.fromkeys(list_subjects(body, key.namespace))
            facts = facts._replace(subjects=_flatten_keys(one for one in subjects if not is_base or one.namespace == key.namespace))
        elif key[:2] == _DEFINITION:
            group, kind = get_field(body, "spec", "group"), get_field(body, "spec", "names", "kind")
            if isinstance(group, str) and isinstance(kind, str):
                facts = facts._replace(definition=(group, kind))
        if not is_known_group(key.group) and may_write(key):
            facts = facts._replace(makes=_flatten_keys(list_written_objects(key, body)))
        return facts

    def read_placed(self, template: Document, outcome: Outcome, source: str = "") -> ObjectFacts:
        """Return the facts of an object that is placed. Of what the source says there is only how it has the object."""
        clusters = self._share(frozenset([target.cluster for target in outcome.targets if not target.waits]))
        evicting = [target.cluster for target in outcome.targets if target.evicting]
        active = self._share(clusters.difference(evicting)) if evicting else clusters
        undelivered = self._share(frozenset([target.cluster for target in outcome.targets if target.waits]))
        placement = outcome.api, outcome.policy, outcome.state, clusters, active, undelivered
        if outcome.manifests is None and not outcome.bundles and outcome.key not in self._variants:
            found = self._cache.read(template, self._pod_paths)
            references = self._read_changed(template, outcome, clusters, active, found.references) if clusters else ()
            return ObjectFacts(source, placement, ((None, clusters, active, found.features, found.creator, None),), references)
        parts: list[tuple[Any, ...]] = []
        several: list[tuple[Any, ...]] = []
        for one in list_manifests(outcome, template, self._variants):
            found = self._cache.read(one.document, self._pod_paths, f"{outcome.key}:{one.variant}")
            location = locate_document(one.document)
            if found.references is not NO_REFERENCES and clusters:
                several.append(_make_reference(found.references, self._share(one.active), self._share(one.clusters), len(parts)))
            parts.append(
                (
                    tuple(one.document.key),
                    self._share(one.clusters),
                    self._share(one.active),
                    found.features,
                    found.creator,
                    None if location is None else tuple(location),
                )
            )
        return ObjectFacts(source, placement, tuple(parts), tuple(several))

    def _read_unplaced(self, template: Document) -> ObjectFacts:
        features = self._cache.read(template, self._pod_paths).features
        if features is None:
            return _IN_SOURCE
        return ObjectFacts(DOCUMENT, parts=((None, NO_CLUSTERS, NO_CLUSTERS, features, None, None),))

    def _read_changed(
        self, template: Document, outcome: Outcome, clusters: Clusters, active: Clusters, own: References
    ) -> tuple[tuple[Any, ...], ...]:
        """Return the references of each different manifest of an object. Where it is being evicted, only what is written counts."""
        found = []
        for body, names in list_changed_bodies(outcome) if any(target.body is not None for target in outcome.targets) else ():
            references = read_references(template.key, body, self._pod_paths)
            active -= names
            if references is not NO_REFERENCES:
                found.append(_make_reference(references, self._share(names), clusters))
        if own is not NO_REFERENCES:
            found.append(_make_reference(own, self._share(active), clusters))
        return tuple(found)

    def _share(self, clusters: Clusters) -> Clusters:
        return self._shared.setdefault(clusters, clusters)


def find_source(key: Key, duplicates: Container[Key], broken: Container[Key], parts: Mapping[Key, str]) -> str:
    """Return how the source has an object that is not among its templates, "" if it has not."""
    if key in duplicates:
        return DUPLICATE
    if key in broken:
        return BROKEN
    return f"{PART}{parts[key]}" if key in parts else ""


_IN_SOURCE = ObjectFacts(DOCUMENT)


def read_api_facts(document: Document) -> ObjectFacts | None:
    """Return the facts of a document of a policy API; None if they have no effect on relations."""
    annotation = read_annotations(document.body).get(FOLLOW_ANNOTATION, "")
    if annotation in FOLLOW_VALUES:
        annotation = ""
    return ObjectFacts(annotation=annotation) if annotation or document.key[:2] in SHARED_SERVICE_KINDS else None


def list_api_facts(documents: Mapping[Key, Document]) -> dict[Key, ObjectFacts]:
    """Return the facts of documents of policy APIs that have an effect on relations."""
    return {key: facts for key, document in documents.items() if (facts := read_api_facts(document)) is not None}


def _flatten_keys(keys: Iterable[Key]) -> tuple[PlainKey, ...]:
    return tuple([(key.group, key.kind, key.namespace, key.name) for key in keys])


def _make_reference(references: References, clusters: Clusters, written_in: Clusters, part: int = -1) -> tuple[Any, ...]:
    requires = tuple([(tuple(key), expected) for key, expected in references.requires])
    return requires, _flatten_keys(references.writes), clusters, written_in, part


def _flatten_features(features: CompanionFeatures) -> tuple[Any, ...]:
    is_companion, annotation, is_shared, selection, names, *labels = features
    plain = None
    if selection is not None:
        plain = selection.kind, tuple(map(tuple, selection.selector.requirements)), selection.namespaces
    return (is_companion, annotation, is_shared, plain, tuple(map(tuple, names)), *labels)


def read_object(db: Reader, key: QueryKey) -> object:
    """Return the facts of an object, without what only rows have."""
    facts = ObjectFacts(*db.input(OBJECT, key))
    namespace = key[2]
    for plain in facts.references:
        reference = ReferenceFacts(*plain)
        for required, _ in reference.requires:
            db.emit(REQUIRES, (*required, *key))
        for written in reference.writes:
            db.emit(WRITES, (*written, *key))
    for number, plain in enumerate(facts.parts):
        _emit_part(db, key, number, PartFacts(*plain), is_delivered=bool(facts.placement and facts.placement[3]))
    for subject in facts.subjects:
        db.emit(REQUIRES, (*key, *subject))
        db.emit(BOUND, (*subject, *key))
    if facts.definition is not None:
        db.emit(REQUIRES, (*key, *DELIVERED_BY_DEFINITION))
        db.emit(DEFINITIONS, (*facts.definition, *key))
    for built in facts.built:
        db.emit(BUILT, (*built, *key))
    for made in facts.makes:
        db.emit(MAKES, (*made, *key))
    if key[:2] in SHARED_SERVICE_KINDS:
        db.emit(SHARED, (namespace, key[3]))
    if facts.source not in ("", DOCUMENT) and (key[0] or key[1] == "Pod"):
        db.emit(UNUSABLE, (namespace,))
    if facts.annotation:
        db.emit(ANNOTATIONS, ("", *key, facts.annotation))
    return tuple(facts._replace(parts=tuple((*plain[:3], None, None, plain[5]) for plain in facts.parts), built=(), annotation=""))


def _emit_part(db: Reader, owner: QueryKey, number: int, part: PartFacts, *, is_delivered: bool) -> None:
    key = part.key or owner
    group, kind, namespace, name = key
    if part.features is not None:
        entry = (*owner, str(number))
        db.emit(NAMESPACES, ("", namespace))
        db.emit(MEMBERS, (namespace, *key, *entry, write_text(part.features)))
        if part.features[0]:
            db.emit(COMPANIONS, entry)
            if _is_far(namespace, part.features):
                db.emit(FAR, ("", *entry))
    if not is_delivered:
        return
    if part.key is not None:
        db.emit(CONTAINS, (*key, *owner))
    if not is_known_group(group):
        db.emit(CUSTOM, (group, kind, *key))
    if part.creator is not None:
        creator = CreatorFeatures(*part.creator)
        if creator.chart_namespace is not None:
            db.emit(CHARTS, (creator.chart_namespace, *key))
            db.emit(CHARTS, (ANY_NAMESPACE, *key))
        if creator.is_custom:
            db.emit(RESOURCES, (namespace, name, *key))
        for claim in creator.claims:
            db.emit(CLAIMS, (namespace, claim, *key))
        if creator.words:
            db.emit(WORDS, (namespace, *key, write_text(creator.words)))


def _is_far(namespace: str, features: tuple[Any, ...]) -> bool:
    """Return whether a companion may have targets in other namespaces."""
    selection, names = features[3:5]
    return (selection is not None and selection[2] != (namespace,)) or any(name[2] != namespace for name in names)


def write_text(plain: Any) -> str:
    """Return a plain value as a text for a row."""
    return marshal.dumps(plain, 2).decode("latin-1")


def read_text(text: str) -> Any:
    """Return the plain value of a text in a row."""
    return marshal.loads(text.encode("latin-1"))  # noqa: S302 - rows are read with a checksum


def restore_features(text: str) -> CompanionFeatures:
    """Return the features that a row has as text."""
    features = CompanionFeatures(*read_text(text))
    if features.selection is None and not features.names:
        return features
    selection: Any = features.selection
    if selection is not None:
        kind, requirements, namespaces = selection
        selection = Selection(kind, Selector(tuple(Requirement(*one) for one in requirements)), namespaces)
    return features._replace(selection=selection, names=tuple(Key(*name) for name in features.names))
