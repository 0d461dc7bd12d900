"""The resilience table: every single loss, and its difference between two commits."""

from __future__ import annotations

import json

import pytest

from tests.simulation.conftest import SHOP, WEIGHTED, Fleet, Simulate, cluster, deployment, divide, effects


def test_every_loss_has_a_row_and_the_worst_comes_first(shop: Fleet, simulate: Simulate) -> None:
    found = simulate("--sweep", "regions", "-o", "json")
    assert [(row["scope"]["name"], row["homeless"], row["short"]) for row in found["losses"]] == [("west", 1, 3), ("east", 0, 0)]


@pytest.mark.parametrize("sweep", ["clusters", "zones", "regions", "providers"])
def test_a_row_says_what_the_loss_alone_says(shop: Fleet, simulate: Simulate, sweep: str) -> None:
    """The sweep looks only at whom a loss can touch; that must not change an answer."""
    for row in simulate("--sweep", sweep, "-o", "json")["losses"]:
        alone = simulate("--lose", f"{row['scope']['by']}/{row['scope']['name']}", "-o", "json")
        assert {name: value for name, value in alone.items() if name in row} == row
        everyone = simulate("--lose", f"{row['scope']['by']}/{row['scope']['name']}", "--scale", "default/*=1", "-o", "json")
        assert effects(everyone) == effects(row)


def test_a_table_without_a_loss_that_hurts_says_so(fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit({name: text for name, text in SHOP.items() if "pay" not in name})
    fleet.reconcile()
    assert simulate("--sweep", "regions").startswith("Losing any one of 2 regions (2 workloads): no loss leaves replicas missing.")


def test_a_fleet_that_does_not_say_where_it_stands_has_no_zones_to_lose(fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit({"clusters/w1.yaml": cluster("w1")})
    assert simulate("--sweep", "zones") == "No zone found in the cluster documents, so there is no loss to simulate.\n"


def test_a_change_that_removes_the_last_alternative_is_reported_with_its_line(shop: Fleet, simulate: Simulate) -> None:
    base = shop.git("rev-parse", "HEAD")
    narrow = SHOP["policies/cart.yaml"].replace("[w1, w2, e1]", "[w1, w2]")
    shop.commit({"policies/cart.yaml": narrow}, hour=1)
    told = simulate("--sweep", "regions", "--against", base)
    assert "1 workload more affected than before." in told
    expected = (
        "After this change, losing region west leaves Deployment default/cart unplaced, 4 replicas missing (before: 0); "
        "cause: policies/cart.yaml:9."
    )
    assert expected in told
    found = simulate("--sweep", "regions", "--against", base, "-o", "json", "--fail-on", "short", code=1)
    assert [shift["after"] for shift in found["shifts"]] == [4]


def test_a_change_that_opens_a_way_out_is_no_failure(shop: Fleet, simulate: Simulate) -> None:
    base = shop.git("rev-parse", "HEAD")
    shop.commit({"policies/pay.yaml": divide("pay", "clusterNames: [w1, w2, e2]", WEIGHTED)}, hour=1)
    told = simulate("--sweep", "regions", "--against", base, "--fail-on", "short")
    assert "1 workload less affected than before." in told
    assert "leaves no replica of Deployment default/pay missing (before: 3)" in told


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        pytest.param({"apps/pay.yaml": SHOP["apps/pay.yaml"].replace("replicas: 3", "replicas: 5")}, "apps/pay.yaml:7", id="more"),
        pytest.param({"clusters/e1.yaml": None}, "clusters/e1.yaml:1", id="no way out any more"),
    ],
)
def test_the_cause_is_whatever_changed(shop: Fleet, simulate: Simulate, files: dict[str, str | None], cause: str) -> None:
    base = shop.git("rev-parse", "HEAD")
    shop.commit(files, hour=1)
    assert f"; cause: {cause}." in simulate("--sweep", "regions", "--against", base)


def test_a_change_without_effect_on_any_loss_says_so(shop: Fleet, simulate: Simulate) -> None:
    base = shop.git("rev-parse", "HEAD")
    shop.commit({"README.md": "nothing"}, hour=1)
    assert simulate("--sweep", "zones", "--against", base) == "Resilience: losing any zone has the same effect as before.\n"


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_names_cannot_become_markup(fleet: Fleet, simulate: Simulate, form: str) -> None:
    hostile = cluster("w1", region="'<img src=x> | @team `x`'")
    fleet.commit(SHOP | {"clusters/w1.yaml": hostile})
    fleet.reconcile()
    told = simulate("--sweep", "regions", "-o", form)
    assert "img" in told
    assert "<img" not in told
    if form == "markdown":
        assert " @team" not in told
        rows = [line for line in told.splitlines() if line.startswith("| ")]
        assert {row.count(" | ") for row in rows[:3]} == {7}


