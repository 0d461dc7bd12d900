"""The resilience table: every single loss, and its difference between two commits."""

from __future__ import annotations

import json

import pytest

from tests.simulation.conftest import SHOP, WEIGHTED, Fleet, Simulate, cluster, divide, effects


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
    assert simulate("--sweep", "regions").startswith("Losing any one of 2 regions, for 2 workloads: every loss can be made up for.")


def test_a_fleet_that_does_not_say_where_it_stands_has_no_zones_to_lose(fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit({"clusters/w1.yaml": cluster("w1")})
    assert simulate("--sweep", "zones") == "No cluster says in which zone it stands, so there is nothing to lose.\n"


def test_a_change_that_takes_the_way_out_is_told_with_its_line(shop: Fleet, simulate: Simulate) -> None:
    base = shop.git("rev-parse", "HEAD")
    narrow = SHOP["policies/cart.yaml"].replace("[w1, w2, e1]", "[w1, w2]")
    shop.commit({"policies/cart.yaml": narrow}, hour=1)
    told = simulate("--sweep", "regions", "--against", base)
    assert "1 workload worse off than before." in told
    expected = (
        "After this change, losing region west leaves Deployment default/cart without any place, 4 replicas short (before: 0); "
        "cause policies/cart.yaml:9."
    )
    assert expected in told
    found = simulate("--sweep", "regions", "--against", base, "-o", "json", "--fail-on", "short", code=1)
    assert [shift["after"] for shift in found["shifts"]] == [4]


def test_a_change_that_opens_a_way_out_is_no_failure(shop: Fleet, simulate: Simulate) -> None:
    base = shop.git("rev-parse", "HEAD")
    shop.commit({"policies/pay.yaml": divide("pay", "clusterNames: [w1, w2, e2]", WEIGHTED)}, hour=1)
    told = simulate("--sweep", "regions", "--against", base, "--fail-on", "short")
    assert "1 workload better off than before." in told
    assert "leaves Deployment default/pay 0 replicas short (before: 3)" in told


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
    assert f"; cause {cause}." in simulate("--sweep", "regions", "--against", base)


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
    assert "img src=x" in told
    assert "<img" not in told
    if form == "markdown":
        assert " @team" not in told
        rows = [line for line in told.splitlines() if line.startswith("| ")]
        assert {row.count(" | ") for row in rows[:3]} == {7}


def test_the_page_loads_nothing_and_runs_nothing(shop: Fleet, simulate: Simulate) -> None:
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
        assert "no place left" in simulate("--sweep", "regions", "-o", form)
