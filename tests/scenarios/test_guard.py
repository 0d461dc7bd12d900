"""The removal guard refuses a commit that leaves many workloads unplaced, unless removals are allowed."""

from __future__ import annotations

import pytest

from .conftest import Fleet, cluster, deployment, policy


def fill(fleet: Fleet, doomed: int, safe: int) -> None:
    """Place the given numbers of Deployments on `first` (by label) and on other clusters."""
    files = {
        f"{kind}/{n}.yaml": labelled(f"{kind}-{n}", kind)
        for kind, count in (("doomed", doomed), ("safe", safe))
        for n in range(count)
    }
    files |= {"doomed.yaml": select("doomed", "first"), "safe.yaml": select("safe", "second")}
    fleet.commit({**files, "clusters/first.yaml": cluster("first"), "clusters/second.yaml": cluster("second")})
    fleet.reconcile()
    assert len(on(fleet, "first")) == doomed


def labelled(name: str, label: str) -> str:
    return deployment(name).replace("  namespace:", f"  labels: {{app: {label}}}\n  namespace:")


def select(label: str, *groups: str) -> str:
    plain = policy(*groups, name=label)
    return plain.replace("kind: Deployment}", f"kind: Deployment, labelSelector: {{matchLabels: {{app: {label}}}}}}}")


def on(fleet: Fleet, name: str) -> list[str]:
    return [path for path in fleet.files() if path.startswith(f"clusters/{name}/default/deployment-")]


NOWHERE = {"doomed.yaml": select("doomed", "nowhere")}


def test_too_many_removals_are_refused_and_nothing_is_written(fleet: Fleet) -> None:
    fill(fleet, doomed=11, safe=5)
    fleet.commit(NOWHERE, hour=1)
    before = fleet.git("for-each-ref")
    run = fleet.reconcile(1)
    assert run.refused.startswith("11 of 16 workloads would lose their last placement")
    assert (run.after, run.changed) == (None, True)
    assert fleet.git("for-each-ref") == before
    assert fleet.preview(1).refused == run.refused


@pytest.mark.parametrize(
    ("doomed", "safe"),
    [pytest.param(10, 0, id="ten, though they are all"), pytest.param(11, 44, id="eleven, but only a fifth")],
)
def test_fewer_removals_are_accepted(fleet: Fleet, doomed: int, safe: int) -> None:
    fill(fleet, doomed, safe)
    fleet.commit(NOWHERE, hour=1)
    run = fleet.reconcile(1)
    assert (run.refused, run.after) == ("", fleet.head)
    assert on(fleet, "first") == []


def test_an_option_of_the_run_allows_removals(fleet: Fleet) -> None:
    fill(fleet, doomed=11, safe=5)
    fleet.commit(NOWHERE, hour=1)
    assert fleet.reconcile(1).refused
    run = fleet.reconcile(1, allow_removals=True)
    assert (run.refused, run.after) == ("", fleet.head)
    assert on(fleet, "first") == []


@pytest.mark.parametrize(
    ("message", "passes"),
    [
        pytest.param("Close the first site\n\nGitsched-Allow-Removals: true", True, id="a trailer"),
        pytest.param("Close the first site\n\nGitsched-Allow-Removals: false", False, id="a trailer that says no"),
        pytest.param("Gitsched-Allow-Removals: true is how\n\nwe would allow it.", False, id="a sentence is no trailer"),
    ],
)
def test_a_trailer_of_the_commit_allows_removals(fleet: Fleet, message: str, passes: bool) -> None:
    fill(fleet, doomed=11, safe=5)
    fleet.commit(NOWHERE, hour=1, message=message)
    assert (not fleet.reconcile(1).refused) is passes


def test_a_move_is_not_a_removal(fleet: Fleet) -> None:
    fill(fleet, doomed=12, safe=0)
    fleet.commit({"doomed.yaml": select("doomed", "second")}, hour=1)
    assert fleet.reconcile(1).refused == ""
    assert len(on(fleet, "second")) == 12


def test_a_workload_deleted_from_the_source_is_not_a_removal(fleet: Fleet) -> None:
    fill(fleet, doomed=12, safe=0)
    fleet.commit({f"doomed/{n}.yaml": None for n in range(12)}, hour=1)
    assert fleet.reconcile(1).refused == ""
    assert on(fleet, "first") == []


def test_a_taint_on_all_clusters_is_refused_before_and_after_the_deadline(fleet: Fleet) -> None:
    fill(fleet, doomed=12, safe=0)
    fleet.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    for hour in (1, 3):
        assert fleet.reconcile(hour).refused
        assert len(on(fleet, "first")) == 12
