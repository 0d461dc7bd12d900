"""Assign event sources to the StatefulSets that run their vreplicas: by the settings, else by the name of the StatefulSet, else to the
default one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from gitsched.apis.knative.documents import EventSources, is_named
from gitsched.apis.knative.names import ADAPTER, ADAPTER_SUFFIX, DOMAIN, GROUP, KINDS_WITHOUT_VREPLICAS, RENDERED_TO, SCALABLE_KINDS
from gitsched.apis.knative.settings import SETTINGS, KnativeConfig
from gitsched.apis.knative.vpods import CONSUMERS_PATH, VreplicaPaths, find_source_kinds
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Document, Key, get_field, read_annotations
from gitsched.model.finding import Finding, locate_document
from gitsched.named_tuples import NamedTuple

_LOCATED_KINDS = frozenset((("", "Pod"), ("", "Node")))
"""Kinds of which an adapter with a path reads only the documents below it."""


class AssignedSources(NamedTuple):
    """The sources of one StatefulSet, the settings for it, and the snapshot with only its own Pods and Nodes."""

    settings: KnativeConfig
    sources: EventSources
    snapshot: Snapshot


def find_vreplica_paths(snapshot: Snapshot) -> VreplicaPaths:
    """Return the kinds of event sources: declared ones, and known ones that have a StatefulSet of their own."""
    paths = dict(find_source_kinds(snapshot.config))
    for adapter in snapshot.config.settings_of(SETTINGS).adapters:
        for kind in adapter.kinds:
            name, _, group = kind.partition(".")
            paths.setdefault((group or GROUP, name), CONSUMERS_PATH)
    for scalable in SCALABLE_KINDS:
        if scalable not in paths and _find_own_adapter(snapshot, scalable[1]):
            paths[scalable] = CONSUMERS_PATH
    return paths


def assign_sources(snapshot: Snapshot, sources: EventSources) -> Iterator[AssignedSources]:
    """Yield the StatefulSets with their sources, the default one last. A source belongs to the first that accepts it.

    Entries of `knative.adapters` come first, then StatefulSets that are named after a kind of source (KIND-mt-adapter).
    """
    config = snapshot.config.settings_of(SETTINGS)
    adapters = [*config.adapters, *_find_known_adapters(snapshot, config, sources)]
    paths = [adapter.path for adapter in adapters if adapter.path]
    remaining = {*sources.valid, *map(str, sources.quarantined)}
    for adapter in adapters:
        own = {name for name in remaining if _accepts(adapter, name, sources, snapshot)}
        remaining -= own
        if adapter.path and not own and not any(_is_below(document, adapter.path) for document in snapshot.templates.values()):
            continue  # the run reads other directories only
        yield AssignedSources(
            adapter, _select(sources, own), _restrict(snapshot, adapter.path, [p for p in paths if p != adapter.path])
        )
    if (
        remaining
        or not adapters
        or any(key.name == ADAPTER and not _is_taken(key, adapters) for key in _list_stateful_sets(snapshot))
    ):
        yield AssignedSources(config, _select(sources, remaining), _restrict(snapshot, "", paths))


def find_undeclared_kinds(snapshot: Snapshot, paths: VreplicaPaths) -> Iterator[Finding]:
    """Yield a finding for each kind of event source that has no adapter."""
    found: dict[tuple[str, str], list[Document]] = {}
    for key, document in snapshot.templates.items():
        if (key.group == DOMAIN or key.group.endswith(f".{DOMAIN}")) and key[:2] not in paths and _has_vreplicas(document):
            found.setdefault((key.group, key.kind), []).append(document)
    for (group, kind), documents in sorted(found.items()):
        number = f"{len(documents)} {kind} documents are" if len(documents) > 1 else f"{documents[0].key} is"
        message = (
            f"{number} not scheduled: kind {kind} of {group} has no adapter. Name its StatefulSet in knative.adapters, with kinds: "
            f"[{kind}], or declare the kind with its replicasPath in knative.sources"
        )
        yield Finding("warning", "knative-undeclared-kind", message, locate_document(documents[0]), documents[0].key.resource)


def _has_vreplicas(document: Document) -> bool:
    """Return whether a document looks like a source whose consumers can be placed."""
    body = document.body
    if get_field(body, *CONSUMERS_PATH) is not None or get_field(body, "status", "placements") is not None:
        return True
    return document.key.kind.endswith("Source") and document.key.kind not in KINDS_WITHOUT_VREPLICAS


def _find_known_adapters(snapshot: Snapshot, config: KnativeConfig, sources: EventSources) -> Iterator[KnativeConfig]:
    """Yield adapters for kinds that no entry of the settings has, and whose StatefulSet is named after them."""
    declared = {kind.partition(".")[0] for adapter in config.adapters for kind in adapter.kinds}
    kinds = {document.key.kind for document, _ in sources.valid.values()} | {key.kind for key in sources.quarantined}
    for kind in sorted({*kinds, *(kind for _, kind in SCALABLE_KINDS)} - declared):
        found = _find_own_adapter(snapshot, kind)
        if found is not None and found.name != ADAPTER and not is_named(found, config.stateful_set):
            yield config._replace(stateful_set=f"{found.namespace}/{found.name}", kinds=(kind,), adapters=())


def _find_own_adapter(snapshot: Snapshot, kind: str) -> Key | None:
    """Return the StatefulSet that is named after a kind of source; None if there is none, or more than one."""
    found = [key for key in _list_stateful_sets(snapshot) if key.name == f"{kind.lower()}{ADAPTER_SUFFIX}"]
    return found[0] if len(found) == 1 else None


def _list_stateful_sets(snapshot: Snapshot) -> list[Key]:
    return [key for key in snapshot.templates if key[:2] == ("apps", "StatefulSet")]


def _is_taken(key: Key, adapters: Collection[KnativeConfig]) -> bool:
    return any(is_named(key, adapter.stateful_set) for adapter in adapters)


def _accepts(adapter: KnativeConfig, name: str, sources: EventSources, snapshot: Snapshot) -> bool:
    document = sources.valid[name][0] if name in sources.valid else None
    key = document.key if document else next(key for key in sources.quarantined if str(key) == name)
    if adapter.kinds and key.kind not in adapter.kinds and f"{key.kind}.{key.group}" not in adapter.kinds:
        return False
    if not adapter.path:
        return True
    if document is not None:
        return _is_below(document, adapter.path)
    # The file of a broken document is not known here: the cluster of its last placements decides.
    annotations = read_annotations(snapshot.previous.get(key, {}))
    return annotations.get(RENDERED_TO) == adapter.cluster


def _select(sources: EventSources, names: Collection[str]) -> EventSources:
    valid = {name: entry for name, entry in sources.valid.items() if name in names}
    return EventSources(valid, tuple(key for key in sources.quarantined if str(key) in names), (), sources.removed)


def _restrict(snapshot: Snapshot, path: str, other_paths: Collection[str]) -> Snapshot:
    """Return the snapshot with the Pods and Nodes below a path, or without those below the paths of others, and without StatefulSets there.

    A Node may have a copy in each path, because clusters may use the same names.
    """
    if not path and not other_paths:
        return snapshot

    def is_own(document: Document) -> bool:
        return _is_below(document, path) if path else not any(_is_below(document, other) for other in other_paths)

    copies = {
        key: own[0]
        for key, documents in _list_located(snapshot.duplicate_templates)
        if len(own := [d for d in documents if is_own(d)]) == 1
    }

    def is_readable(key: Key, document: Document) -> bool:
        if key[:2] == ("apps", "StatefulSet"):
            return not any(_is_below(document, other) for other in other_paths)
        return key[:2] not in _LOCATED_KINDS or is_own(document)

    templates = {key: document for key, document in snapshot.templates.items() if is_readable(key, document)}
    return snapshot._replace(templates=templates | copies)


def _list_located(duplicates: Mapping[Key, tuple[Document, ...]]) -> Iterator[tuple[Key, tuple[Document, ...]]]:
    return ((key, documents) for key, documents in duplicates.items() if key[:2] in _LOCATED_KINDS)


def _is_below(document: Document, path: str) -> bool:
    return document.origin is not None and (document.origin.path == path or document.origin.path.startswith(f"{path}/"))
