"""Objects that overlays of different clusters define: one workload with a variant for each overlay, as `source.variants` maps them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gitsched.apis.gitsched.bundle import ClusterMetadata
from gitsched.apis.gitsched.config import FILE, Config
from gitsched.apis.gitsched.source_config import SourceVariant
from gitsched.build.commit_files import list_parents
from gitsched.decide.catalog import KindScopes, RawDocument
from gitsched.decide.cluster_metadata import read_cluster_metadata
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, Location
from gitsched.model.variants import Variant, WorkloadVariants
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.kustomizations import KustomizedTree, is_read_by_api
from gitsched.reconcile.source.commit_tree import compile_path_pattern


class VariedDocument(NamedTuple):
    """A document of a directory that `source.variants` names, with the index of the entry."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which is not used for these
    raw: RawDocument
    document: Document


def separate_variants(tree: KustomizedTree, config: Config, clusters: Iterable[RawDocument]) -> KustomizedTree:
    """Return a tree in which objects of several overlays are one template with variants. `clusters` are documents with the clusters."""
    metadata = read_cluster_metadata(clusters)
    rules = config.source.variants
    patterns = [compile_path_pattern(rule.path) for rule in rules]
    documents = [*(raw for file in tree.files.values() for raw in file.documents), *tree.built.documents]
    scopes = KindScopes(documents, (*config.kinds, *tree.bundles.kinds))
    by_key: dict[Key, list[VariedDocument]] = {}
    for raw in documents:
        index = None if is_read_by_api(raw) else _find_rule(raw, patterns)
        document = scopes.resolve(raw) if index is not None else None
        if index is not None and document is not None:
            by_key.setdefault(document.key, []).append(VariedDocument(index, raw, document))
    failing = _find_failing(tree, patterns, scopes) if by_key else {}
    variants: dict[Key, WorkloadVariants] = {}
    removed: set[int] = set()
    for key, found in by_key.items():
        first = {entry.index: entry for entry in reversed(found)}
        if any(entry.document.body != first[entry.index].document.body for entry in found):
            continue  # one entry has several versions of it: they are duplicates
        ordered = [first[index] for index in sorted(first)]
        variants[key] = _make_variants(ordered, rules, metadata, failing.get(key, {}))
        removed.update(id(entry.raw) for entry in found if entry is not ordered[0])
    varied = {id(entry.raw) for found in by_key.values() for entry in found}
    files = {
        path: file._replace(documents=tuple(raw for raw in file.documents if id(raw) not in removed), kustomized=True)
        if any(id(raw) in varied for raw in file.documents)
        else file
        for path, file in tree.files.items()
    }
    built = tree.built._replace(documents=tuple(raw for raw in tree.built.documents if id(raw) not in removed))
    used = {*(entry.index for found in by_key.values() for entry in found), *tree.bundles.used_rules}.union(*failing.values())
    findings = (*tree.findings, *_find_unused(rules, used, metadata))
    return tree._replace(files=files, built=built, findings=findings, variants=variants)


def _find_rule(raw: RawDocument, patterns: Sequence[re.Pattern[str]]) -> int | None:
    """Return the index of the first pattern that matches the root of a document, or a directory that its file is in.

    A document that a delivery tool builds also belongs to the directory of the Flux Kustomization or Application.
    """
    origin = raw.origin
    if origin is None:
        return None
    directories = [origin.root] if origin.root else list(list_parents(origin.path))
    directories += list_parents(origin.tool) if origin.tool else ()
    return next(
        (index for index, pattern in enumerate(patterns) if any(pattern.fullmatch(directory) for directory in directories)), None
    )


def _find_failing(tree: KustomizedTree, patterns: Sequence[re.Pattern[str]], scopes: KindScopes) -> dict[Key, dict[int, str]]:
    """Return the entries with a directory that cannot be built, by the objects that it may have, with the directory."""
    found: dict[Key, dict[int, str]] = {}
    for part in tree.documents:
        raw = part.document
        roots = tree.built.unbuilt.get(raw.origin.path, ()) if raw.origin is not None and not part.is_reported else ()
        entries = {index: root for root in roots for index, pattern in enumerate(patterns) if pattern.fullmatch(root)}
        index = _find_rule(raw, patterns) if raw.origin is not None and raw.origin.tool else None
        if index is not None and raw.origin is not None:
            entries[index] = posixpath.dirname(raw.origin.tool) or "."
        if entries:
            found.setdefault(scopes.resolve(raw).key, {}).update(entries)
    return found


def _make_variants(
    ordered: Sequence[VariedDocument],
    rules: Sequence[SourceVariant],
    clusters: Iterable[ClusterMetadata],
    failing: Mapping[int, str],
) -> WorkloadVariants:
    """Return the variants of an object. `failing` are entries with a directory that may have it and cannot be built."""
    numbers = {entry.index: number for number, entry in enumerate(ordered)}
    by_cluster: dict[str, int] = {}
    failed: dict[str, str] = {}
    for cluster in clusters:
        index = next((index for index in sorted({**failing, **numbers}) if rules[index].clusters.matches(cluster)), None)
        if index in numbers:
            by_cluster[cluster.name] = numbers[index]
        elif index is not None:
            failed[cluster.name] = f"{failing[index]} cannot be built"
    variants = tuple(Variant(_get_directory(entry.document), (entry.document,)) for entry in ordered)
    return WorkloadVariants(variants, by_cluster, failed)


def _get_directory(document: Document) -> str:
    origin = document.origin
    return "" if origin is None else origin.root or posixpath.dirname(origin.path) or "."


def _find_unused(rules: Sequence[SourceVariant], used: set[int], clusters: Sequence[ClusterMetadata]) -> Iterator[Finding]:
    for index, rule in enumerate(rules):
        if index not in used:
            text = f"source.variants names {rule.path}, and no object is in a directory that matches it: correct or remove it"
            yield Finding("warning", "variant-unused", text, Location(FILE, 1, 1))
        elif clusters and not any(rule.clusters.matches(cluster) for cluster in clusters):
            text = f"no cluster gets the variant {rule.path} of source.variants: correct the selector or the labels of the clusters"
            yield Finding("warning", "variant-unused", text, Location(FILE, 1, 1))
