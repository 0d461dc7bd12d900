"""What lies in every cluster's directory beside the manifests: its facts, the list of files, the stub, missing namespaces."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

from gitsched.model.files import Bytes
from gitsched.render.layout import STUB
from gitsched.render.yaml import dump, quote

STUB_NAME = "gitsched-placement"


def cluster_json(
    name: str, labels: Mapping[str, str], region: str = "", provider: str = "", replicas: int = 0, workloads: int = 0
) -> Bytes:
    """`cluster.json`; every member is always there, because Argo CD's templates are told to fail on a missing one."""
    facts = {
        "labels": dict(labels),
        "name": name,
        "provider": provider,
        "region": region,
        "replicas": replicas,
        "workloads": workloads,
    }
    return Bytes((json.dumps(facts, indent=2, sort_keys=True) + "\n").encode())


def kustomization(paths: Iterable[str]) -> Bytes:
    """`kustomization.yaml` over the given files of the directory and the stub, sorted."""
    resources = "".join(f"- {quote(path)}\n" for path in sorted({*paths, STUB}))
    return Bytes(f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{resources}".encode())


def stub(cluster: str) -> Bytes:
    """A ConfigMap that says which cluster this is, so the directory is never empty: Flux refuses one and then prunes nothing."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": STUB_NAME, "namespace": "default"},
        "data": {"cluster": cluster},
    }
    return Bytes(dump(body).encode())


@lru_cache(maxsize=1 << 14)
def namespace_manifest(name: str) -> Bytes:
    """The bare Namespace, for one that the repository does not declare."""
    return Bytes(dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).encode())
