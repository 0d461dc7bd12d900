"""The fields of CustomResourceDefinitions of upstream projects, in the directories that GITSCHED_CRDS names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

_DIRECTORIES = os.environ.get("GITSCHED_CRDS", "")
NEEDS_DEFINITIONS = pytest.mark.skipif(
    not _DIRECTORIES, reason="GITSCHED_CRDS names no directories with the definitions of the upstream projects"
)


def read_definitions() -> Iterator[tuple[tuple[str, str, str], set[str]]]:
    """Yield the fields of each version of each CustomResourceDefinition. A version may be found several times, with other fields."""
    for spec in _read_specs():
        for version in spec.get("versions", []):
            fields = set(list_leaves((version.get("schema") or spec["validation"])["openAPIV3Schema"], ""))
            yield (
                (spec["group"], version["name"], spec["names"]["kind"]),
                {path for path in fields if path.partition(".")[0] not in ("apiVersion", "kind", "metadata")},
            )


def read_scopes() -> Iterator[tuple[tuple[str, str], bool]]:
    """Yield whether the kind of each CustomResourceDefinition is namespaced, by group and kind."""
    for spec in _read_specs():
        yield (spec["group"], spec["names"]["kind"]), spec.get("scope") == "Namespaced"


def _read_specs() -> Iterator[dict[str, Any]]:
    for file in (file for path in _DIRECTORIES.split(os.pathsep) for file in sorted(Path(path).rglob("*.yaml"))):
        text = file.read_text(encoding="utf-8")
        for body in yaml.load_all(text, Loader=yaml.CBaseLoader) if "{{" not in text else ():  # others are templates
            if isinstance(body, dict) and body.get("kind") == "CustomResourceDefinition":
                yield body["spec"]


def list_leaves(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the paths of the fields without fields of their own."""
    additional = schema.get("additionalProperties")
    if schema.get("type") == "array":
        yield from list_leaves(schema.get("items", {}), f"{path}[]")
    elif schema.get("properties"):
        for name, inner in schema["properties"].items():
            yield from list_leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(additional, dict) or path.endswith((".matchLabels", ".extensions")):
        yield from list_leaves(additional if isinstance(additional, dict) else {}, f"{path}.*")
    else:
        yield path
