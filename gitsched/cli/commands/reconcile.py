"""gitsched reconcile: schedule workloads and commit the result to the output branch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, output
from gitsched.cli.worktree import note_uncommitted
from gitsched.reconcile.cache.idle_answers import open_idle_answers

if TYPE_CHECKING:
    from gitsched.diff.plans import ReviewedPlan


def run(
    form: str,
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    output_repository: str | None,
    wanted: tuple[output.ReportRequest, ...],
    saved: ReviewedPlan | None,
    each: bool,
    color: str,
    **chosen: Any,
) -> int:
    if saved is not None:
        if chosen["reviewed"] is not None:
            raise click.UsageError("use only one of --plan and --reviewed")
        chosen |= {"reviewed": saved, "require_reviewed": True}
    count_lines = output.configure_logging(log_format)
    if chosen["branch"] is None:
        note_uncommitted(location, log_format, "are|is not reconciled: commit them|it first")
    given = {"fail_on": fail_on, "each": each, "output_repository": output_repository, "log_format": log_format, **chosen}
    del given["now"]
    paint = output.choose_paint(color)
    answers = None
    if not (wanted or chosen["verify"]) and chosen["cache"].is_dir():
        terminal = (form, output.find_width(), paint is None)
        answers = open_idle_answers(chosen["cache"], location, chosen["now"], given, os.environ, terminal)
        text = answers.read() if answers is not None else None
        if text is not None:
            output.show_formatted(form, text)
            return exit_codes.DONE
    from gitsched.cli.commands.reconciliation import Presentation, reconcile_and_show  # most runs have nothing to do

    shown = Presentation(form, paint, each, fail_on, wanted, count_lines)
    return reconcile_and_show(location, output_repository, chosen, shown, answers)
