"""Who froze placements, when, and where it is written: the file FREEZE of the output branch, and guard.freeze of gitsched.yaml."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE
from gitsched.git import Repository
from gitsched.git.remote_refs import find_remote_url
from gitsched.model.fleet_status import Freeze
from gitsched.reconcile.output.history_records import HistoryBranch
from gitsched.reconcile.source.config_file import read_config
from gitsched.render.output_files import FREEZE

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.model.commit import Commit
    from gitsched.reconcile.run import Fetched, RunContext, RunResult

MAX_COMMITS = 1_000
"""Commits of a branch that are searched for the one that wrote a freeze."""


def list_freezes(context: RunContext, fetched: Fetched, plan: Plan) -> Iterator[Freeze]:
    """Yield the freezes in force."""
    branch = HistoryBranch.of_fetched(fetched)
    push = find_push_command(fetched, fetched.output_head) if fetched.frozen else ""
    yield from _list_freezes(context, plan, branch, fetched.source.oid, fetched.frozen, push)


def find_push_command(fetched: Fetched, head: str | None) -> str:
    """Return the command that pushes a freeze, or its end, that the commit `head` of the output branch has, and origin as of the last fetch
    has not; "" if there is none. What is pushed by itself needs none."""
    output = fetched.output
    if head is None or output.remote is not None or find_remote_url(output.repository, "origin") is None:
        return ""
    tracked = output.repository.resolve_ref(f"refs/remotes/origin/{output.branch}")
    trees = (output.repository.commit(oid).tree if oid is not None else None for oid in (head, tracked))
    here, there = (output.repository.find_entry(tree, f"{fetched.prefix}{FREEZE}") if tree is not None else None for tree in trees)
    return f"git push origin {output.branch}" if here != there else ""


def list_run_freezes(context: RunContext, run: RunResult) -> Iterator[Freeze]:
    """Yield the freezes that were in force in a run."""
    if run.plan.freeze:
        branch = HistoryBranch.of_run(run)
        yield from _list_freezes(context, run.plan, branch, run.source, run.plan.guard.frozen)


def _list_freezes(
    context: RunContext, plan: Plan, output: HistoryBranch, source: str, frozen: str, push: str = ""
) -> Iterator[Freeze]:
    configured = plan.totals.config.guard.freeze
    if frozen:
        path = f"{output.prefix}{FREEZE}"

        def has_file(commit: Commit) -> bool:
            return output.repository.find_entry(commit.tree, path) == wanted

        wanted = output.repository.find_entry(output.repository.commit(output.head).tree, path) if output.head else None
        place = f"the file {path} of the branch {output.branch}"
        freeze = Freeze(frozen, place, "to lift it: gitsched freeze --lift", push=push)
        yield _find_author(freeze, output.repository, output.head, has_file)
    if configured:
        freezes, place = partial(_freezes, context, configured), f"guard.freeze in {FILE}"
        freeze = Freeze(configured, place, f"to lift it: remove {place}")
        yield _find_author(freeze, context.source.repository, source, freezes)
    if plan.freeze and not (frozen or configured):
        lifted = plan.guard.settings.freeze
        place = f"the earlier guard.freeze, which {FILE} has no more" if lifted else "the settings of the last run"
        yield Freeze(plan.freeze, place, "it ends when what is withheld is allowed or reverted")


def _freezes(context: RunContext, reason: str, commit: Commit) -> bool:
    config = read_config(context.source.repository, commit.tree, context.caches.files)
    return config is not None and config.guard.freeze == reason


def _find_author(freeze: Freeze, repository: Repository, head: str | None, has_freeze: Callable[[Commit], bool]) -> Freeze:
    """Return the freeze with the author and the time of the first commit, along first parents, since which it is in force."""
    first: Commit | None = None
    for commit in repository.list_first_parents(head or "", MAX_COMMITS):
        if not has_freeze(commit):
            break
        first = commit
    else:
        if first is None or first.parents:  # the history ends before, or is too long
            return freeze
    return freeze._replace(author=first.author_name, since=first.time) if first is not None else freeze
