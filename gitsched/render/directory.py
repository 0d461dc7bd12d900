"""A cluster's directory, complete: manifests and all that a delivery tool needs to take it as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gitsched.model.cluster import ClusterFacts
from gitsched.model.document import Key
from gitsched.model.files import PlannedFile
from gitsched.render.cluster import STUB_NAME, cluster_json, kustomization, namespace_manifest, stub
from gitsched.render.layout import CLUSTER_FACTS, KUSTOMIZATION, STUB, relative_path

STUB_TWIN = relative_path(Key("", "ConfigMap", "default", STUB_NAME))
"""Where the repository's own object of the stub's identity would lie. The stub takes its place: kustomize accepts one only."""

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_BUILT_IN = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))


def complete_directory(cluster: ClusterFacts, files: Mapping[str, PlannedFile]) -> dict[str, PlannedFile]:
    """All files of `clusters/<cluster>/` by relative path, given the manifests placed there (`relative_path` → file).

    A Namespace is added for every namespace used unless it is among the files or in every cluster anyway. With no files at all, as
    for a cluster that is being retired, the stub remains.
    """
    directory = {path: file for path, file in files.items() if path != STUB_TWIN}
    for namespace in sorted({path.partition("/")[0] for path in directory}):
        if namespace in _BUILT_IN or not _LABEL.fullmatch(namespace):
            continue  # "_" and escaped names are no namespaces that a cluster could have
        directory.setdefault(f"_/namespace-{namespace}.yaml", namespace_manifest(namespace))
    directory[KUSTOMIZATION] = kustomization(directory)
    directory[STUB] = stub(cluster.name)
    directory[CLUSTER_FACTS] = cluster_json(*cluster)
    return directory
