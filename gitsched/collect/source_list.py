"""The sources of clusters that are read from one cluster, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from gitsched.apis.cluster_format import HubClusters
from gitsched.collect.argo_cd import read_secrets
from gitsched.collect.sources import FoundClusters, read_hub, read_profiles
from gitsched.kubectl.proxy import ClusterReader

ReadSource = Callable[[ClusterReader, str, datetime], FoundClusters]


def list_sources(hubs: Mapping[str, HubClusters]) -> dict[str, ReadSource]:
    """Return the sources that are read from one cluster, by name: the hubs of policy APIs, ClusterProfiles and Argo CD."""

    def read_with(hub: HubClusters) -> ReadSource:
        return lambda reader, origin, observed: read_hub(reader, hub, origin, observed)

    return {**{name: read_with(hub) for name, hub in hubs.items()}, "clusterprofiles": read_profiles, "argocd": read_secrets}
