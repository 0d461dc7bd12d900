"""Reserves: a plan fails where a change leaves more replicas without a place after a loss, and shows what ends that."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.cli import main
from gitsched.model.preferred_clusters import PREFERRED_CLUSTERS
from gitsched.reconcile.review import reserve_check
from gitsched.simulate import reserve, reserve_remedies
from tests.simulate.conftest import Fleet, Simulate, at_hour, cluster, deployment, divide

Plan = Callable[..., Any]
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec: {}\n"
ZONES = {
    "gitsched.yaml": SETTINGS.format("{reserve: {lose: zone}}"),
    "clusters/a.yaml": cluster("a", zone="za", pods=10),
    "clusters/b.yaml": cluster("b", zone="zb", pods=10),
    "clusters/c.yaml": cluster("c", region="east", zone="zc", pods=10),
    "apps/web.yaml": deployment("web", 6),
    "apps/pay.yaml": deployment("pay", 4),
    "policies/web.yaml": divide("web", "clusterNames: [a, b]"),
    "policies/pay.yaml": divide("pay", "clusterNames: [a, b, c]"),
}

CROWDED = ZONES | {"apps/web.yaml": deployment("web", 9), "policies/pay.yaml": divide("pay", "clusterNames: [b]")}
"""The same with a workload that finds no place when it loses a zone."""


@pytest.fixture
def plan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fleet: Fleet) -> Plan:
    """Run `gitsched plan`; return its exit code, and its output, parsed if it is JSON."""
    monkeypatch.setenv("COLUMNS", "400")

    def run(*arguments: str) -> Any:
        capsys.readouterr()
        code = main(["plan", "-C", str(fleet.path), "--now", at_hour(2).isoformat(), *arguments])
        printed = capsys.readouterr()
        return code, json.loads(printed.out) if "json" in arguments else printed.out + printed.err

    return run


@pytest.fixture
def zones(fleet: Fleet) -> str:
    """Reconcile a fleet of three zones with a reserve for each; return the commit."""
    fleet.commit(ZONES)
    fleet.reconcile()
    return fleet.git("rev-parse", "HEAD")


def test_all_losses_list_what_a_reserve_lacks_as_a_plan_does(fleet: Fleet, plan: Plan, simulate: Simulate, tmp_path: Path) -> None:
    fleet.commit(CROWDED)
    fleet.reconcile()
    _, found = plan("-o", "json")
    shortages = {(one["lost"][0], one["workload"]["name"], one["missing"]) for one in found["reserve"]["shortages"]}
    assert shortages
    table = simulate("--sweep", "zones", "-o", "json")
    listed = {
        (loss["scope"]["name"], effect["workload"]["name"], effect["short"] - effect["shortBefore"] + effect["waiting"])
        for loss in table["losses"]
        for effect in loss["effects"]
        if effect["reserve"]
    }
    assert listed == shortages
    text = simulate("--sweep", "zones")
    assert f"Reserve for the loss of a zone: {len({name for _, name, _ in shortages})} workload" in text
    page = simulate("--sweep", "zones", "-o", "html")
    assert "What a reserve lacks</h2>" in page
    for number in (1, 2):
        simulate("--sweep", "zones", "--shard", f"{number}/2", "--out", str(tmp_path / f"{number}"))
    assert simulate("merge", str(tmp_path / "1"), str(tmp_path / "2"), "-o", "html") == page
    assert "Reserve for" not in simulate("--sweep", "clusters"), "the reserve is for zones"
    for zone in ("za", "zb", "zc"):
        one = simulate("--lose", f"zone/{zone}", "-o", "json")
        assert {(zone, effect["workload"]["name"]) for effect in one["effects"] if effect["reserve"]} == {
            (lost, name) for lost, name, _ in shortages if lost == zone
        }
    worst = next(lost for lost, _, _ in shortages)
    assert "Reserve for the loss of a zone: " in simulate("--lose", f"zone/{worst}")
    assert "Reserve for" not in simulate("--lose", f"zone/{worst}", "--scale", "*/*=2"), "more than the loss happens"


@pytest.mark.parametrize("losses", ["zones", "pairs"])
def test_losses_without_a_reserve_do_not_mention_one(losses: str, fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit(CROWDED)
    fleet.reconcile()
    assert "Reserve for" not in simulate("--sweep", losses, "--lost", "silent")
    fleet.commit({"gitsched.yaml": SETTINGS.format("{}")}, hour=1)
    fleet.reconcile()
    assert "Reserve for" not in simulate("--sweep", losses) + simulate("--sweep", losses, "--lost", "silent")


def test_losses_of_pairs_list_what_a_reserve_for_them_lacks(fleet: Fleet, plan: Plan, simulate: Simulate) -> None:
    settings = SETTINGS.format("{reserve: {lose: any 2 clusters}}")
    fleet.commit({**CROWDED, "gitsched.yaml": settings})
    fleet.reconcile()
    shortages = plan("-o", "json")[1]["reserve"]["shortages"]
    assert shortages
    table = simulate("--sweep", "pairs", "-o", "json")
    counted = Counter(one["workload"]["name"] for one in shortages)
    assert {one["workload"]["name"]: one["losses"] for one in table["affected"] if one["reserve"]} == counted
    losses = len({tuple(one["lost"]) for one in shortages})
    text = simulate("--sweep", "pairs")
    assert f"Reserve for the loss of any 2 clusters: {len(counted)} workload" in text
    assert f" replicas after {losses} loss" in text
    assert "What a reserve lacks</h2>" in simulate("--sweep", "pairs", "-o", "html")
    pair = shortages[0]["lost"]
    one = simulate(*(word for name in pair for word in ("--lose", name)), "-o", "json")
    assert {effect["workload"]["name"] for effect in one["effects"] if effect["reserve"]} == {
        short["workload"]["name"] for short in shortages if short["lost"] == pair
    }


def test_a_copy_that_stays_for_an_overlap_does_not_count(fleet: Fleet, plan: Plan, simulate: Simulate) -> None:
    """The first change moves `web` from a to c. Until its copy in a ends, a has no room for `pay`; it has for the reserve."""
    fleet.commit(
        {
            "gitsched.yaml": SETTINGS.format("{reserve: {lose: cluster}, output: {overlap: 1h}}"),
            **{f"clusters/{name}.yaml": cluster(name, pods=5) for name in "abc"},
            **{f"apps/{name}.yaml": deployment(name, 4) for name in ("pay", "web")},
            "policies/web.yaml": divide("web", "clusterNames: [a]"),
            "policies/pay.yaml": divide("pay", "clusterNames: [b, c]"),
        }
    )
    fleet.reconcile()

    def list_short() -> set[str]:
        found = plan("HEAD~1", "-o", "json")[1]["reserve"]["shortages"]
        return {entry["workload"]["name"] for entry in found if entry["lost"] == ["b"]}

    change(
        fleet, {"policies/web.yaml": divide("web", "clusterNames: [c]"), "policies/pay.yaml": divide("pay", "clusterNames: [a, b]")}
    )
    assert list_short() == set()
    assert simulate("--lose", "b", "-o", "json")["short"] == 4
    fleet.reconcile(hour=1.5)
    change(fleet, {"apps/pay.yaml": deployment("pay", 5)})
    assert list_short() == set()
    assert simulate("--lose", "b", "-o", "json")["short"] == 5


def change(fleet: Fleet, files: dict[str, str | None]) -> None:
    fleet.commit(files, hour=1)


def grow(replicas: int) -> dict[str, str | None]:
    return {"apps/web.yaml": deployment("web", replicas)}


def lacking(found: Any) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the missing replicas after and before the change by workload and loss."""
    return {
        (one["workload"]["name"], " ".join(one["lost"])): (one["missing"], one["missingBefore"])
        for one in found["reserve"]["shortages"]
    }


