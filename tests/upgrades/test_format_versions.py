"""The first run of a new format version: the older form is read, and rewritten in a commit of its own without a move."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.upgrades.older_form import OLDER, age, register
from tests.upgrades.recorded import RecordedBranch, describe_run, list_recorded

SUBJECT = "place: output rewritten for gitsched 0.1.0 (format version 1 → 2)"
RECORDED = {name.rpartition("/")[2]: recorded for name, recorded in list_recorded() if name.startswith("a9db83c9/")}
NAMES = ("adopted", "applications", "facts", "guarded", "moves", "placements", "random-3", "tenants", "vreplicas", "waves")


@pytest.fixture(params=NAMES)
def recorded(request: pytest.FixtureRequest) -> RecordedBranch:
    return RECORDED[request.param]


def test_a_branch_of_an_older_form_is_rewritten_in_a_commit_of_its_own_without_a_move(
    recorded: RecordedBranch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = recorded.open(tmp_path / "fleet", tmp_path / "cache")
    files, members = fleet.files(), fleet.load("gitsched.json")
    aged, source = age(fleet), members["source"]
    assert fleet.files() != files
    register(monkeypatch, OLDER)
    run = fleet.reconcile(recorded.hour, observations="recorded")
    assert describe_run(fleet, run).keys() <= {"withheld"}
    assert fleet.git("rev-list", f"{aged}..placements").split() == [run.after]
    assert (
        fleet.git("log", "-1", "--format=%s%n%n%at", "placements") == f"{SUBJECT}\n\n{fleet.git('log', '-1', '--format=%at', aged)}"
    )
    assert fleet.trailers() == {"Gitsched-Source": source, "Gitsched-Version": "0.1.0", "Gitsched-Cause": "upgrade"}
    assert dict(fleet.files().items() ^ files.items()).keys() == {"gitsched.json"}
    assert fleet.load("gitsched.json") == members | {"formatVersion": 2}
    assert fleet.reconcile(recorded.hour, observations="recorded").after is None


def test_what_the_source_changes_follows_the_rewrite_in_another_commit(
    recorded: RecordedBranch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = recorded.open(tmp_path / "fleet", tmp_path / "cache")
    files, aged = fleet.files(), age(fleet)
    register(monkeypatch, OLDER)
    for later in recorded.later[:2]:
        if later.files is not None:
            fleet.commit(later.files, hour=later.hour, message=later.message)
        run = fleet.reconcile(later.hour, observations="recorded")
        assert describe_run(fleet, run) == later.expected
    rewrite, *others = fleet.git("rev-list", "--reverse", f"{aged}..placements").split()
    assert others or not any(later.expected for later in recorded.later[:2])
    assert fleet.git("log", "-1", "--format=%s", rewrite) == SUBJECT
    assert dict(fleet.files(rewrite).items() ^ files.items()).keys() == {"gitsched.json"}
