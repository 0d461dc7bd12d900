"""What fits together of random small fleets is what `gitsched plan` says of the merges of all sets that git makes.

Of every other fleet these plans are complete."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from random import Random
from typing import Any

import pygit2
import pytest

from gitsched.cli import main
from gitsched.diff.fitting_sets import MAX_EXHAUSTIVE
from gitsched.reconcile.incremental import new_state
from gitsched.reconcile.incremental.state_plan import try_with_state
from gitsched.reconcile.review import comparison
from tests.scenarios.conftest import Fleet, at_hour
from tests.simulate.conftest import cluster, deployment, divide

Files = dict[str, str | None]
FIRST, COUNT = (int(os.environ.get(name, usual)) for name, usual in (("GITSCHED_FIRST_FLEET", 0), ("GITSCHED_FLEETS", 2)))
"""The seed of the first fleet, and the number of fleets: `make fleets` looks at many, in several processes."""
PART = 50
DIVISIONS = (
    "{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}",
    "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}",
    "{replicaSchedulingType: Duplicated}",
)
SPREAD = "    spreadConstraints:\n    - {spreadByField: cluster, minGroups: 1, maxGroups: 1}\n"
TAINT = "  taints:\n  - {key: example.com/a, effect: NoSchedule}\n"
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
    for name in NAMES[: dice.randrange(2, 5)]:
        files[f"apps/{name}.yaml"] = deployment(name, dice.randrange(1, 4))
        where, how = dice.choice(("labelSelector: {}", "labelSelector: {}", "clusterNames: [a]")), dice.choice(DIVISIONS)
        files[f"policies/{name}.yaml"] = divide(name, where, how)
    if dice.random() < 0.2:
        files["tenants/shop.yaml"] = TENANT % dice.choice(("", "  limits: {replicas: 12}\n"))
    reserve = "  reserve: {lose: cluster}\n" if dice.random() < 0.15 else ""
    return {**files, "gitsched.yaml": SETTINGS % (dice.choice(LIMITS), reserve)}


def draw_change(dice: Random, files: dict[str, str], *, of_policies: bool) -> Files:
    """Return the files of a change."""
    name = dice.choice([name for name in NAMES if f"apps/{name}.yaml" in files])
    place, app, policy = dice.choice("ab"), files[f"apps/{name}.yaml"], files[f"policies/{name}.yaml"]
    policies: tuple[Files, ...] = (
        {f"policies/{name}.yaml": divide(name, f"clusterNames: [{dice.choice(('a', 'b', 'a, b', 'none'))}]")},
        {f"policies/{name}.yaml": policy.replace("placement:\n", f"placement:\n{SPREAD}")},
        {f"policies/{name}.yaml": policy.replace("spec:\n", "spec:\n  priority: 3\n", 1)},
        {f"policies/{name}.yaml": None},
        {f"policies/other-{name}.yaml": policy.replace(f"metadata: {{name: {name}", f"metadata: {{name: other-{name}")},
        {"policies/all.yaml": divide("all", f"clusterNames: [{place}]").replace(", name: all}\n", "}\n")},
    )
    return dice.choice(
        policies
        if of_policies
        else (
            *policies,
            {f"apps/{name}.yaml": deployment(name, dice.randrange(1, 7))},
            {f"apps/{name}.yaml": deployment(name, dice.randrange(4, 9))},
            {f"apps/{name}.yaml": app.replace("metadata:", "metadata:\n  labels: {a: b}", 1)},
            {f"apps/{name}.yaml": None},
            {f"apps/{name}.yaml": None, f"policies/{name}.yaml": None},
            {"apps/second.yaml": deployment(name, 3)},
            {f"apps/moved-{name}.yaml": app, f"apps/{name}.yaml": None},
            {f"apps/new-{place}.yaml": deployment("new", 2), "policies/new.yaml": divide("new", "labelSelector: {}")},
            {f"clusters/{place}.yaml": cluster(place, pods=dice.randrange(2, 20))},
            {f"clusters/{place}.yaml": files[f"clusters/{place}.yaml"].replace("spec:\n", f"spec:\n{TAINT}", 1)},
            {f"clusters/{place}.yaml": None},
            {"clusters/c.yaml": cluster("c", pods=9)},
            {"gitsched.yaml": SETTINGS % ("removed: 100, moved: 100, replicasAdded: 500", "")},
            {"tenants/shop.yaml": TENANT % "  limits: {replicas: 100}\n"},
            {f"apps/{name}.yaml": "a: [\n"},
        )
    )


class Branches:
    """Branches of a fleet, and commits that merge them. Git decides what conflicts; all else is done in this process."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._repository = fleet, fleet.repository
        self._base = self._repository.branches["main"].peel(pygit2.Commit)

    def add(self, name: str, files: Files) -> None:
        index = pygit2.Index()
        index.read_tree(self._base.tree)
        for path, text in {**files, f"docs/{name}.md": name}.items():
            if text is None:
                index.remove(path)
            else:
                index.add(pygit2.IndexEntry(path, self._repository.create_blob(text.encode()), pygit2.enums.FileMode.BLOB))
        self._record(f"refs/heads/{name}", index.write_tree(self._repository), [self._base.id])

    def merge_sets(self, names: Sequence[str]) -> Iterator[tuple[frozenset[str], str | None]]:
        """Yield each set of branches with a commit on top of main that merges them and has the settings of main; None with conflicts."""
        merged: dict[tuple[str, ...], pygit2.Oid] = {(): self._base.id}
        for size in range(1, len(names) + 1):
            sets = [members for members in combinations(names, size) if members[:-1] in merged]
            trees = self._merge_trees([(str(merged[members[:-1]]), members[-1]) for members in sets])
            for members, tree in zip(sets, trees, strict=True):
                if tree is not None:
                    parents = [merged[members[:-1]], self._repository.branches[members[-1]].target]
                    merged[members] = self._record(None, pygit2.Oid(hex=tree), parents)
            for members in combinations(names, size):
                yield frozenset(members), self._keep_settings(merged[members]) if members in merged else None

    def _merge_trees(self, pairs: Sequence[tuple[str, str]]) -> list[str | None]:
        """Return the tree that git makes of each two commits; None with conflicts."""
        if not pairs:
            return []
        command = ("-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", "--no-messages", "--name-only", "--stdin")
        printed = self._fleet.git(*command, data="".join(f"{one} {other}\n" for one, other in pairs).encode())
        fields = [record.split("\0") for record in printed.removesuffix("\0\0").split("\0\0")]
        assert len(fields) == len(pairs)
        return [field[1] if field[0] == "1" else None for field in fields]

    def _keep_settings(self, merged: pygit2.Oid) -> str:
        commit, settings = self._repository[merged].peel(pygit2.Commit), self._base.tree["gitsched.yaml"]
        builder = self._repository.TreeBuilder(commit.tree)
        builder.insert("gitsched.yaml", settings.id, pygit2.enums.FileMode.BLOB)
        return str(self._record(None, builder.write(), [commit.id]))

    def _record(self, ref: str | None, tree: pygit2.Oid, parents: list[pygit2.Oid]) -> pygit2.Oid:
        nobody = pygit2.Signature("A", "a@example.com", int(at_hour(1).timestamp()), 0)
        return self._repository.create_commit(ref, nobody, nobody, "Change\n", tree, parents)


