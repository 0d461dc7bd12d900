"""What fits together of random small fleets is what plans of the merges of all sets say, each made by git and by `gitsched plan`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import combinations
from random import Random
from typing import Any

import pytest

from gitsched.cli import main
from gitsched.reconcile.incremental import new_state
from tests.scenarios.conftest import Fleet, at_hour
from tests.simulate.conftest import cluster, deployment, divide

Files = dict[str, str | None]
FIRST, COUNT = (int(os.environ.get(name, usual)) for name, usual in (("GITSCHED_FIRST_FLEET", 0), ("GITSCHED_FLEETS", 2)))
"""The seed of the first fleet, and the number of fleets: `make fleets` looks at many, in several processes."""
PART = 50
NAMES = ("cart", "pay", "site", "web")
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  guard: {fleet: {%s}}\n%s"
LIMITS = ("removed: 40", "removed: 100, moved: 40", "replicasAdded: 50, removed: 100", "removed: 100, moved: 100")
TENANT = """\
apiVersion: gitsched.io/v1alpha1
kind: Tenant
metadata: {name: shop}
spec:
  paths: [apps, policies]
  namespaces: [default]
%s"""


def draw_files(dice: Random) -> dict[str, str]:
    """Return the files of the base."""
    files = {f"clusters/{name}.yaml": cluster(name, pods=dice.randrange(6, 14)) for name in "ab"}
    files |= {f"apps/{name}.yaml": deployment(name, dice.randrange(1, 4)) for name in NAMES}
    files |= {f"policies/{name}.yaml": divide(name, dice.choice(("labelSelector: {}", "clusterNames: [a]"))) for name in NAMES}
    if dice.random() < 0.2:
        files["tenants/shop.yaml"] = TENANT % dice.choice(("", "  limits: {replicas: 12}\n"))
    reserve = "  reserve: {lose: cluster}\n" if dice.random() < 0.15 else ""
    return {**files, "gitsched.yaml": SETTINGS % (dice.choice(LIMITS), reserve)}


def draw_change(dice: Random, files: dict[str, str]) -> Files:
    """Return the files of a change."""
    name, place = dice.choice(NAMES), dice.choice("ab")
    return dice.choice(
        (
            {f"apps/{name}.yaml": deployment(name, dice.randrange(1, 7))},
            {f"apps/{name}.yaml": deployment(name, dice.randrange(4, 9))},
            {f"apps/{name}.yaml": files[f"apps/{name}.yaml"].replace("metadata:", "metadata:\n  labels: {a: b}", 1)},
            {f"apps/{name}.yaml": None},
            {f"apps/{name}.yaml": None, f"policies/{name}.yaml": None},
            {"apps/second.yaml": deployment(name, 3)},
            {f"apps/moved-{name}.yaml": files[f"apps/{name}.yaml"], f"apps/{name}.yaml": None},
            {f"apps/new-{place}.yaml": deployment("new", 2), "policies/new.yaml": divide("new", "labelSelector: {}")},
            {f"policies/{name}.yaml": divide(name, f"clusterNames: [{dice.choice(('a', 'b', 'a, b', 'none'))}]")},
            {f"policies/{name}.yaml": None},
            {f"clusters/{place}.yaml": cluster(place, pods=dice.randrange(2, 20))},
            {f"clusters/{place}.yaml": None},
            {"clusters/c.yaml": cluster("c", pods=9)},
            {"gitsched.yaml": SETTINGS % ("removed: 100, moved: 100, replicasAdded: 500", "")},
            {"tenants/shop.yaml": TENANT % "  limits: {replicas: 100}\n"},
            {f"apps/{name}.yaml": "a: [\n"},
        )
    )


def branch(fleet: Fleet, name: str, files: Files) -> None:
    fleet.git("switch", "-q", "-c", name, "main")
    fleet.commit({**files, f"docs/{name}.md": name}, hour=1)
    fleet.git("switch", "-q", "main")


def merge(fleet: Fleet, settings: str, names: tuple[str, ...]) -> str | None:
    """Return a commit on top of main that merges branches with git and has the settings of main; None with conflicts."""
    head = fleet.git("rev-parse", "main")
    for name in names:
        try:
            tree = fleet.git("-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", head, name).split()[0]
        except AssertionError:
            return None
        head = fleet.git("commit-tree", "-m", name, "-p", head, "-p", name, tree)
    listed = fleet.git("ls-tree", f"{head}^{{tree}}").splitlines()
    entries = [line for line in listed if not line.endswith("\tgitsched.yaml")] + [f"100644 blob {settings}\tgitsched.yaml"]
    tree = fleet.git("mktree", data=("\n".join(entries) + "\n").encode())
    return str(fleet.git("commit-tree", "-m", "settings", "-p", head, tree))


def compare(fleet: Fleet, seed: int, run: Callable[..., tuple[int, str]]) -> None:
    dice = Random(seed)
    files = draw_files(dice)
    fleet.commit(files)
    fleet.reconcile()
    names = [f"branch-{number}" for number in range(dice.choice((2, 3, 3, 4)))]
    for name in names:
        branch(fleet, name, draw_change(dice, files))
    settings = fleet.git("rev-parse", "main:gitsched.yaml")
    verdicts = {}
    for size in range(1, len(names) + 1):
        for members in combinations(names, size):
            merged = merge(fleet, settings, members)
            verdicts[frozenset(members)] = merged is not None and run("plan", "main", merged)[0] == 0
    found: Any = json.loads(run("fits", "--onto", "main", *names, "-o", "json")[1])
    assert found["complete"]
    assert {one["name"]: one["alone"]["fits"] for one in found["changes"]} == {name: verdicts[frozenset((name,))] for name in names}
    sequence: list[str] = []
    while added := [
        name for name in names if name not in sequence and verdicts[frozenset((*sequence, name))] and not sequence.append(name)
    ]:
        assert added
    assert found["sequence"] == sequence
    assert {frozenset(one["changes"]) for one in found["conflicts"]} == {
        one
        for one, fits in verdicts.items()
        if not fits and len(one) > 1 and all(verdicts[part] for part in verdicts if part < one)
    }


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, PART))
def test_the_verdicts_are_those_of_plans_of_all_merges(
    make_fleet: Callable[[str], Fleet], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0)
    for seed in range(first, min(first + PART, FIRST + COUNT)):
        fleet = make_fleet(f"fleet-{seed}")

        def run(command: str, *arguments: str, fleet: Fleet = fleet) -> tuple[int, str]:
            capsys.readouterr()
            code = main([command, "-C", str(fleet.path), "--now", at_hour(2).isoformat(), *arguments])
            return code, capsys.readouterr().out

        try:
            compare(fleet, seed, run)
        except AssertionError as error:
            raise AssertionError(f"fleet {seed}") from error
