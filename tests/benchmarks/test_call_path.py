"""`python -m benchmarks.call_path` counts the modules that one Deployment passes through, and the calls between them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.call_path import CallPath, measure
from benchmarks.repository import environment

ROOT = Path(__file__).parents[2]
MAX_MODULES, MAX_CROSSINGS = 89, 400
"""Raise these only for work that every Deployment needs. Modules of a feature are entered where the feature is used."""
STEPS = ("fetch", "source.source_tree", "source_plan", "output.output_commit")


@pytest.fixture(scope="module")
def path() -> CallPath:
    return measure()


def test_every_step_of_the_pipeline_is_on_the_path(path: CallPath) -> None:
    assert {
        "gitsched.reconcile.pipeline",
        "gitsched.decide.plan",
        *(f"gitsched.reconcile.{name}" for name in STEPS),
    } <= path.modules.keys()


def test_only_modules_of_gitsched_are_counted_and_each_at_least_once(path: CallPath) -> None:
    assert all(name.partition(".")[0] == "gitsched" and calls > 0 for name, calls in path.modules.items())


def test_a_crossing_leads_from_one_module_of_the_path_into_another(path: CallPath) -> None:
    assert path.crossings.total() > len(path.modules)
    assert all(calling != called and {calling, called} <= path.modules.keys() for calling, called in path.crossings)


def test_the_path_stays_short(path: CallPath) -> None:
    assert len(path.modules) <= MAX_MODULES
    assert path.crossings.total() <= MAX_CROSSINGS


def test_features_that_the_repository_does_not_use_are_not_on_the_path(path: CallPath) -> None:
    unused = (
        "gitsched.watch",
        "gitsched.forge",
        "gitsched.simulate",
        "gitsched.reconcile.facts",
        "gitsched.decide.namespace_manifests",
        "gitsched.reconcile.incremental.source_diff",
        "gitsched.reconcile.review.comparison",
        "gitsched.manifests.sourceignore",
        "gitsched.build",
        "gitsched.decide.variants.bundle_delivery",
        "gitsched.decide.companion",
        "gitsched.decide.variants.kustomized_parts",
        "gitsched.decide.variants.rendered_variants",
        "gitsched.decide.guard.exceeded_limits",
        "gitsched.decide.guard.large_changes.",
        "gitsched.decide.overlap.retained_copies",
        "gitsched.decide.stateful",
        "gitsched.decide.variants.variant_outcomes",
        "gitsched.decide.guard.withheld_changes",
        "gitsched.diff",
        "gitsched.git.urls",
        "gitsched.kinds.table",
        "gitsched.kinds.written_objects",
        "gitsched.layouts",
        "gitsched.model.urls",
        "gitsched.model.variants",
        "gitsched.reconcile.bundles.bundle_parts",
        "gitsched.reconcile.builds.kustomized_tree",
        "gitsched.reconcile.bundles.source_commits",
        "gitsched.render.bundle_delivery",
        "gitsched.apis.knative",
        "gitsched.apis.krake",
        "gitsched.apis.ocm",
        "gitsched.apis.policy_api",
        "gitsched.apis.snapshot",
        "gitsched.apis.karmada.cluster.taints",
        "gitsched.apis.karmada.dependencies",
        "gitsched.apis.karmada.binding.unscheduled_outcomes",
        "gitsched.apis.karmada.failover",
        "gitsched.apis.karmada.overrides",
        "gitsched.apis.karmada.rebalancer",
        "gitsched.apis.karmada.reschedule_triggers",
        "gitsched.schedule.estimator",
        "gitsched.schedule.spread_constraints",
    )
    assert not [name for name in path.modules if name.startswith(unused)]


@pytest.mark.parametrize("options", [(), ("--modules",)], ids=["the totals", "with the modules"])
def test_the_script_prints_the_totals_and_lists_the_modules_on_request(path: CallPath, options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "benchmarks.call_path", *options]
    printed = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, check=True).stdout
    total, *modules = printed.splitlines()
    assert re.fullmatch(rf"{len(path.modules)} modules, [1-9]\d* calls from one module into another", total)
    assert sorted(line.split()[1] for line in modules) == (sorted(path.modules) if options else [])
