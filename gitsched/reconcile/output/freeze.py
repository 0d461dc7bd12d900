"""Freeze placements, or lift the freeze: a commit on the output branch that adds or removes the file FREEZE."""

from __future__ import annotations

import time

from gitsched.decide.commit_metadata import format_line
from gitsched.git.notes import read_note
from gitsched.model.errors import Conflict, Permanent
from gitsched.model.planned_files import NewBlob
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import MAX_FREEZE_LENGTH, fetch
from gitsched.reconcile.output.output_commit import commit_output
from gitsched.reconcile.review.freezes import find_push_command
from gitsched.reconcile.run import Fetched, RunContext, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.render.output_files import FREEZE

MAX_ATTEMPTS = 5
"""Attempts to move the output branch while runs move it, too."""
_RETRY_DELAY = 0.1


class FreezeResult(NamedTuple):
    """The output branch, the new commit (None if nothing changed), and why placements are frozen now by the branch and by the settings,
    or "". `withheld` counts the changes that the last run left out, in words; "" without any.
    `push` is the command that pushes what only the local branch has, or ""."""

    branch: str
    commit: str | None
    frozen: str
    frozen_by_settings: str = ""
    withheld: str = ""
    push: str = ""


def set_freeze(settings: RunSettings, reason: str) -> FreezeResult:
    """Freeze placements for a reason, or lift the freeze of the output branch with an empty one.

    Raise Permanent without an output branch, and Conflict if other processes move it each time that this one tries.
    """
    context = open_context(settings)
    for attempt in range(1, MAX_ATTEMPTS):
        try:
            return _write_freeze(context, reason)
        except Conflict:  # a run has committed
            time.sleep(_RETRY_DELAY * attempt)
    return _write_freeze(context, reason)


def _write_freeze(context: RunContext, reason: str) -> FreezeResult:
    """Commit the file on the output branch as it is now."""
    fetched = fetch(context, shows_findings=True)
    output, head, repository = fetched.output, fetched.output_head, fetched.output.repository
    if head is None:
        raise Permanent(f"nothing can be frozen: {output.describe_missing()}")
    text = format_line(reason, MAX_FREEZE_LENGTH)
    file = {f"{fetched.prefix}{FREEZE}": NewBlob(f"{text}\n".encode()) if text else None}
    before = repository.commit(head).tree  # the next run rewrites the output of an earlier version, not this commit
    tree = repository.make_tree(file, base=before, read=repository)
    by_settings = fetched.trusted.config.guard.freeze
    if tree == before:
        return FreezeResult(output.branch, None, text, by_settings, _count_withheld(fetched), find_push_command(fetched, head))
    message = f"freeze: {text}\n" if text else "freeze: lift the freeze of placements\n"
    commit = commit_output(context, fetched, repository, tree, message, context.settings.now.replace(microsecond=0))
    output.publish(commit, head, read_note(repository, head))
    push = find_push_command(fetched, commit)
    return FreezeResult(output.branch, commit, text, by_settings, _count_withheld(fetched), push)


def _count_withheld(fetched: Fetched) -> str:
    findings = fetched.record.findings if fetched.record is not None else ()
    messages = (one.message for one in findings if one.code == "changes-withheld")
    return next((message.partition(" are withheld")[0] for message in messages), "")