def test_the_html_report_loads_nothing_and_runs_nothing(shop: Fleet, simulate: Simulate) -> None:
    page = simulate("--sweep", "clusters", "-o", "html")
    assert page.startswith("<!doctype html>")
    assert not any(word in page for word in ("http:", "https:", "<script", "src="))
    assert page.count("<tr") - page.count("<thead") >= 4


@pytest.mark.parametrize("width", [80, 200])
def test_no_line_is_longer_than_the_terminal(shop: Fleet, simulate: Simulate, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (("--sweep", "clusters"), ("--lose", "region/west"), ("--scale", "*=9")):
        assert max(map(len, simulate(*arguments).splitlines())) <= width


def test_every_form_says_the_same_number(shop: Fleet, simulate: Simulate) -> None:
    data = simulate("--sweep", "regions", "-o", "json")
    assert json.dumps(data["losses"][0]["short"]) == "3"
    for form in ("text", "markdown", "html"):
        assert "unplaced" in simulate("--sweep", "regions", "-o", form)


WORSE = "After this change, losing region west leaves Deployment default/cart unplaced, 4 replicas missing (before: 0)"


@pytest.fixture
def narrowed(shop: Fleet) -> str:
    """A commit that takes away the cluster in the east; its parent."""
    base = shop.git("rev-parse", "HEAD")
    shop.commit({"policies/cart.yaml": SHOP["policies/cart.yaml"].replace("[w1, w2, e1]", "[w1, w2]")}, hour=1)
    return base


def test_a_review_says_what_a_merge_does_to_resilience(narrowed: str, plan: Simulate) -> None:
    told = plan(narrowed, "--resilience", "regions")
    assert f"{WORSE}; cause: policies/cart.yaml:9." in told
    assert "Resilience" not in plan(narrowed)
    data = plan(narrowed, "--resilience", "regions", "-o", "json")["resilience"]
    assert [(shift["before"], shift["after"], shift["worse"]) for shift in data["shifts"]] == [(0, 4, True)]
    assert {row["scope"]["name"]: row["short"] for row in data["head"]["losses"]} == {"west": 7, "east": 0}


def test_the_comment_has_the_line_and_the_table_folded(narrowed: str, plan: Simulate) -> None:
    told = plan(narrowed, "--resilience", "regions", "-o", "markdown")
    assert "- After this change, losing region west leaves Deployment default/cart unplaced, 4 replicas missing" in told
    assert "cause: `policies/cart.yaml:9.`" in told or "cause: policies/cart.yaml:9." in told
    table = told.partition("<details><summary>If any one region is lost</summary>")[2].partition("</details>")[0]
    assert [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| `")] == ["`west`", "`east`"]


def test_the_html_report_has_the_table(narrowed: str, plan: Simulate) -> None:
    page = plan(narrowed, "--resilience", "regions", "-o", "html")
    assert 'id="resilience"' in page
    assert "losing region west leaves Deployment default/cart unplaced" in page


def test_without_a_base_the_plan_has_the_table_of_what_it_makes(shop: Fleet, plan: Simulate) -> None:
    told = plan("--resilience", "regions")
    assert "Losing region west: Deployment default/pay: unplaced." in told
    assert plan("--resilience", "zones", "-o", "json")["resilience"]["by"] == "zone"


def test_a_comment_too_small_for_the_table_keeps_the_sentence(fleet: Fleet, plan: Simulate) -> None:
    clusters = [f"{'n' * 40}-{number:02}" for number in range(20)]
    workloads = [f"{'w' * 60}-{number:03}" for number in range(150)]
    files = {f"{name}.yaml": cluster(name, region=f"region-{name}") for name in clusters}
    fleet.commit(files | {f"{name}.yaml": deployment(name) for name in workloads})
    base = fleet.git("rev-parse", "HEAD")
    every = divide("pay", f"clusterNames: [{', '.join(clusters[:2])}]", WEIGHTED).replace(", name: pay}", "}")
    fleet.commit({"p.yaml": every}, hour=1)
    full = plan(base, "--resilience", "regions", "-o", "markdown")
    told = plan(base, "--resilience", "regions", "-o", "markdown", "--max-chars", "16384")
    assert ("If any one region is lost</summary>" in full, "If any one region is lost</summary>" in told) == (True, False)
    assert len(told) <= 16384
    assert "**Resilience" in told
