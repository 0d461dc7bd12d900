"""Incremental plans, from a cache in memory or on disk, are byte-identical to complete plans.

Four reconcilers follow one history on four branches: one keeps its caches in memory, one is restarted at random with a disk cache that is
damaged, deleted or replaced by an old one, one has nothing but the state beside its output branch, which is damaged, too, and one has no
caches.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gitsched.apis.gitsched.guard_config import MIN_PERCENT_SIZE
from gitsched.metrics import observer
from gitsched.model.observation import MetricFailure
from gitsched.reconcile import Reconciler, RunResult, RunSettings
from gitsched.reconcile.adoption.running_fleet import AdoptionInputs, adopt
from gitsched.reconcile.cache import document_rows
from gitsched.reconcile.output import output_commit
from tests.builders.ocm import bound_global_set, managed_cluster, placed_config_map, placement, to_yaml
from tests.scenarios.conftest import Fleet, allow_withheld, at_hour, cluster, deployment, policy
from tests.scenarios.facts_histories import FactsHistory, commit_branch
from tests.scenarios.histories import History, differs, prefer, settings_of
from tests.scenarios.plain_histories import (
    CLUSTER,
    DEPLOYMENT,
    NAMESPACE,
    OBSERVED_METRIC,
    PLAIN,
    SETTINGS,
    TAINT,
    Files,
    PlainHistory,
    write_policy,
)
from tests.scenarios.source_histories import SourceHistory
from tests.scenarios.tenant_histories import KEPT_RULES, TenantHistory
from tests.search_depth import DEEP, count_examples

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

APIS = (("ocm",), (), ("ocm", "tenants"), ("knative",), ("ocm", "krake"), ("adopted",))
STEPS = 6
RELEASED = ("default/store", "default/files, default/data", "default/nothing")


@pytest.fixture(autouse=True)
def divide_few_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store the documents of a kind in parts from four on, as those of many clusters, so that histories pass the limit both ways."""
    monkeypatch.setattr(document_rows, "MIN_DIVIDED", 4)


class ReconcilerVariant:
    """One kind of cache, on its own branch."""

    def __init__(self, fleet: Fleet, name: str, cache: Path) -> None:
        self.fleet, self.name, self.cache = fleet, name, cache
        self.session: Reconciler | None = None

    def settings(self, hour: float, **more: Any) -> RunSettings:
        state = "on" if self.name == "shared" else "off"
        return self.fleet.settings(hour, **{"cache": self.cache, "output_branch": self.name, "state": state, **more})

    def run(self, hour: float, *, fresh: bool, allowed: tuple[str, ...] = (), preview: bool = False) -> RunResult:
        settings = self.settings(hour, allowed=allowed)
        if fresh or self.session is None:
            self.session = Reconciler(settings)
        self.session.settings = settings
        return self.session.run(settings.now, preview=preview)


def summarize(run: RunResult) -> dict[str, object]:
    """Return everything that a run reports, without the name of its own output branch."""
    plan, branch = run.plan, f"output branch {run.branch.removeprefix('refs/heads/')}"
    return {
        "findings": tuple(found._replace(message=found.message.replace(branch, "output branch")) for found in plan.findings),
        "wakeup": plan.next_wakeup,
        "unclaimed": plan.unclaimed,
        "unselected": run.unselected,
        "time": plan.time,
        "retiring": dict(plan.retiring),
        "held": dict(plan.totals.held),
        "refused": run.refused,
        "withheld": (plan.withheld.digest, plan.withheld.limits),
        "moves": list(map(str, plan.moves)),
        "states": {state: count for state, count in plan.state_counts.items() if count},
        "outcomes": [
            (o.key, o.state, o.replicas_by_cluster, o.policy, o.group, o.reason, o.findings) for o in plan.outcomes.values()
        ],
        "clusters": (plan.cluster_count, dict(plan.first_clusters)),
    }


