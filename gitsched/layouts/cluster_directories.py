"""Separate documents of several clusters by directories."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection
from typing import Final

from gitsched.layouts.repository_files import DeliveryDocument
from gitsched.model.document import get_field

ONLY_CLUSTER: Final = "cluster"
"""Name of the cluster of a repository without directories of clusters."""


def separate_clusters(documents: Collection[DeliveryDocument]) -> dict[str, str]:
    """Return the directories of several clusters, with their names, where one cannot have all documents, because some have the same name.

    The root is the only cluster where it can; there are none if the documents do not say which directories that are."""
    by_name: dict[tuple[str, ...], dict[str, DeliveryDocument]] = {}
    for document in documents:
        namespace = str(get_field(document.body, "metadata", "namespace"))
        by_name.setdefault((document.group, document.kind, namespace, document.name), {})[document.path] = document
    found: dict[str, None] = {}
    for namesakes in by_name.values():
        if len({json.dumps(document.body, sort_keys=True, default=str) for document in namesakes.values()}) < 2:
            continue
        common = posixpath.commonpath([posixpath.dirname(path) or "." for path in namesakes])
        prefix = f"{common}/" if common not in ("", ".") else ""
        below = {prefix + path[len(prefix) :].partition("/")[0] for path in namesakes}
        if len(below) < len(namesakes) or below & namesakes.keys():
            return {}
        found |= dict.fromkeys(sorted(below))
    if not found:
        return {".": ONLY_CLUSTER}
    nested = any(other != path and f"{other}/".startswith(f"{path}/") for path in found for other in found)
    names = {path: posixpath.basename(path) for path in found}
    return {} if nested or len(set(names.values())) < len(names) else names
