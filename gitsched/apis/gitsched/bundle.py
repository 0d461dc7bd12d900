"""The Bundle: a directory that is placed as one workload, and which variant of it each cluster gets."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.model.finding import Issue, Pointer, format_names
from gitsched.model.labels import Selector, parse_selector
from gitsched.model.variants import BUNDLE, HelmOptions
from gitsched.named_tuples import NamedTuple

CLUSTER_NAME: Final = "cluster.name"
CLUSTER_LABELS: Final = "cluster.labels."
CLUSTER_ANNOTATIONS: Final = "cluster.annotations."


class ClusterMetadata(NamedTuple):
    """The name of a cluster on the output branch, and the labels and annotations of the document that describes it."""

    name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class ClusterRule(NamedTuple):
    """The clusters of a variant: by name, by labels, or both; a cluster of `names` must also match the selector."""

    names: frozenset[str] | None = None
    selector: Selector | None = None

    def matches(self, cluster: ClusterMetadata) -> bool:
        """Return whether the rule selects a cluster."""
        return (self.names is None or cluster.name in self.names) and (
            self.selector is None or self.selector.matches(cluster.labels)
        )


EVERY_CLUSTER: Final = ClusterRule()


class VariantRule(NamedTuple):
    """A variant and the clusters that get it. `pointer` is its field in the document."""

    path: str
    clusters: ClusterRule
    helm: HelmOptions | None
    pointer: Pointer


class BundleSpec(NamedTuple):
    """The spec of a Bundle. A cluster gets the first of `variants` that selects it. `delivery` is manifests, flux or argocd. `values` are
    texts, or references to metadata of the cluster such as cluster.labels.region."""

    variants: tuple[VariantRule, ...]
    delivery: str = "manifests"
    values: Mapping[str, str] = {}

    def find_variant(self, cluster: ClusterMetadata) -> int | None:
        """Return the index of the variant of a cluster; None if it gets none."""
        return next((index for index, rule in enumerate(self.variants) if rule.clusters.matches(cluster)), None)


def parse_bundle(body: Body) -> BundleSpec:
    """Parse a valid Bundle. Its own path is the last variant, for all clusters that no other variant selects."""
    spec = as_object(body.get("spec"))
    path, helm = str(spec.get("path") or ""), spec.get("helm")
    options = _parse_helm(helm, str(get_field(body, "metadata", "name"))) if isinstance(helm, dict) else None
    rules = [
        VariantRule(
            normalize_path(str(entry.get("path") or path)),
            parse_cluster_rule(entry.get("clusters")),
            _add_helm(options, entry.get("helm")),
            ("spec", "variants", index),
        )
        for index, entry in enumerate(list_objects(spec.get("variants")))
    ]
    if path:
        rules.append(VariantRule(normalize_path(path), EVERY_CLUSTER, options, ("spec", "path")))
    values = {str(name): _format_value(value) for name, value in as_object(spec.get("values")).items()}
    return BundleSpec(tuple(rules), str(spec.get("delivery") or "manifests"), values)


def normalize_path(path: str) -> str:
    """Return a path below the root of the repository without `./` and double slashes; `.` is the root itself."""
    return posixpath.normpath(path.strip("/")) if path.strip("/") else "."


def parse_cluster_rule(value: Any) -> ClusterRule:
    """Parse the clusters of a variant; without any, every cluster matches. An invalid selector matches nothing."""
    clusters = as_object(value)
    names = clusters.get("names")
    selector = parse_selector(clusters) if "matchLabels" in clusters or "matchExpressions" in clusters else Selector(())
    return ClusterRule(
        frozenset(map(str, names)) if isinstance(names, list) else frozenset() if selector is None else None,
        selector if selector is not None and selector.requirements else None,
    )


def _parse_helm(helm: Body, name: str) -> HelmOptions:
    files = helm.get("valuesFiles")
    return HelmOptions(
        str(helm.get("releaseName") or name),
        str(helm.get("namespace") or ""),
        tuple(normalize_path(str(file)) for file in files) if isinstance(files, list) else (),
        as_object(helm.get("values")),
    )


def _add_helm(options: HelmOptions | None, helm: Any) -> HelmOptions | None:
    """Return the options of a variant: its values files and values come after those of the Bundle."""
    if options is None or not isinstance(helm, dict):
        return options
    added = _parse_helm(helm, options.release_name)
    return HelmOptions(
        str(helm.get("releaseName") or options.release_name),
        added.namespace or options.namespace,
        (*options.values_files, *added.values_files),
        merge_values(options.values, added.values),
    )


def merge_values(base: Body, added: Body) -> Body:
    """Return values merged as Helm does: objects by member, anything else is replaced; null removes a member."""
    merged = dict(base)
    for name, value in added.items():
        before = merged.get(name)
        merged[name] = merge_values(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def _format_value(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def resolve_values(spec: BundleSpec, cluster: ClusterMetadata) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the values of a cluster by name, and the names of those that refer to metadata that the cluster does not have."""
    resolved: list[tuple[str, str]] = []
    missing: list[str] = []
    for name, value in sorted(spec.values.items()):
        found: str | None = value
        if value == CLUSTER_NAME:
            found = cluster.name
        elif value.startswith(CLUSTER_LABELS):
            found = cluster.labels.get(value.removeprefix(CLUSTER_LABELS))
        elif value.startswith(CLUSTER_ANNOTATIONS):
            found = cluster.annotations.get(value.removeprefix(CLUSTER_ANNOTATIONS))
        if found is None:
            missing.append(name)
        else:
            resolved.append((name, found))
    return tuple(resolved), tuple(missing)


def describe_missing_values(spec: BundleSpec, names: Iterable[str]) -> str:
    """Say which labels and annotations a cluster lacks, given the names of the values that refer to them."""
    lacked = {
        f"label {value.removeprefix(CLUSTER_LABELS)}"
        if (value := spec.values[name]).startswith(CLUSTER_LABELS)
        else f"annotation {value.removeprefix(CLUSTER_ANNOTATIONS)}": f"spec.values.{name}"
        for name in names
    }
    return f"no {format_names(list(lacked))}, which {format_names(list(lacked.values()))} of the Bundle names"


def validate_bundle(body: Body) -> Iterator[Issue]:
    """List what is wrong with a Bundle that its schema accepts."""
    spec = as_object(body.get("spec"))
    entries: list[tuple[Pointer, Any]] = [(("spec", "path"), spec.get("path"))]
    variants = list_objects(spec.get("variants"))
    for index, entry in enumerate(variants):
        entries.append((("spec", "variants", index, "path"), entry.get("path")))
        clusters = as_object(entry.get("clusters"))
        selects = "matchLabels" in clusters or "matchExpressions" in clusters
        if selects and parse_selector(clusters) is None:
            message = "the label selector is invalid, so it selects no cluster: correct keys, values and operators"
            yield Issue("error", "bundle-invalid", message, ("spec", "variants", index, "clusters"))
        if not entry.get("path") and not spec.get("path"):
            yield Issue(
                "error", "bundle-invalid", "the variant has no path, and the Bundle has none either", ("spec", "variants", index)
            )
    for pointer, path in entries:
        if isinstance(path, str) and path and normalize_path(path).startswith(".."):
            yield Issue("error", "bundle-invalid", f"{path} is outside of the repository", pointer)
        elif isinstance(path, str) and "://" in path:
            yield Issue(
                "error", "bundle-invalid", f"{path} is not a directory of this repository: copy it into the repository", pointer
            )
    if not variants and not spec.get("path"):
        yield Issue("error", "bundle-invalid", f"a {BUNDLE} needs spec.path or spec.variants", ("spec",))
