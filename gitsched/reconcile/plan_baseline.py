"""Simulations start from a complete plan that is carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.simulate.baseline import Baseline, make_baseline

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.plan_result import Plan
    from gitsched.reconcile.run_settings import RunSettings


def make_plan_baseline(settings: RunSettings, plan: Plan, config: Config) -> Baseline:
    """Return the baseline of a complete plan, at the time of the command. The copies that stay for an overlap after it use capacity."""
    return make_baseline(plan.decisions, config, max(settings.now, plan.time), plan.observations, plan.retained, plan.completed)