def compare(fleet: Fleet, seed: int, run: Callable[..., tuple[int, str]]) -> None:
    dice = Random(seed)
    files = draw_files(dice)
    fleet.commit(files)
    fleet.reconcile()
    branches, count = Branches(fleet), MAX_EXHAUSTIVE if seed % 500 == 499 else dice.choice((2, 3, 3, 3, 4))
    names = [f"branch-{number}" for number in range(count)]
    for name in names:
        branches.add(name, draw_change(dice, files, of_policies=seed % 4 == 3))
    verdicts = {
        members: merged is not None and run("plan", "main", merged)[0] == 0 for members, merged in branches.merge_sets(names)
    }
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
    for one in found["changes"]:
        name = one["name"]
        helpful = [
            others
            for others, fits in verdicts.items()
            if fits and name not in others and verdicts[others | {name}] and not verdicts[frozenset((name,))]
        ]
        assert {frozenset(others) for others in one["onlyAfter"]} == {
            others for others in helpful if not any(fewer < others for fewer in helpful)
        }


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, PART))
def test_the_verdicts_are_those_of_plans_of_all_merges(
    make_fleet: Callable[[str], Fleet], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0)
    for seed in range(first, min(first + PART, FIRST + COUNT)):
        fleet = make_fleet(f"fleet-{seed}")
        with_state = try_with_state if seed % 2 else lambda _: None

        def run(command: str, *arguments: str, fleet: Fleet = fleet, with_state: Any = with_state) -> tuple[int, str]:
            capsys.readouterr()
            with monkeypatch.context() as patch:
                patch.setattr(comparison, "try_with_state", with_state)
                code = main([command, "-C", str(fleet.path), "--now", at_hour(2).isoformat(), *arguments])
            return code, capsys.readouterr().out

        try:
            compare(fleet, seed, run)
        except AssertionError as error:
            raise AssertionError(f"fleet {seed}") from error
