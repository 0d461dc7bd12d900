"""With a filter that a program has added, runs, comparisons, explanations and simulations from the state of the last run are those of
complete plans."""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import pytest

from gitsched.apis.topology import CLUSTER
from gitsched.model.labels import Requirement, Selector
from gitsched.model.scheduling import Affinity
from gitsched.model.simulation import FailureDomain
from gitsched.reconcile.incremental import new_state
from gitsched.schedule import fleet as filters
from gitsched.schedule.plugins import register_filter
from gitsched.simulate.scenario import Scenario
from tests.apis.karmada.added_filters import AddedFilter, Mask, select
from tests.scenarios import test_incremental_comparison, test_planned_workloads
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.test_incremental_comparison import DependentHistory, PolicyHistory
from tests.scenarios.test_incremental_plan import ThreeVariants
from tests.search_depth import list_variants

pytestmark = pytest.mark.usefixtures("bugs_are_raised")


class Cached:
    """A type that no stored state may have."""

    def __init__(self, mask: int) -> None:
        self.mask = mask


GOLD = Affinity(labels=Selector((Requirement("tier", "NotIn", ("none",)),)))
MASKS: dict[str, Mask] = {
    "reads a label": lambda _, __, fleet, previous: previous | fleet.matching(GOLD),
    "compares clusters": lambda _, __, fleet, ___: select(
        fleet, lambda one: len(one.taints) == min(len(other.taints) for other in fleet.candidates)
    ),
    "reads the replicas": lambda request, _, fleet, ___: fleet.matching(GOLD) if request.replicas > 3 else fleet.all,
    "caches what cannot be stored": lambda _, __, fleet, ___: fleet.get_or_compute(
        "unstorable", lambda: lambda: fleet.matching(GOLD)
    )(),
    "caches what cannot be read back": lambda _, __, fleet, ___: (
        fleet.get_or_compute("unreadable", lambda: Cached(fleet.matching(GOLD))).mask
    ),
    "reads the previous result": lambda _, __, fleet, previous: fleet.mask(fleet.names[:1]) if previous else fleet.matching(GOLD),
}


LOOKED_AT = ["compares clusters", "reads the previous result", "reads the replicas"]


@pytest.fixture
def seed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> int:
    """Add a filter, and return the seed of a history."""
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr(filters, "FILTERS", filters.FILTERS)
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0)
    register_filter(AddedFilter(request.param, MASKS[request.param]))
    return sorted(MASKS).index(request.param)


@pytest.mark.parametrize("seed", sorted(MASKS), indirect=True)
def test_runs(fleet: Fleet, tmp_path: Path, seed: int) -> None:
    history, variants = PolicyHistory(Random(seed)), ThreeVariants(fleet, tmp_path)
    fleet.commit(history.files)
    variants.run(0, "first")
    runs = []
    for step in range(1, 4):
        fleet.commit(history.go_on(0.2), hour=step)
        runs += variants.run(step, f"step {step}")
    assert not all(run.plan.complete for run in runs)


@pytest.mark.parametrize("seed", list_variants(LOOKED_AT, {"reads the previous result"}), indirect=True)
def test_comparisons(fleet: Fleet, tmp_path: Path, seed: int) -> None:
    test_incremental_comparison.play(fleet, tmp_path, seed, 3, DependentHistory if seed % 2 else PolicyHistory)


@pytest.mark.parametrize("seed", list_variants(LOOKED_AT, {"compares clusters"}), indirect=True)
def test_explanations_and_simulations(fleet: Fleet, tmp_path: Path, seed: int) -> None:
    dice = Random(seed)
    test_planned_workloads.play(fleet, tmp_path, PolicyHistory(dice), dice, 3)


def test_the_loss_of_a_cluster_counts_for_all_workloads_where_a_filter_compares_clusters(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy does not choose the cluster that is lost, but without it no cluster passes the filter."""
    monkeypatch.setattr(filters, "FILTERS", filters.FILTERS)
    register_filter(AddedFilter("Complete", lambda _, __, fleet, ___: 0 if fleet.deleting else fleet.all))
    files = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}
    fleet.commit({**files, "web.yaml": deployment("web"), "policy.yaml": policy("first", scheduling="Duplicated")})
    fleet.reconcile()
    scenario = Scenario(lose=(FailureDomain(CLUSTER, "second"),))
    settings = fleet.settings(trusted=False)
    for one in (settings, settings._replace(cache=tmp_path / "none")):
        simulated, faults = test_planned_workloads.simulate(one, scenario)
        assert not faults
        assert [(str(effect.key), effect.after) for effect in simulated.effects] == [("Deployment.apps/default/web", {})]
