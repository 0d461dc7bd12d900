"""Flux leaves out the files that the last rule about them excludes. The outcomes are those of its own code (fluxcd/pkg, sourceignore)."""

from __future__ import annotations

from gitsched.manifests.flux_ignore import FluxIgnore
from tests.tables import each_row

OUTCOMES = [
    # rules, path, is left out
    ("/*\n!/clusters/main", "clusters/main/web.yaml", False),
    ("/*\n!/clusters/main", "clusters/stage/web.yaml", True),
    ("/*\n!/clusters/main/", "clusters/main/a/web.yaml", False),
    ("/*\n!/clusters/main/web.yaml\n", "clusters/main/web.yaml", False),
    ("clusters/\n!web.yaml", "clusters/web.yaml", False),
    ("!web.yaml\nclusters/", "clusters/web.yaml", True),
    ("web.yaml/", "apps/web.yaml", False),
    ("apps/", "x/apps/web.yaml", True),
    ("/apps", "x/apps/web.yaml", False),
    ("apps/web", "x/apps/web/a.yaml", False),
    ("**/web", "x/apps/web/a.yaml", True),
    ("apps/**/a.yaml", "apps/x/y/a.yaml", True),
    ("apps/**/a.yaml", "apps/a.yaml", True),
    ("apps/**", "apps/x/a.yaml", True),
    ("apps/we**", "apps/web", False),
    ("*.yaml", "apps/web.yaml", True),
    ("[ab].yaml", "c/b.yaml", True),
    ("[a", "[a", False),
    ("# apps\n\n  \n", "apps/a.yaml", False),
    ("apps/a.yaml  \r", "apps/a.yaml", True),
    ("", "docs/a.png", True),
    ("x", "docs/a.png", False),
    ("x", ".gitignore", True),
    ("!.git/", ".git/config", False),
]


@each_row(("rules", "path", "expected"), OUTCOMES)
def test_a_file_is_left_out_as_flux_leaves_it_out(rules: str, path: str, expected: bool) -> None:
    assert FluxIgnore({"": rules}).is_ignored(path) is expected
    assert FluxIgnore(more=rules).is_ignored(path) is expected


def test_rules_of_a_directory_and_of_the_source_take_precedence() -> None:
    ignore = FluxIgnore({"apps": "web/\n!a.yaml", "": "/apps"}, "!/apps/web/b.yaml")
    paths = ("apps/web/c.yaml", "apps/x.yaml", "apps/web/b.yaml", "apps/a.yaml", "x/web/c.yaml")
    assert [ignore.is_ignored(path) for path in paths] == [True, True, False, False, False]
    assert FluxIgnore(more="", is_artifact=True).is_ignored("docs/a.png") is False
