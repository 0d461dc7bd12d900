"""`gitsched history` tells why workloads left clusters: a drain, failover, or neither, also where the events come together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitsched.model.history import HistoryFilter
from gitsched.reconcile.output.freeze import set_freeze
from gitsched.reconcile.output.output_history import open_history
from gitsched.report.history import write_entry
from tests.scenarios.conftest import Fleet, at_hour, cluster, deployment, policy
from tests.scenarios.facts_histories import FACTS, commit_branch

SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  karmada: {failover: cluster}
  source: {facts: {branch: facts}}
"""
FILES = {
    "gitsched.yaml": SETTINGS,
    "one.yaml": cluster("one"),
    "two.yaml": cluster("two"),
    "web.yaml": deployment("web"),
    "api.yaml": deployment("api"),
    "policy.yaml": policy("one", "two"),
}
DRAINED = cluster("one", "gitsched.io/drain:NoExecute")
TOLERANT = policy(
    "one",
    "two",
    more="    clusterTolerations: [{key: gitsched.io/drain, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]\n",
)
FAILED = "it leaves one by failover: its condition Ready is False"


def observe(fleet: Fleet, hour: float, **ready: str) -> None:
    """Commit facts about clusters."""
    values = {"time": at_hour(hour).isoformat(), "version": 1, "used": 1, "kind": "Deployment"}
    files = {f"clusters/{name}.yaml": FACTS % {**values, "name": name, "ready": each} for name, each in ready.items()}
    commit_branch(fleet, "facts", files, hour)


def drain(fleet: Fleet) -> None:
    fleet.commit({"one.yaml": DRAINED}, hour=1)


def drain_late(fleet: Fleet) -> None:
    """The workloads tolerate the taint for an hour."""
    fleet.commit({"policy.yaml": TOLERANT}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"one.yaml": DRAINED}, hour=1)
    fleet.reconcile(1)


def lose(fleet: Fleet) -> None:
    observe(fleet, 2.1, one="False", two="True")


def lose_and_move(fleet: Fleet) -> None:
    lose(fleet)
    fleet.commit({"api.yaml": deployment("api", 3)}, hour=2)


def lose_before_a_commit(fleet: Fleet) -> None:
    lose(fleet)
    fleet.commit({"api.yaml": "# the same\n" + deployment("api")}, hour=2.2)


def lose_and_scale(fleet: Fleet) -> None:
    lose(fleet)
    fleet.commit({"api.yaml": deployment("api", 3)}, hour=2.2)


def drain_and_lose(fleet: Fleet) -> None:
    drain(fleet)
    fleet.reconcile(1)
    lose(fleet)


def lose_what_is_drained_in_vain(fleet: Fleet) -> None:
    """Workloads that tolerate a drain leave by failover."""
    drain_late(fleet)
    observe(fleet, 1.5, one="False", two="True")


def drain_and_name_another_cluster(fleet: Fleet) -> None:
    """The workloads would have left without the drain, which they tolerate."""
    fleet.commit({"policy.yaml": TOLERANT}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"one.yaml": DRAINED, "policy.yaml": TOLERANT.replace("[one]", "[two]")}, hour=1)


def lose_while_frozen(fleet: Fleet) -> None:
    """A freeze withholds that workloads go elsewhere. Failover passes."""
    set_freeze(fleet.settings(1), "audit")
    fleet.commit({"policy.yaml": policy("two")}, hour=1)
    fleet.reconcile(1)
    lose(fleet)


SOURCE, FACTS_CAUSE, DEADLINE = "a commit of the source", "facts about clusters", "a deadline"
CASES: dict[str, tuple[Callable[[Fleet], None], float, str, str]] = {
    "a drain": (drain, 2, f"{SOURCE}: a drain of one", "it leaves one, which is drained"),
    "the end of a toleration of a drain": (
        drain_late,
        2.5,
        f"{DEADLINE}: a drain of one",
        "it leaves one, which is drained since 2026-03-02T09:00:00Z",
    ),
    "a loss": (lose, 2.2, f"{FACTS_CAUSE}: failover from one", FAILED),
    "a loss after a commit that scales": (lose_and_move, 2.2, f"{FACTS_CAUSE}, and {SOURCE}: failover from one", FAILED),
    "a loss before a commit without an effect": (lose_before_a_commit, 2.3, f"{FACTS_CAUSE}: failover from one", FAILED),
    "a loss before a commit that scales": (lose_and_scale, 2.3, f"{SOURCE}, and {FACTS_CAUSE}: failover from one", FAILED),
    "a loss of a drained cluster": (drain_and_lose, 2.2, FACTS_CAUSE, ""),
    "a loss of a cluster whose drain is tolerated": (
        lose_what_is_drained_in_vain,
        1.6,
        f"{FACTS_CAUSE}: failover from one",
        FAILED,
    ),
    "another cluster, and a drain": (drain_and_name_another_cluster, 2, SOURCE, ""),
    "a loss in a freeze": (lose_while_frozen, 2.2, f"{FACTS_CAUSE}: failover from one", FAILED),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cause_of_leaving_a_cluster_is_named(name: str, fleet: Fleet) -> None:
    prepare, hour, cause, reason = CASES[name]
    observe(fleet, 0, one="True", two="True")
    fleet.commit(FILES)
    fleet.reconcile(0)
    prepare(fleet)
    fleet.reconcile(hour)
    (entry,) = open_history(fleet.settings(hour), HistoryFilter()).read_entries(1)
    lines = write_entry(entry).splitlines()
    assert f"  cause: {cause}" in lines
    reasons = [line.partition("; ")[2] for line in lines if line.startswith("      PropagationPolicy/")]
    assert reasons == [reason] * len(entry.moves)
    assert fleet.where("default/deployment-web") == ["two"]
