"""Reports of comparisons that start from the state of the last run are byte-identical to those of complete plans.

A history goes on while runs follow it now and then. After each step, a random one of the last commits is compared with the output branch or
with another of them, once with the cache of the runs and once without.
"""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import pytest

from gitsched.cli.output import ReviewRenderer, format_json, format_outputs
from gitsched.reconcile.comparison import PlanComparison, compare_plans
from gitsched.report.markdown import write_markdown
from gitsched.report.saved_plan import serialize_saved_plan
from gitsched.report.serialization import serialize_review
from gitsched.report.text import write_plan
from tests.scenarios.conftest import Fleet
from tests.scenarios.histories import History

STEPS = 8


def write_reports(compared: PlanComparison) -> dict[str, str]:
    """Return the report of a comparison in each format that needs no complete plan."""
    review = compared.review
    writers = ReviewRenderer(review).list_writers(only_new=True)
    return {
        "json": format_json(serialize_review(review)),
        "saved": format_json(serialize_saved_plan(review, compared.delivered)),
        "text": write_plan(review, 100, each=True),
        "groups": write_plan(review, 100),
        "markdown": write_markdown(review),
        "env": format_outputs(review),
        **{form: write() for form, write in writers.items()},
    }


def play(fleet: Fleet, where: Path, seed: int, steps: int) -> tuple[int, int]:
    """Go through a history; return the number of comparisons of incremental plans, and of those with a move that has a proved cause."""
    dice, hour, incremental, explained = Random(seed), 0.0, 0, 0
    history = History(dice, ("ocm",))
    commits = [fleet.commit(history.files)]
    fleet.reconcile()
    for step in range(steps):
        hour += dice.choice((0, 0.1, 0.1, 2))
        texts = dice.choice(({}, {"README.md": f"{step}\n"}, {f"docs/{step}.md": "", ".github/workflows/plan.yaml": f"{step}\n"}))
        changed = history.go_on(dice.choice((1, 1, 0.7)))
        commits.append(fleet.commit({**changed, **texts}, hour=hour + dice.choice((0, 0, -1, 3))))
        head, base = (dice.choice(commits[-3:]) for _ in range(2))
        settings = fleet.settings(hour + dice.choice((0, 0, 0.4)), revision=head, trusted=False)
        name = dice.choice((base, None))
        before = {path: path.read_bytes() for path in fleet.cache.glob("plan-*")}
        found = compare_plans(settings, name)
        assert {path: path.read_bytes() for path in fleet.cache.glob("plan-*")} == before, "a comparison only reads the state"
        whole = compare_plans(settings._replace(cache=where / f"none-{step}"), name)
        assert whole.run.plan.complete
        assert write_reports(found) == write_reports(whole), f"step {step}"
        incremental += not found.run.plan.complete
        explained += not found.run.plan.complete and any(cause.proved for move in found.review.moves for cause in move.causes)
        if dice.random() < 0.6:
            fleet.reconcile(hour)
    return incremental, explained


def test_reports_are_the_same_whichever_way_the_plans_are_made(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    incremental, explained = play(fleet, tmp_path, 4, STEPS)
    assert incremental
    assert explained
