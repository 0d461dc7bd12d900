"""Paths of a source that can contain documents."""

from __future__ import annotations

from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES

_SUFFIXES = (".yaml", ".yml", ".json")


def is_manifest_path(path: str) -> bool:
    """Return whether a path can contain documents: YAML or JSON by its name, and not below a directory whose name starts with a
    dot."""
    directory, _, name = path.rpartition("/")
    if not name.endswith(_SUFFIXES) and name not in KUSTOMIZATION_NAMES:
        return False
    return not name.startswith(".") and not directory.startswith(".") and "/." not in directory
