"""The pages are one documentation: found from the navigation and the first page, about codes, kinds and options that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

import gitsched
from tests.cli.finding_codes import find_codes
from tests.cli.test_help_examples import list_commands
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
ALL = [ROOT / "README.md", *PAGES]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
IN_BRACKETS = re.compile(r"\[([a-z0-9]+(?:-[a-z0-9]+)+)\](?!\()")
IN_TICKS = re.compile(r"(?<!`)`([a-z0-9]+(?:-[a-z0-9]+)+)`(?!`)")
FAMILIES = ("cel-", "karmada-", "knative-", "krake-", "ocm-")
NAMES = {"dub-1", "fra-1", "karmada-controller-manager", "karmada-system", "list-item"}
"""What is like a finding's code and is the name of something, such as of a code of mypy."""
NEEDS_A_SETTING = {"karmada-taint-policy-no-execute"}
"""Findings that a setting prevents, which the page names beside the manifest."""


def name(path: Path) -> str:
    return path.name


def leaves(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for child in entry.values() if isinstance(entry, dict) else entry:
            yield from leaves(child)


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```yaml[^\n]*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def manifests(page: Path) -> list[dict[str, Any]]:
    found = [document for block in blocks(page) for document in yaml.safe_load_all(block)]
    return [document for document in found if isinstance(document, dict) and "apiVersion" in document]


def test_every_page_is_in_the_navigation_once() -> None:
    paths = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]
    users = [path for path in paths if not path.startswith("development/")]
    assert sorted(leaves(SITE["nav"])) == sorted(users), "add the page to nav in mkdocs.yml, and to index.md"
    assert SITE["not_in_nav"] == "/development/*"


def test_the_first_page_links_every_page_and_readme_links_the_first_page() -> None:
    text = (ROOT / "docs/index.md").read_text()
    paths = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]
    assert [path for path in paths if f"({path})" not in text and path != "index.md"] == []
    assert "(docs/index.md)" in (ROOT / "README.md").read_text()


def test_readme_stays_short_and_shows_figures_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 128
    images = re.findall(r"docs/images/[\w.-]+", text)
    assert {image.rpartition(".")[2] for image in images} == {"svg", "png"}
    assert all((ROOT / image).is_file() for image in images)


def test_a_broken_link_fails_the_build_of_the_site() -> None:
    validation = SITE["validation"]
    assert SITE["strict"] is True
    assert {rule for part in validation.values() for rule in part.values()} == {"warn"}
    assert {"not_found", "anchors"} <= validation["links"].keys()
    assert "mkdocs build --strict" in (ROOT / "Makefile").read_text(), "with --quiet, warnings do not fail the build"


@each_row("page", PAGES)
def test_every_page_begins_with_its_title(page: Path) -> None:
    assert re.match(r"# \S.*\n\n", page.read_text())
    assert len(re.findall(r"^# ", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL), re.MULTILINE)) == 1


@each_row("page", PAGES)
def test_no_page_links_outside_of_the_site(page: Path) -> None:
    targets = re.findall(r"\]\((\.\./[^)#]*)", page.read_text())
    assert [target for target in targets if not (page.parent / target).resolve().is_relative_to(ROOT / "docs")] == []


@pytest.mark.parametrize("page", ALL, ids=name)
def test_every_finding_code_on_a_page_exists(page: Path) -> None:
    """In brackets at the end of what the program prints; or in backticks, beginning like one or very like one."""
    codes, text = find_codes(), page.read_text()
    ticked = set(IN_TICKS.findall(text))
    doubtful = {word for word in ticked if word.startswith(FAMILIES) or get_close_matches(word, codes, 1, 0.85)}
    named = {*IN_BRACKETS.findall(text), *doubtful} - NAMES
    assert {word for word in named if not any(fnmatchcase(word, code) for code in codes)} == set()


@each_row("page", ALL)
def test_every_manifest_on_a_page_is_valid(page: Path) -> None:
    findings = [finding for shown in manifests(page) for finding in gitsched.validate([shown])]
    assert [str(found) for found in findings if found.severity != "info" and found.code not in NEEDS_A_SETTING] == []


@each_row("page", ALL)
def test_every_kind_of_a_policy_api_on_a_page_has_a_schema(page: Path) -> None:
    groups = {path.name for path in (ROOT / "schemas").iterdir() if path.is_dir()}
    for shown in manifests(page):
        group, _, version = shown["apiVersion"].rpartition("/")
        assert group not in groups or (ROOT / "schemas" / group / version / f"{shown['kind']}.json").is_file(), shown["kind"]


def read_other_names() -> dict[str, str]:
    """Return the table "One name on the pages" of the architecture: what is not written → what is."""
    text = (ROOT / "docs/development/architecture.md").read_text()
    section = text.partition("### One name on the pages\n")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)
    return {word: name for words, name in rows if words != "not" for word in words.split(", ")}


def find_other_names(text: str) -> set[str]:
    return {word for word in read_other_names() if re.search(rf"\b{word}s?\b", text, re.IGNORECASE)}


def test_pages_and_helps_write_one_name_for_one_meaning() -> None:
    assert find_other_names("It is held back in\nthe working tree.".replace("\n", " ")) == {"held back", "working tree"}
    users = [ROOT / "README.md", *(page for page in PAGES if page.parent.name == "docs")]
    texts = {page.name: re.sub(r"(?ms)^```.*?^```", "", page.read_text()) for page in users}
    for words, command in list_commands():
        texts[" ".join(words)] = "\n".join([command.help or "", *(getattr(option, "help", "") or "" for option in command.params)])
    found = {name: find_other_names(" ".join(text.split())) for name, text in texts.items()}
    assert {name: words for name, words in found.items() if words} == {}, read_other_names()
