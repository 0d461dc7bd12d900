"""Runs with caches in memory or on disk write the same bytes as runs without caches."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gitsched.decide.garbage_collection import collect_garbage
from gitsched.model.errors import Permanent
from gitsched.reconcile import Reconciler, RunResult
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.search_depth import count_examples

WORKLOADS = [f"app-{number}" for number in range(6)]
TOLERANT = "    clusterTolerations: [{key: power, effect: NoExecute, operator: Exists, tolerationSeconds: 3600}]\n"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: %s}}\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {a: '%d'}\n"
TENANT = "apiVersion: example.com/v1\nkind: Tenant\nmetadata: {name: acme}\nspec: {size: %d}\n"
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {output: {retireAfter: %dh}}\n"
REBALANCER = (
    "apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata: {name: again}\nspec:\n  workloads:\n"
    "  - {apiVersion: apps/v1, kind: Deployment, name: app-%d, namespace: default}\n"
)
Files = dict[str, str | bytes | None]


def start() -> Files:
    files: Files = {f"apps/{name}.yaml": deployment(name, number + 1) for number, name in enumerate(WORKLOADS)}
    files["apps/more.yaml"] = "---\n".join(CONFIG_MAP % (name, "default", 1) for name in ("one", "two"))
    files["apps/tenant.yaml"] = TENANT % 1
    files |= {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second", "third")}
    files["policies/all.yaml"] = policy("first,third", "second", scheduling="Divided", more=TOLERANT)
    files["policies/maps.yaml"] = policy("", name="maps", kind="ConfigMap")
    return files


def edit(dice: random.Random, files: Files, share: float) -> Files:
    """Return the random changes of one commit; `share` is the part of small ones."""
    name, number = dice.choice(WORKLOADS), dice.randrange(1, 9)
    path = f"apps/{name}.yaml"
    small: list[Files] = [
        {path: deployment(name, number)},
        {path: f"{files.get(path) or deployment(name)}# {number}\n"},
        {
            path: deployment(name, number),
            "apps/more.yaml": "---\n".join(CONFIG_MAP % (n, "default", number) for n in ("one", "two")),
        },
        {"apps/more.yaml": CONFIG_MAP % ("one", "default", number) + "---\n" + CONFIG_MAP % ("two", "default", 1)},
        {"apps/tenant.yaml": TENANT % number},
        {"README.md": f"{number}\n"},
        {path: deployment(name, "${REPLICAS}")},
    ]
    large: list[Files] = [
        {path: deployment(name, number, "shop"), "apps/shop.yaml": NAMESPACE % "a"},
        {"apps/shop.yaml": NAMESPACE % number, "apps/shop-map.yaml": CONFIG_MAP % ("one", "shop", number)},
        {path: deployment(name) + "  [\n"},
        {path: deployment(name), "apps/copy.yaml": deployment(name)},
        {"apps/copy.yaml": None} if files.get("apps/copy.yaml") else {"apps/copy.yaml": deployment("copy", number)},
        {path: None} if files.get(path) else {path: deployment(name, number)},
        {"clusters/first.yaml": cluster("first", "power:NoExecute")},
        {"clusters/first.yaml": cluster("first")},
        {"clusters/third.yaml": None} if files.get("clusters/third.yaml") else {"clusters/third.yaml": cluster("third")},
        {"policies/all.yaml": policy("second", "first", scheduling="Divided")},
        {"policies/all.yaml": policy("first", "second,third")},
        {"policies/all.yaml": policy("first,third", "second", scheduling="Divided", more=TOLERANT)},
        {"gitsched.yaml": SETTINGS % number},
        {"rebalancer.yaml": REBALANCER % (number % 6)},
        {".sourceignore": f"apps/{name}.yaml\n"},
    ]
    return dice.choice(small if dice.random() < share else large)


def spoil(dice: random.Random, cache: Path) -> None:
    """Delete or damage a cache."""
    for path in sorted(cache.glob("*.sqlite3")):
        chance = dice.random()
        if chance < 0.1:
            path.unlink()
        elif chance < 0.2:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.search
@pytest.mark.parametrize("seed", range(count_examples(1)))
def test_caches_change_no_byte(fleet: Fleet, tmp_path: Path, seed: int) -> None:
    dice, files, hour = random.Random(seed), start(), 0.0
    fleet.commit(files)
    caches = {name: tmp_path / name for name in ("resident", "disk", "none")}
    resident = Reconciler(fleet.settings(0, cache=caches["resident"], output_branch="resident"))
    amended = 0
    for step in range(14):
        if step:
            hour += dice.choice((0.1, 0.1, 0.6, 2))
            changes = {
                path: text
                for path, text in edit(dice, files, 1 if step < 5 else 0.65).items()
                if text is not None or files.get(path)
            }
            files |= changes
            fleet.commit(changes, hour=hour)
        spoil(dice, caches["disk"])
        now = hour + dice.choice((0, 0, 0.7))
        runs = [resident.run(fleet.settings(now).now)]
        for name in ("disk", "none"):
            cache = caches[name] if name == "disk" else tmp_path / f"none-{step}"
            runs.append(Reconciler(fleet.settings(now, cache=cache, output_branch=name)).run(fleet.settings(now).now))
        heads = [fleet.git("rev-parse", name) for name in caches]
        assert len(set(heads)) == 1, f"step {step}"
        assert len({tuple(run.plan.findings) for run in runs}) == 1, f"step {step}"
        assert len({_sum_up(run) for run in runs}) == 1, f"step {step}"
        assert [[o.key, o.state, o.replicas_by_cluster] for o in runs[0].plan.outcomes.values()] == [
            [o.key, o.state, o.replicas_by_cluster] for o in runs[2].plan.outcomes.values()
        ]
        amended += sum(not run.plan.complete for run in runs)
        hour = now
    assert amended > 3, "the first edits are small"


def _sum_up(run: RunResult) -> tuple[object, ...]:
    plan = run.plan
    return (
        plan.next_wakeup,
        plan.unclaimed,
        len(plan.outcomes),
        tuple(map(str, plan.moves)),
        tuple(sorted(plan.state_counts.items())),
    )


def test_a_new_process_continues_from_the_plan_cache_on_disk(make_fleet: Callable[[str], Fleet]) -> None:
    fleet = make_fleet("rows")
    fleet.commit(start())
    fleet.reconcile(1)
    fleet.reconcile(1)  # a decision is at rest once it was taken twice
    fleet.commit({"apps/app-1.yaml": deployment("app-1", 5)}, hour=2)
    run = fleet.reconcile(2)
    assert not run.plan.complete
    assert [str(move.key) for move in run.plan.moves] == ["Deployment.apps/default/app-1"]
    assert len(run.plan.outcomes) == len(list(run.plan.outcomes)) == 8
    assert fleet.reconcile(2).after is None


def test_a_plan_cache_that_others_can_write_is_not_read(make_fleet: Callable[[str], Fleet]) -> None:
    fleet = make_fleet("rows")
    fleet.commit(start())
    fleet.reconcile(1)
    fleet.reconcile(1)
    for path in fleet.cache.glob("plan-*.sqlite3"):
        path.chmod(0o666)
    fleet.commit({"apps/app-1.yaml": deployment("app-1", 5)}, hour=2)
    assert fleet.reconcile(2).plan.complete


def count_open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not list the open files of a process")
@pytest.mark.parametrize(
    "resident",
    [pytest.param(True, id="resident"), pytest.param(False, id="one after another", marks=pytest.mark.long)],
)
def test_many_runs_in_one_process_leave_no_file_open(fleet: Fleet, resident: bool) -> None:
    fleet.commit(start())
    session = Reconciler(fleet.settings())
    opened = []
    for number in range(9):
        fleet.commit({"apps/app-0.yaml": deployment("app-0", number + 1), "more.yaml": f"# {number // 4}\n"}, hour=number)
        if resident:
            session.run(fleet.settings(number).now)
        else:
            fleet.reconcile(number)
            fleet.preview(number)
        if number in (2, 8):
            collect_garbage()
            opened.append(count_open_files())
    assert opened[1] <= opened[0]


def test_temporary_files_of_killed_processes_are_removed(make_fleet: Callable[[str], Fleet]) -> None:
    fleet = make_fleet("rows")
    fleet.commit(start())
    fleet.reconcile(1)
    (plan,) = fleet.cache.glob("plan-*.sqlite3")
    left, current = plan.with_suffix(".999999999"), plan.with_suffix(".999999998")
    for path in (left, current):
        path.write_bytes(b"incomplete")
    os.utime(left, (0, 0))
    journal = Path(f"{plan}-journal")
    journal.write_bytes(bytes(512))  # SQLite deletes one that has entries when it opens the file
    fleet.commit({"policies/all.yaml": policy("second")}, hour=2)
    fleet.reconcile(2)
    assert not left.exists()
    assert not journal.exists()
    assert current.exists(), "another process may be writing it"


def test_a_damaged_cache_that_cannot_be_deleted_changes_no_run(
    make_fleet: Callable[[str], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = make_fleet("rows")
    fleet.commit(start())
    fleet.reconcile(1)
    for path in fleet.cache.glob("*.sqlite3"):
        path.write_bytes(b"damaged")

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    assert fleet.preview(2).plan.complete


def test_a_cache_directory_without_end_is_named(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit(start())
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with pytest.raises(Permanent, match="symbolic links"):
        Reconciler(fleet.settings(0, cache=tmp_path / "one" / "cache"))


def test_a_resident_process_goes_on_when_its_private_clone_and_the_history_are_gone(fleet: Fleet, tmp_path: Path) -> None:
    """The tree that it read last is neither in the new clone nor on the remote."""
    fleet.commit(start())
    resident = Reconciler(fleet.settings(0, location=fleet.path.as_uri()))
    resident.run(resident.settings.now)
    shutil.rmtree(fleet.cache)
    fleet.write({"apps/app-1.yaml": deployment("app-1", 7)})
    fleet.git("commit", "-q", "--amend", "-a", "-m", "Other")
    fleet.git("reflog", "expire", "--expire=now", "--all")
    fleet.git("gc", "-q", "--prune=now")
    run = resident.run(resident.settings.now)
    assert [move.key.name for move in run.plan.moves] == ["app-1"]
    assert fleet.head == run.after