def spoil(dice: Random, cache: Path, attic: Path) -> None:
    """Delete, damage or replace a cache with an old one."""
    attic.mkdir(exist_ok=True)
    for path in sorted(cache.glob("*.sqlite3")):
        kept = attic / path.name
        chance = dice.random()
        if chance < 0.05:
            path.unlink()
        elif chance < 0.1:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        elif chance < 0.15:
            data = bytearray(path.read_bytes())
            for place in dice.choices(range(len(data)), k=20) if data else ():
                data[place] ^= 1 << dice.randrange(8)
            path.write_bytes(data)
        elif chance < 0.35 and kept.exists():
            shutil.copy(kept, path)
        elif chance < 0.5:
            shutil.copy(path, kept)


def spoil_state(dice: Random, fleet: Fleet) -> None:
    """Delete, damage or replace the state beside the branch `shared`."""
    refs = [f"refs/gitsched/state/shared/{name}" for name in ("plan", "rows")]
    repository, chance = fleet.repository, dice.random()
    if chance > 0.3 or not all(ref in repository.references for ref in refs):
        return
    found = [str(repository.references[ref].target) for ref in refs]
    ref, oid = dice.choice(list(zip(refs, found, strict=True)))
    if chance < 0.05:
        fleet.git("update-ref", "-d", ref)
    elif chance < 0.1:
        fleet.git("update-ref", "refs/attic", found[0])
    elif chance < 0.2 and "refs/attic" in repository.references:
        fleet.git("update-ref", refs[0], "refs/attic")
    else:
        entry = dice.choice(fleet.git("ls-tree", "-r", oid).splitlines())
        path, data = entry.partition("\t")[2], bytearray(repository[entry.split()[2]].data)
        if data:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        index = {"GIT_INDEX_FILE": str(fleet.path.parent / "index-state")}
        fleet.git("read-tree", oid, environment=index)
        blob = fleet.git("hash-object", "-w", "--stdin", data=bytes(data))
        fleet.git("update-index", "--cacheinfo", f"100644,{blob},{path}", environment=index)
        fleet.git("update-ref", ref, fleet.git("commit-tree", fleet.git("write-tree", environment=index), "-m", "Damaged"))


def interfere(dice: Random, fleet: Fleet, branches: list[str]) -> None:
    """Edit the output in the same way on every branch."""
    paths = sorted(fleet.files(branches[0]))
    path, text = dice.choice(paths), dice.choice(("", "nonsense: [", "# mine\n"))
    if path == "gitsched.json":
        return
    date = {"GIT_AUTHOR_DATE": "1772442000 +0000", "GIT_COMMITTER_DATE": "1772442000 +0000"}
    for branch in branches:
        index = {"GIT_INDEX_FILE": str(fleet.path.parent / f"index-{branch}")}
        fleet.git("read-tree", branch, environment=index)
        if text:
            blob = fleet.git("hash-object", "-w", "--stdin", data=text.encode())
            fleet.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", environment=index)
        else:
            fleet.git("rm", "-q", "-f", "--cached", path, environment=index)
        tree = fleet.git("write-tree", environment=index)
        commit = fleet.git("commit-tree", tree, "-p", branch, "-m", "By hand", environment=date)
        fleet.git("update-ref", f"refs/heads/{branch}", commit)


def adopt_some(fleet: Fleet, where: Path, branches: list[str]) -> None:
    """Adopt a fleet of which only a part is known, in the same way on every branch, so that some workloads keep their placement."""
    running = where / "running" / "third"
    running.mkdir(parents=True)
    (running / "web.yaml").write_text(f"{deployment('web')}---\n{deployment('cache')}")
    for name in branches:
        adopt(fleet.settings(0, cache=where / f"adopted-{name}", output_branch=name), AdoptionInputs(directories=(running.parent,)))
        assert fleet.load("gitsched.json", name)["adopted"]


