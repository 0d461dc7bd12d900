"""Bring workloads back to the clusters of an earlier commit, for `gitsched rebalance --to`: write the files, or print them as a patch."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.restoration import describe_restoration, format_patch, serialize_restoration
from gitsched.reconcile import RunSettings
from gitsched.reconcile.reschedule import WorkloadSelection, write_reschedule_file
from gitsched.reconcile.restored_placements import describe_withheld, make_restoration_files, write_edits
from gitsched.report.lines import escape_unprintable


def bring_back(
    settings: RunSettings,
    revision: str,
    selection: WorkloadSelection,
    ttl: timedelta | None,
    form: str,
    root: Path | None,
    path: str | None,
    *,
    companions: bool,
) -> int:
    """Show what brings workloads back, and write it to the worktree below `root` unless that is None. Returns the exit code."""
    with output.show_progress("Planning") as progress:
        files = make_restoration_files(settings._replace(progress=progress), revision, selection, ttl, companions)
    text, requests = describe_restoration(files, revision), files.requests
    if path is not None:
        requests = tuple(request._replace(path=path) for request in requests)
    edits = (*requests, *files.edits)
    if root is None:
        if edits or form != "text":
            formats.show_document(form, format_patch(edits), lambda: serialize_restoration(files))
        click.echo(text, err=True, nl=False)
        return exit_codes.DONE
    lines = []
    for request in requests:
        wrote = write_reschedule_file(root, request.path, request.after)
        lines.append(f"{'wrote' if wrote else 'unchanged:'} {escape_unprintable(request.path)}\n")
    write_edits(root, files.edits)
    lines += [f"annotated {escape_unprintable(edit.path)}\n" for edit in files.edits]
    withheld = describe_withheld(settings, files.restoration.requests) if edits else ""
    lines += [text, f"{withheld}\n" if withheld else ""]
    formats.show_as(form, lambda _: "".join(lines), lambda: {**serialize_restoration(files), "withheld": withheld})
    return exit_codes.DONE
