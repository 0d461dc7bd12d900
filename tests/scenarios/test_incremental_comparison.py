"""Reports of comparisons that start from the state of the last run are byte-identical to those of complete plans.

A history goes on while runs follow it now and then. After each step, a random one of the last commits is compared with the output branch or
with another of them: by complete plans, and with the cache of the runs or without any.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from gitsched.apis.gitsched.guard_config import GuardLimit
from gitsched.cli.formats import ReviewRenderer, format_json
from gitsched.cli.reports import format_outputs, list_review_writers
from gitsched.reconcile.cache.plan_cache import PlanCache
from gitsched.reconcile.cache.plan_file import PlanFile
from gitsched.reconcile.incremental import new_state
from gitsched.reconcile.review.comparison import PlanComparison, compare_plans
from gitsched.reconcile.review.fleet_view import view_fleet
from gitsched.report.markdown import write_markdown
from gitsched.report.page import write_page
from gitsched.report.saved_plan import serialize_saved_plan
from gitsched.report.serialization import serialize_review
from gitsched.report.text import write_plan
from tests.scenarios import test_shared_capacity as capacity
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.facts_histories import FACTS, commit_branch, format_hour
from tests.scenarios.facts_histories import SETTINGS as FACTS_SETTINGS
from tests.scenarios.histories import CLASS, PRIORITY, REBALANCER, SCALER, TAINTS, TOLERANT, WORKLOADS, Files, History, settings_of
from tests.scenarios.plain_histories import PLAIN, PlainHistory
from tests.scenarios.plain_histories import SETTINGS as PLAIN_SETTINGS
from tests.scenarios.test_dependencies import workload
from tests.scenarios.test_overrides import UNFIT, mirror

pytestmark = pytest.mark.usefixtures("bugs_are_raised")


@pytest.fixture(autouse=True)
def keep_small_bases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0)


SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec: {output: {overlap: %s}, karmada: {failback: %s}, guard: {fleet: {removed: 100, moved: 100}, cluster: {removed: 100}}}
"""
GUARDED = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec: {guard: {fleet: {removed: 40, moved: 40, replicasLost: 40}, workload: {replicasLost: 40}%s}}
"""
TENANT = """\
apiVersion: gitsched.io/v1alpha1
kind: Tenant
metadata: {name: web}
spec: {paths: [apps], namespaces: [default]}
"""
SPREAD = "    spreadConstraints: [{spreadByField: region, minGroups: 1, maxGroups: 1}]\n"
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: store, namespace: default}
spec: {selector: {app: store}, ports: [{port: 80}]}
"""
COMPANIONS = ("karmada: {autoscalerLimits: divide, ", "karmada: {", "followTargets: true, karmada: {preemption: true, ")
PLACES = ("first", "second", "third")


LIMITS = (GuardLimit("cluster", "removed", 100), GuardLimit("namespace", "moved", 60))


def start_ocm(dice: Random) -> History:
    return History(dice, ("ocm",))


def write_reports(compared: PlanComparison) -> dict[str, str]:
    """Return the report of a comparison in each format that needs no complete plan."""
    review = compared.review
    writers = list_review_writers(ReviewRenderer(review), only_new=True)
    return {
        "json": format_json(serialize_review(review)),
        "saved": format_json(serialize_saved_plan(review, compared.delivered)),
        "text": write_plan(review, 100, each=True),
        "groups": write_plan(review, 100),
        "markdown": write_markdown(review),
        "env": format_outputs(review),
        **{form: write() for form, write in writers.items()},
    }


def write_html(compared: PlanComparison) -> str:
    """Return the page of a comparison."""
    return write_page(compared.review, compared.fleet or view_fleet(compared.context, compared.later, compared.review))


