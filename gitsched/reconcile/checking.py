"""Whether a run may be written as far as reviews are concerned."""

from __future__ import annotations

from gitsched.reconcile.delivering import digest_of, find_differences
from gitsched.reconcile.observing import Observed
from gitsched.reconcile.reviewed import compare_with_review, find_reviewed
from gitsched.reconcile.settings import Run, Settings
from gitsched.report.verdict import REVIEWED


def check_review(settings: Settings, observed: Observed, run: Run) -> Run:
    """The run, with how it compares to what was reviewed, refused where settings ask for what it is not.

    A review is of a commit: what time or metrics change after a run has seen the commit needs none.
    """
    source = observed.source
    reviewed = settings.reviewed or find_reviewed(source)
    if not run.changed or (settings.reviewed is None and _is_known(observed)):
        return run
    if reviewed is None:
        missing = f"commit {source.oid} names no reviewed plan: it has no trailer {REVIEWED}, and --reviewed is not given"
        return run._replace(refused=missing) if settings.require_reviewed else run
    moves = run.plan.moves
    differences = find_differences(observed.output.repository, observed.prefix, observed.tree, run.tree)
    found = compare_with_review(reviewed, digest_of(moves, differences, run.choices), observed.head, moves)
    refused = "" if found.same or not settings.require_reviewed else "this is not what was reviewed"
    return run._replace(reviewed=found.lines, refused=refused)


def note_of(oid: str) -> str:
    """What a git note on the output's head says: the newest source commit that a run has seen."""
    return f'{{"drySha":"{oid}"}}\n'


def _is_known(observed: Observed) -> bool:
    """Whether an earlier run has seen this source commit, be it that nothing came of it."""
    oid, head = observed.source.oid, observed.head
    if observed.record is not None and observed.record.source == oid:
        return True
    return head is not None and observed.output.repository.noted(head) == note_of(oid)
