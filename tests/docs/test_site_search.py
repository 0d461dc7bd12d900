"""The built site: its search finds pages in a browser, and every page has a description, an edit link and a place in the sitemap."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from gitsched.cli import COMMANDS
from tests.local import PATIENCE
from tests.programs import find_program

pytestmark = [pytest.mark.long, pytest.mark.needs("browser")]
mkdocs_build = pytest.importorskip("mkdocs.commands.build", reason="`make docs` installs mkdocs")
ROOT = Path(__file__).parents[2]


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mkdocs.config import load_config

    target = tmp_path_factory.mktemp("site")
    mkdocs_build.build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(target)))
    return target


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


FOUND = {
    "freezing placements": ("The output branch", "output-branch/"),
    "selector-unmatched": ("Findings", "#selector-unmatched"),
    "rebalance": ("gitsched rebalance", "commands/rebalance/"),
    "activationPreference": ("Fields of the policy APIs", "api-fields/"),
}
"""What is typed, the first result, and where a result leads."""


def test_the_search_finds_pages_codes_commands_and_fields(address: str) -> None:
    foreign: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_program("browser"), args=["--no-sandbox"])
        page = browser.new_page()
        page.on(
            "request", lambda request: None if request.url.startswith((address, "blob:", "data:")) else foreign.append(request.url)
        )
        results = page.locator(".md-search-result__link, .md-search__output a")
        for words, (first, target) in FOUND.items():
            page.goto(address)
            # What is typed before the search is ready has no effect.
            expect(page.locator(".md-search-result__meta")).to_have_text("Type to start searching", timeout=1000 * PATIENCE)
            # The search follows keys, and the focus only a moment later: what is filled in at once may be missed.
            page.get_by_role("textbox", name="Search").press_sequentially(words)
            expect(results.first).to_contain_text(first, timeout=1000 * PATIENCE)
            expect(results.and_(page.locator(f'[href*="{target}"]')).first).to_be_attached()
        browser.close()
    assert [url for url in foreign if "api.github.com" not in url] == [], "the page asks the forge alone, for the number of stars"


OF_THE_THEME = {"aria-dialog-name", "landmark-unique"}
"""What the theme does wrong whatever the pages are: its search and its buttons for copying have no names."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_accessibility_violations_of_their_own(address: str, scheme: str) -> None:
    found: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_program("browser"), args=["--no-sandbox"])
        page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
        for path in ("", "comparison/", "findings/", "karmada/", "simulate/", "commands/plan/"):
            page.goto(f"{address}{path}")
            violations = Axe().run(page).response["violations"]
            found += [f"{path}: {one['id']}: {one['nodes'][0]['html']}" for one in violations if one["id"] not in OF_THE_THEME]
        browser.close()
    assert found == []


def test_every_page_has_a_description_an_edit_link_and_a_place_in_the_sitemap(site: Path) -> None:
    sitemap = (site / "sitemap.xml").read_text()
    for source in sorted((ROOT / "docs").rglob("*.md")):
        name = source.relative_to(ROOT / "docs").with_suffix("").as_posix()
        html = (site / ("index.html" if name == "index" else f"{name}/index.html")).read_text()
        description = html.partition('name="description" content="')[2].partition('"')[0]
        assert 40 < len(description) <= 200, name
        assert f"edit/main/docs/{name}.md" in html
        assert f"https://gitsched.github.io/gitsched/{'' if name == 'index' else f'{name}/'}<" in sitemap
    for name in COMMANDS:
        assert f"https://gitsched.github.io/gitsched/commands/{name}/<" in sitemap
        html = (site / "commands" / name / "index.html").read_text()
        assert 'name="description" content="' in html