def play(fleet: Fleet, where: Path, seed: int, apis: tuple[str, ...], steps: int) -> int:
    """Run a complete history; return the number of incremental plans."""
    dice, hour, amended = Random(seed), 0.0, 0
    history = History(dice, apis)
    fleet.commit(history.files)
    resident, either = ReconcilerVariant(fleet, "resident", where / "a"), ReconcilerVariant(fleet, "either", where / "b")
    branches = ["resident", "either", "shared", "forgetful"]
    if "adopted" in apis:
        adopt_some(fleet, where, branches)
    for step in range(steps):
        if step and dice.random() < 0.85:
            hour += dice.choice((0, 0.1, 0.1, 0.6, 2))
            message = f"Change\n\nGitsched-Release: {dice.choice(RELEASED)}" if dice.random() < 0.1 else "Change"
            fleet.commit(history.go_on(1 if step < 5 else 0.7), hour=hour + dice.choice((0, 0, 0, -1, 3)), message=message)
        spoil(dice, either.cache, where / "attic")
        if step % 3 == 2:
            spoil_state(dice, fleet)
        if step > 2 and dice.random() < 0.1:
            interfere(dice, fleet, branches)
        now, allow = hour + dice.choice((0, 0, 0.3, 0.7)), dice.random() < 0.7
        forgetful = ReconcilerVariant(fleet, "forgetful", where / f"none-{step}")
        # What is withheld is the same for all of them, as is their state.
        allowed = allow_withheld(forgetful.settings(now, cache=where / f"allow-{step}")).choices.allowed if allow else ()
        if dice.random() < 0.2:
            either.run(now, fresh=dice.random() < 0.5, allowed=allowed, preview=True)
        runs = [
            resident.run(now, fresh=False, allowed=allowed),
            either.run(now, fresh=dice.random() < 0.5, allowed=allowed),
            ReconcilerVariant(fleet, "shared", where / f"shared-{step}").run(now, fresh=True, allowed=allowed),
            forgetful.run(now, fresh=True, allowed=allowed),
        ]
        reports = [summarize(run) for run in runs]
        for name, other in zip(branches, reports, strict=False):
            assert not differs(other, reports[-1]), f"step {step}: {name}: {differs(other, reports[-1])}"
        heads = {
            fleet.git("rev-parse", "--verify", "-q", f"refs/heads/{name}") for name in branches if runs[0].before or runs[0].after
        }
        assert len(heads) < 2, f"step {step}"
        amended += sum(not run.plan.complete for run in runs)
        hour = now
    return amended


@pytest.mark.search
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=() if DEEP else pytest.mark.long) for seed in range(2, count_examples(len(APIS))))]
)
def test_an_incremental_plan_equals_the_complete_plan(
    fleet: Fleet, tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.CRITICAL)
    for name in ("MAX_UNSTABLE", "MIN_KEYED_ROWS"):
        monkeypatch.setattr(output_commit, name, 0)  # as in a large source
    apis = APIS[seed % len(APIS)]
    amended = play(fleet, tmp_path, seed + len(APIS), apis, STEPS)
    assert amended or "tenants" in apis or seed >= len(APIS), "the first edits are small"


INCREMENTAL = (
    "add",
    "move",
    "policy",
    "rename",
    "cluster",
    "remove",
    "cluster gone",
    "nothing",
    "namespace",
    "scaler",
    "comment",
    "rebalancer",
    "add with writer",
    "writer",
)
OTHER_APIS = ("application", "metric", "site", "source", "node", "adapter", "edit")
"""Kinds of commits, each of which is planned from the state of the last run."""


class ThreeVariants:
    """Three reconcilers of one history: one keeps its caches in memory, one on disk, one has none."""

    def __init__(self, fleet: Fleet, where: Path) -> None:
        self._fleet, self._where, self._step = fleet, where, 0
        self._variants = [ReconcilerVariant(fleet, name, where / name) for name in ("resident", "restarted")]

    def run(self, hour: float, label: str) -> list[RunResult]:
        """Run all of them; return the results of those with caches, which are those of complete plans."""
        self._step += 1
        forgetful = ReconcilerVariant(self._fleet, "forgetful", self._where / f"none-{self._step}")
        variants = (*self._variants, forgetful)
        runs = [variant.run(hour, fresh=variant.name != "resident") for variant in variants]
        resident, restarted, expected = map(summarize, runs)
        assert not differs(resident, expected), label
        assert not differs(restarted, expected), label
        assert len({self._fleet.git("rev-parse", f"refs/heads/{variant.name}") for variant in variants}) == 1, label
        return runs[:2]


