"""`.sourceignore` has gitignore's syntax; a deeper file's rules win."""

from __future__ import annotations

import pytest

from gitsched.manifests.ignore import Ignore, is_candidate


@pytest.mark.parametrize(
    "path", ["a.yaml", "a/b.yml", "a.json", "x/Kustomization", "kustomization.yaml", "a/charts/x/templates/a.yaml", "a..b/c.yaml"]
)
def test_candidates(path: str) -> None:
    assert is_candidate(path)


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        ".github/workflows/ci.yaml",
        "a/.git/x.yaml",
        ".a.yaml",
        "a/.hidden/b.json",
        "yaml",
        "a.yaml.tmpl",
        ".gitlab-ci.yml",
    ],
)
def test_other_files(path: str) -> None:
    assert not is_candidate(path)


RULES = {
    "": "# comment\n/tests/\n*.tmp.yaml\n!keep.tmp.yaml\ndocs/**/draft-*.yaml\n",
    "apps/web": "*\n!/deployment.yaml\n",
    "apps": "/web/deployment.yaml\n",
}


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("tests/a.yaml", True),
        ("apps/tests/a.yaml", False),
        ("a.tmp.yaml", True),
        ("keep.tmp.yaml", False),
        ("docs/a/b/draft-1.yaml", True),
        ("docs/a/final-1.yaml", False),
        ("apps/web/deployment.yaml", False),
        ("apps/web/service.yaml", True),
        ("apps/website/service.yaml", False),
    ],
)
def test_rules(path: str, ignored: bool) -> None:
    assert Ignore.parse(RULES).match(path) is ignored


def test_without_rules_nothing_is_ignored() -> None:
    assert not Ignore.parse({}).match("a.yaml")


def test_a_line_that_is_no_pattern_is_passed_over() -> None:
    ignore = Ignore.parse({"": "!\n///\na.yaml\n"})
    assert ignore.match("a.yaml")
    assert not ignore.match("b.yaml")
