"""Find the labels of clusters because of which variants go to other clusters, as after an environment is renamed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gitsched.model.variants import WorkloadVariants

if TYPE_CHECKING:
    from gitsched.diff.field_differences import FieldDifference
    from gitsched.model.document import Document, Key

_CHOOSING = frozenset(("labels", "annotations"))
"""The members of a cluster's metadata that variants read."""


def list_relabelled(
    document: Document,
    variants: tuple[WorkloadVariants | None, WorkloadVariants | None],
    clusters: Iterable[tuple[str, Key, Sequence[FieldDifference]]],
) -> Iterator[tuple[Key, int]]:
    """Yield the fields of clusters that choose other variants of a workload than before, as documents with the positions of differences:
    those of which its document has the name, else all that variants can read. `variants` are those before and after, `clusters` are
    those that differ, by name, with their documents and fields."""
    names = set(_list_changed_clusters(*variants))
    if not names:
        return
    text = json.dumps(document.body, default=str)
    found: list[tuple[bool, Key, int]] = []
    for name, key, differences in clusters:
        if name in names:
            fields = ((position, one.pointer) for position, one in enumerate(differences))
            chosen = ((position, field) for position, field in fields if field[0] == "metadata" and field[1] in _CHOOSING)
            found += [(json.dumps(str(field[-1])) in text, key, position) for position, field in chosen]
    is_named = any(named for named, *_ in found)
    yield from ((key, position) for named, key, position in found if named or not is_named)


def _list_changed_clusters(before: WorkloadVariants | None, after: WorkloadVariants | None) -> Iterator[str]:
    """Yield the clusters that get another variant, or one with other values."""
    if before is None or after is None:
        return
    for name in sorted(before.by_cluster.keys() | after.by_cluster.keys()):
        if _identify(before, name) != _identify(after, name):
            yield name


def _identify(variants: WorkloadVariants, cluster: str) -> tuple[object, ...] | None:
    found = variants.find(cluster)
    return None if found is None else (found.path, found.details, found.values)
