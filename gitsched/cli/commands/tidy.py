"""gitsched tidy: list and remove the expired documents of the worktree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.worktree import require_worktree_root
from gitsched.model.time import format_time
from gitsched.reconcile import RunSettings
from gitsched.reconcile.expired_documents import find_expired_documents, write_tidied_file
from gitsched.report.lines import escape_unprintable
from gitsched.report.serialization import API_VERSION

if TYPE_CHECKING:
    from gitsched.reconcile.expired_documents import TidiedFile


def run(
    write: bool, detailed: bool, form: str, log_format: str, location: str, output_repository: str | None, **chosen: Any
) -> int:
    """Carry out the command, and return its exit code."""
    output.configure_logging(log_format)
    root = require_worktree_root(location)
    with output.show_progress("Planning") as progress:
        settings = RunSettings(location=location, output=output_repository, trusted=False, progress=progress, **chosen)
        files = find_expired_documents(settings, root)
    found = [write_tidied_file(root, file) if write and file.removable else file for file in files]
    formats.show_as(form, lambda _: describe_files(found, write), lambda: serialize_files(found, write))
    if any(file.removable and not after.removable for file, after in zip(files, found, strict=True)):
        return exit_codes.FINDINGS
    return exit_codes.CHANGES if detailed and files else exit_codes.DONE


def describe_files(files: Iterable[TidiedFile], written: bool) -> str:
    """Return a line for each expired document, and what to do next."""
    lines: list[str] = []
    removable = 0
    for file in files:
        deleted = file.data is None
        for entry in file.entries:
            since = f"expired at {format_time(entry.since)}"
            removable += not entry.problem
            if entry.problem:
                effect = f"not removed: {entry.problem}" if written else f"cannot be removed automatically: {entry.problem}"
            elif written:
                effect = "deleted the file" if deleted else "removed from the file"
            else:
                effect = "the file can be deleted" if deleted else "can be removed from the file"
            lines.append(f"{escape_unprintable(entry.path)}:{entry.line}: {entry.key.title} {since}: {effect}")
    if not lines:
        lines.append("No document has expired.")
    elif removable:
        lines.append("Commit the changes." if written else "Use --write to remove them.")
    return "\n".join(lines) + "\n"


def serialize_files(files: Iterable[TidiedFile], written: bool) -> dict[str, Any]:
    """Return the expired documents as data."""
    documents = [
        {
            "path": entry.path,
            "line": entry.line,
            "kind": entry.key.kind,
            "name": entry.key.name,
            "expiredAt": format_time(entry.since),
            "deletesFile": file.data is None and not entry.problem,
            "removed": written and not entry.problem,
            "problem": entry.problem,
        }
        for file in files
        for entry in file.entries
    ]
    return {"apiVersion": API_VERSION, "kind": "ExpiredDocuments", "documents": documents}
