"""`plan --out` saves a plan; `reconcile --plan` carries out exactly it, or nothing."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitsched.cli import main
from gitsched.model.errors import Permanent
from gitsched.report.review import compute_digest
from gitsched.report.saved_plan import parse_saved_plan
from tests.scenarios.conftest import Fleet, at_hour

CLUSTER = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: NAME}\nspec: {syncMode: Push}\n"
WEB = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 2}\n"
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [one]}}
"""
TO_TWO = POLICY.replace("[one]", "[two]")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(fleet: Fleet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the fleet; return its exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "200")

    def execute(command: str, *arguments: str, hour: float = 1) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(
            [command, "-C", str(fleet.path), "--cache-dir", str(fleet.cache), "--now", at_hour(hour).isoformat(), *arguments]
        )
        return code, *capsys.readouterr()

    return execute


@pytest.fixture
def saved(fleet: Fleet, run: Run, tmp_path: Path) -> Path:
    """A fleet on whose output branch web is in cluster one, and the saved plan of a commit that moves it to two."""
    fleet.commit(
        {f"{name}.yaml": CLUSTER.replace("NAME", name) for name in ("one", "two")} | {"web.yaml": WEB, "policy.yaml": POLICY}
    )
    fleet.reconcile()
    fleet.commit({"policy.yaml": TO_TWO}, hour=1)
    path = tmp_path / "plan.json"
    code, text, _ = run("plan", "--out", str(path))
    assert (code, text.splitlines()[-1]) == (
        0,
        f"Saved to {path}: `gitsched reconcile --plan {path}` carries out exactly this plan, or nothing.",
    )
    assert run("plan", "--show", str(path)) == (0, text[: text.index("\nSaved to")], "")
    return path


def test_a_saved_plan_is_shown_again_and_carried_out_once(fleet: Fleet, run: Run, saved: Path) -> None:
    plan = json.loads(saved.read_text())["plan"]
    assert json.loads(run("plan", "--show", str(saved), "-o", "json")[1]) == plan
    assert "- `~` `Deployment shop/web`: `− one 2`, `+ two 2`" in run("plan", "--show", str(saved), "-o", "markdown")[1]

    code, text, _ = run("reconcile", "--plan", str(saved))
    assert (code, fleet.where("shop/deployment-web")) == (0, ["two"])
    assert f"\nAs reviewed: plan {plan['digest']}.\n" in text

    head = fleet.head
    code, text, _ = run("reconcile", "--plan", str(saved))
    assert (code, fleet.head) == (0, head)
    assert (
        f"Nothing is left to do: the output branch has the result of the saved plan {plan['digest']} (the output branch is at"
        in text
    )


@pytest.mark.parametrize(
    ("files", "where", "says"),
    [
        ({"notes.txt": "unrelated"}, ["two"], "; the result is the same (the source is at {new}, the plan was made of {old})."),
        ({"web.yaml": WEB.replace("2", "3")}, ["one"], "web: reviewed: one 2 -> two 2; now: one 2 -> two 3"),
        (
            {"web.yaml": WEB.replace("2}", "2, minReadySeconds: 5}")},
            ["one"],
            "The moves are the same, but some rendered manifests differ.",
        ),
        ({"policy.yaml": POLICY}, ["one"], "Deployment shop/web: reviewed: one 2 -> two 2; now: no change"),
    ],
    ids=["the same result", "another move", "another manifest", "no change"],
)
def test_a_plan_of_another_commit_counts_only_with_the_same_result(
    fleet: Fleet, run: Run, saved: Path, files: dict[str, str], where: list[str], says: str
) -> None:
    old = fleet.git("rev-parse", "HEAD")[:10]
    new = fleet.commit(files, hour=1)[:10]
    code, text, _ = run("reconcile", "--plan", str(saved))
    flat = " ".join(text.split())
    assert says.format(new=new, old=old) in flat
    assert (code, fleet.where("shop/deployment-web")) == (int(where == ["one"]), where)
    if code:
        assert (
            f"Refused: the result is not that of the saved plan: the source is at {new}, the plan was made of {old}; make the plan again "
            "with `gitsched plan --out FILE`, review it, and pass that file"
        ) in flat


def test_a_forged_plan_is_refused_because_the_source_is_planned_again(fleet: Fleet, run: Run, saved: Path) -> None:
    data = json.loads(saved.read_text())
    data["plan"]["moves"][0]["after"] = [{"cluster": "evil", "replicas": 9}]
    saved.write_text(json.dumps(data))
    code, _, error = run("reconcile", "--plan", str(saved))
    assert (code, "the file was edited; make the plan again" in error) == (2, True)

    # With a digest that fits, the file is a plan, but not that of this source.
    found = re.search("digest (sha256:[0-9a-f]{64})", error)
    assert found is not None
    forged = data["plan"]["digest"] = found[1]
    saved.write_text(json.dumps(data))
    assert parse_saved_plan(saved.read_text()).review.comparison.digest == forged
    code, text, _ = run("reconcile", "--plan", str(saved))
    assert (code, fleet.where("shop/deployment-web")) == (1, ["one"])
    assert "no branch has moved, but the time, observed values or options of the run differ" in " ".join(text.split())


def test_any_damaged_file_is_a_message(saved: Path) -> None:
    data = json.loads(saved.read_text())
    assert compute_digest((), {}) != data["plan"]["digest"]
    with pytest.raises(Permanent, match="not a saved plan"):
        parse_saved_plan("[" * 100_000)
    with pytest.raises(Permanent, match="save one with"):
        parse_saved_plan(json.dumps(data["plan"]))
    with pytest.raises(Permanent, match="of format 2, this version reads 1"):
        parse_saved_plan(json.dumps(data | {"format": 2}))
    for damaged in damage(data):
        try:
            review = parse_saved_plan(json.dumps(damaged)).review
        except Permanent:
            continue
        assert review.comparison.digest == data["plan"]["digest"]


def damage(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return copies of a file in each of which one value is a list, is another text, or is missing."""
    found = []
    for path in paths(data):
        for damaged in ([], "\x1b[31m\ud800", 7, None):
            again = copy.deepcopy(data)
            *parents, last = path
            owner: Any = again
            for name in parents:
                owner = owner[name]
            if damaged is None:
                del owner[last]
            else:
                owner[last] = damaged
            found.append(again)
    return found


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    return [path] * bool(path) + [found for name, member in members for found in paths(member, (*path, name))]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plan", "--worktree", "--out", "p.json"), "--out saves the plan of a commit: commit the files of the worktree first"),
        (("plan", "--show", "missing.json"), "missing.json: [Errno 2] No such file or directory"),
        (("plan", "main", "--show", "missing.json"), "--show prints a saved plan as text, markdown, json or yaml"),
        (("reconcile", "--plan", "missing.json"), "missing.json: [Errno 2] No such file or directory"),
    ],
)
def test_wrong_usage_is_explained(run: Run, arguments: tuple[str, ...], says: str) -> None:
    code, text, error = run(*arguments)
    assert (code, text) == (2, "")
    assert says in error
