"""Find a workload that the source does not have any more in the earlier commits of the output branch."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gitsched.model.time import format_time
from gitsched.reconcile.review.resource_names import matches_name
from gitsched.render.output_files import PLACEMENTS
from gitsched.render.placement_records import read_placement_key
from gitsched.report.lines import abbreviate_oid, format_words

if TYPE_CHECKING:
    from gitsched.git import Repository
    from gitsched.model.commit import Commit
    from gitsched.model.document import Key
    from gitsched.reconcile.run import Fetched

MAX_COMMITS: Final = 200
"""Commits of the output branch that are searched."""


def describe_removed(fetched: Fetched, kind: str, namespace: str | None, name: str) -> str:
    """Return that the workload that was typed was removed, and where its history is; "" if no recent commit of the output had it. As for
    other names, the kind may be "", or a namespace."""
    repository = fetched.output.repository
    commits = list(repository.list_first_parents(fetched.output_head, MAX_COMMITS + 1))
    trees = [_find_placements(repository, commit, fetched.prefix) for commit in commits]
    for entry in repository.entries(trees[0]) if trees and trees[0] is not None else ():
        key = read_placement_key(entry.path)
        if key is not None and _is_meant(key, kind, namespace, name):
            return ""  # the next run removes it, or its document counts as broken
    for (commit, after), (_, before) in pairwise(zip(commits, trees, strict=True)):
        for path in repository.changed_paths(before, after) if before != after else ():
            key = read_placement_key(path)
            if key is not None and _is_meant(key, kind, namespace, name):
                removed = f"output commit {abbreviate_oid(commit.oid)} removed it ({format_time(commit.time)})"
                return f"{format_words(key)} is gone: {removed}; `gitsched history {format_words(key)}` shows why"
    return ""


def _is_meant(key: Key, kind: str, namespace: str | None, name: str) -> bool:
    if not kind or (namespace is None and key.namespace == kind):
        return key.name == name and namespace in (None, key.namespace)
    return matches_name(key, kind, name) and namespace in (None, key.namespace)


def _find_placements(repository: Repository, commit: Commit, prefix: str) -> str | None:
    entry = repository.find_entry(commit.tree, f"{prefix}{PLACEMENTS}")
    return entry[0] if entry is not None else None
