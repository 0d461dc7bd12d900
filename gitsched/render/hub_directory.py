"""The directory of the output branch for the cluster of Argo CD: an Application for each bundle and cluster that it delivers."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.model.planned_files import NewBlob
from gitsched.render.output_files import HUB, KUSTOMIZATION
from gitsched.render.yaml import dump, quote

HUB_KUSTOMIZATION = f"{HUB}/{KUSTOMIZATION}"
_STUB_FILE, _STUB_NAME = "gitsched-applications.yaml", "gitsched-applications"


def complete_hub_directory(output: Iterable[str], namespace: str) -> dict[str, NewBlob]:
    """Return the other files of the directory, given the paths of the output, Applications among them, and their namespace.

    A ConfigMap keeps the directory from being empty: Argo CD fails on a missing directory, and then prunes nothing.
    """
    paths = [path.removeprefix(f"{HUB}/") for path in output if path.startswith(f"{HUB}/")]
    resources = "".join(f"- {quote(path)}\n" for path in sorted((*paths, _STUB_FILE)))
    stub = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _STUB_NAME, "namespace": namespace},
        "data": {"applications": str(len(paths))},
    }
    return {
        HUB_KUSTOMIZATION: NewBlob(
            f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{resources}".encode()
        ),
        f"{HUB}/{_STUB_FILE}": NewBlob(dump(stub).encode()),
    }
