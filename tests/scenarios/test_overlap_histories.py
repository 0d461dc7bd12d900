"""Random histories: whatever moves workloads, and however late the runs are, no commit takes a copy away before its replacement is there.

Between two consecutive commits a workload that stays wanted only gets replicas or only loses them: what is removed was replaced in an
earlier commit, so the delivered replicas never fall below the lesser of those before and those after, nor below the lesser of those before
and those that are wanted, also where the manifest of a cluster does not change. Copies whose overlap was over before the run do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from random import Random
from typing import Any

import pytest
import yaml

from gitsched.decide.plan_result import Plan
from gitsched.model.scheduling import Outcome
from gitsched.reconcile import Reconciler
from gitsched.render.output_files import relative_path
from tests.scenarios.conftest import START, Fleet, allow_withheld, cluster, deployment, policy
from tests.scenarios.histories import POLICIES, Files, History
from tests.scenarios.test_undelivered_replacements import FAILING
from tests.search_depth import count_examples

APIS = ((), ("ocm",), ("ocm", "krake"), ("knative", "ocm"))
STEPS, DEADLINES = 8, 12
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: crunch, namespace: default}
spec: {parallelism: %d, completions: 8, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
"""
HINDRANCES = ("policies/fails.yaml", "policies/mirror.yaml", "apps/copy.yaml", ".sourceignore")
"""Files that may keep a workload from moving."""
MAXIMUM = timedelta(hours=1)
ANY = 1_000
Deliveries = Mapping[str, Mapping[str, int]]


def move_more(dice: Random, changes: Files) -> Files:
    """Return changes that often move workloads. Without an autoscaler: the numbers in the manifests of its target do not count."""
    if dice.random() < 0.4:
        changes |= {"policies/all.yaml": dice.choice(POLICIES)}
    if dice.random() < 0.3:
        name = dice.choice(("first", "second", "third"))
        changes |= {f"clusters/{name}.yaml": dice.choice((cluster(name), cluster(name, "power:NoExecute")))}
    if dice.random() < 0.3:
        jobs = dice.choice(POLICIES).replace("name: all", "name: jobs").replace("apps/v1, kind: Deployment", "batch/v1, kind: Job")
        changes |= {"policies/jobs.yaml": jobs, "apps/job.yaml": JOB % dice.choice((2, 4))}
    if dice.random() < 0.3:
        changes |= {"policies/fails.yaml": FAILING.replace("bru", dice.choice(("first", "second", "nowhere")))}
    return {path: text for path, text in changes.items() if path != "apps/scaler.yaml"}


def read_deliveries(fleet: Fleet, commit: str) -> dict[str, dict[str, int]]:
    """Return the replicas of each manifest by cluster: those of a Deployment, StatefulSet or Job, else one. A manifest whose number is
    none has as many as any."""
    found: dict[str, dict[str, int]] = {}
    for path, blob in fleet.files(commit).items():
        parts = path.split("/", 2)
        if parts[0] == "clusters" and "/" in parts[2] and "/namespace-" not in f"/{parts[2]}":
            found.setdefault(parts[2], {})[parts[1]] = count_replicas(fleet, blob)
    return found


@lru_cache(maxsize=10_000)
def count_replicas(fleet: Fleet, blob: str) -> int:
    document: Any = yaml.safe_load(fleet.git("cat-file", "blob", blob))
    fields = {"Deployment": "replicas", "StatefulSet": "replicas", "Job": "parallelism"}
    kind = document.get("kind") if isinstance(document, dict) else None
    replicas = document["spec"].get(fields[kind], 1) if kind in fields else 1
    return replicas if isinstance(replicas, int) else ANY


def list_wanted(outcome: Outcome) -> set[str]:
    """Return the paths of a workload that is still selected."""
    keys = [outcome.key] if outcome.manifests is None else [key for key, _ in outcome.manifests]
    return set(map(relative_path, keys))


def count_wanted(outcome: Outcome) -> int:
    """Return the replicas that a placed workload gets in all its clusters, one for each copy of an object without replicas."""
    full = outcome.replicas if outcome.replicas is not None else 1
    return sum(full if count is None else count for count in outcome.replicas_by_cluster.values()) * (outcome.state == "placed")


def leave_out_ended(deliveries: Deliveries, new: Deliveries, last: Plan | None, now: datetime) -> dict[str, Mapping[str, int]]:
    """Return the deliveries as if a run had removed the copies of the last plan whose overlap is over, except what is in the `new` ones and
    what has no replacement."""
    found = dict(deliveries)
    for copy in last.retained if last is not None else ():
        if last is None or copy.until is None or copy.until > now:
            continue
        outcome = last.outcomes.get(copy.workload)
        decided = outcome.replicas_by_cluster.get(copy.cluster, 0) if outcome is not None else 0
        for path in (path.split("/", 2)[2] for path in copy.paths):
            if copy.cluster in found.get(path, {}):
                staying = max(1 if decided is None else decided, new.get(path, {}).get(copy.cluster, 0))
                found[path] = {**found[path], copy.cluster: min(found[path][copy.cluster], staying)}
    wanted = {path: count_wanted(one) for one in (last.outcomes.values() if last is not None else ()) for path in list_wanted(one)}
    return {
        path: {name: count for name, count in counts.items() if count}
        if sum(counts.values()) >= wanted.get(path, 1)
        else deliveries[path]
        for path, counts in found.items()
    }


