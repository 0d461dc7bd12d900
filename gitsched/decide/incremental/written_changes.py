"""Which objects controllers write now, such as the Secrets of ExternalSecrets, and in which clusters, for an incremental plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.relations.delivered_objects import NO_CLUSTERS
from gitsched.kinds.written_objects import KYVERNO_POLICIES, WRITERS, list_written_objects, may_write

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.plan_state import ReferenceRow
    from gitsched.decide.relations.delivered_objects import Clusters, ManifestReferences
    from gitsched.model.document import Key

_FAR_WRITERS = KYVERNO_POLICIES | {kind for kind, rules in WRITERS.items() if not all(is_near for _, is_near, _ in rules)}
"""Kinds whose controllers may write into other namespaces."""


def list_changed_writes(changes: IncrementalChanges) -> set[Key]:
    """Return what the controllers of changed templates write now and did not write before, or the other way round."""
    found: set[Key] = set()
    for key, pair in changes.templates.items():
        if may_write(key):
            before, after = (frozenset(list_written_objects(key, one.body) if one is not None else ()) for one in pair)
            found |= before ^ after
    return found


def find_written(
    changes: IncrementalChanges, wanted: Collection[Key], references: Mapping[Key, ReferenceRow], limit: int
) -> dict[Key, Clusters] | None:
    """Return those of some objects that the controller of an object of the source writes, with the clusters in which it does so; None if
    more than `limit` documents would have to be read. `references` are the changed rows."""
    found: dict[Key, Clusters] = {}
    namespaces = {"", *(key.namespace for key in wanted)}
    templates = changes.snapshot.templates
    keys = dict.fromkeys((*(key for key, _ in changes.rows.template_index.items()), *changes.documents))
    writers = [key for key in keys if may_write(key) and (key.namespace in namespaces or key[:2] in _FAR_WRITERS)]
    writers = [key for key in writers if key in templates]
    if len(writers) > limit:
        return None
    for writer in writers:
        document = changes.documents.get(writer) or templates[writer]
        row = changes.rows.read_workload(writer)
        known = references.get(writer) or (row.references if row is not None else None)
        outcome = changes.find_outcome(writer)
        delivered = list_writes(known.manifests) if known is not None and outcome is not None else set()
        for written in {*list_written_objects(writer, document.body), *delivered}:
            for key in (one for one in wanted if written in (one, one._replace(namespace=""))):
                clusters = outcome.clusters if outcome is not None and written in delivered else NO_CLUSTERS
                found[key] = found.get(key, NO_CLUSTERS) | clusters
    return found


def list_writes(manifests: ManifestReferences) -> set[Key]:
    """Return what controllers write because of the manifests of a workload."""
    return {key for references, _ in manifests for key in references.writes}
