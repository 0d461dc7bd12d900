"""Decide for changed files of a source whether they are read, and whether any other file depends on them."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gitsched.git import Repository, TreeEntry
from gitsched.manifests.charts import CHART_FILE, ChartIndex
from gitsched.model.tool_groups import TOOL_GROUPS
from gitsched.reconcile.cache.reading_rules import ReadingRules
from gitsched.reconcile.source.ignore_files import parse_ignore_files
from gitsched.reconcile.source.source_reader import DEFINITION_KIND, is_manifest_path, is_searched, list_ignore_files
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES, SYMLINK_MODE, fold_path, list_link_targets

if TYPE_CHECKING:
    from gitsched.decide.catalog import RawDocument
    from gitsched.manifests.sourceignore import SourceIgnore
    from gitsched.reconcile.builds.kustomizations import KustomizedTree


def list_roots(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the directories and files that options or settings select, each with a slash at the end; none for the whole source."""
    return tuple(f"{path.strip('/')}/" for path in paths if path.strip("./"))


def is_below(path: str, roots: tuple[str, ...]) -> bool:
    """Return whether a file is one of these roots or in one of them, or there are none."""
    return not roots or path.startswith(roots) or f"{path}/" in roots


def choose_reading_rules(
    repository: Repository,
    entries: list[TreeEntry],
    paths: Iterable[str],
    kustomized: Collection[KustomizedTree],
    documents: Sequence[RawDocument],
) -> ReadingRules | None:
    """Return how the files of a tree with these `documents` were chosen; None where others depend on them in ways that only a complete plan
    knows. `kustomized` is the tree if it has kustomizations or files that are not read, one for each owner with tenants."""
    has_links = any(entry.mode == SYMLINK_MODE for entry in entries)
    links = list_link_targets(repository, entries) if has_links else frozenset[str]()
    rules = ReadingRules(list_roots(paths), tuple(entry.path for entry in list_ignore_files(entries)), links)
    if kustomized:
        if not all(one.is_unchanged for one in kustomized):
            return None
        references = frozenset[str]().union(*(one.parts.list_references() for one in kustomized))
        charts = (posixpath.dirname(entry.path) for entry in entries if posixpath.basename(entry.path) == CHART_FILE)
        rules = rules._replace(is_searched=True, references=references, charts=tuple(sorted(charts)))
    if not any(document.kind == DEFINITION_KIND for document in documents):
        return rules
    from gitsched.reconcile.source.custom_resources import add_defined_kinds  # many sources have no definitions

    return add_defined_kinds(rules, documents)


class FileSelection:
    """Which files of two trees are read, where the first is that of the last plan and the same rules hold for both."""

    def __init__(self, rules: ReadingRules, repository: Repository, ignored: tuple[str, ...], before: str, after: str) -> None:
        self._rules, self._repository, self._ignored, self._trees = rules, repository, ignored, (before, after)

    @cached_property
    def _ignore(self) -> SourceIgnore | None:
        if not (self._rules.ignore_files or self._ignored):
            return None
        found = ((path, self._repository.find_entry(self._trees[0], path)) for path in self._rules.ignore_files)
        entries = (TreeEntry(path, *entry) for path, entry in found if entry is not None)
        return parse_ignore_files(self._repository, entries, self._ignored)[0]

    @cached_property
    def _charts(self) -> ChartIndex:
        return ChartIndex(posixpath.join(directory, CHART_FILE) for directory in self._rules.charts)

    def includes(self, path: str) -> bool:
        """Return whether a file is read, if it is there."""
        return is_manifest_path(path) and is_below(path, self._rules.roots) and not (self._ignore and self._ignore.is_ignored(path))

    def may_change(self, path: str) -> bool:
        """Return whether a file may have other content without an effect on others, if it is not read or has no documents."""
        return path not in self._rules.references and not (is_manifest_path(path) and self._charts.find_chart(path) is not None)

    def may_come_or_go(self, path: str) -> bool:
        """Return whether a file may be added or removed without an effect on how others are read, and without a finding about its path."""
        if not self.may_change(path) or not _is_safe(path) or self._moves_link_target(path):
            return False
        if is_manifest_path(path) and any(_has_similar_path(self._repository, tree, path) for tree in self._trees):
            return False
        return all(self._repository.find_entry(self._trees[1], root.rstrip("/")) is not None for root in self._rules.roots)

    def may_hide(self, path: str, *, is_new: bool) -> bool:
        """Return whether a file that is not read may be what it is now: it has no documents of delivery tools, which are read anywhere."""
        if not self._rules.is_searched:
            return not (is_new and is_manifest_path(path))  # else the other files would be searched
        entry = self._repository.find_entry(self._trees[1], path)
        if entry is None or not is_searched(path):
            return True
        data = self._repository.blob(entry[0])
        return not any(group.encode() in data for group in TOOL_GROUPS)

    def _moves_link_target(self, path: str) -> bool:
        """Return whether a symbolic link leads to a file, or to a directory that may come or go with it."""
        links = self._rules.links
        return path in links or any(
            directory in links and not all(self._has_file(tree, directory) for tree in self._trees)
            for directory in _list_directories(path)
        )

    def _has_file(self, tree: str, directory: str) -> bool:
        return any(mode in REGULAR_FILE_MODES for _, mode in self._repository.list_directory(tree, directory).values())


def _list_directories(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def _is_safe(path: str) -> bool:
    """Return whether there is no finding about a path by itself."""
    return "\\" not in path and not any(part in (".", "..") or part.lower() == ".git" for part in path.split("/"))


def _has_similar_path(repository: Repository, tree: str, path: str) -> bool:
    """Return whether a path, or a directory of it, has another one beside it that is the same where letter case does not count."""
    *directories, _ = path.split("/")
    for depth, name in enumerate(path.split("/")):
        beside = repository.list_directory(tree, "/".join(directories[:depth]))
        folded = fold_path(name)
        if any(other != name and fold_path(other) == folded for other in beside):
            return True
    return False
