"""The pipeline of a run: fetch, load, observe, plan, write, publish. Start reading here.

Each step takes the values of the steps before it and returns its own; `run.py` defines them. Only `publish` moves a ref. The caches never
change a result: a run without them does more work and writes the same bytes.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from gitsched import __version__
from gitsched.apis.registered import Registered
from gitsched.decide.garbage_collection import gc_paused
from gitsched.model.errors import Conflict
from gitsched.model.progress import PUBLISHING
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.incremental.source_diff import try_incrementally
from gitsched.reconcile.output.output_commit import NewCommit, prepare_commit, publish, write
from gitsched.reconcile.run import (
    Fetched,
    OutputMoved,
    Planned,
    RunContext,
    RunResult,
    Written,
    make_result,
)
from gitsched.reconcile.source.source_order import check_source_order
from gitsched.reconcile.source_plan import find_known_plan, find_state_file, is_shared, plan_source, take_plan, use_plan

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.model.finding import Finding

_LIST_NEW_UNSELECTED = Registered("gitsched.reconcile.review.new_unselected", "list_new_unselected")


def run(
    context: RunContext,
    now: datetime,
    *,
    preview: bool = False,
    complete: bool = False,
    reads_record: bool = False,
    withholds: bool | None = None,
) -> RunResult:
    """Plan the source commit, write the output tree, and publish it as a commit on the output branch.

    With `preview` no ref moves. A `complete` plan has everything that explanations need; otherwise an incremental plan may do, and with
    `reads_record` what the output branch records of the last plan. With `withholds`, by default unless it is a preview, the plan leaves out
    what the guard withholds. Raise OutputMoved when another process moved the output branch
    meanwhile.
    """
    withholds = not preview if withholds is None else withholds
    with gc_paused():
        fetched = fetch(context, publishes=not preview, shows_findings=True)
        order = fetched.output.unfetched if preview else _check_source(context, fetched)
        cached = None if complete else take_plan(context, fetched)
        planned = None
        if cached is not None:
            planned = try_incrementally(context, fetched, cached, now, plan_source, withholds=withholds)
        elif reads_record and not complete:
            planned = find_known_plan(context, fetched, now)

        has_content = not context.settings.findings_only

        def make(context: RunContext, planned: Planned | None = None) -> tuple[Planned, tuple[Written, NewCommit | None]]:
            def write_checked(planned: Planned) -> tuple[Written, NewCommit | None]:
                context.report_step("writing the output tree")
                return _write_checked(context, fetched, planned, order, now, prepares=not preview)

            return use_plan(
                context, fetched, now, write_checked, planned, withholds=withholds, written=has_content, refuses=not preview
            )

        planned, (written, commit) = make(context, planned)
        rewritten = rewrite_output(context, fetched, planned.plan, now) if written.changed and has_content else None
        if rewritten is not None:
            fetched = rewritten
            planned, (written, commit) = make(context)
        if context.settings.choices.verify and not planned.plan.complete:
            from gitsched.reconcile.output.plan_verification import verify_plan  # where an option asks for it

            planned, (written, commit) = verify_plan(context, fetched, (planned, (written, commit)), make)
        published = None
        if not (preview or written.refused):
            context.report_step(PUBLISHING)
            try:
                published = publish(context, fetched, planned, written, commit)
            except Conflict as conflict:
                raise OutputMoved(str(conflict), fetched, make_result(fetched, planned, written, None)) from conflict
        state = context.caches.plan
        if state is not None and is_shared(context, state):
            from gitsched.reconcile.incremental.shared_state import share_state  # only for large fleets

            share_state(context, fetched)
        context.caches.save()
    result = make_result(fetched, planned, written, published)
    if preview:
        return result
    unselected = _LIST_NEW_UNSELECTED(context, fetched, planned) if planned.plan.totals.overview.unclaimed else ()
    return result._replace(unselected=unselected, state_file=find_state_file(context, fetched, planned, written))


def _check_source(context: RunContext, fetched: Fetched) -> tuple[Finding, ...]:
    """Return the findings about the place of the source commit after the last one. Raise Permanent if a run may not plan it."""
    if context.settings.source_keys or fetched.trusted.config.source.verify_keys:
        from gitsched.reconcile.review.setting_findings import check_signature  # few sources require signatures

        check_signature(context, fetched)
    last = fetched.reconciled
    follows = last.source in fetched.source.parents and last.branch in ("", fetched.branch)
    if follows or last.source in ("", fetched.source.oid):
        return fetched.output.unfetched
    return check_source_order(context, fetched)


def _write_checked(
    context: RunContext, fetched: Fetched, planned: Planned, order: tuple[Finding, ...], now: datetime, *, prepares: bool
) -> tuple[Written, NewCommit | None]:
    """Write the output tree, compare its plan with the reviewed one, and prepare the commit unless it is refused."""
    written = write(context, fetched, planned)
    if fetched.may_be_reviewed(context.settings, changed=written.changed):
        from gitsched.reconcile.review.review_check import check_review  # few sources name reviewed plans

        reviewing = context._replace(settings=context.settings._replace(now=now.replace(microsecond=0)))
        written = check_review(reviewing, fetched, planned, written, partial(plan_source, now=now))
    commit = prepare_commit(context, fetched, planned, written) if prepares and not written.refused else None
    if order or (commit is not None and commit.findings):
        written = written._replace(findings=(*order, *written.findings, *(commit.findings if commit is not None else ())))
    return written, commit


def rewrite_output(context: RunContext, fetched: Fetched, plan: Plan, now: datetime) -> Fetched | None:
    """Return the output with what this version writes otherwise than the one before; None where that is nothing, where this version has
    written the output before, and where the plan delivers changes in waves."""
    if fetched.record is None or (fetched.record.version == __version__ and fetched.rewritten is None) or plan.rollouts:
        return None
    from gitsched.reconcile.output.rewritten_output import render_again  # only in the first commit of a new version

    return render_again(context, fetched, fetched.record, now, plan_source)