@pytest.mark.parametrize(
    ("kinds", "apis"),
    [
        pytest.param(INCREMENTAL, (), id="plain"),
        pytest.param(OTHER_APIS, ("krake", "knative"), id="other APIs", marks=pytest.mark.long),
    ],
)
def test_what_people_change_most_is_planned_from_the_last_state(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...], apis: tuple[str, ...]
) -> None:
    monkeypatch.setattr(output_commit, "MIN_KEYED_ROWS", 0)  # as in a large source
    history = PlainHistory(Random(4), lenient=True, lacking=not apis, rebalances=not apis, apis=apis)
    variants, complete = ThreeVariants(fleet, tmp_path), set()
    fleet.commit(history.files)
    for step, kind in enumerate(("", "", *kinds)):
        if kind:
            fleet.commit(history.go_on(kind), hour=step)
        runs = variants.run(step, kind)
        complete |= {kind} if kind and any(run.plan.complete for run in runs) else set()
    assert not complete


DEPENDENCIES = {
    "clusters.yaml": "---\n".join(CLUSTER % (name, "west", 1, "") for name in ("ams", "bru")),
    "policy.yaml": policy("ams", "bru", scheduling="Divided", more="  propagateDeps: true\n"),
    "web.yaml": deployment("web", 3)
    + "  template: {spec: {containers: [{name: c, image: i}], volumes: [{name: settings, configMap: {name: settings}}]}}\n---\n"
    + "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}}\n---\n"
    + "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: default}, spec: {maxReplicas: 9, "
    + "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}\n",
}
"""A workload that brings a ConfigMap along, with an autoscaler."""
PLACED = [*map(managed_cluster, ("ams", "bru")), *bound_global_set("default"), placement("one", "default", 1)]


@pytest.mark.parametrize(
    "files", [{"all.yaml": to_yaml(*PLACED, placed_config_map("web", "default", "one"))}, DEPENDENCIES], ids=["OCM", "dependencies"]
)
def test_the_run_after_the_first_decision_is_incremental(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Files
) -> None:
    """The engine reads in it for the first time what it has recorded."""
    monkeypatch.setattr(output_commit, "MAX_UNSTABLE", 0)  # as in a large source
    fleet.commit(files)
    variants = ThreeVariants(fleet, tmp_path)
    assert all(run.after and run.plan.complete for run in variants.run(0, "first"))
    second = variants.run(1, "second")
    assert not any(run.after or run.plan.complete for run in second)
    assert not any(run.update.incremental.decided.outcomes for run in second if run.update is not None)


def test_preferred_clusters_are_planned_from_the_last_state(fleet: Fleet, tmp_path: Path) -> None:
    """A cluster that nothing runs on changes what is reported about a workload that names it."""
    files: Files = {f"clusters/{name}.yaml": cluster(name) for name in ("ash", "bru", "cph")}
    files |= {f"apps/{name}.yaml": deployment(name) for name in ("one", "two", "three", "four", "five")}
    # Nothing else schedules a workload again whose replicas are divided.
    fleet.commit(files | {"policies/all.yaml": policy("", scheduling="Divided").replace("Weighted", "Aggregated")})
    variants, found, complete = ThreeVariants(fleet, tmp_path), [], []
    steps: tuple[Files, ...] = (
        {"apps/six.yaml": prefer(deployment("six"), "default", "cph,bru")},
        {"apps/one.yaml": prefer(deployment("one"), "default", "bru")},
        {"clusters/bru.yaml": cluster("bru", "power:NoSchedule")},
        {"clusters/bru.yaml": None},
        {"clusters/bru.yaml": cluster("bru")},
        {"clusters/cph.yaml": None},
    )
    variants.run(0, "first")
    for hour, changes in enumerate(steps, 1):
        fleet.commit(changes, hour=hour)
        runs = variants.run(hour, str(list(changes)))
        complete.append([run.plan.complete for run in runs])
        findings = (one for one in runs[0].plan.findings if one.code.startswith("preferred-clusters-"))
        found.append(sorted((one.resource[2] if one.resource else "", one.code.rpartition("-")[2]) for one in findings))
    assert [any(each) for each in complete] == [False, False, False, False, True, False], (
        "only a cluster that comes back needs more"
    )
    unknown = [("one", "unknown"), ("six", "unknown")]
    unused = [("one", "unused")]
    assert found == [[], unused, [*unused, ("six", "unused")], unknown, unused, [*unused, ("six", "unknown"), ("six", "unused")]]


