"""The subject of an output commit summarizes its changes."""

from __future__ import annotations

from tests.scenarios.conftest import Fleet, deployment, policy


def subject(fleet: Fleet) -> str:
    return fleet.git("log", "-1", "--format=%s", "placements").partition(": ")[2].partition(" (")[0]


def test_a_subject_distinguishes_moves_manifests_kept_files_and_records(pair: Fleet) -> None:
    pair.reconcile(1)
    assert subject(pair) == "1 workload moved"
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
