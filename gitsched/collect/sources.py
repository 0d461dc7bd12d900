"""Find the clusters to observe: contexts of a kubeconfig, the clusters of hubs, ClusterProfiles, and the cluster Secrets of Argo CD."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from gitsched.apis.cluster_format import HubClusters, read_condition
from gitsched.kubectl.client import KubectlOptions
from gitsched.kubectl.proxy import ClusterReader
from gitsched.model.cluster_facts import ClusterFacts, CollectedCluster
from gitsched.model.document import Body, as_object, as_string_map, list_objects
from gitsched.named_tuples import NamedTuple

MAX_CLUSTERS: Final = 10_000
"""Clusters of one hub."""
CLUSTER_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_HUB_PAGE: Final = 50
"""Clusters that one request asks for: one with all its API enablements has some 100 KiB."""
_PROFILES: Final = "/apis/multicluster.x-k8s.io/v1alpha1/clusterprofiles"
_CONTROL_PLANE: Final = "ControlPlaneHealthy"
_MANAGER_LABEL: Final = "x-k8s.io/cluster-manager"


class ClusterTarget(NamedTuple):
    """A cluster to observe. `origin` says where it was found. `own` is what its source says of it, or None. `kubeconfig` is the text of
    a kubeconfig with credentials, or "" where the options are enough; no message contains it."""

    cluster: str
    origin: str
    options: KubectlOptions
    own: CollectedCluster | None = None
    kubeconfig: str = ""


class FoundClusters(NamedTuple):
    """What a source knows: clusters whose facts it has itself, clusters to connect to, and notes about those that are left out. `failures`
    are the clusters that the user named and that cannot be observed."""

    clusters: tuple[tuple[str, CollectedCluster], ...] = ()
    targets: tuple[ClusterTarget, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


def find_contexts(contexts: Iterable[str], options: KubectlOptions, listed: Iterable[str] = ()) -> FoundClusters:
    """Return the clusters of contexts. `contexts` are those that the user wrote, as NAME or CLUSTER=NAME; `listed` are names from the
    kubeconfig, which can contain "="."""
    targets: list[ClusterTarget] = []
    notes: list[str] = []
    failures: list[str] = []
    for text in contexts:
        cluster, separator, context = text.partition("=")
        if not separator:
            context = cluster
        if not CLUSTER_NAME.fullmatch(cluster):
            failures.append(f"--context {text:.100}: {cluster[:100]!r} is no name of a cluster; write --context CLUSTER=CONTEXT")
        elif not context:  # kubectl would take the current context, which can be another cluster
            failures.append(f"--context {text:.100}: the name of the context is empty; write --context CLUSTER=CONTEXT")
        else:
            targets.append(ClusterTarget(cluster, f"context {context}", options._replace(context=context)))
    for context in listed:
        if CLUSTER_NAME.fullmatch(context):
            targets.append(ClusterTarget(context, f"context {context}", options._replace(context=context)))
        else:
            cure = f"name it with --context CLUSTER={context:.100}"
            notes.append(f"the context {context:.100} is left out: {context[:100]!r} is no name of a cluster; {cure}")
    return FoundClusters((), tuple(targets), tuple(notes), tuple(failures))


def read_hub(reader: ClusterReader, hub: HubClusters, origin: str, observed: datetime) -> FoundClusters:
    """Return the clusters of a hub, with the facts that it has."""
    return _keep_named(
        (hub.read(body, observed) for body in reader.list_objects(hub.path, limit=MAX_CLUSTERS, page=_HUB_PAGE)), origin
    )


def read_profiles(reader: ClusterReader, origin: str, observed: datetime) -> FoundClusters:
    """Return the clusters of ClusterProfiles (SIG-Multicluster, multicluster.x-k8s.io/v1alpha1)."""
    bodies = reader.list_objects(_PROFILES, limit=MAX_CLUSTERS, page=_HUB_PAGE)
    return _keep_named((read_profile(body, observed) for body in bodies), origin)


def read_profile(body: Body, observed: datetime) -> CollectedCluster:
    """Read a ClusterProfile: version, health of the control plane, labels and properties."""
    metadata, spec, status = (as_object(body.get(name)) for name in ("metadata", "spec", "status"))
    properties = {
        str(entry.get("name")): str(entry.get("value"))
        for entry in list_objects(status.get("properties"))
        if isinstance(entry.get("name"), str) and isinstance(entry.get("value"), str)
    }
    display, name = str(spec.get("displayName") or ""), str(metadata.get("name") or "")
    facts = ClusterFacts(
        display if CLUSTER_NAME.fullmatch(display) else name,
        observed,
        read_condition(body, _CONTROL_PLANE),
        str(as_object(status.get("version")).get("kubernetes") or ""),
    )
    labels = {key: value for key, value in as_string_map(metadata.get("labels")).items() if key != _MANAGER_LABEL}
    regions = (
        value for name, value in sorted(properties.items()) if name.rpartition("/")[2].split(".")[0] in ("region", "location")
    )
    return CollectedCluster(facts, labels, next(regions, ""), claims=properties)


def _keep_named(clusters: Iterator[CollectedCluster], origin: str) -> FoundClusters:
    found: dict[str, CollectedCluster] = {}
    notes: list[str] = []
    for cluster in clusters:
        name = cluster.facts.cluster
        if not CLUSTER_NAME.fullmatch(name):
            notes.append(f"a cluster of {origin} is left out: {name[:100]!r} is no name of a cluster")
        elif name in found:
            notes.append(f"{origin} has two clusters of the name {name}: the first one counts")
        else:
            found[name] = cluster
    return FoundClusters(tuple((origin, cluster) for cluster in found.values()), (), tuple(notes))
