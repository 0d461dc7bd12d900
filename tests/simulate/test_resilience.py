"""The resilience table: the loss of each failure domain, and the difference between two commits."""

from __future__ import annotations

import base64
import csv
import json
import re

import pytest

from gitsched.cli import result_writer
from tests.scenarios.conftest import at_hour, policy
from tests.simulate.conftest import SHOP, WEIGHTED, Fleet, Simulate, cluster, deployment, divide, effects


def test_every_loss_has_a_row_in_order_of_severity(shop: Fleet, simulate: Simulate) -> None:
    found = simulate("--sweep", "regions", "-o", "json")
    assert [(row["scope"]["name"], row["homeless"], row["short"]) for row in found["losses"]] == [("west", 1, 3), ("east", 0, 0)]


@pytest.mark.parametrize("sweep", ["clusters", "zones", "regions", "providers"])
def test_a_row_equals_the_simulation_of_its_loss(shop: Fleet, simulate: Simulate, sweep: str) -> None:
    """Only affected workloads are scheduled again, which must not change the result."""
    for row in simulate("--sweep", sweep, "-o", "json")["losses"]:
        alone = simulate("--lose", f"{row['scope']['by']}/{row['scope']['name']}", "-o", "json")
        assert {name: value for name, value in alone.items() if name in row} == row
        complete = simulate("--lose", f"{row['scope']['by']}/{row['scope']['name']}", "--scale", "default/*=1", "-o", "json")
        assert effects(complete) == effects(row)


def test_losses_without_missing_replicas_are_summarized(fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit({name: text for name, text in SHOP.items() if "pay" not in name})
    fleet.reconcile()
    assert simulate("--sweep", "regions").startswith(
        "Losing any one of 2 regions (2 workloads): 2 losses leave fewer replicas, 0 do not."
    )


def test_clusters_without_zones_are_reported(fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit({"clusters/w1.yaml": cluster("w1")})
    assert simulate("--sweep", "zones") == "No zone found in the cluster documents, so there is no loss to simulate.\n"


def test_a_change_that_removes_the_last_alternative_is_reported_with_its_line(shop: Fleet, simulate: Simulate) -> None:
    base = shop.git("rev-parse", "HEAD")
    narrow = SHOP["policies/cart.yaml"].replace("[w1, w2, e1]", "[w1, w2]")
    shop.commit({"policies/cart.yaml": narrow}, hour=1)
    result = simulate("--sweep", "regions", "--against", base)
    assert "1 workload more affected than before." in result
    expected = (
        "After this change, losing region west leaves Deployment default/cart unplaced, 4 replicas missing (before: 0); "
        "cause: policies/cart.yaml:9."
    )
    assert expected in result
    found = simulate("--sweep", "regions", "--against", base, "-o", "json", "--fail-on", "short", code=1)
    assert [shift["after"] for shift in found["shifts"]] == [4]


@pytest.mark.parametrize("kind", ["regions", "pairs"])
def test_the_loss_of_half_of_the_replicas_is_in_the_table(fleet: Fleet, simulate: Simulate, kind: str) -> None:
    fleet.commit({name: text for name, text in SHOP.items() if "pay" not in name and "cart" not in name})
    fleet.reconcile()
    text, found = simulate("--sweep", kind), simulate("--sweep", kind, "-o", "json")
    number = 2 if kind == "regions" else 6
    assert f"{number} losses leave fewer replicas, 0 do not." in text
    assert "FEWER REPLICAS" in text
    assert {row["reduced"] for row in found["losses"]} == {1}
    if kind == "regions":
        assert text.count("Deployment default/site runs on with 4 of 8 replicas\n") == 2


def test_a_comparison_says_that_a_workload_without_replicas_becomes_unplaced(fleet: Fleet, simulate: Simulate) -> None:
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: default}\n"
    clusters = {name: text for name, text in SHOP.items() if name.startswith("clusters")}
    fleet.commit({**clusters, "limits.yaml": config_map, "policy.yaml": policy("w1, e1", kind="ConfigMap")})
    fleet.reconcile()
    base = fleet.git("rev-parse", "HEAD")
    fleet.commit({"policy.yaml": policy("w1, w2", kind="ConfigMap")}, hour=1)
    arguments = ("--sweep", "regions", "--against", base)
    table = simulate(*arguments, "-o", "markdown")
    assert "| If lost | Workload | Missing before | Missing after | Unplaced before | Unplaced after | Cause |" in table
    assert "| region west | ConfigMap default/limits | 0 | 0 | no | yes |" in table
    west = simulate(*arguments, "-o", "json")["shifts"][0]
    assert (west["before"], west["after"], west["homelessBefore"], west["homeless"]) == (0, 0, False, True)


def test_a_change_that_adds_an_alternative_is_reported_as_an_improvement(shop: Fleet, simulate: Simulate) -> None:
    base = shop.git("rev-parse", "HEAD")
    shop.commit({"policies/pay.yaml": divide("pay", "clusterNames: [w1, w2, e2]", WEIGHTED)}, hour=1)
    result = simulate("--sweep", "regions", "--against", base, "--fail-on", "short")
    assert "1 workload less affected than before." in result
    assert "leaves no replica of Deployment default/pay missing (before: 3)" in result


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        pytest.param({"apps/pay.yaml": SHOP["apps/pay.yaml"].replace("replicas: 3", "replicas: 5")}, "apps/pay.yaml:7", id="more"),
        pytest.param({"clusters/e1.yaml": None}, "clusters/e1.yaml:1", id="no alternative left"),
    ],
)
def test_the_cause_is_the_changed_field(shop: Fleet, simulate: Simulate, files: dict[str, str | None], cause: str) -> None:
    base = shop.git("rev-parse", "HEAD")
    shop.commit(files, hour=1)
    assert f"; cause: {cause}." in simulate("--sweep", "regions", "--against", base)


