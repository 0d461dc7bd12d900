"""Over random histories with rebalancers, freezes, limits, releases and allowances, the records say of withheld changes what was done last.

What is compared are only consecutive commits of the output branch, and what the run between them says that it withholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import pytest
import yaml

from gitsched.apis.karmada.binding.resource_binding import binding_key
from gitsched.model.document import Key, get_field
from gitsched.model.time import parse_time
from gitsched.reconcile import Reconciler, RunResult
from gitsched.render.output_files import cluster_path, relative_path, status_path
from tests.search_depth import DEEP

from .conftest import Fleet, allow_withheld
from .histories import SETTINGS, WORKLOADS, History, rebalance

APIS = ((), ("ocm",), ("knative",), ("krake", "tenants"))
STEPS = 8
SEEDS = range(400) if DEEP else (13, pytest.param(67, marks=pytest.mark.long))
_REBALANCERS = "status/apps.karmada.io/workloadrebalancer/_/"
_RELEASED = ("default/store", "default/files, default/data")


class Output:
    """The files of an output commit."""

    def __init__(self, fleet: Fleet) -> None:
        self.files = fleet.files() if fleet.head else {}
        self._fleet, self._head = fleet, fleet.head

    def load(self, path: str) -> Any:
        return yaml.safe_load(self._fleet.read(path, self._head or "")) if path in self.files else {}

    def list_delivered(self, key: Key, clusters: Iterable[str]) -> dict[str, str | None]:
        """Return the manifest that each of some clusters has of a workload, as a blob."""
        return {name: self.files.get(cluster_path(name, relative_path(key))) for name in clusters}

    def list_results(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        """Return what the rebalancers say of each workload."""
        found = {}
        for path in self.files:
            for entry in get_field(self.load(path), "status", "observedWorkloads") or () if path.startswith(_REBALANCERS) else ():
                found[path, entry["workload"]["name"]] = entry
        return found


def check_records(run: RunResult, before: Output, after: Output) -> None:
    """Check that what a run withholds is as it was, and that no request for it counts as done."""
    withheld = {move.key: move for move in run.plan.withheld.moves}
    for key, move in withheld.items():
        records = {status_path(key), status_path(binding_key(key))}
        assert {path: before.files.get(path) for path in records} == {path: after.files.get(path) for path in records}, key
        assert before.list_delivered(key, move.before) == after.list_delivered(key, move.before), f"the manifests of {key}"
    names = {key.name for key in withheld if key.kind == "Deployment" and key.namespace == "default"}
    known, results = before.list_results(), after.list_results()
    for (path, name), entry in results.items():
        is_new = entry.get("result") and not known.get((path, name), {}).get("result")
        assert not (is_new and name in names), f"{path} says {entry['result']} of {name}, whose change is withheld"
        record = after.load(path)
        if entry.get("result") == "Successful" and is_new:
            binding = after.load(f"status/work.karmada.io/resourcebinding/default/{name}-deployment.yaml")
            triggered = parse_time(get_field(binding, "spec", "rescheduleTriggeredAt"))
            created = parse_time(get_field(record, "metadata", "creationTimestamp"))
            assert not get_field(binding, "spec", "placement") or (triggered and created and triggered >= created), (
                f"{path}: {name}"
            )
        if not entry.get("result"):
            assert "finishTime" not in record["status"], f"{path} is pending"
            assert "gitsched.io/expired-at" not in record["metadata"]["annotations"], f"{path} is pending"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("bugs_are_raised")
def test_no_record_says_of_a_withheld_change_that_it_is_done(fleet: Fleet, seed: int) -> None:
    dice, history, hour = Random(f"runs {seed}"), History(Random(seed), APIS[seed % len(APIS)]), 0.0
    fleet.commit(history.files)
    resident, withheld = Reconciler(fleet.settings(0)), 0
    for step in range(STEPS):
        if step:
            hour += dice.choice((0.1, 0.6, 2))
            changes = history.go_on(0.4)
            if dice.random() < 0.4:
                changes |= {"rebalancer.yaml": rebalance(step, *dice.sample(WORKLOADS, 2))}
            if dice.random() < 0.4:
                freeze = dice.choice(("", ", freeze: audit"))
                changes |= {"gitsched.yaml": SETTINGS % ("Never", dice.choice((20, 100)), freeze, 60, "true")}
            history.files |= changes
            message = f"Change\n\nGitsched-Release: {dice.choice(_RELEASED)}" if dice.random() < 0.2 else "Change"
            fleet.commit(changes, hour=hour, message=message)
        settings = fleet.settings(hour)
        resident.settings = allow_withheld(settings) if dice.random() < 0.3 else settings
        before, run = Output(fleet), resident.run(settings.now)
        withheld += bool(run.plan.withheld.moves)
        check_records(run, before, Output(fleet))
        resident.settings = settings
        resident.run(settings.now)  # Tenants and looser settings count from the run after the one that reads them
        again = resident.run(settings.now)
        assert again.after is None, f"step {step}: {[str(move) for move in again.plan.moves]}"
    assert withheld or DEEP, "the history has a change that is withheld"
