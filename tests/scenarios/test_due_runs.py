"""`gitsched status` says that a run is due where time alone, or new facts, would change the output branch: since when, and what it does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitsched.model.time import format_time
from tests.scenarios.conftest import UNGUARDED, Fleet, at_hour, cluster, deployment, policy
from tests.scenarios.test_recent_runs import WEB, merge, read
from tests.scenarios.test_waves import cluster as staged
from tests.scenarios.test_waves import rollout

TOLERATION = "    clusterTolerations: [{key: power, operator: Exists, effect: NoExecute, tolerationSeconds: 7200}]\n"
TAINTED = cluster("one") + "  taints: [{key: power, effect: NoExecute, timeAdded: '2026-03-02T09:00:00Z'}]\n"
DEADLINE = "{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 2h, maxFailures: 2}}"
REPORTS = UNGUARDED.replace("  guard:", '  source: {facts: {clusterBranches: "facts/{cluster}"}}\n  guard:')


def end_toleration(fleet: Fleet) -> None:
    merge(fleet, {**WEB, "policy.yaml": policy("one", "two", more=TOLERATION)}, 0)
    merge(fleet, {"one.yaml": TAINTED}, 1)
    assert fleet.where("default/deployment-web") == ["one"], "it is tolerated"


def end_eviction(fleet: Fleet) -> None:
    merge(fleet, WEB, 0)
    merge(fleet, {"one.yaml": cluster("one", "power:NoExecute")}, 3 - 10 / 60)
    assert fleet.delivered("default/deployment-web") == ["one", "two"], "a copy stays"


def end_wave(fleet: Fleet) -> None:
    files = {"one.yaml": staged("one", "canary"), "two.yaml": staged("two", "live"), "policy.yaml": policy("one,two")}
    merge(fleet, {**WEB, **files, "gitsched.yaml": REPORTS, "rollout.yaml": rollout(DEADLINE)}, -1)
    merge(fleet, {"web.yaml": deployment("web", 3)}, 1)


def end_retirement(fleet: Fleet) -> None:
    settings = UNGUARDED.replace("  guard:", "  output: {retireAfter: 2h, overlap: 0s}\n  guard:")
    merge(fleet, {**WEB, "gitsched.yaml": settings, "policy.yaml": policy("two")}, 0)
    merge(fleet, {"one.yaml": None}, 1)


MOVED = "1 workload to move (Deployment default/web)"
CASES: dict[str, tuple[Callable[[Fleet], None], str]] = {
    "a toleration": (end_toleration, MOVED),
    "the grace period of an eviction": (end_eviction, "copies to remove, because an overlap ended"),
    "the deadline of a wave": (end_wave, f"{MOVED} and Rollout waves to continue in two"),
    "the directory of a removed cluster": (end_retirement, "the output branch to change, because time has passed or facts are new"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_time_changes_is_due_until_a_run_does_it(name: str, fleet: Fleet) -> None:
    prepare, effect = CASES[name]
    prepare(fleet)
    end = format_time(at_hour(3))
    assert not [line for line in read(fleet, 3.5) if line.startswith("Due")], "people reconcile by hand, too"
    lines = read(fleet, 5)
    assert lines[0].startswith(f"Needs attention: a run has been due since {end} (2h ago)")
    assert lines[1].startswith(f"Due since {end}: {effect}: run gitsched reconcile, or check that gitsched watch or the job runs ")
    head = fleet.head
    fleet.reconcile(5)
    assert fleet.head != head, "the command does it"
    assert "a run has been due" not in read(fleet, 5)[0]
