"""The page of `plan -o html` in a real browser: no network requests, keyboard navigation, escaped names."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from gitsched.forge.web_links import find_web_links
from gitsched.model.changes import (
    LEFT_IN_PLACE,
    Cause,
    ChangedField,
    ExceededLimit,
    ManifestChange,
    Move,
    RecordChange,
    RetainedWorkload,
    SettingChange,
    UnplacedObject,
    WithheldChanges,
)
from gitsched.model.document import Key
from gitsched.model.explanation import ExplainedCandidate, Explanation
from gitsched.model.finding import Finding, Location
from gitsched.model.fits import FitReport, FittingSets, SetVerdict
from gitsched.model.fleet_topology import ClusterSite, ResourceUse, SimulatedSite
from gitsched.model.history import WITHHOLDS, HistoryEntry, PlacementMove, SourceChange
from gitsched.model.holds import HeldPlacement
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.reserve import Loss, ReserveCheck, ReserveShortage, Shortage
from gitsched.model.scheduling import CandidateResult, Outcome, RecordedDecision, RecordTarget, TargetCluster
from gitsched.model.simulation import FailureDomain, Resilience, SimulatedSource, Simulation, WorkloadEffect
from gitsched.reconcile import Reconciler, RunSettings, reconcile
from gitsched.reconcile.incremental.planned_clusters import read_planned_clusters
from gitsched.reconcile.review.explanation import explain_workloads
from gitsched.reconcile.run import make_review
from gitsched.report.blocks import HeatMap, ListBlock, Paragraph, TableBlock
from gitsched.report.fits import list_fit_blocks
from gitsched.report.page import FleetView, choose_explained, write_page
from gitsched.report.page.blocks import Download, list_csv_files, write_blocks_page
from gitsched.report.page.history import HistoryPage, write_history_page
from gitsched.report.page.live import LiveView
from gitsched.report.page.topology import build_place_rows
from gitsched.report.review import ComparisonBase, DeliveryChanges, OutputComparison, Review
from gitsched.report.simulation_blocks import list_simulation_blocks
from tests.programs import find_program

pytestmark = pytest.mark.needs("browser")
ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 3, 2, 8, 0, 0, tzinfo=UTC)
WORKLOADS, CLUSTERS = 1000, 100
EVIL = "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>{{ 7 * 7 }}@team `x` | <!--"
Open = Callable[[str], Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=find_program("browser"), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open a page from a file; the test fails if it makes a network request or logs an error."""
    errors: list[str] = []

    def open_html(html: str) -> Page:
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith("file://") else errors.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_html
    assert not errors


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the bundled example while its primary data centre is down."""
    base = tmp_path_factory.mktemp("example")
    fleet = base / "fleet"
    shutil.copytree(ROOT / "examples" / "repo", fleet)
    settings = RunSettings(now=NOW, cache=base / "cache", location=str(fleet))

    def commit() -> None:
        for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "Fleet"]):
            subprocess.run(["git", *command], cwd=fleet, check=True)

    commit()
    reconcile(settings)
    for name in ("fra-prod-1", "fra-prod-2"):
        path = fleet / "clusters" / f"{name}.yaml"
        path.write_text(path.read_text().replace("spec:\n", "spec:\n  taints: [{key: example.com/down, effect: NoExecute}]\n", 1))
    commit()
    reconciler = Reconciler(settings)
    run = reconciler.run(NOW, preview=True, complete=True)
    explained = explain_workloads(reconciler.source.repository, run.plan, run.plan.outcomes.values())
    clusters = read_planned_clusters(run, run.plan.moves)
    return write_page(make_review(run), FleetView(clusters.facts, explained, clusters.sites))


@cache
def make_large_fleet() -> str:
    """A thousand workloads, each on three of a hundred clusters."""
    names = [f"cluster-{number:03}" for number in range(CLUSTERS)]
    facts = {name: ClusterInfo(name, {"tier": "a"}, f"region-{number % 5}") for number, name in enumerate(names)}
    outcomes, explanations = [], {}
    for number in range(WORKLOADS):
        key = Key("apps", "Deployment", f"team-{number % 10}", f"app-{number:04}")
        placed = tuple(TargetCluster(names[(number * 7 + step * 31) % CLUSTERS], 2 + step) for step in range(3))
        outcomes.append(Outcome(key, "karmada", "placed", "PropagationPolicy/x/y", "", placed, 9, (), "by y", NOW))
        verdicts = (CandidateResult(name, False, f"taint of {name}", {}, None) for name in names)
        explanations[key] = Explanation(
            str(key), policy="PropagationPolicy/x/y", candidates=tuple(map(ExplainedCandidate, verdicts))
        )
    return write_page(
        Review(
            "c0ffee",
            "placements",
            before="beef",
            outcomes=outcomes,
            states={"placed": WORKLOADS, "pending": 0, "stale": 0},
            time=NOW,
        ),
        FleetView(facts, explanations),
    )


def test_moves_are_listed_and_a_cell_opens_its_explanation(example: str, show: Open) -> None:
    page = show(example)
    assert page.title().startswith(
        "7 of 22 workloads move (1 with fewer replicas), 4 leave some clusters (1 with fewer replicas), 0 become unplaced, 1 held: commit "
    )
    assert page.get_by_role("row", name="Deployment shop/cart").first.inner_text().split("\n")[0].startswith("Deployment shop/cart")
    cell = page.get_by_role("gridcell", name="nimbus-eu-central-1: +4, new").first
    cell.click()
    dialog = page.get_by_role("dialog").inner_text()
    assert "Deployment shop/cart" in dialog
    assert "before: fra-prod-1 2 fra-prod-2 2" in dialog
    assert "nimbus-eu-central-1\n\ncloud: fits" in dialog
    assert "clusters/fra-prod-1.yaml:" in dialog
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()


def test_the_name_of_a_moved_workload_opens_its_explanation(example: str, show: Open) -> None:
    page = show(example)
    page.get_by_role("button", name="Deployment shop/cart").click()
    assert "Groups, in order" in page.get_by_role("dialog").inner_text()


def test_a_stateful_workload_that_is_held_is_named_with_its_release(example: str, show: Open) -> None:
    page = show(example)
    assert "Gitsched-Release" not in page.inner_text("header"), "how to release it is folded"
    page.get_by_text("Held: 1 workload with data stays until released.").click()
    text = page.inner_text("header")
    assert "StatefulSet payments/ledger is held on fra-prod-1 3: a taint evicts it from fra-prod-1" in text
    assert "when released: dub-prod-1 3 without its data; save or copy the data, then add the trailer" in text
    assert "Gitsched-Release: payments/ledger" in text


def test_the_topology_shows_what_arrives_and_leaves_and_how_full_clusters_are(example: str, show: Open) -> None:
    page = show(example)
    tree = page.locator("#topology-tree")
    lost = tree.locator("summary", has_text="fra-prod-1")
    assert lost.inner_text().split("\n")[:2] == ["fra-prod-1 fra-adrained", "18 → 3 replicas"]
    target = tree.locator("summary", has_text="nimbus-eu-central-1")
    assert target.locator(".uses").inner_text().split() == ["cpu", "12", "%", "mem", "14", "%", "pods", "13", "%"]
    target.focus()
    page.keyboard.press("Enter")
    content = tree.locator("details.cluster", has_text="nimbus-eu-central-1").locator(".inside").inner_text()
    known = "at least 11.5 cores of 96 cores requested, 5.1 cores more in this plan (as reported, at an unknown time)"
    assert f"cpu: {known}" in content
    assert "+4 Deployment shop/cart from fra-prod-1 2, fra-prod-2 2" in content
    page.get_by_label("Namespace").select_option("=ml")
    assert tree.locator("details.cluster > summary").count() == 10
    page.get_by_label("Hide empty clusters").check()
    assert tree.locator("details.cluster > summary .cluster-name").all_inner_texts() == ["fra-gpu-1"]


def test_filters_reduce_rows_and_columns(example: str, show: Open) -> None:
    page = show(example)
    page.get_by_label("Workload", exact=True).fill("deploy shop")
    assert page.locator("#fleet-count").inner_text() == "3 of 22 workloads, 10 of 10 clusters"
    page.get_by_label("Hide empty clusters").check()
    columns = page.locator("#fleet-window thead th").all_inner_texts()[1:]
    assert "fra-gpu-1" not in columns
    assert {"fra-prod-1", "nimbus-eu-central-1"} <= set(columns)
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("#fleet-count")).to_have_text("22 workloads on 10 clusters")
    page.get_by_label("State").select_option("changed")
    assert page.locator("#fleet-count").inner_text() == "11 of 22 workloads, 7 of 10 clusters", "columns without a cell are hidden"


def test_the_matrix_is_one_tab_stop_with_arrow_key_navigation(example: str, show: Open) -> None:
    page = show(example)
    page.locator("#topology-tree summary").last.focus()
    page.keyboard.press("Tab")
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "ClusterRole metrics-reader"
    for key, text in (
        ("ArrowDown", "CustomResourceDefinition postgresclusters.database.example.com"),
        ("ArrowRight", "✓"),
        ("Home", None),
    ):
        page.keyboard.press(key)
        assert text is None or page.evaluate(focused) == text
    page.keyboard.press("Control+End")
    assert page.evaluate("document.activeElement.parentElement.cells[0].textContent") == "ConfigMap support/helpdesk-mail"
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").get_by_role("heading", level=2).inner_text() == "ConfigMap support/helpdesk-mail"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.closest('tr').cells[0].textContent") == "ConfigMap support/helpdesk-mail"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#fleet-window')") is None


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_html_report_has_no_accessibility_violations(
    example: str, browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    (tmp_path / "page.html").write_text(example)
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)  # axe is a script, too
    page.goto((tmp_path / "page.html").as_uri())
    assert Axe().run(page).violations_count == 0
    page.locator("#topology-tree summary", has_text="nimbus-eu-central-1").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Deployment shop/cart").first.click()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_tables_in_html_have_no_accessibility_violations(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    table = TableBlock(("Lost", "Missing", "Reason"), [(EVIL, "3", EVIL), ("two", "-", "")], frozenset((0,)))
    heat = HeatMap("Missing replicas", [EVIL, "Deployment shop/web"], [(EVIL, (9, 3)), ("two", (0, 1))])
    blocks = [
        Paragraph(f"2 losses {EVIL}"),
        table,
        heat,
        Paragraph("If two is lost", heading=True),
        table,
        ListBlock("More", [EVIL]),
    ]
    (tmp_path / "page.html").write_text(write_blocks_page("Resilience", blocks))
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)  # type: ignore[arg-type]
    page.goto((tmp_path / "page.html").as_uri())
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("window.pwned") is None
    assert page.get_by_role("heading", level=1).inner_text() == f"2 losses {EVIL}"
    assert page.get_by_role("link", name="If two is lost").get_attribute("href") == "#part-2"
    assert page.locator("tr.bad").count() == 2
    assert page.locator(".heat td").evaluate_all("cells => cells.map((cell) => cell.className)") == [
        "",
        "load-4",
        "load-1",
        "",
        "load-0",
    ]
    assert [part.inner_text() for part in page.locator(".legend .pair").all()] == ["1 to 2", "3 to 4", "5 to 6", "7 to 8", "9"]
    page.close()


def test_a_simulation_is_searched_and_says_as_of_when_it_is(show: Open) -> None:
    blocks = [
        Paragraph("2 workloads move"),
        TableBlock(("Workload", "Reason"), [("Deployment shop/web", "ams is lost"), ("Deployment shop/api", "fra is lost")]),
        ListBlock("Unplaced", ["Deployment shop/web in ams"]),
    ]
    page = show(write_blocks_page("Simulation", blocks, source=SimulatedSource(SourceChange("c0ffee"), time=NOW)))
    assert "as of\n2026-03-02T08:00:00Z" in page.locator(".facts").inner_text()
    page.keyboard.press("/")
    page.keyboard.type("ams WEB")
    expect(page.get_by_role("status")).to_have_text("2 of 3 rows and items")
    assert page.locator("main tbody tr:visible, main li:visible").count() == 2
    page.get_by_role("searchbox").fill("")
    assert page.locator("main tbody tr:visible, main li:visible").count() == 3


def test_csv_has_every_table_and_heat_map(show: Open) -> None:
    effects = [TableBlock(("Workload", "Missing"), [(name, "3")]) for name in (EVIL, "api")]
    blocks = [
        Paragraph("2 losses"),
        TableBlock(("Lost", "Missing"), [("one", "3"), ("two", "3")]),
        HeatMap("Missing replicas", ["web"], [("one", (3,))]),
        Paragraph("If one is lost", heading=True),
        effects[0],
        Paragraph("If two is lost", heading=True),
        effects[1],
    ]
    page = show(write_blocks_page("Resilience", blocks, list_csv_files("resilience", blocks)))
    saved = {}
    for label in ("CSV: Lost", "CSV: Missing replicas", "CSV: Workload"):
        with page.expect_download() as download:
            page.get_by_role("link", name=label, exact=True).click()
        name = download.value.suggested_filename
        saved[name] = list(csv.reader(download.value.path().open(newline="", encoding="utf-8")))
    assert saved == {
        "resilience.csv": [["Lost", "Missing"], ["one", "3"], ["two", "3"]],
        "resilience-2.csv": [["", "web"], ["one", "3"]],
        "resilience-3.csv": [["", "Workload", "Missing"], ["If one is lost", EVIL, "3"], ["If two is lost", "api", "3"]],
    }


CHANGES = FitReport(
    ("main", "1" * 40),
    tuple((name, "2" * 40) for name in ("#41", "#52", f"#60{EVIL}", "#61")),
    FittingSets((0, 3, 2), (frozenset((0, 1)),), ((2, frozenset((3,))),)),
    {
        frozenset((1,)): SetVerdict(),
        frozenset((0,)): SetVerdict(),
        frozenset((3,)): SetVerdict(),
        frozenset((2,)): SetVerdict(("apps/second.yaml:1:1: error: defined more than once",)),
        frozenset((0, 1)): SetVerdict(files=(f"apps/{EVIL}.yaml",)),
    },
    5,
)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_html_about_changes_says_what_conflicts_in_which_file(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    blocks = list_fit_blocks(CHANGES)
    table = next(block for block in blocks if isinstance(block, TableBlock))
    downloads = [*list_csv_files("fits", [table]), Download("fits.json", "application/json", "{}\n", "JSON")]
    (tmp_path / "page.html").write_text(write_blocks_page("Pull requests together", blocks, downloads))
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)  # type: ignore[arg-type]
    page.goto((tmp_path / "page.html").as_uri())
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("window.pwned") is None
    assert page.get_by_role("heading", level=1).inner_text() == "3 of 4 changes fit together on main (1111111111)."
    assert page.locator("tr.bad").inner_text().split() == [
        *("#52", "2222222222", *(["-"] if width > 400 else []), "fits", "only", "if", "#41", "is", "not", "merged", "first"),
        *("conflicts", "in"),
        *f"apps/{EVIL}.yaml".split(),
    ]
    assert "fits only after #61. Alone it does not fit" in page.locator("table").first.inner_text()
    assert page.get_by_role("row", name=f"apps/{EVIL}.yaml").last.inner_text().split()[-3:] == ["#41", "and", "#52"]
    with page.expect_download() as saved:
        page.get_by_role("link", name="CSV").click()
    assert saved.value.suggested_filename == "fits.csv"
    assert list(csv.reader(saved.value.path().open(newline="", encoding="utf-8"))) == [[*row] for row in (table.head, *table.rows)]
    page.close()


def test_without_javascript_only_the_matrix_is_missing(example: str, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(example)
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto((tmp_path / "page.html").as_uri())
    text = page.inner_text("body")
    assert "Deployment shop/cart" in text
    assert "cluster-room-assumed" in text
    assert "The matrix needs JavaScript" in text
    (frankfurt,) = page.locator("#topology tbody tr", has_text="onprem").filter(has_text="eu-central").all()
    assert frankfurt.locator("th, td").all_inner_texts()[:4] == ["onprem", "eu-central", "3 (2 unavailable)", "7"]
    tiles = page.get_by_role("region", name="Clusters", exact=True).locator("tbody tr")
    assert tiles.count() == 10
    [target] = tiles.filter(has_text="nimbus-eu-central-1").all()
    assert target.locator("th, td").all_inner_texts()[1:4] == ["nimbus · eu-central", "memory 14 %", ""]


@pytest.mark.parametrize(
    ("before", "after", "flows"),
    [
        ({"a1": 2, "a2": 2}, {"a1": 4}, {"east": (1, 4, "", ""), "west": (0, 0, "", "")}),
        ({"a1": 4}, {"a1": 1, "b1": 3}, {"east": (1, 1, "", "−3 replicas"), "west": (1, 3, "+1 workload, +3 replicas", "")}),
        ({"a1": None, "a2": None}, {"b1": None}, {"east": (0, 0, "", "−1 workload"), "west": (1, 0, "+1 workload", "")}),
    ],
)
def test_what_moves_inside_a_region_neither_arrives_nor_leaves(
    before: dict[str, int | None], after: dict[str, int | None], flows: dict[str, tuple[int, int, str, str]]
) -> None:
    key, clusters = Key("apps", "Deployment", "shop", "web"), ({"a1": "east", "a2": "east", "b1": "west"}).items()
    columns = [{"name": name, "provider": "", "region": region} for name, region in clusters]
    targets = tuple(TargetCluster(name, count) for name, count in after.items())
    outcome = Outcome(key, "karmada", "placed", "", "", targets, None, (), "", NOW)
    rows = build_place_rows(columns, [outcome], [Move(key, before, after, "")])
    assert {row.region: tuple(row.flow) for row in rows} == flows


def test_the_last_of_a_thousand_workloads_on_a_hundred_clusters_can_be_reached(show: Open) -> None:
    page = show(make_large_fleet())
    assert page.locator("#fleet-count").inner_text() == "1,000 workloads on 100 clusters"
    assert page.locator("#fleet-window tbody tr").count() < WORKLOADS
    page.locator("#fleet-window tbody th").first.focus()
    page.keyboard.press("Control+End")
    assert page.locator("#fleet-window tbody tr").count() == WORKLOADS
    assert page.evaluate("document.activeElement.getAttribute('aria-label') ?? ''") in ("", "cluster-099: 4")
    assert page.evaluate("document.activeElement.parentElement.cells[0].textContent") == "Deployment team-9/app-0999"
    assert page.locator("#topology-tree details.cluster").count() == 0  # drawn when their region is opened
    page.get_by_label("Workload", exact=True).fill("app-0123")
    expect(page.locator("#fleet-count")).to_contain_text("1 of 1,000")
    page.locator("#filter-region").select_option("region-1")
    expect(page.locator("#fleet-count")).to_have_text("1 of 1,000 workloads, 20 of 100 clusters")
    assert page.locator("#fleet-window td.here").all_inner_texts() == ["2"]


@pytest.mark.parametrize("height", [900, 2400])
def test_the_matrix_of_a_thousand_clusters_has_as_many_rows_as_the_window(height: int, browser: Browser, tmp_path: Path) -> None:
    """Rows are drawn when it is scrolled, which needs more of them than it has space for."""
    names = [f"c{number:04}" for number in range(1000)]
    keys = [Key("apps", "Deployment", "shop", f"w{number:03}") for number in range(200)]
    placed = [Outcome(key, "karmada", "placed", "", "", (TargetCluster(names[0], 2),), 2, (), "", NOW) for key in keys]
    facts = {name: ClusterInfo(name, {}) for name in names}
    (tmp_path / "page.html").write_text(write_page(Review("c0ffee", "placements", outcomes=placed), FleetView(facts, {})))
    page = browser.new_page(viewport={"width": 1280, "height": height})
    page.goto((tmp_path / "page.html").as_uri())
    frame = page.locator("#fleet-window")
    assert (
        frame.evaluate("frame => [frame.scrollHeight > frame.clientHeight, frame.clientHeight > 0.75 * innerHeight]") == [True] * 2
    )
    page.set_viewport_size({"width": 1280, "height": height + 1000})
    page.wait_for_timeout(200)  # until the event of the new size
    assert frame.evaluate("frame => frame.scrollHeight > frame.clientHeight")
    page.close()


def test_each_reason_is_stored_once() -> None:
    html = make_large_fleet()
    assert html.count("taint of cluster-007") == 1
    assert len(html) < 2_000_000


def test_markup_in_names_is_shown_as_text(show: Open) -> None:
    key = Key("apps", "Deployment", "shop", EVIL)
    outcome = Outcome(key, "karmada", "placed", EVIL, EVIL, (TargetCluster(EVIL, 2),), 2, (), EVIL, NOW)
    why = Explanation(
        str(key), EVIL, EVIL, EVIL, candidates=(ExplainedCandidate(CandidateResult(EVIL, False, EVIL, {}, None), EVIL),)
    )
    review = Review(
        EVIL,
        EVIL,
        EVIL,
        before=EVIL,
        refused=EVIL,
        outcomes=[outcome],
        states={"placed": 1, "pending": 0, "stale": 0},
        moves=[Move(key, {}, {EVIL: 2}, EVIL)],
        findings=[Finding("error", "unknown-field", EVIL)],
        record_changes=[RecordChange(key, EVIL, (), (RecordTarget(EVIL, 1, EVIL),), EVIL, (Cause(EVIL),))],
        recorded=[RecordedDecision(key, EVIL, (RecordTarget(EVIL, 1, EVIL),))],
    )
    page = show(write_page(review, FleetView({EVIL: ClusterInfo(EVIL, {EVIL: EVIL}, EVIL, EVIL)}, {key: why})))
    page.locator("#fleet-window tbody td.new").click()
    assert page.evaluate("window.pwned") is None
    assert page.get_by_role("dialog").inner_text().count(EVIL) >= 5
    assert page.locator("main img").count() == 0


def test_markup_in_commits_is_shown_as_text_on_the_timeline(show: Open) -> None:
    key = Key("apps", "Deployment", EVIL, EVIL)
    entry = HistoryEntry(
        "c0ffee" * 7,
        NOW,
        f"{EVIL} <{EVIL}>",
        EVIL,
        "source",
        EVIL,
        ((EVIL, EVIL),),
        SourceChange("beef", EVIL, EVIL),
        (SourceChange("beef2", EVIL, EVIL),),
        files=(EVIL,),
        moves=(PlacementMove(Move(key, {EVIL: 1}, {EVIL: 2}, EVIL), EVIL),),
        records=(RecordChange(key, EVIL, (), (RecordTarget(EVIL, 1, EVIL),), EVIL),),
        notes=(EVIL,),
    )
    page = show(write_history_page(HistoryPage(EVIL, "c0ffee", [entry], [EVIL], "", EVIL)))
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img, main script").count() == 0
    assert page.locator("main").inner_text().count(EVIL) > 5
    page.get_by_label("Cluster").fill("not there")
    assert page.locator("#history-count").inner_text() == "0 commits, 0 changes; the filter leaves out 1 commit"


def test_the_timeline_has_a_time_axis_and_links_to_commits_and_pull_requests(browser: Browser, tmp_path: Path) -> None:
    source = SourceChange("beef" * 10, "Move the shop (#12)", "Ann")
    entries = [
        HistoryEntry(
            f"{number}" * 40, NOW + timedelta(hours=number * number), "gitsched <g@x>", f"change {number}", "source", source=source
        )
        for number in (4, 2, 0)
    ]
    web = find_web_links("https://github.com/shop/fleet")
    (tmp_path / "page.html").write_text(write_history_page(HistoryPage("placements", "c0ffee", entries, web=web)))
    page = browser.new_page(viewport={"width": 400, "height": 900}, color_scheme="dark", bypass_csp=True)
    page.goto((tmp_path / "page.html").as_uri())
    marks = page.locator(".axis a")
    assert [mark.get_attribute("href") for mark in marks.all()] == [f"#commit-{str(number) * 10}" for number in (0, 2, 4)]
    assert [mark.locator("rect").get_attribute("x") for mark in marks.all()] == ["0.0%", "25.0%", "100.0%"]
    assert page.locator(".axis text").all_text_contents() == ["12:00", "18:00"]
    links = page.locator(".entry").first.get_by_role("link")
    assert [link.get_attribute("href") for link in links.all()] == [
        f"https://github.com/shop/fleet/commit/{'beef' * 10}",
        "https://github.com/shop/fleet/pull/12",
    ]
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.close()


def make_entry(number: int) -> HistoryEntry:
    """Return a commit so many days after NOW, with which one workload moved."""
    move = Move(Key("apps", "Deployment", "shop", f"w{number}"), {"fra": 1}, {f"c{number % 2}": 1}, "policy")
    source = SourceChange("beef" * 10, "Move", "Ann")
    time = NOW + timedelta(days=number)
    return HistoryEntry(
        f"{number}" * 40, time, "", "", "source", f"change {number}", source=source, moves=(PlacementMove(move, "policy"),)
    )


def test_a_commit_of_the_history_names_the_clusters_that_it_changed_most() -> None:
    moves = [
        Move(Key("apps", "Deployment", "shop", f"w{number}"), {"fra": number, "ams": 1}, {f"c{number}": number, "ams": 2}, "policy")
        for number in range(1, 5)
    ]
    entry = make_entry(0)._replace(moves=tuple(PlacementMove(move, "policy") for move in moves))
    html = write_history_page(HistoryPage("placements", "c0ffee", [entry]))
    chips = re.findall(r'<span class="place ?(\w*)">([^<]*)</span>', html.partition('class="clusters"')[2].partition("</p>")[0])
    assert chips == [("old", "fra −10"), ("new", "ams +4"), ("new", "c4 +4"), ("new", "c3 +3"), ("", "2 more")]


def test_only_workloads_that_get_another_cluster_are_called_moved(example: str, show: Open) -> None:
    """All workloads whose clusters or replicas change are changes."""
    history = write_history_page(HistoryPage("placements", "c0ffee", list(map(make_entry, (9, 8))), chosen="cluster c1"))
    for html in (example, history, write_page(Review("c0ffee", "placements", before="beef"), FleetView({}, {}))):
        text = " ".join(show(html).inner_text("body").split())
        others = [found[0] for found in re.finditer(r"\S+ moves?\b", text) if not found[0].startswith("workload")]
        assert others == []


def test_the_address_of_the_timeline_has_the_filter_and_the_commit(show: Open) -> None:
    page = show(write_history_page(HistoryPage("placements", "c0ffee", list(map(make_entry, (9, 8, 7, 6, 5))))))
    assert page.locator(".axis text").all_text_contents() == [f"2026-03-{day:02}" for day in range(8, 12)]
    page.get_by_label("Cluster").fill("c1")
    assert page.evaluate("location.hash") == "#?cluster=c1"
    assert page.locator(".axis a:visible").count() == 3
    page.get_by_role("button", name="JSON").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#commit-9999999999", "the axis is one tab stop"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    address = page.evaluate("location.hash")
    assert address == "#?cluster=c1&at=commit-7777777777"
    page.go_back()
    assert page.evaluate("location.hash") == "#?cluster=c1"
    page.goto("about:blank")
    page.go_back()
    page.goto(page.url.partition("#")[0] + address)
    page.reload()
    assert page.get_by_label("Cluster").input_value() == "c1"
    assert page.locator("#history-count").inner_text() == "3 commits, 3 changes; the filter leaves out 2 commits"
    assert page.evaluate("document.activeElement.id") == "commit-7777777777"
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    lines = Path(download.value.path()).read_bytes().decode().split("\r\n")
    assert lines[0] == "time,commit,summary,name,change,reason"
    assert lines[1] == f"2026-03-11T08:00:00Z,{'9' * 40},change 9,Deployment shop/w9,+ c1 1; − fra 1,policy (before: policy)"
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("#history-count")).to_have_text("5 commits, 5 changes")
    assert page.evaluate("location.hash") == ""


def test_the_timeline_is_filtered_by_day(show: Open) -> None:
    page = show(write_history_page(HistoryPage("placements", "c0ffee", list(map(make_entry, (9, 8, 7, 6, 5))))))
    assert "5 commits from 2026-03-07 to 2026-03-11" in page.inner_text("header")
    page.get_by_label("From day").fill("2026-03-08")
    page.get_by_label("To day").fill("2026-03-09")
    assert page.locator(".entry:visible").evaluate_all("nodes => nodes.map((node) => node.id)") == [
        "commit-7777777777",
        "commit-6666666666",
    ]
    assert page.locator("#history-count").inner_text() == "2 commits, 2 changes; the filter leaves out 3 commits"
    assert page.locator(".axis a:visible").count() == 2
    assert page.evaluate("location.hash") == "#?since=2026-03-08&until=2026-03-09"
    page.reload()
    assert page.locator(".entry:visible").count() == 2


def test_recorded_decisions_are_shown_with_their_causes(show: Open) -> None:
    key = Key("kubernetes", "Cluster", "shop", "new")
    old, new = (RecordTarget(name, key=Key("infrastructure", "Cloud", "shop", name)) for name in ("aws", "gcp"))
    review = Review(
        "c0ffee",
        "placements",
        before="beef",
        record_changes=[RecordChange(key, "cloud", (old,), (new,), "krake", (Cause("Cloud/shop/aws removed"),))],
        recorded=[RecordedDecision(key, "cloud", (new,))],
    )
    page = show(write_page(review, FleetView({}, {})))
    page.set_viewport_size({"width": 400, "height": 900})
    labels = "cells => cells.map((cell) => getComputedStyle(cell, '::before').content)"
    assert page.locator("#changes td, #recorded td").evaluate_all(labels) == ['"Before: "', '"After: "', "none", '"Result: "']
    page.set_viewport_size({"width": 1280, "height": 900})
    (change,) = page.locator("#changes tbody tr").all()
    assert change.locator("th, td").all_inner_texts() == ["Cluster shop/new, cloud", "aws", "gcp", "Cloud/shop/aws removed"]
    (decision,) = page.locator("#recorded tbody tr").all()
    assert decision.locator("th, td").all_inner_texts() == ["Cluster shop/new, cloud", "gcp"]


def test_removed_workloads_are_counted_apart_from_those_of_the_fleet(show: Open) -> None:
    kept, gone = (Key("apps", "Deployment", "shop", name) for name in ("web", "old"))
    review = Review(
        "c0ffee",
        "placements",
        before="beef",
        outcomes=[Outcome(kept, "karmada", "placed", "", "", (TargetCluster("ams", 2),), 2, (), "", NOW)],
        moves=[Move(gone, {"ams": 1}, {}, "")],
    )
    page = show(write_page(review, FleetView({"ams": ClusterInfo("ams", {})}, {})))
    assert page.locator("#fleet-count").inner_text() == "1 workload on 1 cluster, 1 removed"
    page.get_by_label("State").select_option("removed")
    expect(page.locator("#fleet-count")).to_have_text("0 of 1 workload, 1 of 1 cluster, 1 removed")


def test_changed_files_and_retained_workloads_are_shown(show: Open) -> None:
    key = Key("apps", "Deployment", "shop", "web")
    rendered = [
        ManifestChange("shop/deployment-web.yaml", ("fra", "ams"), "1", "2", "@@ -1 +1 @@\n-replicas: 1\n+replicas: <b>2</b>\n"),
        ManifestChange("shop/service-web.yaml", ("fra",), "3", None),
    ]
    review = Review(
        "c0ffee",
        "placements",
        before="beef",
        comparison=OutputComparison("sha256:1234", DeliveryChanges(rendered, 4, 9)),
        retained=[RetainedWorkload(key, {"ams": 2}, {"fra": 2}, "a WorkloadRebalancer would")],
        base=ComparisonBase(findings=[Finding("info", "old", "it was there before")]),
        findings=[Finding("info", "old", "it was there before"), Finding("warning", "new", "it was not")],
    )
    page = show(write_page(review, FleetView({}, {})))
    assert page.locator("#files pre span.new").inner_text() == "+replicas: <b>2</b>"
    assert "shop/service-web.yaml removed in fra" in page.locator("#files").inner_text()
    assert "2 changed files, and 4 that are not listed" in page.locator("#files").inner_text()
    assert page.locator("#retained tbody").inner_text().split("\t")[1:] == ["ams 2", "fra 2", "a WorkloadRebalancer would"]
    assert [group.inner_text() for group in page.locator("#findings summary").all()] == ["1 warning", "1 note"]
    assert page.locator("#findings tbody tr").first.inner_text().startswith("warning (new)")
    assert "sha256:1234" in page.locator("header").inner_text()


@pytest.mark.parametrize(("number", "shown"), [(10, 10), (11, 0)])
def test_workloads_that_stay_are_below_the_summary_and_folded_if_they_are_many(number: int, shown: int, show: Open) -> None:
    stay = [
        RetainedWorkload(Key("apps", "Deployment", "shop", f"w{n:02}"), {"ams": 2}, {"fra": 2}, f"a WorkloadRebalancer {what}")
        for n, what in enumerate(["brings it there"] * number + [LEFT_IN_PLACE] * 3)
    ]
    page = show(write_page(Review("c0ffee", "placements", retained=stay), FleetView({}, {})))
    rows = page.locator("#retained tbody tr")
    assert (rows.count(), sum(row.is_visible() for row in rows.all())) == (number, shown)
    text = page.locator("#retained").inner_text()
    assert f"because of scheduling history ({number + 3})" in text
    assert "3 workloads would get other clusters only if new: a request to reschedule them changes nothing." in text
    tops = [page.evaluate(f"document.getElementById('{name}').getBoundingClientRect().top") for name in ("summary", "retained")]
    assert tops == sorted(tops)


def test_losses_are_shown_and_harmful_ones_are_highlighted(show: Open) -> None:
    web, job = Key("apps", "Deployment", "shop", "web"), Key("batch", "Job", "shop", "import")
    degraded = (
        WorkloadEffect(web, {"fra": 4}, {"ams": 3}, 4, shortfall=3, waiting=2, expected=4),
        WorkloadEffect(job, {"fra": 1}, {}, 1, shortfall=1),
    )
    rows = tuple(
        Simulation(f"region {name} is lost", FailureDomain("region", name), (name,), (), (), (), 2, effects, (), ())
        for name, effects in (("eu", degraded), ("us", ()))
    )
    table = Resilience("region", 2, 2, rows, ("us",))
    page = show(write_page(Review("c0ffee", "placements", before="beef", resilience=table), FleetView({}, {})))
    bad, good = (page.locator("#resilience tbody tr").nth(number) for number in (0, 1))
    assert bad.inner_text().split("\t") == [
        "eu",
        "2",
        "3",
        "1",
        "1",
        "6",
        "2",
        "Job shop/import: unplaced, Deployment shop/web: 5 missing",
    ]
    assert "old" in (bad.get_attribute("class") or "")
    assert good.get_attribute("class") is None


def test_an_empty_fleet_is_shown(show: Open) -> None:
    page = show(write_page(Review("", "placements"), FleetView({}, {})))
    assert page.get_by_role("heading", level=1).inner_text() == "No clusters and no workloads: run gitsched init"
    assert page.locator("#fleet-count").inner_text() == "0 workloads on 0 clusters"
    assert "No workload changes its clusters or replicas." in page.inner_text("body")


def test_the_first_screen_says_what_moves_why_and_what_is_wrong(show: Open) -> None:
    moves = [Move(Key("apps", "Deployment", "shop", f"w{n:03}"), {f"c{n % 3}": 8}, {"west": 4}, "policy") for n in range(300)]
    held = {
        Key("apps", "StatefulSet", "shop", f"db{n}"): HeldPlacement({"c0": 1}, {"west": 1}, "drained", ("claim",), ("c0",))
        for n in range(9)
    }
    limits = tuple(ExceededLimit("cluster", f"c{n}", "removed", n, 300, 90) for n in range(10))
    errors = [Finding("error", "wrong", f"number {n}", Location("a.yaml", n + 1, 1)) for n in range(9)]
    review = Review(
        "c0ffee",
        "placements",
        before="beef",
        source_name="HEAD",
        moves=moves,
        held=held,
        withheld=WithheldChanges(tuple(moves), limits, "1234", "audit week"),
        findings=[*errors, Finding("error", "changes-withheld", "The changes of 300 workloads are withheld")],
        base=ComparisonBase("beef", "main", findings=errors[:2]),
        setting_changes=[SettingChange(ChangedField("guard.freeze", "", "audit week"), "It decides what waits.", sensitive=False)]
        * 5,
    )
    page = show(write_page(review, FleetView({}, {})))
    page.set_viewport_size({"width": 1280, "height": 800})
    text = page.inner_text("header")
    assert page.get_by_role("list", name="Alerts").inner_text().split("\n") == [
        "8 new errors",
        "300 changes withheld",
        "frozen: audit week",
        "9 held",
        "2 errors as before",
    ]
    for wanted in (
        "error a.yaml:3:1: number 2",
        "and 5 more errors",
        "run on with 1,200 of 2,400 replicas",
        "Withheld by the freeze",
    ):
        assert wanted in text
    assert "would leave cluster" not in text
    group = page.locator("#changes li").first
    title = "~ 300 workloads move: c0–c2 → west, 2,400 → 1,200 replicas (fewer) withheld"
    assert group.inner_text().split("\n\n")[:2] == [title, "policy"]
    assert page.evaluate("box => box.getBoundingClientRect().bottom <= innerHeight", group.element_handle())
    page.get_by_role("link", name="300 changes withheld").click()
    expect(page.get_by_text("4 of 300 workloads would leave cluster c4")).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#withheld").get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "Gitsched-Allow: 1234"


def test_the_compared_commits_are_named_with_their_authors(show: Open) -> None:
    commits = [SourceChange("c0ffee" * 7, "Move the shop (#12)", "Ann"), SourceChange("beef" * 10, EVIL, "Bob")]
    text = "Cluster/ams removed (was clusters/ams.yaml:2), Cluster/fra added (clusters/fra.yaml:3)"
    review = Review(
        commits[0].commit,
        "placements",
        before="beef",
        source_name="change",
        base=ComparisonBase(commits[1].commit, "main"),
        moves=[Move(Key("apps", "Deployment", "shop", "web"), {"ams": 2}, {"fra": 2}, text)],
        comparison=OutputComparison(removed_clusters=["ams"]),
    )
    web, known = find_web_links("https://github.com/shop/fleet"), {commit.commit: commit for commit in commits}
    page = show(write_page(review, FleetView({"fra": ClusterInfo("fra", {})}, {}, {}, web, commits=known)))
    assert page.locator(".facts > div").all_inner_texts()[:2] == [
        "change\nc0ffeec0ff Move the shop (#12) (Ann)",
        f"against main\nbeefbeefbe {EVIL} (Bob)",
    ]
    assert [link.get_attribute("href") for link in page.locator(".facts a").all()] == [
        f"https://github.com/shop/fleet/commit/{'c0ffee' * 7}",
        "https://github.com/shop/fleet/pull/12",
        f"https://github.com/shop/fleet/commit/{'beef' * 10}",
    ]
    assert [link.get_attribute("href") for link in page.locator("#changes a").all()] == [
        f"https://github.com/shop/fleet/blob/{'beef' * 10}/clusters/ams.yaml#L2",
        f"https://github.com/shop/fleet/blob/{'c0ffee' * 7}/clusters/fra.yaml#L3",
    ]
    page.get_by_role("button", name="Deployment shop/web").click()
    hrefs = [link.get_attribute("href") for link in page.get_by_role("dialog").get_by_role("link").all()]
    assert hrefs == [link.get_attribute("href") for link in page.locator("#changes a").all()]
    page.keyboard.press("Escape")
    assert page.get_by_role("list", name="Alerts").inner_text() == "ams removed from the fleet"
    assert "removed" in (page.locator(".tile[aria-label^='ams:']").get_attribute("aria-label") or "")
    places = page.locator("#fleet-map .map-place").evaluate_all("places => places.map((place) => place.ariaLabel)")
    assert places == ["(no region)", "removed from the fleet"]
    groups = page.locator("#topology-tree .group-name").all_inner_texts()
    assert groups == ["(no provider)", "(no region)", "removed from the fleet", "no document any more"]


def test_names_of_workloads_leave_space_for_clusters_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(make_large_fleet())
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto((tmp_path / "page.html").as_uri())
    window, name = (page.locator(f"#fleet-window{inner}").bounding_box() for inner in ("", " tbody th >> nth=0"))
    assert window is not None
    assert name is not None
    assert name["width"] < window["width"] / 2
    assert "Deployment team-0/app-0000" in page.locator("#fleet-window tbody th").first.inner_text()
    page.close()


def test_moves_with_the_same_cause_are_one_entry_above_the_rows(show: Open) -> None:
    moves = [Move(Key("apps", "Deployment", "shop", f"w{n:02}"), {f"c{n % 3}": 8}, {"west": 4}, "policy") for n in range(12)]
    page = show(write_page(Review("c0ffee", "placements", before="beef", moves=moves), FleetView({}, {})))
    entry = page.get_by_role("list", name="Workloads that change because of the same change").get_by_role("listitem")
    assert entry.inner_text().split("\n\n") == [
        "~ 12 workloads move: c0–c2 → west, 96 → 48 replicas (fewer)",
        "policy",
        "Deployment shop/w00, Deployment shop/w01, Deployment shop/w02 and 9 more",
        "All 12",
    ]
    assert "w11" not in page.inner_text("#changes"), "the whole list is folded"
    entry.get_by_text("All 12").click()
    assert (
        page.get_by_role("row", name="Deployment shop/w00").first.inner_text().split("\t")[1]
        == "− c0 8 + west 4 8 → 4 replicas, fewer"
    )


def test_the_gravest_changes_stand_first_grouped_or_not(show: Open) -> None:
    moved = [Move(Key("apps", "Deployment", "shop", f"w{number}"), {"ams": 2}, {"fra": 2}, "policy") for number in range(20)]
    lost = Move(Key("apps", "Deployment", "shop", "api"), {"ams": 2}, {}, "no cluster fits")
    gone = [Move(Key("apps", "Deployment", "shop", f"x{number}"), {"ams": 2}, {}, "other") for number in range(20)]
    page = show(write_page(Review("c0ffee", "placements", before="beef", moves=[*moved, lost, *gone]), FleetView({}, {})))
    lines = page.locator("#changes").inner_text()
    places = [lines.index(text) for text in ("20 workloads become unplaced", "Deployment shop/api", "20 workloads move")]
    assert places == sorted(places)


def test_the_map_has_a_tile_for_each_cluster_with_its_load_before_and_after(example: str, show: Open) -> None:
    page = show(example)
    tiles = page.locator("#fleet-map .tile")
    assert tiles.count() == 10
    lost, gaining = (page.locator(f"#fleet-map .tile[aria-label^='{name}:']") for name in ("fra-prod-1", "nimbus-eu-central-1"))
    assert "drained, −10 workloads" in (lost.get_attribute("aria-label") or "")
    assert "at least 14 %, +3 workloads" in (gaining.get_attribute("aria-label") or "")
    assert "gains" in (gaining.get_attribute("class") or "")
    page.get_by_label("before", exact=True).check()
    assert gaining.get_attribute("aria-label") == "nimbus-eu-central-1: at least 14 %"
    assert (lost.get_attribute("aria-label") or "").endswith("%, drained after this change")
    assert "bad" not in (lost.get_attribute("class") or "")
    tiles.first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label').split(':')[0]") == "nimbus-eu-west-1"
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").get_by_role("heading", level=2).inner_text() == "nimbus-eu-west-1"


def test_the_map_before_a_change_shows_which_clusters_were_available_then(show: Open) -> None:
    moves = [Move(Key("apps", "Deployment", "shop", name), {name: 2}, {"ok": 2}, "taint") for name in ("dead", "drained", "left")]
    placed = [Outcome(move.key, "karmada", "placed", "", "", (TargetCluster("ok", 2),), 2, (), "", NOW) for move in moves]
    comparison = OutputComparison(removed_clusters=("dead",), added_clusters=("new",))
    facts = {name: ClusterInfo(name, {}, "eu") for name in ("dead", "drained", "healed", "left", "new", "ok")}
    sites = {name: ClusterSite(name, "eu", unavailable="it has a taint") for name in ("drained", "left")}
    was_available = {"drained": True, "left": False, "healed": False, "dead": False}
    review = Review("c0ffee", "placements", outcomes=placed, moves=moves, comparison=comparison)
    page = show(write_page(review, FleetView(facts, {}, sites, was_available=was_available)))
    tiles = page.locator("#fleet-map .tile")
    assert tiles.evaluate_all("nodes => nodes.map((node) => node.title)") == [
        "drained: 0 %, before 33 %, not available, −1 workload",
        "healed: 0 %",
        "left: 0 %, before 33 %, not available, −1 workload",
        "new: 0 %",
        "ok: 100 %, before 0 %, +3 workloads",
        "dead: 0 %, before 33 %, removed, −1 workload",
    ]
    page.get_by_label("before", exact=True).check()
    assert tiles.evaluate_all("nodes => nodes.map((node) => node.title)") == [
        "dead: 33 %, not available",
        "drained: 33 %, not available after this change",
        "healed: 0 %, not available, available after this change",
        "left: 33 %, not available",
        "ok: 0 %",
        "new: 0 %, not in the fleet",
    ]
    bad = page.locator("#fleet-map .tile.bad .tile-name")
    assert bad.all_inner_texts() == ["dead", "healed", "left"]
    assert page.locator("#fleet-map p").all_inner_texts() == ["eu (5)", "not in the fleet before this change (1)"]


def test_before_a_cluster_was_removed_the_map_has_it_in_its_place(show: Open) -> None:
    key = Key("apps", "Deployment", "shop", "api")
    comparison = OutputComparison(removed_clusters=("ams",))
    move = Move(key, {"ams": 2}, {}, "no cluster fits")
    review = Review("c0ffee", "placements", moves=[move], comparison=comparison, withheld=WithheldChanges((move,), (), "1234"))
    page = show(write_page(review, FleetView({"ams": ClusterInfo("ams", {}, "eu"), "fra": ClusterInfo("fra", {}, "eu")}, {})))
    assert page.locator("#fleet-map p").all_inner_texts() == ["eu (1)", "removed from the fleet (1)"]
    assert page.get_by_label("after this change, if allowed").is_checked()
    assert page.locator("#fleet-map .vacant").count() == 2
    page.get_by_label("before", exact=True).check()
    assert page.locator("#fleet-map p").all_inner_texts() == ["eu (2)"]
    assert page.locator("#fleet-map .tile").first.get_attribute("aria-label") == "ams: 100 %"
    assert page.locator("#fleet-map .bad").count() == 0


def test_the_load_of_a_cluster_is_not_below_zero(show: Open) -> None:
    """What a cluster reports as requested may not have the workloads yet that leave it."""
    site = ClusterSite("ams", resources=(ResourceUse("cpu", 1000, 100, -300),))
    page = show(write_page(Review("c0ffee", "placements"), FleetView({"ams": ClusterInfo("ams", {})}, {}, {"ams": site})))
    assert page.locator("#fleet-map .tile").get_attribute("aria-label") == "ams: 0 %, before 10 %"
    assert page.locator("#topology-tree .uses").inner_text().split() == ["cpu", "0", "%"]


def test_the_map_of_a_thousand_clusters_is_one_tab_stop_without_names(show: Open) -> None:
    facts = {f"c{number:04}": ClusterInfo(f"c{number:04}", {}, f"r{number % 7}") for number in range(1000)}
    page = show(write_page(Review("c0ffee", "placements"), FleetView(facts, {})))
    assert page.locator("#fleet-map .tile").count() == 1000
    assert page.locator("#fleet-map .tile[tabindex='0']").count() == 1
    assert page.evaluate("document.getElementById('map').offsetHeight") < 900


def test_the_address_has_the_filter_and_what_is_open(example: str, show: Open) -> None:
    page = show(example)
    page.get_by_label("Workload", exact=True).fill("cart")
    page.get_by_role("button", name="Deployment shop/cart").first.click()
    address = page.evaluate("location.hash")
    assert address == "#?workload=cart&open=workload+Deployment+shop%2Fcart"
    page.go_back()
    assert not page.get_by_role("dialog").is_visible()
    assert page.evaluate("location.hash") == "#?workload=cart"
    page.goto(page.url.partition("#")[0])
    page.goto(page.url + address)
    page.reload()
    assert page.locator("#fleet-count").inner_text() == "1 of 22 workloads, 10 of 10 clusters"
    assert page.get_by_role("dialog").get_by_role("heading", level=2).inner_text() == "Deployment shop/cart"
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Findings").click()
    assert page.get_by_label("Workload", exact=True).input_value() == "cart", "a link to a section keeps the filter"


def test_what_is_shown_is_saved_as_csv_and_json(example: str, show: Open) -> None:
    page = show(example)
    page.get_by_label("Workload", exact=True).fill("deployment shop/cart")
    saved = {}
    for name in ("CSV", "JSON"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        saved[name] = Path(download.value.path()).read_bytes().decode()
    lines = saved["CSV"].split("\r\n")
    assert lines[0] == "kind,namespace,name,state,cluster,before,after,withheld"
    assert "Deployment,shop,cart,placed,fra-prod-1,2,," in lines
    (lost,) = (row for row in json.loads(saved["JSON"]) if row["cluster"] == "fra-prod-1")
    assert (lost["name"], lost["before"], lost["after"]) == ("cart", 2, "")


def test_the_search_finds_workloads_clusters_files_and_findings(example: str, show: Open) -> None:
    page = show(example)
    page.keyboard.press("/")
    page.keyboard.type("gpu")
    found = page.locator("#found li").all_inner_texts()
    assert {"cluster fra-gpu-1", "cluster nimbus-us-east-gpu"} <= set(found)
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    page.get_by_label("Search everything").fill("cluster-room-assumed")
    page.locator("#found button").first.click()
    assert "cluster-room-assumed" in page.evaluate("document.activeElement.textContent")
    page.get_by_label("Search everything").fill("not there")
    assert page.locator("#found-count").inner_text() == "Nothing found"


def test_alerts_stand_above_the_title(show: Open) -> None:
    states, unplaced = {"placed": 1, "pending": 2, "stale": 0}, [Key("apps", "Deployment", "shop", name) for name in ("api", "web")]
    outcomes = [Outcome(key, "karmada", "pending", "", "", (), 0, (), "no cluster fits", NOW) for key in unplaced]
    held = {unplaced[0]._replace(kind="StatefulSet"): HeldPlacement({"ams": 1}, {}, "drained", ("claim",), ("ams",))}
    findings = [Finding("error", "wrong", "a policy cannot be read: policies/a.yaml:3:1")]
    sites = {"ams": ClusterSite("ams", unavailable="not ready")}
    review = Review("c0ffee", "placements", states=states, outcomes=outcomes, held=held, findings=findings)
    page = show(write_page(review, FleetView({"ams": ClusterInfo("ams", {})}, {}, sites)))
    assert page.get_by_role("list", name="Alerts").inner_text().split("\n") == [
        "1 error",
        "2 unplaced: Deployment shop/api, Deployment shop/web",
        "ams not available",
        "1 held: StatefulSet shop/api",
    ]
    assert page.evaluate("document.querySelector('.alerts').compareDocumentPosition(document.querySelector('h1')) & 4")


@pytest.mark.parametrize(
    ("withheld", "headline", "alerts", "totals"),
    [
        (0, "3 of 4 workloads become unplaced", ["3 unplaced"], {"placed": 1, "unplaced": 3}),
        (
            1,
            "3 of 4 workloads become unplaced (1 withheld)",
            ["2 unplaced"],
            {"placed": 2, "unplaced": 2},
        ),
        (3, "3 of 4 workloads become unplaced (withheld)", [], {"placed": 4, "unplaced": 0}),
    ],
)
def test_the_headline_has_all_changes_and_the_numbers_are_those_that_a_run_leaves(
    withheld: int, headline: str, alerts: list[str], totals: dict[str, int], show: Open
) -> None:
    keys = [Key("apps", "Deployment", "shop", f"w{number}") for number in range(4)]
    moves = [Move(key, {"ams": 2}, {}, "no cluster fits") for key in keys[:3]]
    outcomes = [Outcome(key, "karmada", "pending", "", "", (), 2, (), "no cluster fits", NOW) for key in keys[:3]]
    outcomes.append(Outcome(keys[3], "karmada", "placed", "", "", (TargetCluster("ams", 2),), 2, (), "", NOW))
    guard = WithheldChanges(tuple(moves[:withheld]), (), "1234")
    states = {"placed": 1, "pending": 3, "stale": 0}
    review = Review("c0ffee", "placements", before="beef", outcomes=outcomes, moves=moves, states=states, withheld=guard)
    page = show(write_page(review, FleetView({"ams": ClusterInfo("ams", {})}, {})))
    assert page.get_by_role("heading", level=1).inner_text() == headline
    shown = (
        page.get_by_role("list", name="Alerts").inner_text().split("\n") if page.get_by_role("list", name="Alerts").count() else []
    )
    assert [text.partition(":")[0] for text in shown if "unplaced" in text] == alerts
    sums = dict(
        page.locator("dl.sums div").evaluate_all("nodes => nodes.map((node) => [...node.children].map((one) => one.textContent))")
    )
    assert {name: int(sums[name]) for name in totals} == totals
    assert "stale" not in sums, "no workload has a broken document"


def test_workloads_with_a_withheld_change_are_placed_after_a_run() -> None:
    keys = [Key("apps", "Deployment", "shop", name) for name in ("api", "web")]
    outcomes = [
        Outcome(key, "karmada", state, "", "", (TargetCluster("ams", 2),), 2, (), "", NOW)
        for key, state in zip(keys, ("placed", "stale"), strict=True)
    ]
    withheld = WithheldChanges((Move(keys[1], {"ams": 2}, {"fra": 2}, ""),), (), "1234", "audit week")
    states = {"placed": 1, "pending": 0, "stale": 1}
    review = Review("c0ffee", "placements", before="beef", outcomes=outcomes, states=states)
    fleet, live = FleetView({"ams": ClusterInfo("ams", {})}, {}), LiveView("1", "fleet")
    html = write_page(review._replace(withheld=withheld), fleet, live)
    assert "<h1>2 workloads placed on 1 cluster</h1>" in html
    assert "stale: not decided" not in html
    html = write_page(review, fleet, live)
    assert "<h1>1 of 2 workloads placed on 1 cluster</h1>" in html
    assert "1 stale: not decided" in html


def test_all_commits_that_request_what_is_withheld_are_named_the_first_ones_at_once(show: Open) -> None:
    requests = tuple(SourceChange(f"{number:040x}", f"Change {number} {EVIL}", "Ann", NOW) for number in range(1, 306))
    withheld = WithheldChanges((Move(Key("apps", "Deployment", "shop", "web"), {"ams": 2}, {"fra": 2}, ""),), (), "1234")
    review = Review("c0ffee", "placements", before="beef", withheld=withheld)
    fleet = FleetView({"ams": ClusterInfo("ams", {})}, {}, requests=requests)
    page = show(write_page(review, fleet))
    shown = page.locator("#withheld").inner_text()
    assert "Change 3" in shown
    assert "and 302 more commits" in shown
    more = page.locator("#more-requests")
    assert more.locator("p").first.is_hidden()
    more.get_by_text("302 more commits ask for it").click()
    lines = more.locator("p").all_inner_texts()
    assert lines[0].startswith("0000000000 Change 4")
    assert lines[-1] == "and 102 more"
    few = write_page(review, fleet._replace(requests=requests[:3]))
    assert "more-requests" not in few


def test_the_head_says_why_clusters_are_not_available_and_when_that_was_observed() -> None:
    sites = {
        "ams": ClusterSite("ams", unavailable="it has the taint power:NoExecute", is_drained=True),
        "fra": ClusterSite("fra", unavailable="it is not ready"),
        "dub": ClusterSite("dub"),
    }
    fleet = FleetView({name: ClusterInfo(name, {}) for name in sites}, {}, sites, observed={"fra": NOW})
    review = Review("c0ffee", "placements", before="beef")
    html = write_page(review, fleet)
    lines = re.findall("<p>(.*?)</p>", html.partition('id="unavailable">')[2].partition("</li>")[0])
    assert lines == [
        "fra is not available: it is not ready; it was observed at 2026-03-02T08:00:00Z",
        "ams is drained: it has the taint power:NoExecute; it has not been observed",
    ]
    many = {f"c{number}": ClusterSite(f"c{number}", unavailable="it is not ready") for number in range(9)}
    html = write_page(review, FleetView({name: ClusterInfo(name, {}) for name in many}, {}, many))
    assert '<a href="#map">and 6 more clusters</a>' in html


def test_new_objects_without_a_policy_stand_above_the_title(show: Open) -> None:
    keys = [Key("apps", "Deployment", "shop", name) for name in ("api", "web")]
    unplaced = [UnplacedObject(key, key.name == "web", Cause("why", Location("apps/new.yaml", 3, 1))) for key in keys]
    review = Review("c0ffee", "placements", before="beef", comparison=OutputComparison(unplaced=unplaced))
    page = show(write_page(review, FleetView({}, {})))
    link = page.get_by_role("link", name="1 new object without a policy: Deployment shop/api")
    link.click()
    assert page.locator("#consequences").is_visible()


def test_a_commit_with_which_changes_became_withheld_is_marked_in_the_timeline(show: Open) -> None:
    entries = [
        HistoryEntry(f"{number:040x}", NOW, "Ann", "Records", summary="records changed", notes=(note,))
        for number, note in enumerate((f"the guard {WITHHOLDS}1234", "the guard withholds nothing any more"))
    ]
    page = show(write_history_page(HistoryPage("placements", "1" * 40, entries)))
    assert page.locator(".entry", has_text="withholds changes").locator(".old").all_inner_texts() == ["withholds changes"]
    assert page.locator(".entry .old").count() == 1


def test_new_warnings_stand_above_the_title_and_those_of_the_base_do_not(show: Open) -> None:
    text = "no cluster has ownership=privat; the fleet has private, cloud"
    old, new = (
        Finding("warning", "wrong", "as before"),
        Finding("warning", "unknown-label", text, Location("policies/a.yaml", 23, 36)),
    )
    review = Review("c0ffee", "placements", before="beef", findings=[old, new], base=ComparisonBase("beef", "main", findings=[old]))
    page = show(write_page(review, FleetView({}, {})))
    assert page.get_by_role("list", name="Alerts").inner_text().split("\n") == ["1 new warning", "1 warning as before"]
    assert page.locator("#warnings").inner_text() == f"warning policies/a.yaml:23:36: {text}"
    page = show(write_page(review._replace(base=ComparisonBase("beef", "main")), FleetView({}, {})))
    assert page.get_by_role("list", name="Alerts").inner_text() == "2 warnings"
    assert page.locator("#warnings").count() == 0


def test_a_held_workload_is_reported_once_above_the_title(show: Open) -> None:
    held = {Key("apps", "StatefulSet", "shop", "db"): HeldPlacement({"ams": 1}, {"fra": 1}, "drained", ("claim",), ("ams",))}
    review = Review("c0ffee", "placements", before="beef", held=held, findings=[Finding("warning", "stateful-held", "db is held")])
    page = show(write_page(review._replace(base=ComparisonBase("beef", "main", findings=[])), FleetView({}, {})))
    assert page.get_by_role("list", name="Alerts").inner_text() == "1 held: StatefulSet shop/db"
    assert page.locator(".problems > li").count() == 1


def test_without_javascript_a_table_says_whether_withheld_changes_count_in_it() -> None:
    move = Move(Key("apps", "Deployment", "shop", "web"), {"ams": 2}, {}, "removed", intended=True)
    review, fleet = Review("c0ffee", "placements", before="beef", moves=[move]), FleetView({"ams": ClusterInfo("ams", {})}, {})
    as_planned = "This table has the same clusters, as they are after this change"
    assert f"{as_planned}.</p>" in write_page(review, fleet)
    withheld = review._replace(withheld=WithheldChanges((move,), (), "1234"))
    assert f"{as_planned} if all that is withheld is allowed.</p>" in write_page(withheld, fleet)
    assert "This table has the same clusters.</p>" in write_page(withheld, fleet, LiveView("1", "fleet"))


def test_a_workload_whose_change_is_withheld_is_placed_everywhere(show: Open) -> None:
    """Also one that no policy selects any more, and one that is leaving its clusters."""
    lost, unselected = (Key("apps", "Deployment", "shop", name) for name in ("api", "web"))
    moves = [Move(key, {"ams": 2, "fra": 1}, {}, "no cluster fits", intended=key == unselected) for key in (lost, unselected)]
    outcome = Outcome(lost, "karmada", "pending", "", "", (TargetCluster("ams", 2, evicting=True),), 2, (), "no cluster fits", NOW)
    review = Review(
        "c0ffee",
        "placements",
        before="beef",
        outcomes=[outcome],
        moves=moves,
        states={"placed": 0, "pending": 1, "stale": 0},
        withheld=WithheldChanges(tuple(moves), (), "1234"),
    )
    page = show(write_page(review, FleetView({name: ClusterInfo(name, {}) for name in ("ams", "fra")}, {})))
    sums = dict(
        page.locator("dl.sums div").evaluate_all("nodes => nodes.map((node) => [...node.children].map((one) => one.textContent))")
    )
    assert [sums[name] for name in ("workloads", "placed", "unplaced", "withheld")] == ["2", "2", "0", "2"]
    alerts = page.get_by_role("list", name="Alerts").inner_text()
    assert alerts == "2 changes withheld: Deployment shop/api, Deployment shop/web"
    assert page.locator("#fleet-count").inner_text() == "2 workloads on 2 clusters"
    tree = page.locator("#topology-tree")
    assert tree.locator(".group-name").last.inner_text() == "Unplaced, if allowed"
    entries = tree.locator("details.provider").last.locator("li").all_inner_texts()
    assert entries == [f"Deployment shop/{name} withheld nowhere, if allowed; runs in 2 clusters" for name in ("api", "web")]
    page.get_by_label("State").select_option("placed")
    assert page.locator("#fleet-window tbody th").count() == 2
    page.get_by_role("button", name="Deployment shop/web").first.click()
    dialog = page.get_by_role("dialog").inner_text()
    assert "Planned clusters, if allowed\n\nnowhere" in dialog
    assert "now: ams 2 fra 1" in dialog


def test_warnings_about_mistakes_stand_before_what_they_cause(show: Open) -> None:
    effects = [Finding("warning", "unschedulable", f"w{number} could not be scheduled") for number in range(9)]
    mistakes = [
        Finding("warning", "karmada-selects-nothing", "the policy selects nothing"),
        Finding("warning", "selector-unmatched", "no cluster has pool=genral; the fleet has general, gpu"),
    ]
    held = {Key("apps", "StatefulSet", "shop", "db"): HeldPlacement({"ams": 1}, {"fra": 1}, "drained", ("claim",), ("ams",))}
    moves = [Move(Key("apps", "Deployment", "shop", "web"), {"ams": 2}, {}, "no cluster fits")]
    review = Review(
        "c0ffee",
        "placements",
        before="beef",
        moves=moves,
        held=held,
        findings=[*effects, Finding("warning", "stateful-held", "db is held"), *mistakes],
        base=ComparisonBase("beef", "main", findings=[]),
    )
    page = show(write_page(review, FleetView({}, {})))
    assert page.locator(".problems > li").evaluate_all("nodes => nodes.map((node) => node.id)") == [
        "warnings",
        "consequences",
        "held",
    ]
    shown = page.locator("#warnings p").all_inner_texts()
    assert shown == [f"warning {text}" for text in (mistakes[1].message, mistakes[0].message, effects[0].message)] + [
        "and 9 more warnings"
    ]
    assert "12 new warnings" in page.get_by_role("list", name="Alerts").inner_text()
    sums = page.locator("dl.sums").inner_text()
    assert re.search(r"warnings\s+12\b", sums)
    assert page.get_by_text("12 warnings", exact=True).count() == 1
    page = show(write_page(review._replace(findings=effects), FleetView({}, {})))
    assert page.locator(".problems > li").first.get_attribute("id") == "consequences"


def test_clusters_over_capacity_have_an_alert_and_a_red_bar(show: Open) -> None:
    sites = {
        "ams": ClusterSite("ams", resources=(ResourceUse("cpu", 100_000, 177_000),)),
        "dub": ClusterSite("dub", resources=(ResourceUse("cpu", 100_000, 90_000, 20_000),)),
        "fra": ClusterSite("fra", resources=(ResourceUse("cpu", 100_000, 99_000),)),
    }
    findings = [
        Finding("warning", "cluster-overcommitted", f"{name} lacks capacity", None, ("Cluster", "", name))
        for name in ("ams", "ham")
    ]
    facts = {name: ClusterInfo(name, {}) for name in (*sites, "ham")}
    page = show(write_page(Review("c0ffee", "placements", before="beef", findings=findings), FleetView(facts, {}, sites)))
    alerts = page.get_by_role("list", name="Alerts")
    assert alerts.inner_text().split("\n")[0] == "over capacity: ams 177 %, dub 110 %, ham"
    assert alerts.locator("li").first.get_attribute("class") == "error"
    bars = {name: page.locator("#topology-tree summary", has_text=name).locator(".uses .bar > span").first for name in sites}
    colors = {name: bar.evaluate("node => getComputedStyle(node).backgroundColor") for name, bar in bars.items()}
    assert {name for name, bar in bars.items() if "over" in (bar.get_attribute("class") or "")} == {"ams", "dub"}
    assert colors["ams"] == colors["dub"] != colors["fra"]


def test_columns_of_the_matrix_have_space_for_large_numbers(show: Open) -> None:
    keys = [Key("apps", "Deployment", "shop", name) for name in ("api", "web")]
    replicas = {"ams": 3, "fra": 2_000}
    outcomes = [
        Outcome(
            key,
            "karmada",
            "placed",
            "",
            "",
            tuple(TargetCluster(name, number) for name, number in replicas.items()),
            2,
            (),
            "",
            NOW,
        )
        for key in keys
    ]
    moves = [Move(keys[0], {"ams": 3, "fra": 20_000}, replicas, "")]
    review = Review("c0ffee", "placements", outcomes=outcomes, moves=moves)
    page = show(write_page(review, FleetView({name: ClusterInfo(name, {}) for name in replicas}, {})))
    cells = page.locator("#fleet-window tbody td")
    assert cells.all_inner_texts() == ["3", "20000→2000", "3", "2000"]
    assert cells.evaluate_all("nodes => nodes.map((node) => node.scrollWidth <= node.clientWidth)") == [True] * 4


def test_a_drained_cluster_is_no_error(show: Open) -> None:
    sites = {
        "ams": ClusterSite("ams", unavailable="it has a taint", is_drained=True),
        "fra": ClusterSite("fra", unavailable="not ready"),
    }
    page = show(write_page(Review("c0ffee", "placements"), FleetView({name: ClusterInfo(name, {}) for name in sites}, {}, sites)))
    alerts = page.get_by_role("list", name="Alerts").locator("li")
    assert alerts.evaluate_all("nodes => nodes.map((node) => [node.className, node.innerText])") == [
        ["error", "fra not available"],
        ["warning", "ams drained"],
    ]
    for name, words, is_bad in (("ams", "drained", False), ("fra", "not available", True)):
        tile = page.locator(f"#fleet-map .tile[aria-label^='{name}:']")
        assert words in (tile.get_attribute("aria-label") or "")
        assert (" bad" in (tile.get_attribute("class") or "")) == is_bad
        badge = page.locator("details.cluster > summary", has_text=name).locator(".badge")
        assert [badge.inner_text(), badge.get_attribute("class")] == [words, "old badge" if is_bad else "turn badge"]


@pytest.mark.parametrize("severity", ["error", "warning"])
def test_the_count_of_findings_beside_the_title_leads_to_their_list_also_where_it_is_folded(show: Open, severity: str) -> None:
    old = [Finding("error", "wrong", f"error {number}") for number in range(3)]
    old += [Finding("warning", "unknown-label", f"warning {number}") for number in range(25)]
    review = Review("c0ffee", "placements", before="beef", findings=old, base=ComparisonBase("beef", "main", findings=old))
    page = show(write_page(review, FleetView({}, {})))
    alerts = page.get_by_role("list", name="Alerts")
    assert alerts.inner_text().split("\n") == ["3 errors as before", "25 warnings as before"]
    assert not page.get_by_text("warning 24").is_visible()
    alerts.get_by_role("link", name=severity).click()
    listed = page.get_by_role("row").filter(has_text=f"{severity} 0")
    assert listed.is_visible()
    assert page.evaluate("window.scrollY") > 0 or listed.evaluate("node => node.getBoundingClientRect().bottom < innerHeight")


def test_withheld_changes_are_marked_wherever_they_are_listed(show: Open) -> None:
    keys = [Key("apps", "Deployment", "shop", name) for name in ("api", "web")]
    moves = [Move(key, {"ams": 2}, {"fra": 2}, f"policy of {key.name}") for key in keys]
    placed = [Outcome(key, "karmada", "placed", "", "", (TargetCluster("fra", 2),), 2, (), "", NOW) for key in keys]
    comparison = ComparisonBase("beef", "main")
    withheld = WithheldChanges((moves[1],), (ExceededLimit("cluster", "ams", "removed", 1, 2, 30),), "1234")
    review = Review("c0ffee", "placements", outcomes=placed, moves=moves, withheld=withheld, base=comparison)
    page = show(write_page(review, FleetView({name: ClusterInfo(name, {}) for name in ("ams", "fra")}, {})))
    assert page.get_by_role("list", name="Alerts").inner_text() == "1 change withheld: Deployment shop/web"
    marked = {"api": "", "web": "withheld"}
    for place in ("#changes tbody tr", "#fleet-window tbody tr"):
        for name, mark in marked.items():
            row = page.locator(place, has_text=f"shop/{name}").first
            assert row.locator(".withheld").all_inner_texts() == [mark] * bool(mark), place
    page.get_by_label("State").select_option("withheld")
    assert page.locator("#fleet-window tbody th").all_inner_texts() == ["withheld Deployment shop/web"]
    page.get_by_role("button", name="Deployment shop/web").first.click()
    assert "Withheld: a run leaves this change out" in page.get_by_role("dialog").inner_text()


@pytest.mark.parametrize(
    ("changes", "headline", "facts"),
    [
        (
            {},
            "No changes: no workload moves, and no file of a cluster differs",
            ["commit\nc0ffee", "against\nbranch placements at beef, made from 1234 Move the shop (Ann)"],
        ),
        (
            {"changed": True, "comparison": OutputComparison(delivery=DeliveryChanges(files=3))},
            "No workload moves, rendered manifests change",
            ["commit\nc0ffee", "against\nbranch placements at beef, made from 1234 Move the shop (Ann)"],
        ),
        ({"changed": True}, "No workload moves, only status records change", ["commit\nc0ffee"]),
        (
            {"base": ComparisonBase("1234", "main")},
            "No changes: no workload moves, and no file of a cluster differs",
            ["commit\nc0ffee", "against main\n1234 Move the shop (Ann)"],
        ),
        ({"before": None, "states": {"placed": 2, "pending": 0, "stale": 0}}, "First placement of 2 workloads", ["commit\nc0ffee"]),
    ],
)
def test_the_headline_of_a_quiet_plan_says_what_changes_and_the_commits_stand_below(
    show: Open, changes: dict[str, Any], headline: str, facts: list[str]
) -> None:
    """Neither a path of this machine nor a commit is in the headline."""
    review = Review("c0ffee", "placements", "/srv/fleet", before="beef")._replace(**changes)
    known = {"1234": SourceChange("1234", "Move the shop", "Ann")}
    page = show(write_page(review, FleetView({}, {}, commits=known, placed_from="1234")))
    assert page.get_by_role("heading", level=1).inner_text() == headline
    assert page.locator(".facts .commit").all_inner_texts()[: len(facts)] == facts
    assert "/srv/fleet" not in page.inner_text("body")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_levels_of_the_map_are_read_without_colour(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """Each level fills another part of a tile; borders, filled parts and text have enough contrast with what is beside them."""
    loads = {f"c{load}": ClusterSite(f"c{load}", resources=(ResourceUse("cpu", 100, load),)) for load in (5, 30, 60, 80, 95)}
    page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
    (tmp_path / "page.html").write_text(
        write_page(Review("c0ffee", "placements"), FleetView({name: ClusterInfo(name, {}) for name in loads}, {}, loads))
    )
    page.goto((tmp_path / "page.html").as_uri())
    tiles = page.locator("#fleet-map .tile").evaluate_all(
        """tiles => tiles.map((tile) => {
          const style = getComputedStyle(tile);
          const [fill, level] = ["--fill", "--level"].map((name) => style.getPropertyValue(name).trim());
          return { fill, level, edge: style.borderTopColor, ink: style.color, paper: getComputedStyle(document.body).backgroundColor };
        })"""
    )
    assert len({tile["level"] for tile in tiles}) == len(loads)
    for tile in tiles:
        for one, other, least in (("fill", "paper", 3), ("edge", "paper", 3), ("ink", "fill", 4.5), ("ink", "paper", 4.5)):
            assert measure_contrast(tile[one], tile[other]) >= least, (one, other, tile)
    page.close()


def measure_contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, each `#rrggbb` or `rgb(r, g, b)`, as WCAG defines it."""

    def measure_luminance(colour: str) -> float:
        parts = (
            [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
            if colour[0] == "#"
            else map(int, re.findall(r"\d+", colour))
        )
        linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted((measure_luminance(one), measure_luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_matrix_of_a_large_fleet_begins_where_something_changes(show: Open) -> None:
    names = [f"c{number:03}" for number in range(100)]
    key, moved = (Key("apps", "Deployment", "shop", name) for name in ("api", "web"))
    outcomes = [
        Outcome(each, "karmada", "placed", "", "", (TargetCluster(cluster, 2),), 2, (), "", NOW)
        for each, cluster in ((key, "c050"), (moved, "c099"))
    ]
    moves = [Move(moved, {"c070": 2}, {"c099": 2}, "policy")]
    review = Review("c0ffee", "placements", before="beef", outcomes=outcomes, moves=moves)
    page = show(write_page(review, FleetView({name: ClusterInfo(name, {}) for name in names}, {})))
    assert page.locator("#fleet-window thead th").all_inner_texts()[:5] == ["Workload", "c070", "c099", "c050", "c000"]
    assert page.locator("#fleet-window tbody th").all_inner_texts() == ["Deployment shop/web", "Deployment shop/api"]
    tiles = page.locator("#fleet-map .tile").evaluate_all("tiles => tiles.map((tile) => tile.title.split(':')[0])")
    assert tiles == names, "the map keeps the order of the names"


def test_ten_thousand_workloads_on_a_thousand_clusters_have_less_than_three_megabytes(show: Open) -> None:
    names = [f"cluster-{number:04}" for number in range(1000)]
    facts = {name: ClusterInfo(name, {"tier": "a"}, f"region-{number % 20}") for number, name in enumerate(names)}
    outcomes = [
        Outcome(
            Key("apps", "Deployment", f"team-{number % 50}", f"app-{number:05}"),
            "karmada",
            "placed",
            "",
            "",
            targets,
            9,
            (),
            "",
            NOW,
        )
        for number in range(10_000)
        for targets in [tuple(TargetCluster(names[(number * 7 + step * 331) % 1000], 2 + step) for step in range(3))]
    ]
    review = Review("c0ffee", "placements", before="beef", outcomes=outcomes)
    explained = choose_explained(review, len(names))
    verdicts = tuple(ExplainedCandidate(CandidateResult(name, False, "taint", {}, None)) for name in names)
    html = write_page(review, FleetView(facts, {one.key: Explanation(str(one.key), candidates=verdicts) for one in explained}))
    assert len(html.encode()) < 3_000_000
    page = show(html)
    expect(page.locator("#fleet-count")).to_have_text("10,000 workloads on 1,000 clusters")
    assert page.locator("#fleet-map .tile").count() == 1000
    assert page.locator("#fleet-window tbody tr").first.locator("td").first.inner_text() == "2"


def test_a_frozen_fleet_has_an_alert_where_nothing_is_withheld(show: Open) -> None:
    message = "Placements are frozen: audit week. To lift it, run gitsched freeze --lift"
    page = show(
        write_page(Review("c0ffee", "placements", findings=[Finding("info", "placements-frozen", message)]), FleetView({}, {}))
    )
    assert page.get_by_role("list", name="Alerts").inner_text() == "frozen"
    assert message in page.get_by_role("list", name="What needs attention").inner_text()


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://github.com/shop/fleet.git", "https://github.com/shop/fleet/blob/c0ffee/policies/a%20b.yaml#L3"),
        ("git@gitlab.example.com:shop/fleet.git", "https://gitlab.example.com/shop/fleet/-/blob/c0ffee/policies/a%20b.yaml#L3"),
        ("https://codeberg.org/shop/fleet", "https://codeberg.org/shop/fleet/src/commit/c0ffee/policies/a%20b.yaml#L3"),
        ("https://git.example.com/shop/fleet", None),
        ("/srv/fleet", None),
    ],
)
def test_places_are_links_where_the_forge_is_known(url: str, address: str | None) -> None:
    finding = Finding("error", "wrong", "no", Location("policies/a b.yaml", 3, 1))
    html = write_page(Review("c0ffee", "placements", findings=[finding]), FleetView({}, {}, {}, find_web_links(url)))
    assert (f'<a href="{address}" rel="noreferrer">' in html) if address else '<a href="http' not in html


def test_many_files_and_notes_are_folded(show: Open) -> None:
    rendered = [ManifestChange(f"shop/deployment-{number:03}.yaml", ("fra",), "3", None) for number in range(300)]
    notes = [Finding("info", "note", f"number {number}") for number in range(300)]
    comparison = OutputComparison("sha256:1234", DeliveryChanges(rendered))
    page = show(write_page(Review("c0ffee", "placements", before="beef", comparison=comparison, findings=notes), FleetView({}, {})))
    assert page.evaluate("document.getElementById('files').offsetHeight + document.getElementById('findings').offsetHeight") < 300
    page.get_by_text("300 changed files").click()
    assert page.evaluate("document.getElementById('files').offsetHeight") < 900


def test_the_digest_is_copied(show: Open) -> None:
    page = show(write_page(Review("c0ffee", "placements", comparison=OutputComparison("sha256:1234")), FleetView({}, {})))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "sha256:1234"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_what_a_reserve_lacks_is_a_table(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    key, other = (Key("apps", "Deployment", "shop", name) for name in ("web", "api"))
    lost = Loss("region", ("eu",))
    known = ReserveShortage(lost, other, Shortage(1, unplaced=False, replicas=2), Shortage(1, unplaced=False, replicas=2))
    larger = ReserveShortage(
        lost, key, Shortage(3, unplaced=False, replicas=4, requests={"cpu": 500}, reason=EVIL), Shortage(1, unplaced=False)
    )
    comparison = OutputComparison(reserve=ReserveCheck((known, larger), 4, attempts=2))
    review = Review("c0ffee", "placements", comparison=comparison)
    (tmp_path / "page.html").write_text(write_page(review, FleetView({"ams": ClusterInfo("ams", {})}, {}, {})))
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)  # type: ignore[arg-type]
    page.goto((tmp_path / "page.html").as_uri())
    section = page.locator("#reserve")
    assert section.locator("p").all_inner_texts()[0] == "4 losses simulated: 2 shortages, 1 larger than before."
    assert section.locator("tbody th").all_inner_texts() == ["Deployment shop/web", "Deployment shop/api"]
    assert section.locator("tbody tr").first.locator("td").all_inner_texts()[:4] == ["region eu", "1", "3", "cpu 500m"]
    found = Axe().run(page, context="#reserve")
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("window.pwned") is None


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_map_of_a_simulation_is_readable_with_a_thousand_clusters(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    sites = [
        ClusterSite(
            f"c{number:04}", region=f"region-{number % 4}", resources=(ResourceUse("cpu", 1000, number, 100 * (number < 900)),)
        )
        for number in range(1000)
    ]
    lost = tuple(site.name for site in sites if site.region == "region-3")
    found = Simulation(
        "region region-3 is lost",
        None,
        lost,
        (),
        (),
        (),
        1,
        (WorkloadEffect(Key("apps", "Deployment", "shop", "web"), {"c0003": 2}, {"c0000": 1}, 2, 1, reason=f"full {EVIL}"),),
        (),
        (),
        fleet=tuple(SimulatedSite(site, (1, 1), (2, 3)) for site in sites),
    )
    (tmp_path / "page.html").write_text(write_blocks_page("Simulation", list_simulation_blocks(found)))
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)  # type: ignore[arg-type]
    page.goto((tmp_path / "page.html").as_uri())
    report = Axe().run(page)
    assert report.violations_count == 0, report.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("window.pwned") is None
    assert page.locator(".side .tile").count() == 2000
    assert page.locator(".side", has_text="After").locator(".tile.bad").count() == len(lost)
    assert page.locator(".map-place").first.locator("p").inner_text() == "region-3 (250)", "the lost region is the first"
    tops = page.locator(".side .tile.bad").evaluate_all(
        "tiles => tiles.slice(0, 20).map((tile) => tile.getBoundingClientRect().top)"
    )
    assert max(tops) < 900, "on the first screen"
    page.close()
