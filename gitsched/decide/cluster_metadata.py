"""Names, labels and annotations of all clusters that the documents of a source describe."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.gitsched.bundle import ClusterMetadata
from gitsched.decide.catalog import RawDocument, resolve_key
from gitsched.decide.cluster_conditions import index_cluster_kinds
from gitsched.model.document import Document, read_annotations, read_labels


def read_cluster_metadata(documents: Iterable[RawDocument]) -> list[ClusterMetadata]:
    """Return the clusters that documents of a source describe; see `list_cluster_metadata`."""
    resolved = ((raw, resolve_key(raw, {})) for raw in documents)
    return list_cluster_metadata(Document(key, raw.api_version, raw.body, raw.origin) for raw, key in resolved if key is not None)


def list_cluster_metadata(documents: Iterable[Document]) -> list[ClusterMetadata]:
    """Return the clusters of every policy API, sorted by name.

    Where several APIs describe a cluster, it has the labels of all; the first registered API takes precedence.
    """
    by_kind = {kind: (index, topology) for index, (kind, topology) in enumerate(index_cluster_kinds().items())}
    found = []
    for document in documents:
        entry = by_kind.get((document.key.group, document.key.kind))
        if entry is not None:
            index, topology = entry
            name = topology.read_location(document).name
            found.append((index, ClusterMetadata(name, read_labels(document.body), read_annotations(document.body))))
    clusters: dict[str, ClusterMetadata] = {}
    for _, cluster in sorted(found, key=lambda entry: (entry[0], entry[1].name)):
        known = clusters.get(cluster.name, cluster)
        labels, annotations = {**cluster.labels, **known.labels}, {**cluster.annotations, **known.annotations}
        clusters[cluster.name] = ClusterMetadata(cluster.name, labels, annotations)
    return sorted(clusters.values(), key=lambda cluster: cluster.name)
