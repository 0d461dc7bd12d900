"""Write the manifests that override policies change, and those whose numbers cannot be edited otherwise: edit their source text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from gitsched.model.planned_files import PatchedBlob, PlannedFile, WritableFile
from gitsched.reconcile.run import RunContext

if TYPE_CHECKING:
    from gitsched.edits.manifest_edits import ManifestText

MAX_CACHED: Final = 50_000
"""The number of manifests that are kept for the next plan of the same process."""


def write_patches(context: RunContext, files: Mapping[str, PlannedFile | None]) -> Mapping[str, WritableFile | None]:
    """Return the files of a plan with the content of those that are patches."""
    number = sum(isinstance(file, PatchedBlob) for file in files.values())
    if len(context.caches.patches) + number > MAX_CACHED:
        context.caches.patches.clear()
    read = lru_cache(maxsize=1)(partial(_read_text, context))  # the documents of a file follow each other
    return {path: _edit(context, file, read).file if isinstance(file, PatchedBlob) else file for path, file in files.items()}


def write_patch(context: RunContext, file: PlannedFile) -> WritableFile:
    """Return a file; the content of a patch."""
    return _edit(context, file, partial(_read_text, context)).file if isinstance(file, PatchedBlob) else file


def describe_refusal(context: RunContext, file: PlannedFile | None) -> str:
    """Return why a manifest is written as new YAML instead of an edit of its source text; "" for any other file."""
    if not isinstance(file, PatchedBlob) or not (refusal := _edit(context, file, partial(_read_text, context)).refusal):
        return ""
    source = f"{file.origin.path}:{file.origin.line}"
    return f"written as new YAML without comments, because the text of {source} cannot be edited in place: {refusal}"


def _edit(context: RunContext, file: PatchedBlob, read: Callable[[str], str]) -> ManifestText:
    found = context.caches.patches.get(file)
    if found is None:
        from gitsched.edits.manifest_edits import edit_manifest  # most plans have no patches

        found = context.caches.patches[file] = edit_manifest(read(file.origin.blob), file)
    return found


def _read_text(context: RunContext, blob: str) -> str:
    return context.source.repository.blob(blob).decode()
