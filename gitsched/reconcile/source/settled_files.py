"""Broken files whose last valid versions the output branch keeps: they stay in force as long as nothing happens to the files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.reconcile.source.source_history import SourceHistory

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_plan import IncrementalPlan
    from gitsched.reconcile.run import Fetched, RunContext
    from gitsched.reconcile.source.last_valid_documents import RestoredFile


def list_settled(restored: Mapping[str, RestoredFile], history: SourceHistory) -> dict[str, str | None] | None:
    """Return for each restored file the source commit of the version that the output branch keeps, or None where there is no earlier
    version; None if another version is used, which the next run finds elsewhere."""
    for path, file in restored.items():
        if file.versions and (len(file.versions) > 1 or not history.is_kept(path, file.versions[0])):
            return None
    if history.list_findings():
        return None
    return {path: file.versions[0].commit if file.versions else None for path, file in restored.items()}


def stay_settled(context: RunContext, fetched: Fetched, settled: Mapping[str, str | None]) -> bool:
    """Return whether the same versions of these files are used as in the last plan, of which they have the content."""
    history = SourceHistory(context, fetched)
    for path, commit in settled.items():
        entry = context.source.repository.find_entry(fetched.source.tree, path)
        if entry is None:
            return False
        earlier = next((version for version in history.list_versions(path) if version.blob != entry[0]), None)
        if (earlier is None) != (commit is None) or (earlier is not None and not history.is_kept(path, earlier)):
            return False
    return not history.list_findings()


def keeps_versions(made: IncrementalPlan, settled: Mapping[str, str | None]) -> bool:
    """Return whether a plan decides and removes no workload of these files, of which the output branch may keep less otherwise."""
    decided, removed = made.decided.documents.values(), made.decided.removed.values()
    paths = {document.origin.path for document in decided if document.origin is not None}
    return settled.keys().isdisjoint(paths | {row.source_path for row in removed})
