"""Reports of comparisons that start from the state of the last run are byte-identical to those of complete plans.

A history goes on while runs follow it now and then. After each step, a random one of the last commits is compared with the output branch or
with another of them, once with the cache of the runs and once without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from gitsched.cli.output import ReviewRenderer, format_json, format_outputs
from gitsched.reconcile.comparison import PlanComparison, compare_plans
from gitsched.report.markdown import write_markdown
from gitsched.report.saved_plan import serialize_saved_plan
from gitsched.report.serialization import serialize_review
from gitsched.report.text import write_plan
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.histories import WORKLOADS, Files, History, settings_of
from tests.scenarios.test_overrides import mirror

STEPS = 8
PLACES = ("first", "second", "third")


def start_ocm(dice: Random) -> History:
    return History(dice, ("ocm",))


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


class PolicyHistory:
    """Commits that change policies, clusters and workloads where no decision depends on another one."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self.files: Files = {f"clusters/{name}.yaml": cluster(name) for name in PLACES}
        self.files |= {f"apps/{name}.yaml": deployment(name) for name in WORKLOADS}
        self.files |= {"apps/map.yaml": settings_of("conf", 1), "policies/all.yaml": policy("first", "second")}

    def go_on(self, small: float) -> Files:
        """Return the changes of the next commit."""
        changes = {path: text for path, text in self._draw(small).items() if text is not None or self.files.get(path) is not None}
        self.files |= changes
        return changes

    def _draw(self, small: float) -> Files:
        """Return changes; `small` is the probability that it only edits workloads."""
        dice = self._dice
        name, place = dice.choice(WORKLOADS), dice.choice(PLACES)
        groups = dice.choice((("first",), ("second",), ("first,third", "second"), ("third", "first"), ("",)))
        scheduling = dice.choice(("Divided", "Duplicated"))
        maps = policy(dice.choice(("", "second")), name="maps", kind="ConfigMap")
        if dice.random() < small / 2:
            return {f"apps/{name}.yaml": deployment(name, dice.randrange(1, 9))}
        return dice.choice(
            (
                {"policies/all.yaml": policy(*groups, scheduling=scheduling)},
                {"policies/all.yaml": "# moved\n" + policy(*groups, scheduling=scheduling)},
                {"policies/all.yaml": policy(*groups), f"apps/{name}.yaml": deployment(name, dice.randrange(1, 9))},
                {"policies/maps.yaml": maps},
                {"policies/maps.yaml": maps, "policies/all.yaml": policy(*groups)},
                {"policies/other.yaml": dice.choice((None, policy(*groups, name="other")))},
                {"policies/mirror.yaml": dice.choice((None, mirror("other.example.net", "first", place)))},
                {f"clusters/{place}.yaml": dice.choice((cluster(place, "power:NoExecute"), cluster(place)))},
                {
                    f"clusters/{place}.yaml": cluster(place, "power:NoSchedule"),
                    "policies/maps.yaml": maps,
                },
                {f"apps/{name}.yaml": dice.choice((None, deployment(name)))},
            )
        )


def play(
    fleet: Fleet, where: Path, seed: int, steps: int, start: Callable[[Random], History | PolicyHistory] = start_ocm
) -> tuple[int, int, int]:
    """Go through a history; return the number of comparisons of incremental plans, of those with a move that has a proved cause, and of
    those with changed documents of policy APIs."""
    dice, hour, incremental, explained, policies = Random(seed), 0.0, 0, 0, 0
    history = start(dice)
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
        updates = [one.update for one in (found.earlier, found.later) if one is not None and one.update is not None]
        policies += any(update.incremental.changes.api_documents for update in updates)
        if dice.random() < 0.6:
            fleet.reconcile(hour)
    return incremental, explained, policies


def test_reports_of_changed_policies_are_the_same_whichever_way_the_plans_are_made(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    _, explained, policies = play(fleet, tmp_path, 8, 4, PolicyHistory)
    assert explained
    assert policies


def test_reports_are_the_same_whichever_way_the_plans_are_made(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    incremental, explained, _ = play(fleet, tmp_path, 4, STEPS)
    assert incremental
    assert explained
