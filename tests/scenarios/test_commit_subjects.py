"""The subject of an output commit summarizes its changes."""

from __future__ import annotations

from tests.scenarios.conftest import UNGUARDED, Fleet, deployment, policy


def subject(fleet: Fleet) -> str:
    return fleet.git("log", "-1", "--format=%s", "placements").partition(": ")[2].partition(" (")[0]


def test_a_subject_distinguishes_moves_manifests_kept_files_and_records(pair: Fleet) -> None:
    pair.reconcile(1)
    assert subject(pair) == "1 workload placed"
    pair.commit({"apps/web.yaml": deployment("web").replace("# as", "# still as")}, hour=2)
    pair.reconcile(2)
    assert subject(pair) == "manifests changed"
    pair.commit({"apps/web.yaml": deployment("web") + "  {\n"}, hour=3)
    pair.reconcile(3)
    assert subject(pair) == "last valid files changed"


def test_records_alone_are_called_records(pair: Fleet) -> None:
    pair.reconcile(1)
    pair.commit({"policies/all.yaml": policy("first", "second", more="  conflictResolution: Overwrite\n")}, hour=2)
    run = pair.reconcile(2)
    assert run.after is not None
    assert not run.plan.moves
    assert subject(pair) == "records changed"


def test_a_subject_of_the_settings_is_the_first_line(pair: Fleet) -> None:
    settings = (
        "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {output: {commitSubject: Fleet}}\n"
    )
    pair.commit({"gitsched.yaml": settings}, hour=1)
    pair.reconcile(1)
    message = pair.git("log", "-1", "--format=%B", "placements").splitlines()
    assert message[:2] == ["Fleet", ""]
    assert message[2].startswith("- 1 workload placed (")


def only(name: str, clusters: str) -> dict[str, str]:
    """Return a policy for one Deployment."""
    return {f"policies/{name}.yaml": policy(clusters, name=name).replace("kind: Deployment}", f"kind: Deployment, name: {name}}}")}


def test_a_subject_says_of_workloads_what_happens_to_them_the_gravest_first(pair: Fleet) -> None:
    names = ("gone", "lost", "more", "away")
    apps = {f"apps/{name}.yaml": deployment(name) for name in names}
    pair.commit({"gitsched.yaml": UNGUARDED, **apps, **only("lost", "first"), **only("away", "first")}, hour=1)
    pair.reconcile(1)
    assert subject(pair) == "5 workloads placed"
    changed = {"apps/gone.yaml": None, "apps/more.yaml": deployment("more", 3), "apps/new.yaml": deployment("new")}
    pair.commit({**changed, **only("lost", "third"), **only("away", "second")}, hour=2)
    pair.reconcile(2)
    assert subject(pair) == "1 workload unplaced, 1 removed, 1 moved, 1 scaled, 1 placed"


def test_a_subject_says_what_is_withheld_from_now_on(pair: Fleet) -> None:
    names = ("gone", "lost", "stays")
    pair.commit({**{f"apps/{name}.yaml": deployment(name) for name in names}, **only("lost", "first")}, hour=1)
    pair.reconcile(1)
    pair.commit({"gitsched.yaml": UNGUARDED.replace("  guard:\n", "  guard:\n    freeze: audit\n")}, hour=2)
    pair.reconcile(2)
    pair.commit({"apps/gone.yaml": None, **only("lost", "third")}, hour=3, message="Delete too much")
    pair.reconcile(3)
    assert subject(pair) == "withheld: 1 workload unplaced, 1 removed"
    pair.commit({"policies/all.yaml": policy("first", "second", more="  conflictResolution: Overwrite\n")}, hour=4)
    pair.reconcile(4)
    assert subject(pair) == "records changed", "nothing else is withheld"
    pair.commit({"apps/new.yaml": deployment("new"), "apps/stays.yaml": None}, hour=5)
    pair.reconcile(5)
    assert subject(pair) == "1 workload placed, withheld: 1 workload unplaced, 2 removed"