def test_a_change_without_larger_shortage_passes(fleet: Fleet, zones: str, plan: Plan) -> None:
    change(fleet, {"README.md": "text"})
    code, found = plan(zones, "HEAD", "-o", "json")
    assert code == 0
    assert found["reserve"] | {"shortages": []} == {
        "losses": 3,
        "notSimulated": 0,
        "compared": True,
        "unavailable": [],
        "shortages": [],
        "remedy": None,
        "plansTried": 0,
        "searchEnded": False,
    }


def test_a_larger_shortage_fails_with_the_workload_its_replicas_and_its_line(fleet: Fleet, zones: str, plan: Plan) -> None:
    change(fleet, grow(10))
    code, text = plan(zones, "HEAD")
    assert code == 1
    assert "apps/web.yaml:1:1: error: if zone zb is lost, 4 of 10 replicas have no place (before: 0)" in text
    assert lacking(plan(zones, "HEAD", "-o", "json")[1]) == {("web", "zb"): (4, 0)}
    assert plan("--revision", "HEAD")[0] == 1, "the output branch stands for the commit of the last run"
    assert plan(zones, "HEAD", "--fail-on", "none")[0] == 0


def test_what_ends_several_shortages_is_shown_once(fleet: Fleet, zones: str, plan: Plan) -> None:
    change(fleet, grow(12) | {"apps/pay.yaml": deployment("pay", 9), "policies/pay.yaml": divide("pay", "clusterNames: [a, b]")})
    text = plan(zones, "HEAD")[1]
    assert text.count("[reserve-short]") == 2
    assert text.count("tried)") == text.count("says what ends this [reserve-short]") == 1


