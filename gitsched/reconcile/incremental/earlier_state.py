"""Continue the state of an earlier run on this machine to the head of the output, which another machine has reconciled since.

The state counts only if it leads to the output tree that is there, file by file, and to the same record of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from gitsched.decide.guard.guard_settings import read_guard_record
from gitsched.git.state_refs import fetch_output_tree, fetch_source_tree
from gitsched.model.errors import GitschedError
from gitsched.reconcile.fetch import read_config_or_defaults, read_run_record
from gitsched.reconcile.incremental.fallback import attempt
from gitsched.reconcile.incremental.source_diff import try_incrementally
from gitsched.reconcile.output.output_commit import make_plan_cache, write
from gitsched.reconcile.run import Fetched, RunContext, TrustedConfig
from gitsched.render.output_files import METADATA_FILES

if TYPE_CHECKING:
    from gitsched.reconcile.cache.plan_cache import PlanCache, PlanCacheHeader
    from gitsched.reconcile.run import Planned, Written
    from gitsched.render.run_metadata import RunMetadata


def continue_earlier_state(
    context: RunContext,
    fetched: Fetched,
    cache: PlanCache,
    plan_source: Callable[[RunContext, Fetched, datetime], Planned],
) -> PlanCache | None:
    """Plan what other machines have reconciled since the state in the cache, and return the state of the output's head.

    Return None if this leads to another output, or is not possible. The state is written to its store.
    """
    record = fetched.record
    if record is None or not is_plain(fetched, record):
        return None
    context = context._replace(settings=context.settings.without_choices)
    # An object of an earlier run may be missing, in a clone with a short history.
    found = attempt(partial(_continue, context, fetched, record, cache, plan_source), GitschedError)
    if found is not None:
        found.save()
    return found


def _continue(
    context: RunContext,
    fetched: Fetched,
    record: RunMetadata,
    cache: PlanCache,
    plan_source: Callable[[RunContext, Fetched, datetime], Planned],
) -> PlanCache | None:
    earlier, now = _find_earlier(context, fetched, record, cache.header), max(cache.header.totals.now, record.time)
    if earlier is None:
        return None
    planned = try_incrementally(context, earlier, cache, now, plan_source, withholds=True)
    if planned is None or not leads_to(fetched, record, planned, write(context, earlier, planned)):
        return None
    assert fetched.output_tree is not None, "the output has a record"
    return make_plan_cache(context.caches, earlier, planned, fetched.output_tree, is_settled=False)


def is_plain(fetched: Fetched, record: RunMetadata) -> bool:
    """Return whether a plan of the last run's commit depends only on what is in repositories."""
    return not (
        fetched.is_edited or fetched.frozen or record.observations or record.observed_at or record.rollouts or record.adopted
    )


def find_reconciled(context: RunContext, fetched: Fetched, record: RunMetadata) -> Fetched | None:
    """Return the commit of the last run, as a run would plan it again; None if it is not available."""
    if not (record.source and context.source.fetch_commit(record.source)):
        return None
    commit = context.source.repository.commit(record.source)
    if commit.tree != record.source_tree:
        return None
    trusted = TrustedConfig(read_config_or_defaults(context, commit.tree), commit)
    return fetched._replace(source=commit, trusted=trusted, source_commits={}, base_tenants=None)


def _find_earlier(context: RunContext, fetched: Fetched, record: RunMetadata, header: PlanCacheHeader) -> Fetched | None:
    """Return what a run of the last run's commit would have fetched when the output branch was where a state says; None if that cannot be
    known."""
    output, found, reconciled = fetched.output, None, None
    tree, source_tree = header.output_tree, header.source_tree
    if fetch_output_tree(output, tree) and fetch_source_tree(context.source, source_tree, output.state_repository):
        found = read_run_record(output.repository, tree, fetched.prefix)
        reconciled = find_reconciled(context, fetched, record)
    if found is None or reconciled is None or not is_plain(fetched, found) or found.version != record.version:
        return None
    if not (found.source and context.source.fetch_commit(found.source)):
        return None
    commit = context.source.repository.commit(found.source)
    trusted = TrustedConfig(read_config_or_defaults(context, commit.tree), commit)
    return reconciled._replace(output_tree=tree, record=found, trusted=trusted)


def leads_to(fetched: Fetched, record: RunMetadata, planned: Planned, written: Written) -> bool:
    """Return whether a plan leads to the output that is there, and to the same record of what later runs continue."""
    plan, repository = planned.plan, fetched.output.repository
    if plan.releases is not None or written.findings:
        return False
    if plan.withheld.kept or read_guard_record(record.guard) != plan.guard:
        return False
    if (plan.retiring, plan.retained, plan.adopted) != (record.retiring, record.retained, record.adopted):
        return False
    if (planned.tenants, planned.builds) != (record.tenants, record.builds) or dict(planned.kept_files) != dict(record.kept_files):
        return False
    changed = repository.changed_paths(fetched.output_tree, written.tree)
    own = (path.removeprefix(fetched.prefix) for path in changed if path.startswith(fetched.prefix))
    return METADATA_FILES.issuperset(own)
