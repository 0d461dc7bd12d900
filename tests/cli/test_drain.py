"""`gitsched drain`, `cordon` and `uncordon`: edits that are ready to commit, and what they lead to."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitsched.apis.karmada.topology import TOPOLOGY
from gitsched.reconcile import RunSettings
from gitsched.reconcile.maintenance import change_taints
from gitsched.reconcile.review import uncommitted_taints
from gitsched.reconcile.review.fleet_status import read_fleet_status
from tests.cli.conftest import CLUSTER, POLICY, TAINT, WORKLOAD, Run

Commit = Callable[..., None]
ONE = "# The first cluster\n" + CLUSTER.format(name="one", owner="private") + "  region: eu # near\n"
DATABASE = WORKLOAD.replace("Deployment", "StatefulSet").replace("name: web", "name: db") + (
    "  serviceName: db\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]\n"
)
DATABASE_POLICY = POLICY.replace("Deployment, name: web", "StatefulSet, name: db").replace("name: web\n  n", "name: db\n  n")


@pytest.fixture
def placed(fleet: Path, commit: Commit, gitsched: Run) -> Path:
    """A fleet with a Deployment and a database in cluster one."""
    commit(fleet, one=ONE, db=DATABASE, dbpolicy=DATABASE_POLICY)
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    return fleet


def test_a_drain_is_an_edit_and_says_what_moves_what_is_held_and_how_to_go_on(placed: Path, gitsched: Run, commit: Commit) -> None:
    shown = gitsched("drain", "one", "--dry-run")
    assert shown.stdout.startswith("one.yaml:2: one: the taint gitsched.io/drain:NoExecute would be added\n")
    assert "1. gitsched drain one edits the files, without --dry-run\n" in shown.stdout
    assert "5. gitsched status: one has 2 workloads now" in shown.stdout, "all steps in their order"
    assert (placed / "one.yaml").read_text() == ONE
    done = gitsched("drain", "one")
    assert done.returncode == 0, done.stderr
    assert (placed / "one.yaml").read_text() == f"{ONE}  taints:\n  - key: gitsched.io/drain\n    effect: NoExecute\n"
    drained = "If cluster one is drained: 1 of 2 workloads changes clusters or replicas, 2 replicas start, no replica is missing."
    assert drained in done.stdout
    assert "StatefulSet shop/db is held on one 2: a taint evicts it from one; data: claim template data (1Gi)\n" in done.stdout
    steps = [line.strip() for line in done.stdout.partition("Next:\n")[2].splitlines()]
    assert [step.partition(". ")[0] for step in steps] == ["1", "2", "3", "4", "5"]
    assert steps[0].startswith("1. Save or copy the data of StatefulSet shop/db, and release it")
    assert steps[1] == '2. git commit -m "Drain one" -- one.yaml'
    assert steps[3].startswith(
        "4. gitsched status: one has 2 workloads now; wait until it shows only 1 workload (1 held until released)"
    )
    commit(placed)
    gitsched("reconcile", "--now", "2026-03-02T09:01:40Z")
    moved = gitsched("tree", "web").stdout
    assert "two  2 replicas" in moved
    while_overlap = gitsched("status", "--now", "2026-03-02T09:02:40Z").stdout
    assert "; 1 copy stays there" in " ".join(while_overlap.split())
    again = gitsched("drain", "one").stdout
    assert again == "one.yaml:2: one is drained already\n"
    ended = gitsched("uncordon", "one")
    assert (placed / "one.yaml").read_text() == ONE
    assert "Bring back what left: gitsched rebalance --all-displaced says what returns by itself" in ended.stdout
    assert "what does not count as displaced: gitsched rebalance --to " in " ".join(ended.stdout.split())


def test_the_end_of_a_drain_names_the_command_that_takes_back_what_left(placed: Path, gitsched: Run, commit: Commit) -> None:
    gitsched("drain", "one")
    commit(placed)
    gitsched("reconcile", "--now", "2026-03-02T09:01:40Z")
    assert "two  2 replicas" in gitsched("tree", "web").stdout
    commit(placed, note="kind: ConfigMap\napiVersion: v1\nmetadata: {name: note, namespace: shop}\n")
    gitsched("reconcile", "--now", "2026-03-02T09:01:50Z")
    said = " ".join(gitsched("uncordon", "one").stdout.split())
    command = said.partition("what does not count as displaced: gitsched ")[2].split()
    assert command[:2] == ["rebalance", "--to"]
    commit(placed)
    gitsched("reconcile", "--now", "2026-03-02T10:30:00Z")
    assert "two  2 replicas" in gitsched("tree", "web").stdout, "the end of a drain moves nothing back"
    back = gitsched(*command)
    assert back.returncode == 0, back.stderr
    commit(placed)
    gitsched("reconcile", "--now", "2026-03-02T10:31:00Z")
    assert "    one  2 replicas" in gitsched("tree", "web").stdout


def test_status_says_what_is_not_committed(placed: Path, gitsched: Run, commit: Commit) -> None:
    assert "ommitted" not in gitsched("status").stdout
    gitsched("drain", "one")
    status = gitsched("status").stdout
    assert (
        ", taints of clusters are not committed" in status.splitlines()[0]
        or "attention: taints of clusters are not committed" in status
    )
    assert "Not committed: one.yaml: one: gitsched.io/drain:NoExecute is added in the worktree: commit it.\n" in status
    assert json.loads(gitsched("status", "-o", "json").stdout)["uncommitted"]
    commit(placed)
    assert "ommitted" not in gitsched("status").stdout
    (placed / "one.yaml").write_text(f"# Another line\n{(placed / 'one.yaml').read_text()}")
    assert "ommitted" not in gitsched("status").stdout, "only taints count"
    gitsched("uncordon", "one")
    assert "one.yaml: one: gitsched.io/drain:NoExecute is removed in the worktree: commit it." in gitsched("status").stdout
    (placed / "one.yaml").unlink()
    assert "ommitted" not in gitsched("status").stdout


def test_the_files_of_large_fleets_are_not_compared(
    placed: Path, gitsched: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gitsched("drain", "one")
    settings = RunSettings(now=datetime(2026, 3, 2, 10, tzinfo=UTC), cache=tmp_path / "cache", location=str(placed))
    assert len(read_fleet_status(settings).source.uncommitted) == 1
    monkeypatch.setattr(uncommitted_taints, "MAX_FILES", 1)
    assert read_fleet_status(settings).source.uncommitted == ()


def test_what_a_drain_does_not_move_is_not_waited_for(placed: Path, gitsched: Run, commit: Commit) -> None:
    tolerant = POLICY.replace("Deployment, name: web", "Deployment, name: agent").replace("name: web\n  n", "name: agent\n  n")
    tolerant = tolerant.replace("  placement:\n", "  placement:\n    clusterTolerations: [{operator: Exists}]\n")
    commit(placed, agent=WORKLOAD.replace("name: web", "name: agent"), agents=tolerant)
    gitsched("reconcile", "--now", "2026-03-02T09:00:50Z")
    done = gitsched("drain", "one").stdout
    assert (
        "one has 3 workloads now; wait until it shows only 2 workloads (1 that a drain does not move and 1 held until released) and no "
        in done
    )


def test_json_has_the_edits_and_the_simulation(placed: Path, gitsched: Run) -> None:
    found = json.loads(gitsched("drain", "-l", "ownership=private", "-o", "json", "--dry-run").stdout)
    assert (found["kind"], found["action"], found["written"]) == ("Maintenance", "drain", False)
    assert found["edits"] == [
        {"cluster": "one", "path": "one.yaml", "line": 2, "taints": ["gitsched.io/drain:NoExecute"], "problem": ""}
    ]
    assert (found["simulation"]["drained"], [one["workload"]["name"] for one in found["held"]]) == (["one"], ["db"])


def test_a_cordon_keeps_what_is_there_and_other_taints_stay(placed: Path, gitsched: Run, commit: Commit) -> None:
    commit(placed, two=CLUSTER.format(name="two", owner="cloud") + TAINT)
    done = gitsched("cordon", "one", "two")
    assert "one: the taint cluster.karmada.io/unschedulable:NoSchedule is added" in done.stdout
    assert "Nothing moves: what one, two have stays there" in done.stdout
    assert (
        (placed / "two.yaml")
        .read_text()
        .endswith(f"{TAINT}    - key: cluster.karmada.io/unschedulable\n      effect: NoSchedule\n")
    )
    commit(placed)
    assert "cordoned by the taint cluster.karmada.io/unschedulable:NoSchedule (one.yaml:" in gitsched("status").stdout
    ended = gitsched("uncordon", "one", "two").stdout
    assert "two stays as it is: drained by the taint power:NoExecute (two.yaml:9)." in ended
    assert (placed / "two.yaml").read_text().endswith(TAINT)


def test_what_cannot_be_edited_is_refused_with_what_to_do(placed: Path, gitsched: Run, commit: Commit) -> None:
    unknown = gitsched("drain", "oen")
    assert (unknown.returncode, "did you mean one?" in unknown.stderr) == (1, True)
    assert "no cluster has these labels" in gitsched("drain", "-l", "a=b").stderr
    assert gitsched("drain").returncode == gitsched("drain", "one", "-l", "a=b").returncode == 2
    items = CLUSTER.format(name="three", owner="x").replace("\n", "\n    ").rstrip()
    commit(placed, three=f"apiVersion: v1\nkind: List\nitems:\n  - {items}\n")
    before = (placed / "three.yaml").read_text()
    listed = gitsched("drain", "one", "three")
    assert listed.returncode == 1
    assert (
        "three is not edited: it is an item of a List, or its text cannot be read alone; change spec.taints by hand"
        in listed.stdout
    )
    assert ((placed / "three.yaml").read_text(), (placed / "one.yaml").read_text()) == (before, ONE), "all or none is written"
    krake = "api: kubernetes\nkind: Cluster\nmetadata: {name: four, namespace: prod}\nspec: {kubeconfig: {}}\n"
    commit(placed, three=None, four=krake)
    refused = gitsched("drain", "prod.four")
    assert (refused.returncode, "has no taints: its API has no state" in refused.stderr) == (1, True), refused


def test_a_drain_of_a_managed_cluster_has_the_effect_of_its_api(place: Path, gitsched: Run) -> None:
    done = gitsched("drain", "ash")
    assert "ash: the taint gitsched.io/drain:NoSelect is added" in done.stdout
    assert "key: gitsched.io/drain" in (place / "sets.yaml").read_text()


TAINTS = TOPOLOGY.taints
assert TAINTS is not None
OTHER = {"key": "gpu", "effect": "NoSchedule"}
DRAINED = {"key": "gitsched.io/drain", "effect": "NoExecute"}


def test_only_the_taints_of_the_commands_change() -> None:
    assert change_taints({}, TAINTS, "drain") == ({"spec": {"taints": [DRAINED]}}, ("gitsched.io/drain:NoExecute",))
    both = {"spec": {"taints": [OTHER, DRAINED]}}
    assert change_taints(both, TAINTS, "drain") == (both, ())
    assert change_taints(both, TAINTS, "uncordon") == ({"spec": {"taints": [OTHER]}}, ("gitsched.io/drain:NoExecute",))
    assert change_taints({"spec": {"taints": [OTHER]}}, TAINTS, "uncordon") == ({"spec": {"taints": [OTHER]}}, ())
    assert change_taints({"spec": {"region": "eu", "taints": [DRAINED]}}, TAINTS, "uncordon")[0] == {"spec": {"region": "eu"}}


def test_a_drain_counts_each_workload_once_and_those_without_capacity_stay(placed: Path, gitsched: Run, commit: Commit) -> None:
    both = POLICY.partition("    clusterAffinities")[0] + "    replicaScheduling: {replicaSchedulingType: Duplicated}\n"
    commit(placed, policy=both)
    gitsched("reconcile", "--now", "2026-03-02T09:00:50Z")
    done = " ".join(gitsched("drain", "one", "two").stdout.split())
    assert (
        "one, two have 2 workloads now; wait until it shows only 1 workload (1 held until released) and only 1 copy (without room "
        "elsewhere) " in done
    )
