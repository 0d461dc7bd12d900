"""Variants: what a cluster gets in place of a template, where that depends on the cluster.

There are two uses. A Bundle has many objects, and each of its variants is what a directory builds for some clusters. An object that several
overlays define has a variant with one object for each overlay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from gitsched.model.document import Body, Document, Key
from gitsched.named_tuples import NamedTuple

BUNDLE_GROUP: Final = "gitsched.io"
BUNDLE: Final = "Bundle"
BUNDLE_KIND: Final = (BUNDLE_GROUP, BUNDLE)
"""The group and kind of a Bundle, as `Key` begins with."""
MANIFESTS: Final = "manifests"
"""The delivery of a Bundle whose objects gitsched writes itself."""
ARGOCD_DESTINATION: Final = "gitsched.io/argocd-destination"
"""The annotation of a cluster with its name or its URL in Argo CD; it takes precedence over the setting."""
BUNDLE_VERSION: Final = f"{BUNDLE_GROUP}/v1alpha1"


VariantFormat = Literal["kustomize", "helm", "yaml"]
"""A kustomize root, a Helm chart, or a directory of YAML files without a kustomization."""


class HelmOptions(NamedTuple):
    """How a chart is rendered: values files, from the root of the repository and in their order, then values."""

    release_name: str = ""
    namespace: str = ""
    values_files: tuple[str, ...] = ()
    values: Body = {}


class VariantSource(NamedTuple):
    """What a delivery tool needs to build a variant of a Bundle itself.

    `files` are the paths of all files that a build reads, `directories` those of their directories without nested ones, `links` those of
    symbolic links. `helm` are the options of a chart with the values of the cluster. `charts` are the directories of charts that
    kustomizations render, `outside` files that kustomizations read from outside of their directories, and `omitted` files with documents
    that gitsched reads itself and does not deliver.
    """

    format: VariantFormat = "kustomize"
    files: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    helm: HelmOptions | None = None
    charts: tuple[str, ...] = ()
    outside: frozenset[str] = frozenset()
    omitted: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()


class Variant(NamedTuple):
    """What some clusters get.

    `path` is the directory that it comes from, and `objects` are what it builds, in the order in which they are printed. `digest` changes
    with the content of every file that a build reads, and with nothing else; `commit` is the commit id since which it is the same ("" if
    unknown). `values` are the values of a Bundle for these clusters, by name. `source` is set for a Bundle. `details` say how the directory
    is built, where others build it in another way: the document of a delivery tool, or the values of a chart.
    """

    path: str
    objects: tuple[Document, ...]
    digest: str = ""
    values: tuple[tuple[str, str], ...] = ()
    commit: str = ""
    source: VariantSource | None = None
    details: str = ""


class WorkloadVariants(NamedTuple):
    """The variants of one template. `by_cluster` has the index of the variant of each cluster; a cluster without one gets nothing.

    `failed` are the clusters whose variant cannot be built, with the reason. `lacking` are those among them without a label or an
    annotation that `spec.values` names, with the name of the first such value. `destinations` are the names or URLs that clusters have in
    Argo CD according to their annotations.
    """

    variants: tuple[Variant, ...]
    by_cluster: Mapping[str, int]
    failed: Mapping[str, str] = {}
    destinations: Mapping[str, str] = {}
    lacking: Mapping[str, str] = {}

    def find(self, cluster: str) -> Variant | None:
        """Return the variant of a cluster; None if it has none."""
        index = self.by_cluster.get(cluster)
        return None if index is None else self.variants[index]


TemplateVariants = Mapping[Key, WorkloadVariants]
"""The variants of all templates that have some; every Bundle has an entry."""
