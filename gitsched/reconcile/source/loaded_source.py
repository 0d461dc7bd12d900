"""Load the source of a run: read its commit, or another one, as the run does."""

from __future__ import annotations

from functools import cache as cached
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE
from gitsched.build.remote_base import RemotePolicy
from gitsched.decide.plan_input import SourceTree
from gitsched.model.errors import Permanent
from gitsched.model.finding import Location
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.remote_policy import decide_remotes
from gitsched.reconcile.cache.caches import TreeCache
from gitsched.reconcile.run import Fetched, RunContext
from gitsched.reconcile.source.config_file import OpenHistory
from gitsched.reconcile.source.source_history import SourceHistory
from gitsched.reconcile.source.source_tree import read_source_tree

if TYPE_CHECKING:
    from gitsched.model.commit import Commit


def load(context: RunContext, fetched: Fetched, *, check_output: bool = True) -> SourceTree:
    """Read the source commit. Broken files contribute their last valid documents.

    With `check_output`, raise Permanent if gitsched.yaml is broken and might have named another output.
    """
    caches = context.caches
    caches.tree = read_tree(context, fetched, fetched.source.tree, caches.tree)
    if check_output:
        _check_output_config(context, fetched, caches.tree)
    return caches.tree.source_tree


def read_tree(context: RunContext, fetched: Fetched, tree: str, last: TreeCache | None, *, is_planned: bool = False) -> TreeCache:
    """Read a tree as the run reads its source commit. `last` is another tree that was read: what both have is not read again.

    Where the tree `is_planned`, the last run has read it: of what is broken in it, no later commit counts.
    """
    caches, tenants = context.caches, fetched.base_tenants
    if tenants is None:
        tenants = fetched.record.tenants if fetched.record is not None else ()

    read = fetched.source._replace(oid="", tree=tree, parents=()) if is_planned else fetched.source
    open_history = _prepare_history(context, fetched._replace(source=read))
    return read_source_tree(
        context.source.repository,
        tree,
        caches.files,
        open_history,
        context.settings.paths,
        last,
        lambda: BuildContext(
            context.source.repository,
            caches,
            fetched.record,
            context.source.fetch_commit,
            fetched.source.oid,
            decide_remotes(context, fetched),
            list_earlier=lambda limit: open_history().list_commits(limit),
        ),
        tenants,
        context.settings.strict,
        context.settings.progress,
    )


def read_source_at(context: RunContext, fetched: Fetched, commit: Commit) -> SourceTree:
    """Read another commit of the source. Broken files contribute the last valid documents that a run of it would use now."""
    repository, settings = context.source.repository, context.settings
    open_history = _prepare_history(context, fetched._replace(source=commit))

    def builds() -> BuildContext:
        return BuildContext(
            repository,
            context.caches,
            fetched.record,
            context.source.fetch_commit,
            remotes=RemotePolicy(trusted=None),
            list_earlier=lambda limit: open_history().list_commits(limit),
        )

    return read_source_tree(
        repository, commit.tree, context.caches.files, open_history, settings.paths, builds=builds, strict=settings.strict
    ).source_tree


def _prepare_history(context: RunContext, fetched: Fetched) -> OpenHistory:
    @cached
    def open_history() -> SourceHistory:
        return SourceHistory(context, fetched)

    return open_history


def _check_output_config(context: RunContext, fetched: Fetched, tree: TreeCache) -> None:
    """Raise Permanent if gitsched.yaml is broken, unless the last valid one names the same output."""
    settings, record, source = context.settings, fetched.record, tree.source_tree
    branch = settings.output_branch or source.config.output.branch
    if (
        not tree.config_valid
        and not settings.findings_only
        and settings.output_branch is None
        and (record is None or branch != fetched.output.branch)
    ):
        findings = (*source.other_findings, *source.file_findings.get(FILE, ()))
        errors = [f for f in findings if f.severity == "error" and f.location is not None and f.location.path == FILE]
        # The error at the top of the file only says that it has no valid settings; any other one says why.
        first = min(errors, key=lambda f: (f.location == Location(FILE, 1, 1), f.location), default=None)
        reason = f" ({first})" if first else ""
        raise Permanent(f"{FILE} is broken{reason}, so the location of the output is unknown; fix it, or pass --output-branch")
