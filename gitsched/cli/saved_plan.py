"""Plans in files: `gitsched plan --out` and `--show`, and `gitsched reconcile --plan`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitsched.cli import exit_codes, output
from gitsched.model.errors import Permanent

if TYPE_CHECKING:
    from gitsched.reconcile.review.comparison import PlanComparison
    from gitsched.report.paint import Paint
    from gitsched.report.saved_plan import SavedPlan


def read_saved_plan(file: str) -> SavedPlan:
    """Read a file that `--out` has written."""
    from gitsched.report.saved_plan import MAX_SIZE, parse_saved_plan

    try:
        with Path(file).open(encoding="utf-8") as stream:
            return parse_saved_plan(stream.read(MAX_SIZE + 1))
    except (OSError, UnicodeDecodeError, Permanent) as error:
        raise click.BadParameter(f"{file}: {error}") from error


def save_plan(path: Path, compared: PlanComparison) -> str:
    """Write a plan to a file, and return a line that says what it is for."""
    from gitsched.report.saved_plan import serialize_saved_plan

    output.write_file(path, output.format_json(serialize_saved_plan(compared.review, compared.delivered)))
    return f"\nSaved to {path}: `gitsched reconcile --plan {path}` carries out exactly this plan, or nothing.\n"


def show_saved_plan(file: str, form: str, write_markdown: partial[str], paint: Paint | None, *, each: bool) -> int:
    """Print a plan that `--out` has saved."""
    from gitsched.report.text import write_plan

    saved = read_saved_plan(file)
    if form == "markdown":
        output.show_text(write_markdown(saved.review))
    else:
        output.show_as(form, lambda width: write_plan(saved.review, width, paint, each=each), lambda: dict(saved.plan))
    return exit_codes.DONE
