"""The manifests that differ between two output trees."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from stat import S_ISDIR
from typing import TYPE_CHECKING

from gitsched.diff.plans import compare_manifests, list_manifest_changes
from gitsched.git import Repository
from gitsched.git.trees import TREE_MODE
from gitsched.model.commit import NO_COMMIT
from gitsched.model.planned_files import PatchedBlob
from gitsched.reconcile.output.patched_manifests import describe_refusal
from gitsched.reconcile.run import Fetched, RunContext
from gitsched.render.bundle_delivery.source_reference import BUNDLE_SOURCE_PREFIXES
from gitsched.render.output_files import CLUSTERS, escape_segment

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.decide.rendered_tree import BlobLookup
    from gitsched.diff.plans import FileChange
    from gitsched.model.changes import Move
    from gitsched.reconcile.run import RunResult
    from gitsched.report.review import DeliveryChanges


def find_manifest_changes(
    repository: Repository, prefix: str, before: str | None, after: str, source: str
) -> tuple[FileChange, ...]:
    """Return the manifests that differ between two trees of the output branch; `prefix` is where the output is inside them.

    `source` is the id of the planned commit, "" for a worktree.
    """
    changed = (path.removeprefix(prefix) for path in repository.changed_paths(before, after) if path.startswith(prefix))
    changes = list_manifest_changes(
        changed, _make_blob_lookup(repository, prefix, before), _make_blob_lookup(repository, prefix, after)
    )
    return tuple(_compute_content_digest(change, repository, source or NO_COMMIT) for change in changes)


def _compute_content_digest(change: FileChange, repository: Repository, source: str) -> FileChange:
    """Return the change with a digest of its content without the planned commit, if the content names that.

    An object that makes a delivery tool build a bundle names the commit to build. A review has another commit than the merge after it.
    """
    if change.after is None or not change.path.rpartition("/")[2].startswith(BUNDLE_SOURCE_PREFIXES):
        return change
    data = repository.blob(change.after)
    neutral = data.replace(source.encode(), b"planned")
    return change if neutral == data else change._replace(content=hashlib.sha256(neutral).hexdigest())


def describe_manifest_changes(
    context: RunContext, fetched: Fetched, before: str | None, changes: tuple[FileChange, ...], plan: Plan
) -> DeliveryChanges:
    """Return the changes of a plan with their text against the tree `before`."""
    repository, prefix = fetched.output.repository, fetched.prefix

    def find_note(path: str) -> str:
        file = plan.files.get(path)
        if not isinstance(file, PatchedBlob):
            return ""
        return describe_refusal(context, file)

    def find_former(paths: Collection[str]) -> dict[str, str]:
        return _find_first_clusters(repository, before, f"{prefix}{CLUSTERS}", paths) if before else {}

    return compare_manifests(changes, find_former, _make_blob_lookup(repository, prefix, before), repository.blob, find_note)


def _find_first_clusters(repository: Repository, tree: str, directory: str, paths: Collection[str]) -> dict[str, str]:
    """Return the first cluster, by the name of its directory, that has a file at each of some paths relative to that; none where no cluster
    has one."""
    wanted: dict[str, dict[str, str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        wanted.setdefault(folder, {})[name] = path
    found: dict[str, str] = {}
    clusters = repository.list_directory(tree, directory)
    for cluster in sorted(clusters, key=lambda name: f"{name}/"):
        for folder, names in [*wanted.items()]:
            entries = repository.list_directory(clusters[cluster][0], folder) if clusters[cluster][1] == TREE_MODE else {}
            for name in sorted(names.keys() & entries.keys()):
                if entries[name][1] != TREE_MODE:
                    found[names.pop(name)] = cluster
            if not names:
                del wanted[folder]
        if not wanted:
            break
    return found


def _make_blob_lookup(repository: Repository, prefix: str, tree: str | None) -> BlobLookup:
    def find_blob(path: str) -> str | None:
        entry = repository.find_entry(tree, f"{prefix}{path}") if tree else None
        return entry[0] if entry else None

    return find_blob


def list_empty_clusters(fetched: Fetched, run: RunResult, added: Iterable[str], moves: Iterable[Move]) -> list[str]:
    """Return those of the added clusters that get nothing: their directories have no object, and no move goes there."""
    repository, getting = fetched.output.repository, {name for move in moves for name in move.after}
    found = ((name, f"{fetched.prefix}{CLUSTERS}/{escape_segment(name)}") for name in added if name not in getting)
    return [
        name for name, path in found if not any(S_ISDIR(mode) for _, mode in repository.list_directory(run.tree, path).values())
    ]