def test_what_is_shown_ends_the_shortage(fleet: Fleet, zones: str, plan: Plan) -> None:
    """The moves and the requests of the plan are committed, and the plan passes."""
    change(fleet, grow(10))
    remedy = plan(zones, "HEAD", "-o", "json")[1]["reserve"]["remedy"]
    (move,) = remedy["moves"]
    assert (move["workload"]["name"], move["preferred"]) == ("pay", "c")
    pay = yaml.safe_load(deployment("pay", 4))
    pay["metadata"]["annotations"] = {PREFERRED_CLUSTERS: move["preferred"]}
    change(fleet, {"apps/pay.yaml": yaml.dump(pay), "rebalance.yaml": yaml.dump_all(remedy["documents"])})
    code, found = plan(zones, "HEAD", "-o", "json")
    assert (code, found["reserve"]["shortages"]) == (0, [])


def test_added_capacity_is_shown_where_no_move_helps_and_suffices(fleet: Fleet, plan: Plan) -> None:
    fleet.commit(ZONES | {"policies/pay.yaml": divide("pay", "clusterNames: [a]")})
    fleet.reconcile()
    base = fleet.git("rev-parse", "HEAD")
    change(fleet, grow(8))
    remedy = plan(base, "HEAD", "-o", "json")[1]["reserve"]["remedy"]
    (added,) = remedy["capacity"]
    pods = 10 + int(added["add"]["pods"])
    for number, expected in ((pods, 0), (pods - 1, 1)):
        change(fleet, {f"clusters/{added['cluster']}.yaml": cluster(added["cluster"], zone=f"z{added['cluster']}", pods=number)})
        assert plan(base, "HEAD")[0] == expected


def test_a_cluster_that_leaves_the_fleet_is_missed(fleet: Fleet, zones: str, plan: Plan) -> None:
    change(fleet, {"clusters/b.yaml": None})
    code, text = plan(zones, "HEAD")
    assert code == 1
    assert "if zone za is lost, 6 of 6 replicas have no place (before: 0): 0/2 clusters are available" in text
    assert "change replicas or policies, or add clusters" in text


def test_what_was_short_before_is_shown_and_does_not_fail(fleet: Fleet, plan: Plan) -> None:
    fleet.commit(CROWDED)
    fleet.reconcile()
    base = fleet.git("rev-parse", "HEAD")
    change(fleet, {"README.md": "text"})
    code, text = plan(base, "HEAD")
    assert code == 0
    known = "2 workloads lack replicas after losses that a reserve is for: Deployment default/web 9 if zone za is lost"
    assert f"gitsched.yaml:4:8: info: {known}, Deployment default/pay 4 if zone zb is lost, as without this change" in text
    change(fleet, grow(11))
    assert plan(base, "HEAD")[0] == 1


def test_a_renamed_zone_is_the_same_outage(fleet: Fleet, plan: Plan) -> None:
    fleet.commit(CROWDED)
    fleet.reconcile()
    base = fleet.git("rev-parse", "HEAD")
    change(fleet, {"clusters/a.yaml": cluster("a", zone="renamed", pods=10)})
    code, found = plan(base, "HEAD", "-o", "json")
    assert code == 0
    assert lacking(found)["web", "renamed"] == (9, 9)


def test_a_first_plan_warns(fleet: Fleet, plan: Plan) -> None:
    fleet.commit(CROWDED)
    code, text = plan()
    assert code == 0
    assert "and there is no earlier plan to compare with [reserve-short-before]" in text


def test_a_change_cannot_take_back_the_reserve_that_it_breaks(fleet: Fleet, zones: str, plan: Plan) -> None:
    change(fleet, grow(10) | {"gitsched.yaml": None})
    assert plan(zones, "HEAD")[0] == 1
    assert plan("--revision", "HEAD")[0] == 1


@pytest.mark.parametrize(
    ("spec", "losses"),
    [
        pytest.param("{lose: cluster}", {("web", "b")}, id="each cluster"),
        pytest.param("{lose: region}", {("web", "west")}, id="each region"),
        pytest.param("{lose: any 2 clusters}", {("web", "a b"), ("web", "a c"), ("web", "b c")}, id="each two clusters"),
        pytest.param("{namespaces: {default: {lose: cluster}}}", {("web", "b")}, id="a namespace"),
        pytest.param("{namespaces: {'def*': {lose: cluster}, other: {lose: region}}}", {("web", "b")}, id="a pattern"),
        pytest.param("{namespaces: {other: {lose: cluster}}}", None, id="another namespace"),
        pytest.param("{lose: cluster, namespaces: {default: {lose: region}}}", {("web", "b"), ("web", "west")}, id="both"),
    ],
)
def test_the_setting_says_which_losses_count_for_which_workloads(
    fleet: Fleet, plan: Plan, spec: str, losses: set[tuple[str, str]] | None
) -> None:
    fleet.commit(ZONES | {"gitsched.yaml": SETTINGS.format(f"{{reserve: {spec}}}")})
    fleet.reconcile()
    base = fleet.git("rev-parse", "HEAD")
    change(fleet, grow(10))
    code, found = plan(base, "HEAD", "-o", "json")
    assert code == (1 if losses else 0)
    assert {at for at, (after, before) in lacking(found).items() if after > before} == (losses or set())


