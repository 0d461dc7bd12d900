"""Read the files of a tree that changed since the last one, where only their content did."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE, GROUP
from gitsched.decide.plan_input import SourceTree
from gitsched.git import Repository
from gitsched.model.document import is_known_group
from gitsched.model.tenants import TENANT
from gitsched.reconcile.cache.caches import ParseCache, SourceFile, TreeCache
from gitsched.reconcile.source.source_reader import (
    DEFINITION_KIND,
    SourceReader,
    has_policy_documents,
    has_tool_documents,
    list_release_charts,
    may_change_builds,
    may_have_bundles,
    read_source_file,
)
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

if TYPE_CHECKING:
    from gitsched.decide.catalog import RawDocument


def read_changed_files(repository: Repository, tree: str, cache: ParseCache, last: TreeCache) -> TreeCache | None:
    """Return the last tree with its changed files; None if anything but the content of known, valid files changed."""
    changed = repository.changed_paths(last.tree, tree)
    if len(changed) > len(last.files) // 4 or any(path not in last.files or path == FILE for path in changed):
        return None
    config = last.source_tree.config
    reader = SourceReader(repository, cache, config, strict=config.source.strict)
    files = dict(last.files)
    for path in changed:
        entry = repository.find_entry(tree, path)
        if entry is None or entry[1] not in REGULAR_FILE_MODES or not last.files[path].independent:
            return None
        file = files[path] = read_source_file(path, entry[0], reader)
        if _may_keep_documents(last.files[path], file) or _concerns_others(last.files[path], file, last):
            return None
    documents = [document for file in files.values() for document in file.documents]
    before = last.source_tree
    source_tree = SourceTree(
        (*documents, *last.built),
        {path: file.findings for path, file in files.items() if file.findings},
        before.other_findings,
        before.config,
        {},
        before.kustomized,
        before.builds,
        before.variants,
        before.replaced,
        incomplete=before.incomplete,
    )
    return TreeCache(
        tree,
        files,
        source_tree,
        valid=True,
        config_valid=True,
        built=last.built,
        source_paths=last.source_paths,
        depends_on_policies=last.depends_on_policies,
        reading_rules=last.reading_rules,
    )


def _may_keep_documents(before: SourceFile, file: SourceFile) -> bool:
    """Return whether a file may keep documents that it had and does not contain any more."""
    is_emptied = bool(before.documents) and not file.documents and file.file.status != "empty"
    return is_emptied or len(file.file.others) > len(before.file.others)


def _concerns_others(before: SourceFile, file: SourceFile, last: TreeCache) -> bool:
    """Return whether a file has an effect on what is read or built of others."""
    documents, has_policies = file.documents, has_policy_documents([file])
    if not file.independent or any(document.kind == TENANT and document.group == GROUP for document in documents):
        return True
    if has_policies != has_policy_documents([before]):
        return True  # the finding about hidden sources depends on whether there are policy documents
    if last.depends_on_policies and (has_policies or may_change_builds(file)):
        return True
    if has_policies and (last.source_tree.variants or last.source_tree.config.source.variants):
        return True  # labels and annotations of clusters choose variants
    if has_tool_documents([file, before]) or may_have_bundles(documents):
        return True  # they may be built
    if list_release_charts(before) != list_release_charts(file):
        return True  # Flux renders the templates of these charts
    has_custom = not all(is_known_group(document.group) for document in documents)
    # Custom resources are checked against their definitions.
    return _has_definitions(documents) or (has_custom and _has_definitions(last.source_tree.documents))


def _has_definitions(documents: Iterable[RawDocument]) -> bool:
    return any(document.kind == DEFINITION_KIND for document in documents)
