"""Plans in files: `gitsched plan --out` and `--show`, and `gitsched reconcile --plan` and `--reviewed`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitsched.cli import exit_codes, formats, reports
from gitsched.diff.plans import ReviewedPlan, make_reviewed_plan, parse_reviewed_plan
from gitsched.model.errors import Permanent
from gitsched.report.saved_plan import MAX_SIZE, SavedPlan, parse_saved_plan, serialize_saved_plan
from gitsched.report.text import write_plan

if TYPE_CHECKING:
    from gitsched.reconcile.review.comparison import PlanComparison
    from gitsched.report.paint import Paint


def read_saved_plan(file: str) -> SavedPlan:
    """Read a file that `--out` has written."""
    try:
        with Path(file).open(encoding="utf-8") as stream:
            return parse_saved_plan(stream.read(MAX_SIZE + 1))
    except (OSError, UnicodeDecodeError, Permanent) as error:
        raise click.BadParameter(f"{file}: {error}") from error


def read_saved_review(file: str) -> ReviewedPlan:
    """Return the plan of a file that `--out` has written, as what a run is to carry out."""
    return make_reviewed_plan(read_saved_plan(file).review)


def read_reviewed_plan(value: str) -> ReviewedPlan:
    """Return the plan that was reviewed, by its digest or the file with `gitsched plan -o json`."""
    try:
        return parse_reviewed_plan(value if value.startswith("sha256:") else Path(value).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, Permanent) as error:
        raise click.BadParameter(f"{value}: {error}") from error


def save_plan(path: Path, compared: PlanComparison) -> str:
    """Write a plan to a file, and return a line that says what it is for."""
    reports.write_file(path, formats.format_json(serialize_saved_plan(compared.review, compared.delivered)))
    return f"\nSaved to {path}: `gitsched reconcile --plan {path}` carries out exactly this plan, or nothing.\n"


def show_saved_plan(file: str, form: str, write_markdown: partial[str], paint: Paint | None, *, each: bool) -> int:
    """Print a plan that `--out` has saved."""
    saved = read_saved_plan(file)
    if form == "markdown":
        formats.show_text(write_markdown(saved.review))
    else:
        formats.show_as(form, lambda width: write_plan(saved.review, width, paint, each=each), lambda: dict(saved.plan))
    return exit_codes.DONE