def test_a_tenant_has_a_reserve_of_its_own(fleet: Fleet, plan: Plan) -> None:
    tenant = (
        "apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: shop}\nspec:\n  paths: [apps, policies]\n"
        "  namespaces: [default]\n  reserve: {lose: zone}\n"
    )
    fleet.commit({**ZONES, "gitsched.yaml": SETTINGS.format("{}"), "tenants/shop.yaml": tenant})
    fleet.reconcile()
    base = fleet.git("rev-parse", "HEAD")
    change(fleet, grow(10))
    code, found = plan(base, "HEAD", "-o", "json")
    assert (code, [one["tenant"] for one in found["reserve"]["shortages"]]) == (1, ["shop"])
    change(fleet, {"tenants/shop.yaml": tenant.replace("  reserve: {lose: zone}\n", "")})
    assert plan(base, "HEAD")[0] == 1, "the Tenant of the base counts"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({}, "", id="it can be had"),
        pytest.param(
            {f"clusters/{name}.yaml": cluster(name, pods=10) for name in "abc"}, "no cluster has one: name it", id="no zone"
        ),
        pytest.param(
            {f"clusters/{name}.yaml": cluster(name, zone="z", pods=10) for name in "abc"},
            "the fleet has 1 zone: no cluster is left",
            id="one",
        ),
    ],
)
def test_a_reserve_that_cannot_be_had_is_a_warning(fleet: Fleet, plan: Plan, files: dict[str, str], message: str) -> None:
    fleet.commit(ZONES | files)
    code, text = plan()
    assert code == 0
    assert ("[reserve-unavailable]" in text) is bool(message)
    assert message in text


def test_unknown_losses_are_errors_at_their_line(fleet: Fleet, plan: Plan) -> None:
    fleet.commit(ZONES | {"gitsched.yaml": SETTINGS.format("{reserve: {lose: any 3 clusters}}")})
    code, text = plan()
    assert code == 1
    assert "gitsched.yaml:4:24: error: " in text
    assert "any 2 clusters" in text


def test_losses_that_are_not_simulated_are_counted(fleet: Fleet, zones: str, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve_check, "MAX_LOSSES", 1)
    change(fleet, grow(12))
    code, text = plan(zones, "HEAD")
    assert code == 1, "those that stop the most replicas come first"
    assert "2 of 3 losses that reserves are for were not simulated" in text


def test_pairs_of_too_many_clusters_are_counted(fleet: Fleet, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve, "_MAX_PAIRED", 2)
    fleet.commit(ZONES | {"gitsched.yaml": SETTINGS.format("{reserve: {lose: any 2 clusters}}")})
    assert "2 of 3 losses that reserves are for were not simulated" in plan()[1]


@pytest.mark.parametrize(
    ("limit", "replicas", "message"),
    [
        pytest.param("", 10, "To end this: move Deployment default/pay", id="no limit"),
        pytest.param("MAX_CANDIDATES", 10, "To end this: give a pods", id="workloads to move"),
        pytest.param("MAX_MOVED", 10, "To end this: give a pods", id="moves"),
        pytest.param("MAX_CLUSTERS", 12, "No move of one or two workloads, no capacity", id="clusters with more capacity"),
        pytest.param("DECISIONS_PER_WORKLOAD", 12, "the search ended before all were tried", id="decisions"),
    ],
)
def test_the_search_for_a_remedy_is_limited(
    fleet: Fleet, zones: str, plan: Plan, monkeypatch: pytest.MonkeyPatch, limit: str, replicas: int, message: str
) -> None:
    if limit:
        monkeypatch.setattr(reserve_remedies, limit, 0)
    if limit.startswith("DECISIONS"):
        monkeypatch.setattr(reserve_remedies, "MIN_DECISIONS", 100)
    change(fleet, grow(replicas))
    assert message in plan(zones, "HEAD")[1]


def test_the_saved_plan_and_the_html_report_have_the_findings(fleet: Fleet, zones: str, plan: Plan, tmp_path: Path) -> None:
    change(fleet, grow(10))
    saved, page = tmp_path / "plan.json", tmp_path / "plan.html"
    plan(zones, "HEAD", "--out", str(saved), "--report", f"html={page}")
    assert "4 of 10 replicas have no place" in page.read_text()
    assert "4 of 10 replicas have no place" in plan("--show", str(saved))[1]
