"""Names, labels and annotations of all clusters that the documents of a source describe."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.gitsched.bundle import ClusterMetadata
from gitsched.apis.topology import CLUSTER
from gitsched.decide.catalog import RawDocument, resolve_key
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Document, read_annotations, read_labels


def list_cluster_metadata(documents: Iterable[RawDocument]) -> list[ClusterMetadata]:
    """Return the clusters of every policy API, sorted by name.

    Where several APIs describe a cluster, it has the labels of all; the first registered API takes precedence.
    """
    topologies = [api.topology for api in policy_apis.values() if api.topology is not None and api.topology.level == CLUSTER]
    by_kind = {(topology.group, topology.kind): (index, topology) for index, topology in enumerate(topologies)}
    found = []
    for raw in documents:
        entry = by_kind.get((raw.group, raw.kind))
        key = resolve_key(raw, {}) if entry is not None else None
        if entry is not None and key is not None:
            index, topology = entry
            name = topology.read_location(Document(key, raw.api_version, raw.body, raw.origin)).name
            found.append((index, ClusterMetadata(name, read_labels(raw.body), read_annotations(raw.body))))
    clusters: dict[str, ClusterMetadata] = {}
    for _, cluster in sorted(found, key=lambda entry: (entry[0], entry[1].name)):
        known = clusters.get(cluster.name, cluster)
        labels, annotations = {**cluster.labels, **known.labels}, {**cluster.annotations, **known.annotations}
        clusters[cluster.name] = ClusterMetadata(cluster.name, labels, annotations)
    return sorted(clusters.values(), key=lambda cluster: cluster.name)
