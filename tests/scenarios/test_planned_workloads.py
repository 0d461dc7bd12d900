"""Explanations and simulations that start from the state of the last run are those of complete plans."""

from __future__ import annotations

import logging
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from gitsched.apis.topology import CLUSTER
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding
from gitsched.model.simulation import FailureDomain
from gitsched.reconcile import explanation, fleet_tree, pipeline, planned_fleet, source_simulation
from gitsched.reconcile.fleet_status import read_fleet_status
from gitsched.reconcile.fleet_tree import read_fleet_tree
from gitsched.reconcile.run_settings import RunSettings
from gitsched.report.fleet_status import serialize_fleet_status
from gitsched.report.fleet_tree import serialize_fleet_tree
from gitsched.simulate.scenario import Scaling, Scenario
from tests.scenarios.conftest import Fleet
from tests.scenarios.histories import WORKLOADS, History
from tests.scenarios.test_incremental_comparison import PLACES, PolicyHistory


def explain(settings: RunSettings, kind: str, name: str, *, why_not: tuple[str, ...]) -> object:
    """Return what explain finds, or its error."""
    try:
        return explanation.explain_resource(settings, kind, "default", name, why_not)
    except Permanent as error:
        return str(error)


def simulate(settings: RunSettings, scenario: Scenario) -> object:
    """Return what simulate finds, or its error, with the faults."""
    faults: list[Finding] = []
    try:
        return source_simulation.simulate_source(settings, scenario, faults, lambda _: None), faults
    except Permanent as error:
        return str(error)


def show(settings: RunSettings, *words: str) -> object:
    """Return the status of the fleet and the tree of a cluster or workload, or its error."""
    found = serialize_fleet_status(read_fleet_status(settings))
    try:
        return found, serialize_fleet_tree(read_fleet_tree(settings, words))
    except Permanent as error:
        return found, str(error)


def query(settings: RunSettings, dice: Random) -> list[object]:
    """Explain objects, simulate events, and show the fleet."""
    why_not = dice.choice(((), (), (dice.choice(PLACES),)))
    domains = tuple(FailureDomain(CLUSTER, name) for name in dice.sample((*PLACES, "fourth"), dice.choice((1, 1, 2))))
    silent = dice.random() < 0.3
    scaled = Scaling("a pattern", "2", Fraction(2), name=dice.choice(("api", "a*", "[cb]*", "none")))
    copies = ((dice.choice(PLACES), "copied"),)
    scenario = dice.choice(
        (
            Scenario(lose=domains, unreachable=silent),
            Scenario(drain=domains),
            Scenario(scale=(scaled,)),
            Scenario(copies=copies),
            Scenario(lose=domains, copies=copies, scale=dice.choice(((), (scaled,))), fresh=silent),
        )
    )
    kind, name = dice.choice((("deployment", dice.choice(WORKLOADS)), ("ConfigMap", "conf"), ("cluster", "first")))
    shown = show(settings, dice.choice((name, *PLACES)))
    return [explain(settings, kind, name, why_not=why_not), simulate(settings, scenario), shown]


def play(fleet: Fleet, where: Path, history: PolicyHistory | History, dice: Random, steps: int) -> None:
    """Go through a history, and query the same with the cache of the runs and without one."""
    hour = 0.0
    fleet.commit(history.files)
    fleet.reconcile()
    for step in range(steps):
        hour += dice.choice((0, 0.1, 2))
        fleet.commit(history.go_on(dice.choice((1, 0.5))), hour=hour)
        if dice.random() < 0.8:
            fleet.reconcile(hour)
        settings, seed = fleet.settings(hour + dice.choice((0, 0, 0.4)), trusted=False), dice.random()
        whole = settings._replace(cache=where / f"none-{step}")
        assert query(settings, Random(seed)) == query(whole, Random(seed)), f"step {step}"


def test_explanations_and_simulations_are_the_same_from_the_state_of_the_last_run(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    dice = Random(2)
    play(fleet, tmp_path, PolicyHistory(dice), dice, 3)


def test_what_the_last_run_has_placed_is_explained_without_a_complete_plan(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.commit(PolicyHistory(Random(1)).files)
    fleet.reconcile()
    fleet.commit({"README.md": "more\n"}, hour=0.1)
    settings, scenario = fleet.settings(0.1, trusted=False), Scenario(lose=(FailureDomain(CLUSTER, "first"),))

    def answer(settings: RunSettings) -> list[object]:
        shown = [show(settings, word) for word in ("api", "first")]
        return [explain(settings, "deployment", "api", why_not=()), simulate(settings, scenario), *shown]

    whole = answer(settings._replace(cache=tmp_path / "none"))
    assert not any(isinstance(one, str) for one in whole)
    for module in (pipeline, planned_fleet, fleet_tree):
        monkeypatch.setattr(module, "plan_source", None)
    assert answer(settings) == whole