def check_step(before: Deliveries, after: Deliveries, plan: Plan) -> None:
    wanted = {path: count_wanted(outcome) for outcome in plan.outcomes.values() for path in list_wanted(outcome)}
    for path in before.keys() & wanted:
        one, other = before[path], after.get(path, {})
        if ANY in (*one.values(), *other.values()):
            one, other = dict.fromkeys(one, 1), dict.fromkeys(other, 1)
        else:
            assert sum(other.values()) >= min(sum(one.values()), wanted[path]), (path, one, other, wanted[path])
        if "/job.batch-" in path:
            continue  # its copies do not overlap
        common = sum(min(count, other.get(cluster, 0)) for cluster, count in one.items())
        assert common >= min(sum(one.values()), sum(other.values())), (path, one, other)
        assert not one or other.keys() & one.keys(), f"{path} has no copy that both commits have: {one} -> {other}"


def check_ends(plan: Plan, now: datetime) -> None:
    for copy in plan.retained:
        assert copy.start is None or (copy.until is not None and copy.until <= copy.start + MAXIMUM), copy
        assert copy.start is None or copy.start <= now, copy


@pytest.mark.search
@pytest.mark.parametrize("seed", range(count_examples(1)))
def test_no_commit_takes_a_copy_away_before_its_replacement_is_there(fleet: Fleet, seed: int) -> None:
    dice = Random(seed)
    history = History(dice, APIS[seed % len(APIS)])
    fleet.commit(move_more(dice, history.files))
    last: Plan | None = None
    hour, deliveries, retained = 0.0, {}, 0

    def run(now: float) -> Plan:
        nonlocal deliveries, retained, last
        result = Reconciler(settings := allow_withheld(fleet.settings(now))).run(settings.now)
        if result.after is not None:
            new = read_deliveries(fleet, result.after)
            check_step(leave_out_ended(deliveries, new, last, settings.now), new, result.plan)
            deliveries = new
        check_ends(result.plan, settings.now)
        retained, last = retained + len(result.plan.retained), result.plan
        return result.plan

    for _ in range(STEPS):
        gap = dice.choice((0.05, 0.1, 0.3, 1, 2.5))
        now, end = hour + dice.choice((0, 0, 0.01, gap / 2)), hour + gap
        for _ in range(DEADLINES):
            wakeup = run(now).next_wakeup
            due = max((wakeup - START) / timedelta(hours=1), now + 0.001) + dice.choice((0, 0, 0.05)) if wakeup is not None else end
            if due >= end:
                break
            now = due
        hour = end
        fleet.commit(move_more(dice, history.go_on(0.3)), hour=hour)
    for step, names in enumerate(("first", "second")):  # what came before may have moved nothing
        free: Files = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}
        free |= {path: None for path in HINDRANCES if (fleet.path / path).exists()}
        fleet.commit({**free, "apps/web.yaml": deployment("web"), "policies/all.yaml": policy(names)}, hour=hour + step)
        run(hour + step)
    assert retained > 0, "nothing was ever retained"
    for _ in range(DEADLINES):
        hour += 24
        run(hour)
    assert last is not None
    assert all(copy.start is None for copy in last.retained), "a copy with a replacement stays for ever"


def read_output(fleet: Fleet, branch: str) -> dict[str, object]:
    """Return the files, the clocks and the dates of a branch. Findings about expired scores depend on the second of the run."""
    clocks = fleet.load("gitsched.json", branch)
    files = {path: blob for path, blob in fleet.files(branch).items() if path not in ("README.md", "gitsched.json")}
    times = fleet.git("log", "--format=%ct %s", branch)
    return {**files, "": times, **{name: clocks.get(name) for name in ("retainedCopies", "retiring", "time")}}


@pytest.mark.search
@pytest.mark.parametrize("seed", range(count_examples(1)))
def test_runs_that_are_late_by_less_than_a_tenth_of_the_overlap_write_the_same(fleet: Fleet, seed: int) -> None:
    dice = Random(seed)
    history = History(dice, APIS[(seed + 1) % len(APIS)])
    fleet.commit(move_more(dice, history.files))
    hour = 0.0
    for step in range(STEPS // 2):
        gap = dice.choice((0.1, 0.3, 1, 2.5))
        heads = []
        for branch, most in (("punctual", 0.0), ("late", 55.0)):
            now = hour
            for _ in range(DEADLINES):
                settings = allow_withheld(fleet.settings(now + dice.uniform(0, most) / 3600, output_branch=branch))
                wakeup = Reconciler(settings).run(settings.now).plan.next_wakeup
                if wakeup is None or (wakeup - START) / timedelta(hours=1) >= hour + gap - 0.02:
                    break
                now = (wakeup - START) / timedelta(hours=1)
            heads.append(read_output(fleet, branch))
        assert heads[0] == heads[1], f"step {step}"
        hour += gap
        fleet.commit(move_more(dice, history.go_on(0.3)), hour=hour)
