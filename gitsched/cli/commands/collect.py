"""gitsched collect: observe clusters through kubectl, and commit facts about them to facts branches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.worktree import find_worktree_root
from gitsched.collect.collector import list_all_contexts
from gitsched.collect.sources import CLUSTER_NAME
from gitsched.kubectl.client import KubectlOptions
from gitsched.model.finding import format_part
from gitsched.model.system_errors import make_write_error
from gitsched.reconcile import RunSettings
from gitsched.reconcile.facts.collection import (
    CollectOptions,
    collect_facts,
    list_document_apis,
    list_source_names,
    propose_clusters,
)
from gitsched.reconcile.worktree_file import create_file, resolve_worktree_file
from gitsched.report.lines import abbreviate_oid, escape_unprintable

if TYPE_CHECKING:
    from gitsched.collect.collector import ClusterResult, Collection
    from gitsched.reconcile.facts.collection import CollectRun, ProposedFile


def read_sources(value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the sources as (name, context)."""
    sources = []
    for text in value:
        name, _, context = text.partition("=")
        known = list_source_names()
        if name not in known:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(known)}")
        sources.append((name, context))
    return tuple(sources)


def run(
    location: str,
    contexts: tuple[str, ...],
    all_contexts: bool,
    sources: tuple[tuple[str, str], ...],
    own: str,
    output_branch: str,
    facts_branch: str,
    write_clusters: Path | None,
    api: str,
    kubeconfig: str,
    executable: str,
    timeout: float,
    seconds: float,
    refresh: timedelta | None,
    dry_run: bool,
    form: str,
    log_format: str,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    if own and (contexts or all_contexts or sources):
        raise click.UsageError("--self observes this cluster alone: omit --context, --all-contexts and --from")
    if not (own or contexts or all_contexts or sources):
        raise click.UsageError("name what to observe: --context, --all-contexts, --from or --self")
    if own and not CLUSTER_NAME.fullmatch(own):
        raise click.UsageError(f"--self: {own!r} is no name of a cluster, such as dub-1")
    if api not in list_document_apis():
        raise click.UsageError(f"--api: {api!r} is not one of {', '.join(list_document_apis())}")

    output.configure_logging(log_format)
    kubectl = KubectlOptions("", kubeconfig, timeout, executable)
    listed: tuple[str, ...] = ()
    if all_contexts:
        named = {text.partition("=")[2] or text for text in contexts}
        listed = tuple(context for context in list_all_contexts(kubectl) if context not in named)
    wanted = CollectOptions(kubectl, contexts, sources, own, seconds, refresh, facts_branch, output_branch, listed)
    with output.show_progress("Observing"):
        run = collect_facts(RunSettings(location=location, **chosen), wanted, write=not dry_run)
    proposed = propose_clusters(run.collection, api, write_clusters) if write_clusters is not None else []
    if not dry_run:
        _write_all(location, proposed)
    formats.show_as(form, lambda _: _format_run(run, proposed, dry_run), lambda: _make_object(run, proposed, dry_run))
    return _get_code(run.collection)


def _write_all(location: str, files: Sequence[ProposedFile]) -> None:
    """Write the proposed files. A symlink of the worktree, which a commit may have brought, leads to no file outside of it."""
    root = find_worktree_root(location)
    for file in files:
        path = Path(os.path.abspath(file.path))  # noqa: PTH100 - resolve() would follow the symlinks
        if file.reason:
            continue
        try:
            if root is not None and path.is_relative_to(root):
                path = resolve_worktree_file(root, path.relative_to(root).as_posix())
            create_file(path, file.text)
        except OSError as error:
            raise make_write_error(file.path, error) from error


def _get_code(collection: Collection) -> int:
    """Return the exit code: an error that remains takes precedence over a temporary one."""
    failed = [result.temporary for result in collection.results if result.failure] + [
        temporary for _, temporary in collection.failures
    ]
    if not failed:
        return exit_codes.DONE
    return exit_codes.TEMPORARY if all(failed) else exit_codes.FINDINGS


def _format_run(run: CollectRun, proposed: Sequence[ProposedFile], dry_run: bool) -> str:
    if dry_run:
        failed = [_format_result(result, True) for result in run.collection.results if result.failure]
        texts = "---\n".join([*(file.text for file in run.files), *(file.text for file in proposed if file.text)])
        return "\n".join([*(f"# {line}" for line in (*failed, *_list_notes(run.collection))), texts])
    changed = {file.cluster for file in run.files if file.changed}
    lines = [_format_result(result, result.cluster in changed) for result in run.collection.results]
    lines += [f"{file.path}: {f'not written: {file.reason}' if file.reason else 'written'}" for file in proposed]
    lines += [escape_unprintable(f"note: {file.path}: {note}") for file in proposed for note in file.notes]
    end = f"Committed {abbreviate_oid(run.commit)} to {run.branch}." if run.commit else f"Nothing to commit to {run.branch}."
    return "\n".join([*lines, *_list_notes(run.collection), end]) + "\n"


def _list_notes(collection: Collection) -> list[str]:
    notes = [f"{result.cluster}: {note}" for result in collection.results for note in result.notes]
    lines = (*(f"failed: {text}" for text, _ in collection.failures), *(f"note: {text}" for text in (*collection.notes, *notes)))
    return list(map(escape_unprintable, lines))


def _format_result(result: ClusterResult, changed: bool) -> str:
    """Return the line of a cluster."""
    if result.collected is None:
        return escape_unprintable(f"{result.cluster} ({result.origin}): failed: {result.failure}")
    facts = result.collected.facts
    readiness = (
        {"True": "ready", "False": "not ready"}.get(facts.readiness.status, "unknown") if facts.readiness else "no readiness"
    )
    parts = [
        readiness,
        facts.version,
        f"{format_part(facts.nodes.ready, facts.nodes.total, 'node')} ready" if facts.nodes else "",
        f"cpu {facts.allocated['cpu']} of {facts.allocatable['cpu']} requested"
        if facts.allocated and "cpu" in facts.allocated and "cpu" in facts.allocatable
        else "",
        "" if changed else "unchanged",
    ]
    return escape_unprintable(f"{result.cluster} ({result.origin}): {', '.join(filter(None, parts))}")


def _make_object(run: CollectRun, proposed: Sequence[ProposedFile], dry_run: bool) -> dict[str, Any]:
    """Return the result as a Collection object."""
    changed = {file.cluster for file in run.files if file.changed}
    return {
        "apiVersion": "gitsched.io/v1alpha1",
        "kind": "Collection",
        "branch": run.branch,
        "commit": run.commit,
        "clusters": [
            {
                "name": result.cluster,
                "origin": result.origin,
                "state": "failed" if result.failure else "changed" if result.cluster in changed else "unchanged",
                **({"failure": result.failure, "temporary": result.temporary} if result.failure else {}),
                **({"notes": list(result.notes)} if result.notes else {}),
            }
            for result in run.collection.results
        ],
        "written": [str(file.path) for file in proposed if not (file.reason or dry_run)],
        "notes": list(run.collection.notes),
        "failures": [text for text, _ in run.collection.failures],
    }
