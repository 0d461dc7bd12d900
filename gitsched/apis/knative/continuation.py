"""What the engine keeps of the templates that it reads, so that the next one needs only those that change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.apis.knative.consumer_wishes import HPA_KIND, SCALED_OBJECT_KIND, find_scaled_source
from gitsched.apis.knative.names import DESCHEDULER, DOMAIN, GROUP, SCALABLE_KINDS, SCHEDULER
from gitsched.apis.knative.settings import SETTINGS
from gitsched.apis.knative.vpods import find_source_kinds
from gitsched.model.document import get_field

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.gitsched.config import Config
    from gitsched.model.document import Document, Key

_STATEFUL_SET = ("apps", "StatefulSet")


def select_inputs(templates: Mapping[Key, Document], config: Config) -> dict[Key, Document]:
    """Return the templates on which decisions depend, in their order. Of StatefulSets only the metadata and replicas are kept."""
    kinds = _list_source_kinds(config)
    return {key: _trim(document) for key, document in templates.items() if _is_input(document, kinds)}


def update_inputs(inputs: Mapping[Key, Document], changes: Mapping[Key, DocumentPair], config: Config) -> Mapping[Key, Document]:
    """Return the templates on which decisions depend after some templates changed."""
    kinds = _list_source_kinds(config)
    gone = {key for key in changes if key in inputs}
    added = {key: _trim(after) for key, (_, after) in changes.items() if after is not None and _is_input(after, kinds)}
    if not gone and not added:
        return inputs
    updated = {key: document for key, document in inputs.items() if key not in gone} | added
    return {key: updated[key] for key in sorted(updated, key=lambda key: (key.namespace, key.name, key))}


def can_select_inputs(config: Config) -> bool:
    """Return whether decisions depend on no other template: an adapter with a path reads which templates are below it."""
    settings = config.settings_of(SETTINGS)
    return not any(adapter.path for adapter in (settings, *settings.adapters))


def _list_source_kinds(config: Config) -> frozenset[tuple[str, str]]:
    """Return all kinds that may be event sources with these settings."""
    declared = (kind.partition(".") for adapter in config.settings_of(SETTINGS).adapters for kind in adapter.kinds)
    return frozenset((*find_source_kinds(config), *SCALABLE_KINDS, *((group or GROUP, name) for name, _, group in declared)))


def _is_input(document: Document, kinds: frozenset[tuple[str, str]]) -> bool:
    match document.key[:2]:
        case ("", "Pod" | "Node") | ("apps", "StatefulSet"):
            return True
        case ("", "ConfigMap"):
            return document.key.name in (SCHEDULER, DESCHEDULER)
        case kind if kind in (HPA_KIND, SCALED_OBJECT_KIND):
            source = find_scaled_source(document)
            return source is not None and source[:2] in kinds
        case (group, _) as kind:
            return kind in kinds or group == DOMAIN or group.endswith(f".{DOMAIN}")


def _trim(document: Document) -> Document:
    if document.key[:2] != _STATEFUL_SET:
        return document
    replicas = get_field(document.body, "spec", "replicas")
    return document._replace(body={**document.body, "spec": {} if replicas is None else {"replicas": replicas}})
