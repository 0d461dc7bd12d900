"""gitsched freeze: freeze placements, and lift the freeze."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.worktree import find_worktree_root
from gitsched.git.worktree_commit import read_author
from gitsched.reconcile import RunSettings
from gitsched.reconcile.output.freeze import set_freeze
from gitsched.report.fleet_problems import UNPUSHED
from gitsched.report.serialization import API_VERSION


def run(reason: str, lift: bool, form: str, log_format: str, location: str, output_repository: str | None, **chosen: Any) -> int:
    """Carry out the command, and return its exit code."""
    output.configure_logging(log_format)
    if bool(reason.strip()) == lift:
        raise click.UsageError("give either a reason, or --lift")
    chosen["author"] = chosen["author"] or read_author(find_worktree_root(location) or Path.cwd())
    with output.show_progress("Writing the output branch"):
        result = set_freeze(RunSettings(location=location, output=output_repository, **chosen), reason.strip())
    here = " in this clone only" if result.push else ""
    state = (
        f"Placements are frozen{here}: {result.frozen}"
        if result.frozen
        else f"Placements are not frozen by the output branch{here}"
    )
    effect = f"committed {result.commit[:12]} to {result.branch}" if result.commit else f"{result.branch} did not change"
    settings = result.frozen_by_settings
    others = f"They are frozen by guard.freeze in gitsched.yaml: {settings}; to lift that, remove it.\n" if settings else ""
    advice = "gitsched plan shows them, and gitsched reconcile makes those that the guard does not withhold"
    waiting = f"{result.withheld} wait: {advice}.\n" if result.withheld and not (result.frozen or settings) else ""
    push = f"Push it: {UNPUSHED.format(result.push)} (with gitsched freeze --push, the command pushes it).\n" if result.push else ""
    formats.show_as(
        form,
        lambda _: f"{state} ({effect}).\n{push}{others}{waiting}",
        lambda: {
            "apiVersion": API_VERSION,
            "kind": "Freeze",
            "frozen": result.frozen,
            "frozenBySettings": settings,
            "branch": result.branch,
            "commit": result.commit,
            "push": result.push,
        },
    )
    return exit_codes.DONE
