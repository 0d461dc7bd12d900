"""Moves that observations alone cause (a metric, a score, a timer of fail-back) are limited by period: at least one decision passes, and
the rest waits. Edits of people are limited as before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from gitsched.model.finding import Finding
from gitsched.model.time import format_time, parse_time
from gitsched.reconcile import RunResult
from gitsched.reconcile.review import guard_input, source_edits
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.explanation import write_explanation
from gitsched.report.fleet_status import write_fleet_status
from tests.builders.krake import application_yaml, cluster_yaml, global_metric_yaml, global_provider_yaml
from tests.builders.ocm import add_on, addon_scores, bound_global_set, label_predicate, placed_config_map, placement, to_yaml
from tests.metrics.conftest import Server

from .conftest import Fleet, at_hour, cluster
from .facts_histories import commit_branch
from .test_guard import SETTINGS, labelled, select
from .test_krake import Prometheus
from .test_rollouts import SETS, managed

PERIOD = 1 / 6
"""Ten minutes in hours."""
MOVABLE = [f"m{number}" for number in range(8)]
PINNED = [f"p{number}" for number in range(12)]
Files = dict[str, str | bytes | None]


class Case(NamedTuple):
    """A fleet of 20 decisions. `make` returns the files of some that depend on what is observed, and of others that do not; `observe` makes
    an observation after which the first move, from the hour that it returns on. `settings` are those of the API."""

    make: Callable[[Iterable[str], Iterable[str], Prometheus], Files]
    observe: Callable[[Fleet, Prometheus], float]
    settings: str = ""

    def place(self, fleet: Fleet, prometheus: Prometheus, guard: str = "", movable: Iterable[str] = MOVABLE) -> None:
        files = self.make(movable, PINNED, prometheus)
        settings = ", ".join(filter(None, (self.settings, f"guard: {{{guard}}}" if guard else "")))
        fleet.commit({**files, "gitsched.yaml": SETTINGS.format(settings)})
        fleet.reconcile()


def make_applications(movable: Iterable[str], pinned: Iterable[str], prometheus: Prometheus) -> Files:
    prometheus.values = {"a": 0.9, "b": 0.1}
    files = {f"apps/{name}.yaml": application_yaml(name) for name in movable}
    files |= {f"apps/{name}.yaml": application_yaml(name, "  constraints: {migration: false}\n") for name in pinned}
    return {
        **files,
        "clusters/first.yaml": cluster_yaml("first", "a"),
        "clusters/second.yaml": cluster_yaml("second", "b"),
        "metrics.yaml": f"{global_metric_yaml('a')}---\n{global_metric_yaml('b')}",
        "provider.yaml": global_provider_yaml("prometheus", f"{{url: '{prometheus.url}'}}"),
    }


def observe_metric(_fleet: Fleet, prometheus: Prometheus) -> float:
    prometheus.values = {"a": 0.1, "b": 0.9}
    return 1


def scores(first: int, second: int) -> Files:
    return {"scores.yaml": to_yaml(addon_scores("first", {"cpu": first}), addon_scores("second", {"cpu": second}))}


def make_placements(movable: Iterable[str], pinned: Iterable[str], _prometheus: Prometheus) -> Files:
    files: Files = {}
    for name in movable:
        chosen = placement(name, "shop", 1, [add_on("cpu")])
        files[f"apps/{name}.yaml"] = to_yaml(chosen, placed_config_map(name, "shop", name))
    for name in pinned:
        chosen = placement(name, "shop", predicates=[label_predicate(stage="prod")])
        files[f"apps/{name}.yaml"] = to_yaml(chosen, placed_config_map(name, "shop", name))
    clusters = {"first.yaml": managed("first", "prod"), "second.yaml": managed("second", "test")}
    return {**files, **clusters, "sets.yaml": SETS, **scores(90, 10)}


def observe_score(fleet: Fleet, _prometheus: Prometheus) -> float:
    fleet.commit(scores(10, 90), hour=1, message="Scores of a controller")
    return 1


def make_expiring_placements(movable: Iterable[str], pinned: Iterable[str], prometheus: Prometheus) -> Files:
    expiring = addon_scores("first", {"cpu": 90}, valid_until=format_time(at_hour(1)))
    return {**make_placements(movable, pinned, prometheus), "scores.yaml": to_yaml(expiring, addon_scores("second", {"cpu": 10}))}


def wait_for_the_end(_fleet: Fleet, _prometheus: Prometheus) -> float:
    return 1 + 1e-6


def make_deployments(movable: Iterable[str], pinned: Iterable[str], _prometheus: Prometheus) -> Files:
    files = {f"apps/{name}.yaml": labelled(name, "movable") for name in movable}
    files |= {f"apps/{name}.yaml": labelled(name, "pinned") for name in pinned}
    policies = {"movable.yaml": select("movable", "first", "second"), "pinned.yaml": select("pinned", "second")}
    return {**files, **policies, "clusters/first.yaml": cluster("first"), "clusters/second.yaml": cluster("second")}


def recover(fleet: Fleet, _prometheus: Prometheus) -> float:
    """Let all movable workloads leave the first cluster, and return to it when it has been ready for ten minutes."""
    fleet.commit({"clusters/first.yaml": cluster("first", "down:NoExecute")}, hour=1)
    fleet.reconcile(1)
    fleet.reconcile(1.5)
    fleet.commit({"clusters/first.yaml": cluster("first")}, hour=2)
    fleet.reconcile(2)
    return 2 + PERIOD


KRAKE = Case(make_applications, observe_metric)
OCM = Case(make_placements, observe_score)
EXPIRY = Case(make_expiring_placements, wait_for_the_end)
KARMADA = Case(make_deployments, recover, "karmada: {failback: {AfterStabilization: 10m}}")
CASES = pytest.mark.parametrize(
    "case",
    [pytest.param(KRAKE, id="a metric"), pytest.param(OCM, id="a score"), pytest.param(KARMADA, id="AfterStabilization")],
)


@pytest.fixture
def prometheus(server: Server) -> Prometheus:
    return Prometheus(server)


def moved(run: RunResult) -> list[str]:
    return [move.key.name for move in run.plan.moves if move.before]


def waiting(run: RunResult) -> list[str]:
    return [move.key.name for move in run.plan.withheld.waiting]


def notes(run: RunResult) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code == "moves-waiting"]


@CASES
def test_two_of_twenty_decisions_pass_in_each_period(fleet: Fleet, prometheus: Prometheus, case: Case) -> None:
    case.place(fleet, prometheus)
    hour = case.observe(fleet, prometheus)
    planned = fleet.preview(hour)
    assert (moved(planned), waiting(planned)) == (MOVABLE, MOVABLE[2:]), "a plan shows all moves"
    for number in range(0, 8, 2):
        run = fleet.reconcile(hour + number / 2 * PERIOD)
        assert (moved(run), waiting(run), run.plan.withheld.moves) == (MOVABLE[number : number + 2], MOVABLE[number + 2 :], ())
        assert not [finding for finding in run.plan.findings if finding.severity == "error"]
        if number == 0:
            (note,) = notes(run)
            assert note.message.startswith("6 workloads wait to move")
            assert f"the next move from {format_time(at_hour(hour + PERIOD))} on" in note.message
            assert run.plan.next_wakeup == at_hour(hour + PERIOD)
            between = fleet.reconcile(hour + PERIOD / 2)
            assert (moved(between), waiting(between), between.changed) == ([], MOVABLE[2:], False)
    done = fleet.reconcile(hour + 4 * PERIOD)
    assert (moved(done), waiting(done), notes(done)) == ([], [], [])


@CASES
def test_more_than_half_of_the_fleet_is_withheld_until_it_is_allowed(fleet: Fleet, prometheus: Prometheus, case: Case) -> None:
    movable = [f"m{number:02}" for number in range(14)]
    case.place(fleet, prometheus, movable=movable)
    hour = case.observe(fleet, prometheus)
    for again in (hour, hour + 1):
        run = fleet.reconcile(again)
        assert (moved(run), waiting(run), len(run.plan.withheld.moves)) == ([], [], 14)
        assert "14 of 26 workloads would move in the fleet (limit: 30 %)" in map(str, run.plan.withheld.limits)
    allowed = fleet.reconcile(hour + 2, allowed=(run.plan.withheld.digest,))
    assert (len(moved(allowed)), allowed.plan.withheld.kept) == (14, ())


@pytest.mark.parametrize(
    ("guard", "passing"),
    [
        pytest.param("fleet: {movedPerPeriod: 0}", 1, id="at least one decision passes"),
        pytest.param("fleet: {movedPerPeriod: 100}, namespace: {movedPerPeriod: 20}", 4, id="a namespace has 20"),
        pytest.param("fleet: {movedPerPeriod: 100}, namespace: {movedPerPeriod: 100}", 5, id="a quarter of 20 may leave a cluster"),
        pytest.param(
            "fleet: {movedPerPeriod: 100}, namespace: {movedPerPeriod: 100}, cluster: {movedPerPeriod: 100}", 8, id="no limit"
        ),
        pytest.param("fleet: {movedPerPeriod: 20, moved: 1}, cluster: {removed: 1}", 4, id="other limits are for edits"),
    ],
)
def test_each_limit_counts_decisions(fleet: Fleet, prometheus: Prometheus, guard: str, passing: int) -> None:
    OCM.place(fleet, prometheus, guard)
    run = fleet.reconcile(OCM.observe(fleet, prometheus))
    assert (moved(run), waiting(run)) == (MOVABLE[:passing], MOVABLE[passing:])
    assert run.plan.withheld.moves == ()


def test_a_decision_moves_all_workloads_that_follow_it(fleet: Fleet, prometheus: Prometheus) -> None:
    followers = {
        f"more/{name}.yaml": to_yaml(placed_config_map(name, "shop", name[:2])) for name in ("m0-a", "m0-b", "m2-a", "m2-b")
    }
    fleet.commit({**followers})
    OCM.place(fleet, prometheus)
    run = fleet.reconcile(OCM.observe(fleet, prometheus))
    assert moved(run) == ["m0", "m0-a", "m0-b", "m1"]
    assert {"m2", "m2-a", "m2-b"} <= {*waiting(run)}
    assert fleet.load("gitsched.json")["guard"]["rate"]["passed"]["fleet"] == 2, "of 20, whatever number of workloads follows"


@pytest.mark.parametrize(
    ("path", "old", "new", "theirs"),
    [
        pytest.param("first.yaml", "stage: prod", "stage: prod\n    zone: x", MOVABLE, id="a cluster"),
        pytest.param("sets.yaml", "selectorType", "labelSelector: {}\n    selectorType", MOVABLE, id="a cluster set"),
        pytest.param("gitsched.yaml", "spec: {", "spec: {output: {retireAfter: 2h}", MOVABLE, id="settings"),
        pytest.param("apps/m3.yaml", "weight: 1", "weight: 2", ["m3"], id="its Placement"),
        pytest.param("apps/m3.yaml", "kind: ConfigMap", "kind: ConfigMap\ndata: {a: b}", ["m3"], id="the workload"),
        pytest.param("apps/p3.yaml", "kind: ConfigMap", "kind: ConfigMap\ndata: {a: b}", [], id="another workload"),
        pytest.param("gitsched.yaml", "spec: {", "spec: {guard: {fleet: {moved: 29}}", [], id="settings of the guard"),
        pytest.param("README.md", "", "x", [], id="a file that is not read"),
    ],
)
def test_moves_that_come_with_an_edit_are_those_of_people(
    fleet: Fleet, prometheus: Prometheus, path: str, old: str, new: str, theirs: list[str]
) -> None:
    """If all 8 are theirs, they are more than 30 % of 20, and stay withheld when the edit is no longer new."""
    OCM.place(fleet, prometheus)
    text = (fleet.path / path).read_text() if old else ""
    assert old in text
    fleet.commit({path: text.replace(old, new, 1) if old else new}, hour=0.5)
    hour = OCM.observe(fleet, prometheus)
    run = fleet.reconcile(hour)
    if theirs != MOVABLE:
        assert (moved(run), run.plan.withheld.moves) == (sorted({"m0", "m1", *theirs}), ())
        return
    fleet.commit({"README.md": "later"}, hour=hour + 1)
    again = fleet.reconcile(hour + 1)
    assert len(run.plan.withheld.moves) == len(again.plan.withheld.moves) == 8
    assert moved(fleet.reconcile(hour + 1, allowed=(again.plan.withheld.digest,))) == MOVABLE


@pytest.mark.parametrize("missing", [False, True], ids=["too many files", "the last source commit is not available"])
def test_too_many_changed_files_are_those_of_people(
    fleet: Fleet, prometheus: Prometheus, monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    OCM.place(fleet, prometheus)
    hour = OCM.observe(fleet, prometheus)
    if missing:
        monkeypatch.setattr(guard_input, "_find_base", lambda *_: "0" * 40)
    else:
        monkeypatch.setattr(source_edits, "MAX_FILES", 0)
    assert len(fleet.reconcile(hour).plan.withheld.moves) == 8


def test_moves_that_wait_are_still_limited_after_an_edit(fleet: Fleet, prometheus: Prometheus) -> None:
    OCM.place(fleet, prometheus)
    hour = OCM.observe(fleet, prometheus)
    fleet.reconcile(hour)
    fleet.commit({"first.yaml": managed("first", "prod").replace("stage: prod", "stage: prod\n    zone: x")}, hour=hour)
    run = fleet.reconcile(hour + PERIOD)
    assert (moved(run), waiting(run), run.plan.withheld.moves) == (MOVABLE[2:4], MOVABLE[4:], ())


def test_edits_are_made_at_once_beside_moves_that_wait(fleet: Fleet, prometheus: Prometheus) -> None:
    OCM.place(fleet, prometheus)
    hour = OCM.observe(fleet, prometheus)
    fleet.reconcile(hour)
    changed = {f"apps/{name}.yaml": (fleet.path / f"apps/{name}.yaml").read_text().replace("prod", "test") for name in PINNED[:4]}
    new = to_yaml(placement("new", "shop", 1, [add_on("cpu")]), placed_config_map("new", "shop", "new"))
    fleet.commit({**changed, "apps/new.yaml": new}, hour=hour)
    run = fleet.reconcile(hour + PERIOD / 2)
    assert (moved(run), waiting(run)) == (PINNED[:4], MOVABLE[2:])
    assert fleet.where("shop/configmap-new") == ["second"]


@pytest.mark.parametrize("case", [pytest.param(OCM, id="a score"), pytest.param(EXPIRY, id="the end of a score")])
def test_a_punctual_run_writes_what_a_run_on_time_writes(
    make_fleet: Callable[[str], Fleet], prometheus: Prometheus, case: Case
) -> None:
    outputs = []
    for name, late in (("on-time", 0.0), ("punctual", 1 / 120), ("late", 1.0)):
        fleet = make_fleet(name)
        case.place(fleet, prometheus)
        hour = case.observe(fleet, prometheus)
        fleet.reconcile(hour + late / 2)
        run = fleet.reconcile(hour + PERIOD + late)
        assert (moved(run), waiting(run)) == (MOVABLE[2:4], MOVABLE[4:]), "one period, however many have passed"
        outputs.append((fleet.files(), run.plan.next_wakeup))
    assert outputs[0] == outputs[1]
    assert outputs[2][1] == at_hour(hour + 2 * PERIOD + 1).replace(microsecond=0), "the period starts with the late run"


def test_those_that_wait_come_before_new_ones(fleet: Fleet, prometheus: Prometheus) -> None:
    """The scores that moved the first two are as before again, so that these would return."""
    KRAKE.place(fleet, prometheus)
    hour = KRAKE.observe(fleet, prometheus)
    assert moved(fleet.reconcile(hour)) == ["m0", "m1"]
    fleet.commit({"apps/a0.yaml": application_yaml("a0")}, hour=hour)
    prometheus.values = {"a": 0.9, "b": 0.1}
    assert moved(fleet.reconcile(hour + PERIOD)) == ["m0", "m1"], "the others need not move any more"
    prometheus.values = {"a": 0.1, "b": 0.9}
    run = fleet.reconcile(hour + 2 * PERIOD)
    assert (moved(run), waiting(run)) == (["a0", "m0"], ["m1", "m2", "m3", "m4", "m5", "m6", "m7"])
    assert moved(fleet.reconcile(hour + 3 * PERIOD)) == ["m1", "m2"]


def test_scores_of_a_facts_branch_move_the_workloads_of_a_tenant_by_period(fleet: Fleet, prometheus: Prometheus) -> None:
    rules = "{paths: [apps], namespaces: [shop], clusters: {names: [first, second]}}"
    tenant = f"apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {{name: shop}}\nspec: {rules}\n"
    files = make_placements(MOVABLE, PINNED, prometheus)
    commit_branch(fleet, "facts", {"scores.yaml": files.pop("scores.yaml")}, 0)
    settings = SETTINGS.format("source: {facts: {branch: facts}}")
    fleet.commit({**files, "gitsched.yaml": settings, "tenants/shop.yaml": tenant})
    fleet.reconcile()
    commit_branch(fleet, "facts", scores(10, 90), 1)
    for number in range(0, 8, 2):
        run = fleet.reconcile(1 + number / 2 * PERIOD)
        assert (moved(run), waiting(run), run.plan.withheld.moves) == (MOVABLE[number : number + 2], MOVABLE[number + 2 :], ())


def test_evictions_are_limited_if_settings_say_so(fleet: Fleet, prometheus: Prometheus) -> None:
    KARMADA.place(fleet, prometheus, "limitEvictions: true")
    fleet.commit({"clusters/first.yaml": cluster("first", "down:NoExecute")}, hour=1)
    for number in range(0, 8, 2):
        run = fleet.reconcile(1 + number / 2 * PERIOD)
        assert (moved(run), waiting(run), run.plan.withheld.moves) == (MOVABLE[number : number + 2], MOVABLE[number + 2 :], ())


def test_a_commit_raises_the_limits_for_the_next_run(fleet: Fleet, prometheus: Prometheus) -> None:
    OCM.place(fleet, prometheus)
    hour = OCM.observe(fleet, prometheus)
    fleet.commit({"gitsched.yaml": SETTINGS.format("guard: {period: 1m, fleet: {movedPerPeriod: 50}}")}, hour=hour)
    run = fleet.reconcile(hour)
    assert (moved(run), waiting(run)) == (MOVABLE[:2], MOVABLE[2:])
    (loosened,) = [finding for finding in run.plan.findings if finding.code == "guard-loosened"]
    assert "fleet.movedPerPeriod: 10 -> 50, period: 10m -> 1m" in loosened.message
    assert moved(fleet.reconcile(hour + PERIOD)) == MOVABLE[2:6], "a quarter of the 18 in the first cluster"


def test_a_branch_without_a_period_goes_on(fleet: Fleet, prometheus: Prometheus) -> None:
    """Branches of earlier versions have no period, and do not say before which commit changes are withheld."""
    OCM.place(fleet, prometheus)
    record = fleet.load("gitsched.json")
    assert "guard" not in record
    hour = OCM.observe(fleet, prometheus)
    assert moved(fleet.reconcile(hour)) == MOVABLE[:2]


def test_status_and_explain_say_what_waits(fleet: Fleet, prometheus: Prometheus) -> None:
    OCM.place(fleet, prometheus)
    hour = OCM.observe(fleet, prometheus)
    fleet.reconcile(hour)
    start = format_time(at_hour(hour + PERIOD))
    status = write_fleet_status(read_fleet_status(fleet.settings(hour)))
    assert f"6 workloads wait to move, because observations changed: the next from {start} on." in status
    text = write_explanation(explain_resource(fleet.settings(hour), "ConfigMap", "shop", "m5"), 1000)
    assert "It waits to go to second: observations alone cause this, and such moves are limited by period." in text


NAMES = [f"s{number}" for number in range(12)]
"""Scores on each of which three of 36 Placements depend."""
SITES = ("first", "second", "third")


def place_history(fleet: Fleet, guard: str) -> None:
    """Commit 24 Placements in one namespace and 12 in another."""
    files: Files = {"sets.yaml": to_yaml(*bound_global_set("shop"), *bound_global_set("side"))}
    files |= {f"clusters/{name}.yaml": managed(name, "prod") for name in SITES}
    for number in range(36):
        namespace = "side" if number % 3 == 2 else "shop"
        chosen = placement(f"p{number}", namespace, 1, [add_on(NAMES[number % 12])])
        files[f"apps/p{number}.yaml"] = to_yaml(chosen, placed_config_map(f"p{number}", namespace, f"p{number}"))
    fleet.commit({**files, "gitsched.yaml": SETTINGS.format(f"guard: {{{guard}}}")})


def list_chosen(fleet: Fleet) -> dict[str, tuple[str, str]]:
    """Return the namespace and the cluster of each Placement, as its PlacementDecision says."""
    paths = [path for path in fleet.files() if path.startswith("status/cluster.open-cluster-management.io/placementdecision/")]
    records = [fleet.load(path) for path in paths]
    return {
        one["metadata"]["labels"]["cluster.open-cluster-management.io/placement"]: (
            one["metadata"]["namespace"],
            one["status"]["decisions"][0]["clusterName"],
        )
        for one in records
    }


def score_sites(best: Mapping[str, str]) -> str:
    """Return the scores with which the Placements of each name choose a cluster."""
    return to_yaml(*(addon_scores(site, {name: 90 if best.get(name, "first") == site else 10 for name in NAMES}) for site in SITES))


def test_a_period_goes_on_where_a_run_moves_nothing(fleet: Fleet) -> None:
    place_history(fleet, "")
    fleet.commit({"scores.yaml": score_sites({})})
    fleet.reconcile()
    for hour, best, expected in (
        (1.0, {"s0": "second"}, 3),
        (1.05, {"s0": "second"}, 0),
        (1.1, {"s0": "second", "s1": "third"}, 0),
    ):
        text = (fleet.path / "apps/p35.yaml").read_text().replace("kind: ConfigMap\n", f"kind: ConfigMap\n# {hour}\n")
        fleet.commit({"scores.yaml": score_sites(best), "apps/p35.yaml": text}, hour=hour)
        run = fleet.reconcile(hour)
        assert (run.changed, len(moved(run))) == (True, expected)
    assert (len(waiting(run)), run.plan.next_wakeup) == (3, at_hour(1 + PERIOD))


@pytest.mark.parametrize(
    ("seed", "guard", "most"),
    [
        pytest.param(1, "", {"fleet": 3}, id="a tenth of the fleet", marks=pytest.mark.long),
        pytest.param(
            2,
            "fleet: {movedPerPeriod: 100}, namespace: {movedPerPeriod: 10}",
            {"shop": 2, "side": 1},
            id="a tenth of each namespace",
            marks=pytest.mark.long,
        ),
        pytest.param(
            3,
            "fleet: {movedPerPeriod: 100}, namespace: {movedPerPeriod: 100}, cluster: {movedPerPeriod: 9}",
            {"first": 3},
            id="a part of a cluster",
            marks=pytest.mark.long,
        ),
    ],
)
def test_no_period_has_more_moves_than_its_limits(
    make_fleet: Callable[[str], Fleet], tmp_path: Path, seed: int, guard: str, most: dict[str, int]
) -> None:
    """Scores change at random, of which at most four differ from the first ones, and workloads are edited. The counts are those of the
    output branch. With the first limits, one of two fleets has no cache, and so plans everything in each run."""
    dice = Random(seed)
    fleets = [make_fleet("cached"), *([make_fleet("complete")] if seed == 1 else [])]
    for fleet in fleets:
        place_history(fleet, guard)
    best, hour = dict.fromkeys(NAMES, "first"), 0.0
    chosen: dict[str, tuple[str, str]] = {}
    moves: dict[str, Counter[str]] = {}
    for step in range(15):
        hour += dice.choice((0.05, PERIOD / 2, PERIOD, 0.5)) if step < 8 else 0.5
        if 0 < step < 8:
            changed = [name for name in NAMES if best[name] != "first"]
            name = dice.choice(changed if len(changed) >= 4 else NAMES)
            best[name] = dice.choice(SITES[1:]) if best[name] == "first" else "first"
        files: Files = {"scores.yaml": score_sites(best)}
        if step == 4:
            edited = f"apps/p{dice.randrange(36)}.yaml"
            files[edited] = (fleets[0].path / edited).read_text().replace("kind: ConfigMap\n", "kind: ConfigMap\ndata: {a: b}\n")
        for fleet in fleets:
            fleet.commit(files, hour=hour)
            options = {} if fleet is fleets[0] else {"cache": tmp_path / f"cache-{step}"}
            run = fleet.reconcile(hour, **options)
            assert run.plan.withheld.moves == ()
        assert fleets[0].files() == fleets[-1].files()
        before, chosen = chosen, list_chosen(fleets[0])
        start = fleets[0].load("gitsched.json").get("guard", {}).get("rate", {}).get("start", "")
        for name, (namespace, site) in chosen.items():
            if name in before and before[name][1] != site and f"apps/{name}.yaml" not in files:
                moves.setdefault(start, Counter()).update({"fleet", namespace, site, before[name][1]})
    starts = [time for start in moves if (time := parse_time(start)) is not None]
    assert len(starts) == len(moves) > 2, "each move is in a period"
    assert all(later - earlier >= timedelta(minutes=10) for earlier, later in pairwise(starts))
    for scope, limit in most.items():
        assert max(count[scope] for count in moves.values()) == limit
    assert {name: site for name, (_, site) in chosen.items()} == {f"p{number}": best[NAMES[number % 12]] for number in range(36)}
