"""Compare the plan of a run with the reviewed one that the source commit names. A run may require that they are the same."""

from __future__ import annotations

from collections.abc import Callable

from gitsched.diff.combined_reviews import PlanChanges
from gitsched.diff.plans import ReviewedPlan, compare_with_review, compute_plan_digest, find_reviewed_digest
from gitsched.reconcile.output.manifest_changes import find_manifest_changes
from gitsched.reconcile.review.combined_reviews import combine_reviews
from gitsched.reconcile.run import Fetched, Planned, RunContext, Written
from gitsched.report.lines import abbreviate_oid
from gitsched.report.summary import REVIEWED_TRAILER

PlanCommit = Callable[..., Planned]
"""Plan a source commit; see `gitsched.reconcile.source_plan.plan_source`."""


def check_review(context: RunContext, fetched: Fetched, planned: Planned, written: Written, plan_commit: PlanCommit) -> Written:
    """Return the written tree with why it may not be published, and with messages about the review.

    The commits since the last run count together: each change has to be in one of the reviewed plans that they name. A review is about
    commits: what time or metrics change after a run has planned the commit needs no review.
    """
    source, settings = fetched.source, context.settings
    if settings.choices.reviewed is not None and settings.choices.reviewed.saved:
        return _check_saved_plan(settings.choices.reviewed, fetched, planned, written)
    if not written.changed or (settings.choices.reviewed is None and has_planned_source(fetched)):
        return written
    reviewed = settings.choices.reviewed or find_reviewed_digest(source)
    plan, records = planned.plan, written.record_changes
    changes = find_manifest_changes(fetched.output.repository, fetched.prefix, fetched.output_tree, written.tree, source.oid)
    compared = None
    if reviewed is not None:
        compared = compare_with_review(
            reviewed, compute_plan_digest(plan.moves, changes, records), fetched.output_head, plan.moves, records
        )
    if compared is None or not compared.same:
        total = PlanChanges(plan.moves, changes, records)
        compared = combine_reviews(context, fetched, total, compared, plan_commit) or compared
    if compared is None:
        missing = f"commit {source.oid} names no reviewed plan: it has no trailer {REVIEWED_TRAILER}, and --reviewed is not given"
        return written._replace(refused=missing if settings.choices.require_reviewed else "")
    refused = "" if compared.same or not settings.choices.require_reviewed else "the plan differs from the reviewed plan"
    return written._replace(refused=refused, reviewed=compared.lines)


def _check_saved_plan(saved: ReviewedPlan, fetched: Fetched, planned: Planned, written: Written) -> Written:
    """Return the written tree with why it is not the saved plan. A plan that was made of other commits counts if it has the same result."""
    source, output = fetched.source.oid, fetched.output_head
    moved = []
    if source != saved.source:
        moved.append(f"the source is at {abbreviate_oid(source)}, the plan was made of {abbreviate_oid(saved.source)}")
    if (output or "") != saved.output:
        now, then = (abbreviate_oid(oid) if oid else "not there yet" for oid in (output, saved.output))
        moved.append(f"the output branch is {'at ' * bool(output)}{now}, the plan was made on {then if saved.output else 'none'}")
    since = f" ({'; '.join(moved)})" if moved else ""
    if not written.changed and (source == saved.source or not saved.has_changes):
        done = f"Nothing is left to do: the output branch has the result of the saved plan {saved.digest}{since}."
        return written._replace(reviewed=(done,))
    plan, records = planned.plan, written.record_changes
    changes = find_manifest_changes(fetched.output.repository, fetched.prefix, fetched.output_tree, written.tree, source)
    compared = compare_with_review(saved, compute_plan_digest(plan.moves, changes, records), output, plan.moves, records)
    if compared.same:
        return written._replace(reviewed=(f"As reviewed: plan {saved.digest}{since and f'; the result is the same{since}'}.",))
    why = "; ".join(moved) or "no branch has moved, but the time, observed values or options of the run differ"
    withheld = f"; the guard withholds changes of the plan: {saved.allowance}" if saved.allowance else ""
    cure = "make the plan again with `gitsched plan --out FILE`, review it, and pass that file"
    return written._replace(refused=f"the result is not that of the saved plan: {why}{withheld}; {cure}", reviewed=compared.lines)


def has_planned_source(fetched: Fetched) -> bool:
    """Return whether an earlier run has planned this source commit, even if nothing changed."""
    return fetched.record is not None and fetched.source.oid in (fetched.record.source, fetched.reconciled.source)
