"""`gitsched history` and `gitsched status` tell why workloads left clusters, also where a drain, failover and commits come together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitsched.model.history import HistoryFilter
from gitsched.reconcile.output.freeze import set_freeze
from gitsched.reconcile.output.output_history import open_history
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.fleet_status import write_fleet_status
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
    fleet.commit({"one.yaml": DRAINED}, hour=1, message="Drain")


def drain_late(fleet: Fleet) -> None:
    """The workloads tolerate the taint for an hour."""
    fleet.commit({"policy.yaml": TOLERANT}, hour=1)
    fleet.reconcile(1)
    drain(fleet)
    fleet.reconcile(1)


def end_a_toleration_and_scale(fleet: Fleet) -> None:
    drain_late(fleet)
    fleet.commit({"api.yaml": deployment("api", 3)}, hour=2.1, message="Scale")


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
    fleet.commit({"one.yaml": DRAINED, "policy.yaml": TOLERANT.replace("[one]", "[two]")}, hour=1, message="Drain and name")


def lose_while_frozen(fleet: Fleet) -> None:
    """A freeze withholds that workloads go elsewhere. Failover passes."""
    set_freeze(fleet.settings(1), "audit")
    fleet.commit({"policy.yaml": policy("two")}, hour=1, message="Move")
    fleet.reconcile(1)
    lose(fleet)


def move_while_frozen_and_scale(fleet: Fleet) -> None:
    """The run that carries out what a freeze withheld follows another commit, too."""
    set_freeze(fleet.settings(1), "audit")
    fleet.commit({"policy.yaml": policy("two")}, hour=1, message="Move")
    fleet.reconcile(1)
    fleet.commit({"more.yaml": deployment("more")}, hour=1.1, message="Add")
    fleet.reconcile(1.1)
    set_freeze(fleet.settings(1.2), "")
    fleet.commit({"more.yaml": deployment("more", 3)}, hour=1.3, message="Scale")


SOURCE, FACTS_CAUSE, DEADLINE = "a commit of the source", "facts about clusters", "a deadline"
FAILOVER = "failover from one (its condition Ready is False)"
CASES: dict[str, tuple[Callable[[Fleet], None], float, str, str, str]] = {
    "a drain": (drain, 2, f"{SOURCE}: a drain of one", "it leaves one, which is drained", "Drain"),
    "the end of a toleration of a drain": (
        drain_late,
        2.5,
        f"{DEADLINE}: a drain of one",
        "it leaves one, which is drained since 2026-03-02T09:00:00Z",
        "Drain",
    ),
    "the end of a toleration of a drain, and a commit": (
        end_a_toleration_and_scale,
        2.5,
        f"{DEADLINE}, and {SOURCE}: a drain of one",
        "it leaves one, which is drained since 2026-03-02T09:00:00Z",
        "Drain",
    ),
    "a loss": (lose, 2.2, f"{FACTS_CAUSE}: failover from one", FAILED, FAILOVER),
    "a loss after a commit that scales": (lose_and_move, 2.2, f"{FACTS_CAUSE}, and {SOURCE}: failover from one", FAILED, FAILOVER),
    "a loss before a commit without an effect": (lose_before_a_commit, 2.3, f"{FACTS_CAUSE}: failover from one", FAILED, FAILOVER),
    "a loss before a commit that scales": (
        lose_and_scale,
        2.3,
        f"{SOURCE}, and {FACTS_CAUSE}: failover from one",
        FAILED,
        FAILOVER,
    ),
    "a loss of a drained cluster": (drain_and_lose, 2.2, FACTS_CAUSE, "", "Drain"),
    "a loss of a cluster whose drain is tolerated": (
        lose_what_is_drained_in_vain,
        1.6,
        f"{FACTS_CAUSE}: failover from one",
        FAILED,
        FAILOVER,
    ),
    "another cluster, and a drain": (drain_and_name_another_cluster, 2, SOURCE, "", "Drain and name"),
    "what a freeze withheld, and a commit": (move_while_frozen_and_scale, 2, SOURCE, "", "Move"),
    "a loss in a freeze": (lose_while_frozen, 2.2, f"{FACTS_CAUSE}: failover from one", FAILED, FAILOVER),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cause_of_leaving_a_cluster_is_named(name: str, fleet: Fleet) -> None:
    prepare, hour, cause, reason, origin = CASES[name]
    observe(fleet, 0, one="True", two="True")
    fleet.commit(FILES)
    fleet.reconcile(0)
    prepare(fleet)
    fleet.reconcile(hour)
    (entry,) = open_history(fleet.settings(hour), HistoryFilter()).read_entries(1)
    lines = write_entry(entry).splitlines()
    assert f"  cause: {cause}" in lines
    reasons = {line.partition("; ")[2] for line in lines if line.startswith("      PropagationPolicy/")}
    assert reasons == ({reason} if entry.moves else set())
    assert fleet.where("default/deployment-web") == ["two"]
    status = write_fleet_status(read_fleet_status(fleet.settings(hour)), 1_000).splitlines()
    (changed,) = (line.partition(" ago by ")[2] for line in status if line.startswith("Changed "))
    assert changed == f"{origin}:" or changed.partition(" ")[2] == f"{origin} ({fleet.git('log', '-1', '--format=%an')}):"
    (moved,) = (line for line in status if line.startswith("  2 workloads moved: "))
    assert "more" not in moved
    requested = [line for line in lines if line.startswith("  withheld before: requested by ")]
    assert [line.split()[5] for line in requested] == (["Move"] if name.startswith(("what a freeze", "a loss in a freeze")) else [])