def test_metrics_that_change_are_planned_from_the_last_state(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values: list[float | MetricFailure] = [1.0, 1.0, 9.0, MetricFailure("UNREACHABLE_METRICS_PROVIDER", "gone")]
    history, variants = PlainHistory(Random(4), lenient=True, apis=("krake",)), ThreeVariants(fleet, tmp_path)
    fleet.commit(history.files | {"krake/metric.yaml": OBSERVED_METRIC})
    for step, value in enumerate(values):
        monkeypatch.setattr(observer, "observe_queries", lambda queries, *_, value=value: {one.key: value for one in queries})
        runs = variants.run(step, f"value {value}")
        assert not step or not any(run.plan.complete for run in runs), f"value {value}"
        assert list(runs[0].plan.observations.values()) == [value]


FACTS = ("observed", "renewed", "own score", "shared", "report", "broken")
"""Kinds of commits to facts branches, each of which is planned from the state of the last run."""


def test_facts_that_change_are_planned_from_the_last_state(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_commit, "MIN_KEYED_ROWS", 0)  # as in a large source
    history, variants, complete = FactsHistory(Random(5), apis=("ocm",)), ThreeVariants(fleet, tmp_path), set()
    fleet.commit(history.files)
    history.observe(0)
    for branch, files in history.branches.items():
        commit_branch(fleet, branch, files, 0)
    for step, kind in enumerate(("", "", *FACTS)):
        for branch, changed in history.move_facts(step / 4, kind).items() if kind else ():
            commit_branch(fleet, branch, changed, step / 4)
        runs = variants.run(step / 4, kind)
        complete |= {kind} if kind and any(run.plan.complete for run in runs) else set()
    assert not complete


KEPT = ("add", "hidden again", "old", "other", "not read", "widgets", "cluster", "edit")
"""Kinds of commits to a repository with hidden files, lists and definitions, each of which is planned from the state of the last run."""


def test_files_come_and_go_beside_hidden_ones_lists_and_definitions(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_commit, "MIN_KEYED_ROWS", 0)  # as in a large source
    history, variants = SourceHistory(Random(1), "ignore", "lists", "definitions"), ThreeVariants(fleet, tmp_path)
    (fleet.path / "link.yaml").symlink_to("docs/notes.md")
    fleet.commit(history.files)
    complete = set()
    for step, kind in enumerate(("", "", *KEPT)):
        if kind:
            fleet.commit(history.go_on(kind), hour=step)
        runs = variants.run(step, kind)
        complete |= {kind} if kind and any(run.plan.complete for run in runs) else set()
    assert not complete


def test_tenants_are_planned_from_the_last_state(fleet: Fleet, tmp_path: Path) -> None:
    history, variants, complete = TenantHistory(Random(9), lenient=True), ThreeVariants(fleet, tmp_path), set()
    refused = settings_of("refused", 1, "red")
    fleet.commit(history.files | {"blue/kustomization.yaml": "resources: [own.yaml]\n", "blue/refused.yaml": refused})
    for step, kind in enumerate(("first", "second", *KEPT_RULES)):
        if step > 1:
            fleet.commit(history.go_on(kind), hour=step)
        runs = variants.run(step, kind)
        complete |= {kind} if any(run.plan.complete for run in runs) else set()
    assert complete == {"first"}


def test_an_evicted_copy_gets_its_own_manifest_beside_a_retained_one(fleet: Fleet, tmp_path: Path) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    files = {f"{name}.yaml": CLUSTER % (name, "east", 1, "") for name in ("ams", "dub")}
    files |= {"gitsched.yaml": SETTINGS % {**PLAIN, "overlap": "10m"}, "policy.yaml": write_policy("one", "east", "Divided")}
    fleet.commit(files | {"web.yaml": DEPLOYMENT % {"name": "web", "team": "blue", "lane": "one", "number": 4, "more": ""}})
    variants.run(0, "first")
    fleet.commit({"ams.yaml": CLUSTER % ("ams", "east", 1, TAINT % "NoExecute")}, hour=1)
    variants.run(1, "evicted")
    fleet.commit({"policy.yaml": write_policy("one", "east", "Duplicated")}, hour=1.1)
    runs = variants.run(1.1, "duplicated")
    assert not any(run.plan.complete for run in runs)


def test_the_end_of_a_toleration_changes_why_a_workload_has_no_cluster(fleet: Fleet, tmp_path: Path) -> None:
    more = (
        "    clusterTolerations: [{key: power, effect: NoExecute, operator: Exists, tolerationSeconds: 600}]\n"
        "    spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 2}]\n"
    )
    files = {"ams.yaml": cluster("ams", "power:NoExecute"), "policy.yaml": policy("ams", more=more), "web.yaml": deployment("web")}
    variants = ThreeVariants(fleet, tmp_path)
    fleet.commit(files)
    runs = variants.run(0, "first")
    assert [run.plan.next_wakeup for run in runs] == [at_hour(1 / 6)] * len(runs)
    fleet.commit({"new.yaml": deployment("new", namespace="other")}, hour=0.1)
    variants.run(0.1, "before")
    fleet.commit({"new.yaml": deployment("new", 3, namespace="other")}, hour=1)
    runs = variants.run(1, "after")
    assert not any(run.plan.complete for run in runs)
    assert all("in the process of eviction" in find_message(run, "unschedulable") for run in runs)


def test_a_freeze_withholds_that_an_object_without_replicas_goes_to_more_clusters(fleet: Fleet, tmp_path: Path) -> None:
    spread = "\n".join(CLUSTER % (name, "east", 1, "") + "---" for name in ("ams", "bru"))
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {guard: {freeze: audit}}\n"
    placed = policy("ams", name="maps", kind="ConfigMap").replace("apps/v1", "v1")
    variants = ThreeVariants(fleet, tmp_path)
    fleet.commit({"clusters.yaml": spread, "maps.yaml": placed, "map.yaml": settings_of("one", 1), "gitsched.yaml": settings})
    variants.run(0, "first")
    variants.run(1, "second")
    fleet.commit({"maps.yaml": placed.replace("ams", "ams, bru")}, hour=2)
    runs = variants.run(2, "frozen")
    assert [(run.plan.complete, len(run.plan.withheld.moves)) for run in runs] == [(False, 1), (False, 1)]


def find_message(run: RunResult, code: str) -> str:
    (finding,) = (finding for finding in run.plan.findings if finding.code == code)
    return finding.message


NEW = {"name": "new", "team": "blue", "lane": "one", "number": 2, "more": ""}
MOVES: tuple[tuple[float, Files], ...] = (
    (60, {"policies/one.yaml": write_policy("one", "west", "Duplicated")}),
    (61, {}),
    (62, {"README.md": "other"}),
    (63, {"policies/two.yaml": write_policy("two", "east", "Divided"), "blue/new.yaml": DEPLOYMENT % NEW}),
    (64, {"clusters/edi.yaml": CLUSTER % ("edi", "west", 1, "")}),
    (66, {"blue/new.yaml": DEPLOYMENT % {**NEW, "number": 7}, "namespaces/blue.yaml": NAMESPACE % ("blue", "team", 1)}),
    (70, {}),
    (76, {}),
)
"""The minute of each commit, or of a run without one, and its changes. The overlap is 10 minutes."""


def test_moves_with_an_overlap_are_planned_from_the_last_state(fleet: Fleet, tmp_path: Path) -> None:
    history, variants = PlainHistory(Random(4), lenient=True, overlap="10m"), ThreeVariants(fleet, tmp_path)
    fleet.commit(history.files | {"policies/one.yaml": write_policy("one", "east", "Duplicated")})
    variants.run(0, "first")
    variants.run(0, "second")
    complete, retained, ended = [], 0, 0
    for minute, changes in MOVES:
        if changes:
            fleet.commit(changes, hour=minute / 60)
        runs = variants.run(minute / 60, f"minute {minute}")
        complete += [minute for run in runs if run.plan.complete]
        retained, ended = retained + bool(runs[0].plan.retained), ended + len(runs[0].plan.ended)
    assert not complete
    assert retained >= 5, "copies stay in most of these runs"
    assert ended >= 6


MISTAKE = {"name": "app0", "lane": "one", "number": 2, "more": ""}
WITHHELD: tuple[Files, ...] = (
    dict.fromkeys(f"blue/{number}.yaml" for number in range(4)),
    {},
    {"green/0.yaml": DEPLOYMENT % {**MISTAKE, "team": "green", "number": 5}},
    {"policies/one.yaml": write_policy("one", "east", "Duplicated")},
)
"""Commits while the removal of all applications of a team is withheld: a mistake, and changes of others."""


def test_withheld_changes_are_planned_from_the_last_state(fleet: Fleet, tmp_path: Path) -> None:
    files = {"clusters.yaml": "---\n".join(CLUSTER % (name, "east", 1, "") for name in ("ams", "bru"))}
    files["policies/one.yaml"] = write_policy("one", "east", "Divided")
    for team, count in (("blue", 4), ("green", 1)):
        files |= {f"{team}/{n}.yaml": DEPLOYMENT % {**MISTAKE, "team": team, "name": f"app{n}"} for n in range(count)}
    variants = ThreeVariants(fleet, tmp_path)
    fleet.commit(files)
    variants.run(0, "first")
    runs = [variants.run(1, "second")]
    for step, changes in enumerate(WITHHELD, 2):
        if changes:
            fleet.commit(changes, hour=step)
        runs.append(variants.run(step, f"step {step}"))
    digests = [run.plan.withheld.digest for run, _ in runs]
    fleet.commit({"README.md": "approved"}, hour=9, message=f"Approve\n\nGitsched-Allow: {digests[-1]}")
    runs.append(variants.run(9, "approved"))
    assert not any(run.plan.complete for both in runs for run in both)
    assert digests[0] == ""
    assert len(set(digests)) == 2
    assert [len(run.plan.moves) for run, _ in runs] == [0, 0, 0, 1, 1, 4]


def test_moves_that_an_edit_causes_are_planned_from_the_last_state(fleet: Fleet, tmp_path: Path) -> None:
    """Only moves without an edit have to wait for a later period, and only a complete plan tells which."""
    names = [f"w{number}" for number in range(MIN_PERCENT_SIZE + 2)]
    files: Files = {
        f"clusters/{name}.yaml": cluster(name).replace("metadata:", "metadata:\n  labels: {pool: a}") for name in ("ash", "bru")
    }
    files |= {f"apps/{name}.yaml": deployment(name) for name in names} | {"policies/all.yaml": policy("")}
    chosen = policy("", name="chosen").replace("labelSelector: {}", "labelSelector: {matchLabels: {pool: a}}")
    files["policies/chosen.yaml"] = chosen.replace("kind: Deployment}", "kind: Deployment, name: w0}")
    fleet.commit(files)
    variants = ThreeVariants(fleet, tmp_path)
    variants.run(0, "first")
    edited = {"clusters/bru.yaml": str(files["clusters/bru.yaml"]).replace("pool: a", "pool: b")}
    for hour, changes in enumerate(({"README.md": "nothing"}, edited), 1):
        fleet.commit(changes, hour=hour)
        runs = variants.run(hour, str(list(changes)))
    assert [[str(move.key) for move in run.plan.moves] for run in runs] == 2 * [["Deployment.apps/default/w0"]]
    assert not any(run.plan.complete for run in runs)


def test_findings_about_selectors_follow_the_edits_of_policies(fleet: Fleet, tmp_path: Path) -> None:
    """What matches nothing is not searched again where only other fields of policies change; where it is written may."""
    other = policy("", name="other").replace("kind: Deployment}", "kind: Deployment, name: wbe}")
    labels = policy("", name="labels").replace("kind: Deployment}", "kind: Deployment, labelSelector: {matchLabels: {app: wbe}}}")
    web = deployment("web").replace("  namespace:", "  labels: {app: web}\n  namespace:")
    clusters: Files = {f"clusters/{name}.yaml": cluster(name) for name in ("ash", "bru")}
    fleet.commit({**clusters, "web.yaml": web, "other.yaml": other, "labels.yaml": labels, "all.yaml": policy("")})
    variants = ThreeVariants(fleet, tmp_path)
    variants.run(0, "first")
    steps: tuple[Files, ...] = (
        {"README.md": "nothing"},
        {"labels.yaml": f"# A comment\n{labels}"},
        {"other.yaml": policy("ash", name="other").replace("kind: Deployment}", "kind: Deployment, name: wbe}")},
        {"other.yaml": policy("ash", name="other").replace("kind: Deployment}", "kind: Deployment, name: we}")},
        {"labels.yaml": labels.replace("wbe", "web")},
    )
    found = []
    for hour, changes in enumerate(steps, 1):
        fleet.commit(changes, hour=hour)
        run = variants.run(hour, str(list(changes)))[0]
        assert not run.plan.complete
        about = (one for one in run.plan.findings if one.code == "karmada-selects-nothing")
        found.append(
            [(one.location.text if one.location else "", one.message.partition(" has no ")[2].partition(";")[0]) for one in about]
        )
    label, name = "Deployment with app=wbe", "Deployment wbe"
    assert found[0] == [("labels.yaml:8", label), ("other.yaml:8", name)]
    assert found[1] == [("labels.yaml:9", label), ("other.yaml:8", name)]
    assert found[2] == found[1]
    assert found[3] == [("labels.yaml:9", label), ("other.yaml:8", "Deployment we")]
    assert found[4] == found[3][1:]


def test_findings_about_override_policies_follow_edits_of_all_they_read(fleet: Fleet, tmp_path: Path) -> None:
    """An override policy that names a workload in clusters where it is not is reported, and one that selects nothing."""
    override = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: o, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {labelSelector: {matchLabels: {pool: a}}}
    overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}