def test_a_change_without_effect_on_losses_is_reported(shop: Fleet, simulate: Simulate) -> None:
    base = shop.git("rev-parse", "HEAD")
    shop.commit({"README.md": "nothing"}, hour=1)
    assert simulate("--sweep", "zones", "--against", base) == "Resilience: losing any zone has the same effect as before.\n"


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_names_cannot_become_markup(fleet: Fleet, simulate: Simulate, form: str) -> None:
    hostile = cluster("w1", region="'<img src=x> | @team `x`'")
    fleet.commit(SHOP | {"clusters/w1.yaml": hostile})
    fleet.reconcile()
    result = simulate("--sweep", "regions", "-o", form)
    assert "img" in result
    assert "<img" not in result
    if form == "markdown":
        assert " @team" not in result
        rows = [line for line in result.splitlines() if line.startswith("| ")]
        assert {row.count(" | ") for row in rows[:3]} == {8}


def test_the_html_report_has_no_external_resources(shop: Fleet, simulate: Simulate) -> None:
    page = simulate("--sweep", "clusters", "-o", "html")
    assert page.startswith("<!doctype html>")
    assert not any(word in page for word in ("http:", "https:", "src="))
    assert page.count("<tr") - page.count("<thead") >= 4


def test_the_html_report_contains_its_table_and_its_json(shop: Fleet, simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    page = simulate("--sweep", "clusters", "-o", "html")
    saved = dict(re.findall(r'href="data:(text/csv|application/json);charset=utf-8;base64,([^"]+)" download="resilience\.', page))
    assert base64.b64decode(saved["text/csv"]).startswith(b"Lost cluster,Clusters,Affected")
    assert json.loads(base64.b64decode(saved["application/json"])) == simulate("--sweep", "clusters", "-o", "json")
    monkeypatch.setattr(result_writer, "JSON_SHOWN", 100)
    assert "application/json" not in simulate("--sweep", "clusters", "-o", "html")


@pytest.mark.parametrize("words", ["--lose w1", "--sweep clusters", "--sweep pairs", "--sweep clusters --against HEAD~1"])
def test_html_csv_and_json_show_the_source_commits_and_their_times(shop: Fleet, simulate: Simulate, words: str) -> None:
    """The commit is a link where the URL of the remote names a forge, and the text of a commit is no markup."""
    shop.git("remote", "add", "origin", "https://github.com/acme/fleet.git")
    base = shop.git("rev-parse", "HEAD")
    shop.commit({"policies/pay.yaml": divide("pay", "clusterNames: [w1]", WEIGHTED)}, hour=1, message="<b>Move</b> pay (#7)")
    head, time, compared = shop.git("rev-parse", "HEAD"), at_hour(1).isoformat().replace("+00:00", "Z"), "--against" in words
    found, page = simulate(*words.split(), "-o", "json"), simulate(*words.split(), "-o", "html")
    assert (found["source"]["commit"], found["source"]["time"]) == (head, time)
    assert found.get("against", {}).get("commit") == (base if compared else None)
    assert f'<a href="https://github.com/acme/fleet/commit/{head}" rel="noreferrer">{head[:10]}</a> &lt;b&gt;Move' in page
    assert f'<time datetime="{time}">' in page
    assert (f">{base[:10]}</a>" in page) == compared
    places = re.findall(rf'href="https://github.com/acme/fleet/blob/{head}/policies/pay.yaml#L(\d+)"', page)
    assert bool(places) == compared, "the cause of a change is a link"
    tables = [base64.b64decode(text).decode() for text in re.findall(r'href="data:text/csv;charset=utf-8;base64,([^"]+)"', page)]
    rows = [row for table in tables for row in csv.DictReader(table.splitlines())]
    assert {(row["Commit"], row["Commit time"], row.get("Against")) for row in rows} == {(head, time, base if compared else None)}


def test_html_and_json_do_not_name_a_commit_for_uncommitted_files(shop: Fleet, simulate: Simulate) -> None:
    (shop.path / "apps/cart.yaml").write_text(deployment("cart", 8))
    assert simulate("--worktree", "--lose", "w1", "-o", "json")["source"] is None
    assert "<dt>commit</dt><dd>the worktree</dd>" in simulate("--worktree", "--lose", "w1", "-o", "html")


@pytest.mark.parametrize("width", [80, 200])
def test_no_line_is_longer_than_the_terminal(shop: Fleet, simulate: Simulate, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (("--sweep", "clusters"), ("--lose", "region/west"), ("--scale", "*=9")):
        assert max(map(len, simulate(*arguments).splitlines())) <= width


def test_every_format_reports_unplaced_workloads(shop: Fleet, simulate: Simulate) -> None:
    data = simulate("--sweep", "regions", "-o", "json")
    assert json.dumps(data["losses"][0]["short"]) == "3"
    for form in ("text", "markdown", "html"):
        assert "unplaced" in simulate("--sweep", "regions", "-o", form)


WORSE = "After this change, losing region west leaves Deployment default/cart unplaced, 4 replicas missing (before: 0)"


@pytest.fixture
def narrowed(shop: Fleet) -> str:
    """Commit a policy without the cluster in the east; return the parent commit."""
    base = shop.git("rev-parse", "HEAD")
    shop.commit({"policies/cart.yaml": SHOP["policies/cart.yaml"].replace("[w1, w2, e1]", "[w1, w2]")}, hour=1)
    return base


def test_a_plan_reports_the_change_in_resilience(narrowed: str, plan: Simulate) -> None:
    result = plan(narrowed, "--resilience", "regions")
    assert f"{WORSE}; cause: policies/cart.yaml:9." in result
    assert "Resilience" not in plan(narrowed)
    data = plan(narrowed, "--resilience", "regions", "-o", "json")["resilience"]
    assert [(shift["before"], shift["after"], shift["worse"]) for shift in data["shifts"]] == [(0, 4, True)]
    assert {row["scope"]["name"]: row["short"] for row in data["head"]["losses"]} == {"west": 7, "east": 0}


def test_the_comment_has_a_line_and_a_folded_table(narrowed: str, plan: Simulate) -> None:
    result = plan(narrowed, "--resilience", "regions", "-o", "markdown")
    assert "- After this change, losing region west leaves Deployment default/cart unplaced, 4 replicas missing" in result
    assert "cause: `policies/cart.yaml:9.`" in result or "cause: policies/cart.yaml:9." in result
    table = result.partition("<details><summary>If any one region is lost</summary>")[2].partition("</details>")[0]
    assert [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| `")] == ["`west`", "`east`"]


def test_the_html_report_has_the_table(narrowed: str, plan: Simulate) -> None:
    page = plan(narrowed, "--resilience", "regions", "-o", "html")
    assert 'id="resilience"' in page
    assert "losing region west leaves Deployment default/cart unplaced" in page


def test_without_a_base_the_plan_has_the_table_of_its_result(shop: Fleet, plan: Simulate) -> None:
    result = plan("--resilience", "regions")
    assert "Losing region west: Deployment default/pay: unplaced, Deployment default/site runs on with 4 of 8 replicas." in result
    assert plan("--resilience", "zones", "-o", "json")["resilience"]["by"] == "zone"


def test_a_comment_without_space_for_the_table_keeps_the_summary(fleet: Fleet, plan: Simulate) -> None:
    clusters = [f"{'n' * 40}-{number:02}" for number in range(20)]
    workloads = [f"{'w' * 59}-{number:03}" for number in range(60)]
    every = divide("pay", f"clusterNames: [{', '.join(clusters[:2])}]", WEIGHTED).replace(", name: pay}", "}")
    files = {f"{name}.yaml": cluster(name, region=f"region-{name}") for name in clusters}
    fleet.commit(files | {f"{name}.yaml": deployment(name, 1) for name in workloads} | {"p.yaml": every})
    base = fleet.git("rev-parse", "HEAD")
    # Each workload changes in another way, so that no two of them are a group.
    fleet.commit({f"{name}.yaml": deployment(name, number) for number, name in enumerate(workloads, start=2)}, hour=1)
    full = plan(base, "--resilience", "regions", "-o", "markdown")
    result = plan(base, "--resilience", "regions", "-o", "markdown", "--max-chars", "16384")
    assert ("If any one region is lost</summary>" in full, "If any one region is lost</summary>" in result) == (True, False)
    assert len(result) <= 16384
    assert "**Resilience" in result
