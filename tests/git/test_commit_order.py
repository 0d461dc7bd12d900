"""How two commits follow each other, in clones with and without their history."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.git import commit_order, open_source
from gitsched.git.commit_order import compare_commits
from tests.scenarios.conftest import Fleet, execute

MISSING = "a" * 40


@pytest.fixture
def origin(tmp_path: Path) -> Fleet:
    """Six commits on `main`, and one on `side` that begins at the third."""
    fleet = Fleet(tmp_path / "origin", tmp_path / "cache")
    for number in range(6):
        fleet.commit({"README.md": f"{number}\n"}, hour=number)
    fleet.git("checkout", "-q", "-b", "side", "main~3")
    fleet.commit({"side.md": "side\n"}, hour=7)
    fleet.git("checkout", "-q", "main")
    fleet.git("config", "uploadpack.allowAnySHA1InWant", "true")
    return fleet


def read_ids(fleet: Fleet) -> list[str]:
    """Return the commits of `main`, the newest first, and that of `side`."""
    return [*fleet.git("rev-list", "main").splitlines(), fleet.git("rev-parse", "side")]


@pytest.mark.parametrize("filters", [True, False], ids=["commits only", "a server that filters nothing"])
@pytest.mark.parametrize("options", [(), ("--depth=1",)], ids=["complete", "shallow"])
def test_the_order_of_two_commits(origin: Fleet, tmp_path: Path, options: tuple[str, ...], filters: bool) -> None:
    origin.git("config", "uploadpack.allowFilter", str(filters).lower())
    execute("clone", "-q", *options, origin.path.as_uri(), str(tmp_path / "clone"), at=tmp_path)
    source = open_source(str(tmp_path / "clone"), cache=tmp_path / "clones")
    *main, side = read_ids(origin)
    cases = [(main[0], main[4]), (main[0], main[1]), (main[4], main[0]), (main[0], side), (side, main[3]), (main[0], MISSING)]
    found = [compare_commits(source, *pair) for pair in cases]
    assert found == ["later", "later", "earlier", "diverged", "later", "diverged"]
    count = execute("rev-list", "--count", "HEAD", at=tmp_path / "clone")
    assert count == ("1" if options else "6"), "the clone stays as it is"


def test_a_commit_that_a_clone_lacks_is_compared_by_the_origin(origin: Fleet, tmp_path: Path) -> None:
    execute("clone", "-q", origin.path.as_uri(), str(tmp_path / "clone"), at=tmp_path)
    source, before = open_source(str(tmp_path / "clone"), cache=tmp_path / "clones"), origin.git("rev-parse", "main")
    after = origin.commit({"README.md": "later\n"}, hour=8)
    assert (compare_commits(source, before, after), compare_commits(source, after, before)) == ("earlier", "later")
    execute("remote", "remove", "origin", at=tmp_path / "clone")
    assert compare_commits(source, before, after) == "diverged", "the clone has the whole history of the first"


def test_two_commits_that_are_too_far_apart_have_no_known_order(
    origin: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute("clone", "-q", "--depth=1", origin.path.as_uri(), str(tmp_path / "clone"), at=tmp_path)
    source, main = open_source(str(tmp_path / "clone"), cache=tmp_path / "clones"), read_ids(origin)
    monkeypatch.setattr(commit_order, "MAX_DEPTH", 2)
    assert [compare_commits(source, main[0], other) for other in (main[2], main[5], MISSING)] == ["later", "unknown", "unknown"]
