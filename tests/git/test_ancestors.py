"""List the ancestors of commits without those that another commit has."""

from __future__ import annotations

from pathlib import Path

from gitsched.git import Repository

ABSENT = "1" * 40


def commit(git, at: Path, subject: str, *options: str) -> str:
    git("commit", "-q", "--allow-empty", "-m", subject, *options, at=at)
    return git("rev-parse", "HEAD", at=at)


def subjects(repository, heads: list[str], excluded: str, limit: int = 100) -> list[str]:
    return [found.message.splitlines()[0] for found in repository.list_ancestors(heads, excluded, limit)]


def test_ancestors_end_where_the_excluded_commit_has_them(work: Path, git) -> None:
    commit(git, work, "before", "--date", "2024-05-01T12:01:00Z")
    git("checkout", "-qb", "side", at=work)
    side = commit(git, work, "side")
    git("checkout", "-q", "main", at=work)
    last = commit(git, work, "last")
    commit(git, work, "next")
    git("merge", "-q", "--no-ff", "-m", "merge", "side", at=work)
    repository = Repository(work)
    head = git("rev-parse", "HEAD", at=work)
    assert sorted(subjects(repository, [head], last)) == ["merge", "next", "side"]
    assert sorted(subjects(repository, [last, side], "")) == ["Start", "before", "last", "side"]
    assert len(subjects(repository, [head], last, limit=2)) == 2
    assert subjects(repository, [ABSENT], last) == subjects(repository, [], last) == []
    assert len(subjects(repository, [head], ABSENT)) == 6, "the excluded commit is missing"


def test_a_shallow_clone_lists_the_commits_that_it_has(work: Path, git, tmp_path: Path) -> None:
    for number in range(4):
        commit(git, work, f"commit {number}")
    git("clone", "-q", "--depth", "2", f"file://{work}", str(tmp_path / "shallow"))
    head = git("rev-parse", "HEAD", at=work)
    assert subjects(Repository(tmp_path / "shallow"), [head], ABSENT) == ["commit 3", "commit 2"]