class PolicyHistory:
    """Commits that change policies, overrides, clusters and workloads where no decision depends on another one."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self.files: Files = {f"clusters/{name}.yaml": cluster(name) for name in PLACES}
        self.files |= {f"apps/{name}.yaml": deployment(name) for name in WORKLOADS}
        self.files |= {"apps/map.yaml": settings_of("conf", 1), "policies/all.yaml": policy("first", "second")}
        self.files["gitsched.yaml"] = SETTINGS % (dice.choice(("0s", "10m")), dice.choice(("Never", "{AfterStabilization: 30m}")))

    def go_on(self, small: float) -> Files:
        """Return the changes of the next commit."""
        changes = {path: text for path, text in self._draw(small).items() if text is not None or self.files.get(path) is not None}
        self.files |= changes
        return changes

    def _draw(self, small: float) -> Files:
        """Return changes; `small` is the probability that it only edits workloads."""
        dice = self._dice
        name, place = dice.choice(WORKLOADS), dice.choice((*PLACES, "fourth"))
        maps = policy(dice.choice(("", "second")), name="maps", kind="ConfigMap")
        if dice.random() < small / 2:
            return {f"apps/{name}.yaml": deployment(name, dice.randrange(1, 9))}
        return dice.choice(
            (
                {"policies/all.yaml": self._draw_policy()},
                {"policies/all.yaml": "# moved\n" + self._draw_policy()},
                {"policies/all.yaml": self._draw_policy(), f"apps/{name}.yaml": deployment(name, dice.randrange(1, 9))},
                {"policies/maps.yaml": maps},
                {"policies/maps.yaml": maps, "policies/all.yaml": self._draw_policy()},
                {"policies/other.yaml": dice.choice((None, self._draw_policy("other")))},
                {
                    "policies/mirror.yaml": dice.choice(
                        (None, mirror("other.example.net", "first", place, more=dice.choice(("", UNFIT))))
                    )
                },
                {"policies/dead.yaml": dice.choice((None, TAINTS))},
                {f"clusters/{place}.yaml": dice.choice((self._draw_cluster(place), self._draw_cluster(place), None))},
                {f"clusters/{place}.yaml": self._draw_cluster(place)},
                {f"clusters/{place}.yaml": self._draw_cluster(place), "policies/maps.yaml": maps},
                {f"clusters/{place}.yaml": self._draw_cluster(place), "policies/all.yaml": self._draw_policy()},
                {f"apps/{name}.yaml": dice.choice((None, deployment(name)))},
            )
        )

    def _draw_policy(self, name: str = "all") -> str:
        dice = self._dice
        groups = dice.choice(
            (("first",), ("second",), ("first,third", "second"), ("third", "first"), ("",), ("tier",), ("tier", "second"))
        )
        text = policy(
            *groups, name=name, scheduling=dice.choice(("Divided", "Duplicated")), more=dice.choice(("", TOLERANT, SPREAD))
        )
        return text.replace("clusterNames: [tier]", "labelSelector: {matchLabels: {tier: gold}}")

    def _draw_cluster(self, name: str) -> str:
        dice = self._dice
        taints = dice.choice(((), (), ("power:NoExecute",), ("power:NoSchedule",)))
        text = cluster(name, *taints, region=dice.choice(("north", "south")))
        tier, ready = dice.choice(("gold", "gold", "none")), dice.choice(("True", "True", "False"))
        text = text.replace("metadata:", f"metadata:\n  labels: {{tier: {tier}}}", 1)
        return text + dice.choice(("", f"status: {{conditions: [{{type: Ready, status: '{ready}'}}]}}\n"))


class DependentHistory(PolicyHistory):
    """The same commits where policies bring along what their workloads read and have priorities, with companions and autoscalers."""

    def __init__(self, dice: Random) -> None:
        super().__init__(dice)
        self._maps = dice.choice((True, False, False))
        self.files |= {
            "apps/gold.yaml": CLASS % 7,
            "apps/scaler.yaml": SCALER % ("web", 9),
            "apps/store.yaml": SERVICE,
            "apps/more.yaml": settings_of("more", 1),
        }
        self.files |= {f"apps/{name}.yaml": workload(name, "configmap/conf") for name in WORKLOADS[:2]}
        self.files["policies/all.yaml"] = policy("first", "second", more="  propagateDeps: true\n")
        self.files["gitsched.yaml"] = f"{self.files['gitsched.yaml']}".replace("karmada: {", dice.choice(COMPANIONS))

    def _draw(self, small: float) -> Files:
        dice, name = self._dice, self._dice.choice(WORKLOADS)
        changes = super()._draw(small)
        if not self._maps:
            changes.pop("policies/maps.yaml", None)
        more: Files = dice.choice(
            (
                {},
                {},
                {"apps/scaler.yaml": dice.choice((None, SCALER % (name, dice.randrange(2, 9))))},
                {"apps/map.yaml": settings_of("conf", dice.randrange(9))},
                {f"apps/{name}.yaml": workload(name, "configmap/conf", dice.choice(("configmap/conf", "configmap/more")))},
            )
        )
        return {**changes, **more}

    def _draw_policy(self, name: str = "all") -> str:
        text, dice = super()._draw_policy(name), self._dice
        return text + dice.choice(("", *["  propagateDeps: true\n"] * 5)) + dice.choice(("", "", PRIORITY, "  priority: 2\n"))


class OtherApisHistory(PlainHistory):
    """Commits that change Applications in namespaces of their own and sources of events as often as policies and workloads of Karmada."""

    def __init__(self, dice: Random) -> None:
        super().__init__(dice, lenient=True, overlap=dice.choice(("0s", "10m")), apis=("krake", "knative"))

    def go_on(self, _small: float | str = 1) -> Files:
        kinds = (*self._change_krake(), *self._change_knative(), "policy", "cluster", "edit")
        return super().go_on(self._dice.choice(kinds) if self._dice.random() < 0.7 else "")

    def _write_application(self, number: int) -> str:
        return re.sub(r"namespace: (?!tenant)\w+", f"namespace: team{number}", super()._write_application(number))


def is_current(fleet: Fleet, path: Path) -> bool:
    """Return whether a file has the state of the output as it is, not of an earlier run."""
    file = PlanFile.open(path)
    cache = PlanCache.open(file, "", is_key_checked=True) if file is not None else None
    return cache is not None and cache.header.output_tree == fleet.git("rev-parse", "placements^{tree}")


def play(
    fleet: Fleet, where: Path, seed: int, steps: int, start: Callable[[Random], History | PolicyHistory | PlainHistory] = start_ocm
) -> tuple[int, int, int]:
    """Go through a history; return the number of comparisons of incremental plans, of those with a move that has a proved cause, and of
    those with changed documents of policy APIs."""
    dice, hour, incremental, explained, policies = Random(seed), 0.0, 0, 0, 0
    history = start(dice)
    commits = [fleet.commit(history.files)]
    fleet.reconcile()
    for step in range(steps):
        hour += dice.choice((0, 0.1, 0.1, 2))
        texts = dice.choice(({}, {"README.md": f"{step}\n"}, {f"docs/{step}.md": "", ".github/workflows/plan.yaml": f"{step}\n"}))
        changed = history.go_on(dice.choice((1, 1, 0.7)))
        commits.append(fleet.commit({**changed, **texts}, hour=hour + dice.choice((0, 0, -1, 3))))
        head, base = (dice.choice(commits[-3:]) for _ in range(2))
        limits = dice.choice(((), (), (), LIMITS))
        settings = fleet.settings(hour + dice.choice((0, 0, 0.4)), revision=head, trusted=False, guard_limits=limits)
        name = dice.choice((base, None))
        before = {path: path.read_bytes() for path in fleet.cache.glob("plan-*") if is_current(fleet, path)}
        found = compare_plans(settings, name, shows_fleet=bool(step % 2))
        assert {path: path.read_bytes() for path in before} == before, "a comparison only reads the state of the last run"
        whole = compare_plans(settings._replace(cache=where / f"complete-{step}"), name, complete=True)
        assert whole.run.plan.complete
        assert write_reports(found) == write_reports(whole), f"step {step}"
        if step % 2:
            assert write_html(found) == write_html(whole), f"step {step}"
        if step % 4 == 3:  # without a cache, incremental plans start from the complete one of the base
            uncached = compare_plans(settings._replace(cache=where / f"none-{step}"), name)
            assert write_reports(uncached) == write_reports(whole), f"step {step} without a cache"
        incremental += not found.run.plan.complete
        explained += not found.run.plan.complete and any(cause.proved for move in found.review.moves for cause in move.causes)
        updates = [one.update for one in (found.earlier, found.later) if one is not None and one.update is not None]
        policies += any(update.incremental.changes.api_documents for update in updates)
        if dice.random() < 0.6:
            fleet.reconcile(hour)
    return incremental, explained, policies


def test_a_pull_request_without_a_cache_is_planned_from_its_base(fleet: Fleet, tmp_path: Path) -> None:
    files = PolicyHistory(Random(3)).files
    base = fleet.commit(files)
    fleet.reconcile()
    head = fleet.commit({"policies/all.yaml": policy("all", PLACES[1])})
    settings = fleet.settings(1, revision=head)._replace(cache=tmp_path / "none")
    found, whole = compare_plans(settings, base), compare_plans(settings, base, complete=True)
    assert not found.run.plan.complete
    assert whole.run.plan.complete
    assert write_reports(found) == write_reports(whole)


@pytest.mark.parametrize(("start", "seed", "steps"), [(PolicyHistory, 8, 4), (DependentHistory, 203, 4)])
def test_reports_of_changed_policies_are_the_same_whichever_way_the_plans_are_made(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture, start: Callable[[Random], PolicyHistory], seed: int, steps: int
) -> None:
    caplog.set_level(logging.CRITICAL)
    _, explained, policies = play(fleet, tmp_path, seed, steps, start)
    assert explained
    assert policies


@pytest.mark.parametrize(("start", "seed", "steps"), [(start_ocm, 7, 5), (OtherApisHistory, 2, 4)], ids=["ocm", "krake, knative"])
def test_reports_are_the_same_whichever_way_the_plans_are_made(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture, start: Callable[[Random], History], seed: int, steps: int
) -> None:
    caplog.set_level(logging.CRITICAL)
    incremental, explained, _ = play(fleet, tmp_path, seed, steps, start)
    assert incremental
    assert explained


@pytest.mark.parametrize(("start", "limits"), [(PolicyHistory, LIMITS), (OtherApisHistory, ())], ids=["--guard", "krake, knative"])
def test_a_pull_request_is_planned_from_the_last_state(
    fleet: Fleet, start: Callable[[Random], PolicyHistory | PlainHistory], limits: tuple[GuardLimit, ...]
) -> None:
    files = start(Random(5)).files
    base = fleet.commit(files)
    fleet.reconcile()
    fleet.reconcile(0.1)
    path = next(path for path, text in files.items() if "kind: Deployment" in str(text) and path.startswith(("apps/", "blue/")))
    head = fleet.commit({path: str(files[path]).replace("replicas: ", "replicas: 1")}, hour=0.1)
    found = compare_plans(fleet.settings(0.1, revision=head, trusted=False, guard_limits=limits), base, shows_fleet=True)
    assert not found.run.plan.complete
    assert found.fleet is not None
    assert {move.key for move in found.review.moves} <= found.fleet.explanations.keys()
    assert found.review.moves


NAMES = tuple(f"web-{number}" for number in range(12))
LARGE_CHANGES: dict[str, Files] = {
    "replicas": {f"apps/{name}.yaml": deployment(name, 1) for name in NAMES},
    "removals": {f"apps/{name}.yaml": None for name in NAMES[1:]},
    "moves": {"policies/all.yaml": policy(PLACES[1])},
    "a policy less": {"policies/all.yaml": None},
    "moves of a tenant": {"tenants.yaml": TENANT, "policies/all.yaml": policy(PLACES[1])},
    "a freeze": {"apps/web-0.yaml": deployment("web-0", 3)},
}


@pytest.mark.parametrize("changes", LARGE_CHANGES.values(), ids=LARGE_CHANGES)
def test_changes_over_limits_of_the_guard_are_reported_from_the_last_state(fleet: Fleet, tmp_path: Path, changes: Files) -> None:
    freeze = ", freeze: audit" if len(changes) == 1 and "apps/web-0.yaml" in changes else ""
    files: Files = {f"clusters/{name}.yaml": cluster(name) for name in PLACES}
    files |= {f"apps/{name}.yaml": deployment(name, 8) for name in NAMES} | {"policies/all.yaml": policy(PLACES[0])}
    files |= {"gitsched.yaml": GUARDED % freeze, "tenants.yaml": changes.get("tenants.yaml")}
    base = fleet.commit({path: text for path, text in files.items() if text is not None})
    fleet.reconcile()
    settings = fleet.settings(1, revision=fleet.commit(changes, hour=1), trusted=False)
    found, whole = compare_plans(settings, base), compare_plans(settings._replace(cache=tmp_path / "complete"), base, complete=True)
    assert not found.run.plan.complete
    assert len(found.review.withheld.moves) in (1, 11, 12)
    assert write_reports(found) == write_reports(whole)


BRINGING = policy(*PLACES[:2], more="  propagateDeps: true\n")
BROUGHT: Files = {
    **{f"clusters/{name}.yaml": cluster(name) for name in PLACES},
    "policies/all.yaml": BRINGING,
    "apps/web.yaml": workload("web", "configmap/conf"),
    "apps/map.yaml": settings_of("conf", 1),
    "apps/broken.yaml": settings_of("broken", 1),
}
CHANGES: dict[str, Files] = {
    "a file that moves": {"apps/map.yaml": None, "maps/map.yaml": settings_of("conf", 1)},
    "a change that begins in one cluster": {
        "apps/web.yaml": workload("web", "configmap/conf").replace("replicas: ", "replicas: 1")
    },
    "a rebalancer": {"again.yaml": REBALANCER % (1, "web")},
    "a policy, and a workload that brings another object along": {
        "policies/all.yaml": BRINGING.replace(PLACES[1], PLACES[2]),
        "apps/new.yaml": workload("new", "configmap/more"),
        "apps/more.yaml": settings_of("more", 1),
    },
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_pull_request_beside_a_broken_file_and_objects_that_others_bring_along(
    fleet: Fleet, tmp_path: Path, changes: Files
) -> None:
    fleet.commit(BROUGHT)
    fleet.reconcile()
    base = fleet.commit({"apps/broken.yaml": "a: [\n"}, hour=0.1)
    fleet.reconcile(0.1)
    settings = fleet.settings(0.1, revision=fleet.commit(changes, hour=0.1), trusted=False)
    found, whole = compare_plans(settings, base), compare_plans(settings._replace(cache=tmp_path / "none"), base, complete=True)
    assert not found.run.plan.complete
    assert write_reports(found) == write_reports(whole)


WAVES = """\
apiVersion: gitsched.io/v1alpha1
kind: Rollout
metadata: {name: waves}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}
"""


def test_a_pull_request_beside_a_rollout_in_progress(fleet: Fleet, tmp_path: Path) -> None:
    web = workload("web", "configmap/conf")
    policies = policy("first,second", scheduling="Duplicated", more="  propagateDeps: true\n")
    fleet.commit({**BROUGHT, "policies/all.yaml": policies, "waves.yaml": WAVES})
    fleet.reconcile()
    base = fleet.commit({"apps/web.yaml": web.replace("main", "more")}, hour=0.1)
    fleet.reconcile(0.1)
    changes = {"apps/map.yaml": settings_of("conf", 2), "apps/new.yaml": workload("new")}
    settings = fleet.settings(0.2, revision=fleet.commit(changes, hour=0.2), trusted=False)
    found, whole = compare_plans(settings, base), compare_plans(settings._replace(cache=tmp_path / "none"), base, complete=True)
    assert not found.run.plan.complete
    assert {held.workload.name for record in found.run.plan.rollout_records for held in record.held} == {"conf", "new", "web"}
    assert write_reports(found) == write_reports(whole)


def observe(fleet: Fleet, hour: float, ready: dict[str, str]) -> None:
    """Commit facts of clusters with their readiness."""
    for name, status in ready.items():
        values = {"name": name, "time": format_hour(hour), "ready": status, "version": 1, "used": 2, "kind": "Deployment"}
        commit_branch(fleet, f"facts-{name}", {"facts.yaml": FACTS % values}, hour)


@pytest.mark.parametrize("name", ["base", None])
def test_a_pull_request_beside_facts_that_have_moved(fleet: Fleet, tmp_path: Path, name: str | None) -> None:
    files = {f"clusters/{place}.yaml": cluster(place) for place in PLACES} | {"apps/web.yaml": deployment("web", 2)}
    settings = PLAIN_SETTINGS % {**PLAIN, "more": FACTS_SETTINGS % "keep"}
    base = fleet.commit({**files, "policies/all.yaml": policy("second", "first"), "gitsched.yaml": settings})
    observe(fleet, 0, dict.fromkeys(PLACES, "True"))
    for hour in (0, 0.1):
        fleet.reconcile(hour)
    observe(fleet, 0.2, {"first": "False", "third": "True"})
    changed = {"policies/all.yaml": policy("first", "second"), "clusters/third.yaml": cluster("third", "power:NoSchedule")}
    head = fleet.commit({**changed, "apps/api.yaml": deployment("api", 3)}, hour=0.2)
    revised = fleet.settings(0.2, revision=head, trusted=False)
    compared = base if name else None
    found = compare_plans(revised, compared)
    whole = compare_plans(revised._replace(cache=tmp_path / "none"), compared, complete=True)
    assert not found.run.plan.complete
    assert write_reports(found) == write_reports(whole)
    assert found.review.moves
    assert not found.review.retained, "the first cluster is not ready"


@pytest.mark.parametrize("is_head", [False, True], ids=["the state of the base", "the state of the head"])
def test_capacity_that_others_take_counts_for_causes(fleet: Fleet, tmp_path: Path, is_head: bool) -> None:
    """Nothing lacks capacity in either plan; the removed workload and the new one together would."""
    clusters = capacity.cluster("one", cpu=4) + capacity.cluster("two", cpu=2)
    old, other, new = (capacity.deployment(name, replicas) for name, replicas in (("old", 3), ("other", 1), ("new", 3)))
    files = {"clusters.yaml": clusters, "policy.yaml": capacity.policy(capacity.AGGREGATED)}
    base = fleet.commit({**files, "old.yaml": old, "other.yaml": other})
    for hour in (0, 0.1):
        fleet.reconcile(hour)
    head = fleet.commit({"old.yaml": None, "new.yaml": new}, hour=0.1)
    for _ in range(2 * is_head):
        fleet.reconcile(0.1)
    settings = fleet.settings(0.1, revision=head, trusted=False)
    found, whole = compare_plans(settings, base), compare_plans(settings._replace(cache=tmp_path / "none"), base, complete=True)
    assert write_reports(found) == write_reports(whole)
    assert ("together with Deployment/shop/new added" in write_reports(found)["text"]) == is_head
