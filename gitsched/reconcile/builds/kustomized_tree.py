"""Build what a source tree has to be built: kustomize roots, Bundles, and directories that delivery tools reconcile; and separate their
parts from its objects."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import RawDocument
from gitsched.git import Repository, TreeEntry
from gitsched.manifests.charts import CHART_FILE, ChartIndex
from gitsched.manifests.parsed_file import read_identity
from gitsched.model.document import Body, Origin
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.built_roots import NO_ROOTS
from gitsched.reconcile.builds.kustomizations import FileReader, KustomizedTree, separate_parts
from gitsched.reconcile.builds.kustomize_roots import build_roots
from gitsched.reconcile.builds.reconciled_objects import NO_PATHS, NOTHING_RECONCILED
from gitsched.reconcile.builds.reconciled_paths import build_reconciled_paths
from gitsched.reconcile.builds.source_variants import separate_variants
from gitsched.reconcile.builds.unused_overlays import find_unused_overlays
from gitsched.reconcile.bundles.bundle_parts import NO_PARTS, has_bundles
from gitsched.reconcile.bundles.bundle_variants import read_bundles
from gitsched.reconcile.cache.caches import SourceFile
from gitsched.reconcile.source.commit_tree import open_commit_tree
from gitsched.reconcile.source.last_valid_documents import read_document_text
from gitsched.reconcile.source.source_reader import list_release_charts
from gitsched.reconcile.source.unread_entries import list_link_targets

_REGULAR = 0o100000
"""The bits of a regular file in the mode of an entry."""


def read_kustomized_tree(
    entries: list[TreeEntry],
    files: Mapping[str, SourceFile],
    reader: FileReader,
    config: Config,
    builds: Callable[[], BuildContext] | None,
    documents: Sequence[RawDocument] = (),
) -> KustomizedTree:
    """Return the files of a tree without the parts of kustomizations and Bundles, with the objects of the roots that settings name and of
    the directories that delivery tools reconcile.

    `builds` is None where nothing is built, as for documents that name metrics only. `documents` are all documents of the files, and the
    last valid ones of broken files.
    """
    patterns = list(config.source.kustomize.build)
    built, bundles, has_tools, hidden, roots = NO_ROOTS, NO_PARTS, False, dict[str, str](), frozenset[str]()
    regular = [entry for entry in entries if entry.mode & 0o170000 == _REGULAR and not entry.unsafe]
    is_hidden: Callable[[str], bool] = lambda _: False  # noqa: E731 - or as builds know it
    if builds is not None:
        context = builds()
        is_hidden = context.is_hidden
        hidden = _restore_hidden(entries, files, documents, context.repository)
        restored = [entry._replace(blob=hidden[entry.path]) if entry.path in hidden else entry for entry in entries]
        commit = open_commit_tree(context, restored, reader)
        patterns += [rule.path for rule in config.source.variants if rule.path not in patterns and commit.list_roots(rule.path)]
        roots = frozenset(root for pattern in patterns for root in commit.list_roots(pattern))
        reconciled = build_reconciled_paths(commit, files, reader, config, context, documents)
        if patterns:
            built = build_roots(restored, reader, patterns, context, reconciled.directories)
        has_tools = reconciled != NO_PATHS
        if reconciled not in (NO_PATHS, NOTHING_RECONCILED):
            built = reconciled.add_to(built, roots)
        charts = _list_release_charts(files.values(), commit.entries)
        if charts:
            built = built._replace(charts=built.charts | charts)
        if has_bundles(documents):
            bundles = read_bundles(documents, commit, reader, config, context, reconciled.bundled)
    tree = separate_parts(regular, files, reader, config, built, bundles, hidden, is_hidden)._replace(has_tools=has_tools)
    if builds is None:
        return tree
    if built.resources or bundles.resources:
        tree = _add_unused(tree, files, config, (*roots, *_list_linked(entries, context.repository)))
    return separate_variants(tree, config, documents) if config.source.variants else tree


def _list_linked(entries: Sequence[TreeEntry], repository: Repository) -> Iterator[str]:
    """Yield the directories with kustomizations at or below the targets of symbolic links: builds read them by other paths."""
    below = tuple(f"{target}/" for target in list_link_targets(repository, entries))
    return (posixpath.dirname(entry.path) for entry in entries if below and entry.path.startswith(below))


def _add_unused(tree: KustomizedTree, files: Mapping[str, SourceFile], config: Config, roots: Iterable[str]) -> KustomizedTree:
    """Return a tree with the warnings about overlays that nothing builds. `roots` are directories that are built."""
    built, bundles, parts = tree.built, tree.bundles, tree.parts
    used = {*roots, *bundles.dependencies, *built.dependencies, *built.inputs, *parts.list_ignored()}
    resources = built.resources | bundles.resources
    unused = find_unused_overlays(parts.kustomizations, files, resources, bundles.owners, used, config)
    return tree._replace(findings=(*tree.findings, *unused))


def _restore_hidden(
    entries: Iterable[TreeEntry], files: Mapping[str, SourceFile], documents: Iterable[RawDocument], repository: Repository
) -> dict[str, str]:
    """Return the blobs, by path, of files that hide documents which they had, for what builds them. A file in which no document can be read
    has its last valid content; one that hides some, as by a misspelled kind, has the last valid versions of these."""
    earlier: dict[str, list[tuple[Origin, Body]]] = {}
    for document in documents:
        origin = document.origin
        if origin is not None and origin.path in files and origin.blob != files[origin.path].blob:
            earlier.setdefault(origin.path, []).append((origin, document.body))
    if not earlier:
        return {}
    charts = ChartIndex(entry.path for entry in entries)
    own = {path: found for path, found in earlier.items() if charts.find_chart(path) is None}  # a template is no object of its own
    restored = ((path, _restore_content(files[path], found, repository)) for path, found in own.items())
    return {path: blob for path, blob in restored if blob is not None}


def _restore_content(file: SourceFile, earlier: Sequence[tuple[Origin, Body]], repository: Repository) -> str | None:
    """Return the blob of a file with the last valid versions of the documents that it hides; None if it hides none."""
    if not file.file.documents:
        return earlier[-1][0].blob
    present = {read_identity(parsed.body) for parsed in file.file.documents}
    replaced = {read_identity(body) for _, body in earlier}
    if replaced <= present:
        return None
    unidentified, data = file.file.list_unidentified(), repository.blob(file.blob)
    texts = [
        read_document_text(data, parsed.body, parsed.spans if parsed.item < 0 else None)
        for parsed in file.file.documents
        if (identity := read_identity(parsed.body)) not in replaced and identity[1:] not in unidentified
    ]
    texts += [
        read_document_text(repository.blob(origin.blob), body, origin.spans if origin.item < 0 else None)
        for origin, body in earlier
    ]
    return repository.keep_blob("---\n".join(texts).encode("utf-8", "surrogateescape"))


def _list_release_charts(files: Iterable[SourceFile], paths: Collection[str]) -> frozenset[str]:
    """Return the directories of the charts of the commit that Flux renders in the clusters."""
    named = {chart for file in files for chart in list_release_charts(file)}
    return frozenset(chart for chart in named if posixpath.normpath(f"{chart}/{CHART_FILE}") in paths)
