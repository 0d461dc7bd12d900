"""The same commit gives the same bytes on any machine, and a run that changes no decision makes no commit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Fleet, at_hour, cluster, deployment, policy, start_process

EXAMPLE = Path(__file__).parents[2] / "examples" / "repo"
MACHINES = (
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "4711", "TZ": "Pacific/Kiritimati", "LANG": "tr_TR.UTF-8", "LC_ALL": "C.UTF-8"},
)


def test_two_machines_make_the_same_commits_with_the_same_notes(make_fleet: Callable[[str], Fleet], tmp_path: Path) -> None:
    fleets = [make_fleet("here"), make_fleet("there")]
    power_cut = {"clusters/extra.yaml": cluster("extra", "power:NoExecute", region="eu-central")}
    made: list[list[str]] = []
    for number, fleet in enumerate(fleets):
        shutil.copytree(EXAMPLE, fleet.path, dirs_exist_ok=True)
        made.append([])
        for hour, files in ((0, {}), (1, power_cut)):
            made[-1].append(fleet.commit(files, hour=hour))
            process = start_process(hour + 0.5, tmp_path / f"cache-{number}", fleet.path, **MACHINES[number])
            printed, errors = process.communicate()
            assert process.returncode == 0, errors
            assert printed.strip() == fleet.head
            made[-1].append(printed.strip())
    assert made[0] == made[1]
    assert refs(fleets[0]) == refs(fleets[1])
    assert "refs/notes/" in refs(fleets[0]), "the note of the newest source commit is compared, too"


def refs(fleet: Fleet) -> str:
    return fleet.git("for-each-ref", "--format=%(refname) %(objectname)")


def test_a_second_run_makes_no_commit(pair: Fleet) -> None:
    first = pair.reconcile()
    before = refs(pair)
    again = pair.reconcile(1)
    assert (first.changed, again.changed, again.after) == (True, False, None)
    assert refs(pair) == before


def test_an_irrelevant_change_makes_no_commit_and_moves_the_note(pair: Fleet) -> None:
    pair.reconcile()
    before = pair.head
    source = pair.commit({"README.md": "About this fleet\n"}, hour=1)
    assert pair.reconcile(1).after is None
    assert pair.head == before
    assert note(pair) == f'{{"drySha":"{source}","reconciled":{{"placements":{{"source":"{source}","branch":"main"}}}}}}'


def note(fleet: Fleet) -> str:
    (ref,) = fleet.git("for-each-ref", "--format=%(refname)", "refs/notes/").splitlines()
    return fleet.git("notes", "--ref", ref, "show", fleet.head or "")


def test_plan_and_explain_move_no_ref(pair: Fleet) -> None:
    before = refs(pair)
    assert pair.preview().changed
    assert refs(pair) == before
    pair.reconcile()
    before = refs(pair)
    pair.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    source = pair.git("rev-parse", "HEAD")
    assert pair.preview(1).changed
    assert refs(pair) == before.replace(before.split("refs/heads/main ")[1][:40], source)


def test_an_edited_manifest_is_the_same_blob_in_every_cluster(fleet: Fleet) -> None:
    fleet.commit({f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")} | {"policy.yaml": policy()})
    for hour, replicas in enumerate((2, 5)):
        fleet.commit({"web.yaml": "# Odd,   but mine\n" + deployment("web", replicas)}, hour=hour)
        fleet.reconcile(hour)
        files = fleet.files()
        blob = fleet.git("rev-parse", "main:web.yaml")
        assert [files[f"clusters/{name}/default/deployment-web.yaml"] for name in ("first", "second")] == [blob, blob]


def test_only_the_replica_count_differs_between_clusters_with_divided_replicas(fleet: Fleet) -> None:
    text = "# Odd,   but mine\n" + deployment("web", 5)
    fleet.commit({f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")})
    fleet.commit({"web.yaml": text, "policy.yaml": policy(scheduling="Divided")})
    fleet.reconcile()
    read = [fleet.read(f"clusters/{name}/default/deployment-web.yaml") for name in ("first", "second")]
    assert sorted(read) == [text.replace("replicas: 5 #", f"replicas: {share} #") for share in (2, 3)]


@pytest.mark.parametrize("late", [0, 40], ids=["punctual", "late"])
def test_a_commit_has_the_time_of_its_cause_not_of_the_run(pair: Fleet, late: float) -> None:
    pair.reconcile(late)
    dates = pair.git("log", "-1", "--format=%at %ct", "placements").split()
    assert dates == [str(int(at_hour(0).timestamp()))] * 2


def test_a_subject_cannot_forge_a_trailer(pair: Fleet) -> None:
    source = pair.commit({"web.yaml": deployment("other")}, message="Innocent\nGitsched-Source: 0000\n\nGitsched-Source: 1111")
    pair.reconcile()
    assert pair.trailers() == {
        "Gitsched-Source": source,
        "Gitsched-Version": pair.trailers()["Gitsched-Version"],
        "Gitsched-Cause": "source",
    }
