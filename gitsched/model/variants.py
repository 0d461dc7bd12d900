"""Variants: what a cluster gets in place of a template, where that depends on the cluster.

There are two uses. A Bundle has many objects, and each of its variants is what a directory builds for some clusters. An object that several
overlays define has a variant with one object for each overlay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from gitsched.model.document import Document, Key

BUNDLE_GROUP: Final = "gitsched.io"
BUNDLE: Final = "Bundle"


def is_bundle(group: str, kind: str) -> bool:
    """Return whether documents of a group and kind are Bundles."""
    return kind == BUNDLE and group == BUNDLE_GROUP


class Variant(NamedTuple):
    """What some clusters get.

    `path` is the directory that it comes from, and `objects` are what it builds, in the order in which they are printed. `digest` changes
    with everything that the directory reads, and `commit` is the commit id since which it is the same ("" if unknown). `values` are the
    values of a Bundle for these clusters, by name.
    """

    path: str
    objects: tuple[Document, ...]
    digest: str = ""
    values: tuple[tuple[str, str], ...] = ()
    commit: str = ""


class WorkloadVariants(NamedTuple):
    """The variants of one template. `by_cluster` has the index of the variant of each cluster; a cluster without one gets nothing.

    `failed` are the clusters whose variant cannot be built, with the reason.
    """

    variants: tuple[Variant, ...]
    by_cluster: Mapping[str, int]
    failed: Mapping[str, str] = {}

    def find(self, cluster: str) -> Variant | None:
        """Return the variant of a cluster; None if it has none."""
        index = self.by_cluster.get(cluster)
        return None if index is None else self.variants[index]


TemplateVariants = Mapping[Key, WorkloadVariants]
"""The variants of all templates that have some; every Bundle has an entry."""
