"""What a new version writes otherwise than the one before for the source commit of the last run.

With the first commit of the new version, these files come in a commit of their own, so that the other one has only what the source, facts
or time change.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.model.time import EPOCH
from gitsched.reconcile.cache.caches import Caches
from gitsched.reconcile.facts.facts_branches import find_recorded_facts
from gitsched.reconcile.fetch import read_run_record
from gitsched.reconcile.output.output_commit import write, write_metadata
from gitsched.reconcile.run import Facts, Fetched, RunContext
from gitsched.render.run_metadata import RunMetadata

if TYPE_CHECKING:
    from gitsched.reconcile.run import Planned


def render_again(
    context: RunContext, fetched: Fetched, record: RunMetadata, now: datetime, plan_source: Callable[..., Planned]
) -> Fetched | None:
    """Return the output as this version writes it for the source commit that the last run planned; None if it writes the same files, if the
    input of that run is not available, or if anything moves. No ref moves."""
    last = _find_last_input(context, fetched, record)
    if last is None:
        return None
    choices = context.settings.choices._replace(allowed=(), released_clusters=(), reviewed=None)
    settings = context.settings._replace(observations="recorded", choices=choices)
    # What is known of the planned commit must not be known of the last one.
    caches = Caches(settings.cache, context.caches.files, context.caches.record_bodies)
    replay = context._replace(settings=settings, caches=caches)
    planned = plan_source(replay, last, _find_last_time(record, min(last.source.time, now)), withholds=True)
    written = write(replay, last, planned)
    plan = planned.plan
    if written.tree == fetched.output_tree or plan.moves or plan.ended or written.record_changes or written.findings:
        return None
    tree = write_metadata(replay, last, fetched.output.repository, planned, written)
    present = read_run_record(fetched.output.repository, tree, fetched.prefix)
    if present is None or _get_state(present) != _get_state(record):
        return None
    return fetched._replace(output_tree=tree, record=present, rewritten=fetched.rewritten or record)


def _find_last_input(context: RunContext, fetched: Fetched, record: RunMetadata) -> Fetched | None:
    """Return the source commit that a run has planned last, and the facts that the record names; None if they are not available."""
    commit = fetched.trusted.commit
    if commit is None or fetched.trusted.is_base:
        return None
    facts = find_recorded_facts(context.source.repository, record.facts, fetched.facts) if record.facts else Facts()
    if facts.commits != record.facts:
        return None
    return fetched._replace(source=commit, facts=facts, is_edited=False)


def _find_last_time(record: RunMetadata, source_time: datetime) -> datetime:
    """Return the latest time that the last run knew. No deadline after it counts."""
    copies = (time for copy in record.retained for time in (copy.start, copy.counted_from))
    rollouts = (cluster.applied_at for rollout in record.rollouts for cluster in rollout.changed)
    return max(filter(None, (source_time, record.time, record.observed_at, *record.retiring.values(), *copies, *rollouts)))


def _get_state(record: RunMetadata) -> RunMetadata:
    """Return what the next run starts from: a record without what only says how it came about."""
    return record._replace(
        source="",
        source_tree="",
        version="",
        time=EPOCH,
        observed_at=None,
        findings=(),
        next_wakeup=None,
        input_digest="",
        builds=record.builds._replace(builder="", helm=""),
        workloads=None,
        unclaimed=0,
    )
