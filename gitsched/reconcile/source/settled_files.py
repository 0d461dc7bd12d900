"""Broken files whose last valid versions the output branch keeps: they stay in force as long as nothing happens to the files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.decide.registry import policy_apis
from gitsched.model.finding import INTERNAL_ERROR
from gitsched.reconcile.source.file_version import FileVersion
from gitsched.reconcile.source.source_history import SourceHistory
from gitsched.render.output_files import kept_path

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_plan import IncrementalPlan
    from gitsched.reconcile.cache.caches import SourceFile
    from gitsched.reconcile.run import Fetched, RunContext
    from gitsched.reconcile.source.last_valid_documents import RestoredFile


def list_used_versions(
    restored: Mapping[str, RestoredFile], files: Mapping[str, SourceFile], history: SourceHistory
) -> dict[str, FileVersion | None] | None:
    """Return the version that is used of each restored file, None for a file without an earlier one. It is None itself if the next run may
    use others, or may be able to read one of the `files` that a bug made unreadable."""
    if any(len(file.versions) > 1 for file in restored.values()) or history.list_findings():
        return None
    if any(finding.code == INTERNAL_ERROR for path in restored for finding in files[path].findings):
        return None
    return {path: file.versions[0] if file.versions else None for path, file in restored.items()}


def list_settled(fetched: Fetched, output_tree: str, versions: Mapping[str, FileVersion | None]) -> dict[str, str | None] | None:
    """Return for each of these files the source commit of the version that an output tree keeps, None for a file without one; None if the
    output tree keeps another version."""
    for path, version in versions.items():
        kept = fetched.output.repository.find_entry(output_tree, f"{fetched.prefix}{kept_path(path)}")
        if (None if kept is None else kept[0]) != (None if version is None else version.blob):
            return None
    return list_commits(versions)


def list_commits(versions: Mapping[str, FileVersion | None]) -> dict[str, str | None]:
    """Return the source commits of versions."""
    return {path: None if version is None else version.commit for path, version in versions.items()}


def stay_settled(context: RunContext, fetched: Fetched, settled: Mapping[str, str | None]) -> bool:
    """Return whether the same versions of these files are used as in the last plan, of which they have the content."""
    history = SourceHistory(context, fetched)
    for path, commit in settled.items():
        entry = context.source.repository.find_entry(fetched.source.tree, path)
        if entry is None:
            return False
        earlier = next((version for version in history.list_versions(path) if version.blob != entry[0]), None)
        if earlier is None:
            if commit is not None:
                return False
        elif earlier.commit != commit or not history.is_kept(path, earlier):
            return False
    return not history.list_findings()


def keeps_versions(made: IncrementalPlan, settled: Mapping[str, str | None]) -> bool:
    """Return whether a plan removes no workload of these files, and decides about no object that the output branch keeps only while it is
    placed."""
    embedding = {kind for api in policy_apis.values() for kind in api.embedded_objects}
    decided, removed = made.decided.documents, made.decided.removed.values()
    paths = {
        document.origin.path
        for key, document in decided.items()
        if document.origin is not None and (key[:2] == ("", "Secret") or key[:2] in embedding)
    }
    return settled.keys().isdisjoint(paths | {row.source_path for row in removed})
