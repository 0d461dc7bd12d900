"""Patterns of .sourceignore files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import re2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from gitsched.manifests.sourceignore import MAX_RULE_LENGTH, MAX_RULES, ExcessRule, SourceIgnore
from gitsched.reconcile.source.source_reader import is_manifest_path
from tests.search_depth import count_examples


@pytest.mark.parametrize(
    "path", ["a.yaml", "a/b.yml", "a.json", "x/Kustomization", "kustomization.yaml", "a/charts/x/templates/a.yaml", "a..b/c.yaml"]
)
def test_manifest_paths(path: str) -> None:
    assert is_manifest_path(path)


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
def test_paths_that_are_not_manifests(path: str) -> None:
    assert not is_manifest_path(path)


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
def test_rules_match_like_gitignore(path: str, ignored: bool) -> None:
    assert SourceIgnore.parse(RULES).is_ignored(path) is ignored


def test_without_rules_nothing_is_ignored() -> None:
    assert not SourceIgnore.parse({}).is_ignored("a.yaml")


def test_an_invalid_line_is_skipped() -> None:
    ignore = SourceIgnore.parse({"": "!\n///\na.yaml\n"})
    assert ignore.is_ignored("a.yaml")
    assert not ignore.is_ignored("b.yaml")


@pytest.mark.parametrize("line", ["[z-a]x", "[a--c]", "[[:nothing:]]", "a[", "a\\\\"[:-1], "!", "/", "//"])
def test_no_line_raises(line: str) -> None:
    assert not SourceIgnore.parse({"": line + "\n"}).is_ignored("b/c.yaml")


# Three stars and more before a slash mean to git what its manual does not say.
PIECES = st.sampled_from(
    [
        *"aabb**?/.-# !",
        "**/",
        "/**",
        "[ab]",
        "[!a]",
        "[b-a]",
        "[a-c]",
        "\\a",
        "\\ ",
        "\\",
        "[[:alpha:]]",
        "[]a]",
        "[^]b]",
        "[a-]",
        "[",
    ]
)
LINES = st.lists(PIECES, max_size=7).map("".join).filter(lambda line: "***" not in line and "*[" not in line)
NAMES = st.text("aab.]-c", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), min_size=1, max_size=20, unique=True)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("empty")
    subprocess.run(["git", "init", "-q", "."], cwd=at, check=True)
    return at


@settings(max_examples=count_examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, min_size=1, max_size=3), paths=PATHS)
def test_what_git_ignores_is_ignored(empty: Path, lines: list[str], paths: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    (empty / ".gitignore").write_text(text)
    command = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
    done = subprocess.run(command, cwd=empty, input="\0".join(paths), capture_output=True, text=True)
    ignore = SourceIgnore.parse({"": text})
    assert {path for path in paths if ignore.is_ignored(path)} == set(done.stdout.split("\0")) - {""}


ORDINARY = {
    "drafts/": ["drafts/a.yaml", "apps/drafts/b/c.yaml", "drafts", "mydrafts/a.yaml"],
    "/drafts": ["drafts/a.yaml", "apps/drafts/a.yaml"],
    "*.tmp.yaml": ["a.tmp.yaml", "apps/a.tmp.yaml", "a.yaml"],
    "apps/*/secret.yaml": ["apps/web/secret.yaml", "apps/web/eu/secret.yaml", "secret.yaml"],
    "apps/**/secret.yaml": ["apps/secret.yaml", "apps/web/eu/secret.yaml", "web/secret.yaml"],
    "**/test/**": ["test/a.yaml", "apps/test/b/c.yaml", "test"],
    "charts/**": ["charts/a.yaml", "charts", "apps/charts/a.yaml"],
    "*\n!keep.yaml": ["a.yaml", "keep.yaml", "apps/a.yaml"],
    "/*\n!/apps": ["a.yaml", "apps/a.yaml", "web/a.yaml"],
    "file-?.yaml": ["file-1.yaml", "file-12.yaml", "file-/.yaml"],
    "file-[0-9].yaml": ["file-1.yaml", "file-a.yaml"],
    "file-[!0-9].yaml": ["file-1.yaml", "file-a.yaml"],
    "# nothing\n\\#a.yaml": ["#a.yaml", "a.yaml"],
    "\\!a.yaml": ["!a.yaml", "a.yaml"],
    "a.yaml  ": ["a.yaml", "a.yaml  "],
    "a\\ ": ["a ", "a"],
    "a.b": ["a.b", "axb"],
    "été/*.yaml": ["été/a.yaml", "ete/a.yaml"],
}


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_rules_match_like_git_and_pathspec(empty: Path, text: str) -> None:
    paths = ORDINARY[text]
    (empty / ".gitignore").write_text(text + "\n")
    command = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
    done = subprocess.run(command, cwd=empty, input="\0".join(paths), capture_output=True, text=True)
    git = set(done.stdout.split("\0")) - {""}
    ignore, spec = SourceIgnore.parse({"": text + "\n"}), GitIgnoreSpec.from_lines(text.split("\n"), backend="simple")
    assert {path for path in paths if ignore.is_ignored(path)} == git
    assert {path for path in paths if spec.match_file(path)} == git


def test_a_file_in_an_excluded_directory_stays_excluded_unlike_for_pathspec(empty: Path) -> None:
    (empty / ".gitignore").write_text("*\n!keep.yaml\n")
    command = ["git", "check-ignore", "--no-index", "apps/keep.yaml"]
    assert subprocess.run(command, cwd=empty, capture_output=True).returncode == 0
    assert SourceIgnore.parse({"": "*\n!keep.yaml\n"}).is_ignored("apps/keep.yaml")
    assert not GitIgnoreSpec.from_lines(["*", "!keep.yaml"], backend="simple").match_file("apps/keep.yaml")


def test_pathspec_is_still_too_slow_for_the_rule_limit() -> None:
    """One of the reasons for a matcher of our own; if this fails, see the docstring of gitsched.manifests.sourceignore."""
    lines = [f"*draft-{number}*" for number in range(MAX_RULES)]
    with pytest.raises(re2.error):
        GitIgnoreSpec.from_lines(lines, backend="re2")
    assert SourceIgnore.parse({"": "\n".join(lines)}).is_ignored(f"apps/draft-{MAX_RULES - 1}.yaml")


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a" * 400 + "b", "a" * 4_000),
        ("?*" * 300 + "b", "a" * 4_000),
        ("**/a/" * 200 + "b", "a/" * 128 + "c"),
        ("**/*a*a*/" * 60 + "b", "/".join(["a" * 200] * 20)),
        ("[ab]*" * 200 + "c", "ab" * 2_000),
    ],
)
def test_no_pattern_backtracks_exponentially(line: str, path: str) -> None:
    """A backtracking matcher would try every combination of these wildcards."""
    assert not SourceIgnore.parse({"": line}).is_ignored(path)


def test_the_first_rule_beyond_the_limit_is_reported() -> None:
    ignore = SourceIgnore.parse(
        {"": "a\n" * MAX_RULES, "apps": "# nothing\nb.yaml\nc.yaml\n", "web": "d.yaml\n" + "x" * (MAX_RULE_LENGTH + 1)}
    )
    assert ignore.excess == (ExcessRule("apps", 2, False), ExcessRule("web", 1, False))
    ignore = SourceIgnore.parse({"web": "d.yaml\n" + "x" * (MAX_RULE_LENGTH + 1) + "\nf.yaml\n"})
    assert ignore.excess == (ExcessRule("web", 2, True),)
    assert [ignore.is_ignored(f"web/{name}.yaml") for name in "df"] == [True, False]