"""
    pool_a, pool_b = (
        cluster(name).replace("metadata:\n", f"metadata:\n  labels: {{pool: {pool}}}\n")
        for name, pool in (("ash", "a"), ("bru", "b"))
    )
    moved = override.replace("pool: a", "pool: b")
    fleet.commit(
        {
            "clusters/ash.yaml": pool_a,
            "clusters/bru.yaml": pool_b,
            "web.yaml": deployment("web"),
            "api.yaml": deployment("api"),
            "all.yaml": policy("ash"),
        }
    )
    variants = ThreeVariants(fleet, tmp_path)
    variants.run(0, "first")
    steps: tuple[tuple[Files, list[str]], ...] = (
        ({"o.yaml": override}, []),
        ({"o.yaml": moved}, ["override-unused o.yaml:8"]),
        ({"o.yaml": f"# A comment\n{moved}"}, ["override-unused o.yaml:9"]),
        ({"api.yaml": deployment("api", replicas=3)}, ["override-unused o.yaml:9"]),
        ({"clusters/ash.yaml": pool_a.replace("pool: a", "pool: b")}, []),
        ({"clusters/ash.yaml": pool_a}, ["override-unused o.yaml:9"]),
        ({"o.yaml": moved.replace("name: web", "name: wbe")}, ["karmada-selects-nothing o.yaml:5"]),
        ({"o.yaml": "# A comment\n" + moved.replace("name: web", "name: wbe")}, ["karmada-selects-nothing o.yaml:6"]),
        ({"o.yaml": moved.replace("name: web", "name: api")}, ["override-unused o.yaml:8"]),
        ({"o.yaml": None}, []),
    )
    for hour, (changes, expected) in enumerate(steps, 1):
        fleet.commit(changes, hour=hour)
        run = variants.run(hour, str(list(changes)))[0]
        about = (one for one in run.plan.findings if one.resource and one.resource[0] == "OverridePolicy")
        assert [f"{one.code} {one.location.text if one.location else ''}" for one in about] == expected, changes
        assert not run.plan.complete, changes
