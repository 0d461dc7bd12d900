"""Beyond the limits of reading a repository there is an error that names the limit, or less of what only helps a reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.git import Repository
from gitsched.git.kept_blobs import KeptBlobs
from gitsched.git.lost_objects import describe_loss
from gitsched.git.objects import LostObject
from gitsched.git.ref_log import list_rewinds
from gitsched.git.signatures import find_key_problem
from gitsched.git.trees import _LruCache
from gitsched.model.errors import Permanent

from .conftest import Git


def test_a_key_that_is_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJcGBuAgwYEGcUMQ6TYTFyr4SIFRdMaGv1WZQ8nyVvnW"
    assert find_key_problem(key) == ""
    monkeypatch.setattr("gitsched.git.signatures.MAX_KEY_LENGTH", len(key) - 1)
    assert find_key_problem(key) == f"it has more than {len(key) - 1} characters"


def test_a_commit_with_too_many_entries_is_an_error(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository(str(work))
    tree = repository.commit(repository.resolve("HEAD") or "").tree
    count = len(repository.entries(tree, limit=10))
    with pytest.raises(Permanent, match="the tree has more than 1 entries"):
        repository.entries(tree, limit=1)
    assert count > 1


def test_a_listing_cache_stays_below_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.git.trees._LEAST_CACHED", 2)
    monkeypatch.setattr("gitsched.git.trees._MAX_CACHED", 6)
    cache = _LruCache[int, str]()
    for number in range(9):
        cache.put(number, "x", 1)
    assert [number for number in range(9) if cache.get(number)] == [6, 7, 8]


def test_blobs_of_one_run_stay_to_its_end_and_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.git.kept_blobs.MAX_KEPT_SIZE", 4)
    kept = KeptBlobs()
    for oid in ("a", "b", "a"):
        kept.add(oid, b"xx")
    assert (kept.find("a"), kept.find("b")) == (b"xx", b"xx")
    with pytest.raises(Permanent, match="build has more than 4 bytes in all"):
        kept.add("c", b"y")
    kept.end_run()
    assert [oid for oid in "abc" if kept.find(oid)] == ["a", "c"], "the oldest is gone"
    kept.add("b", b"xxx")
    assert kept.find("a") == b"xx", "until the run ends"


@pytest.fixture
def rewound(work: Path, git: Git) -> Path:
    """Return a repository whose branch was rewound twice."""
    for text in ("one", "two"):
        git("commit", "-q", "--allow-empty", "-m", text, at=work)
        git("reset", "-q", "--hard", "HEAD~1", at=work)
    return work


@pytest.mark.parametrize(("limit", "value", "found"), [("MAX_ENTRIES", 10, 2), ("MAX_ENTRIES", 1, 1), ("_MAX_BYTES", 200, 1)])
def test_only_the_newest_part_of_a_log_is_read(
    rewound: Path, limit: str, value: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"gitsched.git.ref_log.{limit}", value)
    assert len(list(list_rewinds(Repository(str(rewound)), "main"))) == found


def test_a_log_with_a_time_that_cannot_be_is_read_without_it(rewound: Path) -> None:
    log = rewound / ".git/logs/refs/heads/main"
    lines = log.read_text().splitlines()
    log.write_text("\n".join(line.replace("> 17", "> 9999999999917") for line in lines[-1:]) + "\n")
    assert list(list_rewinds(Repository(str(rewound)), "main")) == []
    log.write_text("\n".join(line.replace("> 1", "> 99999999999 1") for line in lines[-1:]) + "\n")
    assert len(list(list_rewinds(Repository(str(rewound)), "main"))) == 1


@pytest.fixture
def damaged(work: Path, git: Git) -> tuple[Path, LostObject]:
    """Return a repository whose newest commit on branch `z` lacks a blob, and the error about it."""
    git("checkout", "-q", "-b", "z", at=work)
    (work / "new.txt").write_text("new\n")
    git("add", "-A", at=work)
    git("commit", "-qm", "new", at=work)
    blob = git("rev-parse", "HEAD:new.txt", at=work)
    git("checkout", "-q", "main", at=work)
    (work / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(LostObject) as lost:
        Repository(str(work)).blob(blob)
    return work, lost.value


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({}, "which moves it back to its newest complete commit"),
        ({"_MAX_COMMITS": 0}, "or delete it with"),
        ({"_MAX_BRANCHES": 1}, ""),
    ],
)
def test_the_search_for_a_branch_that_lost_objects_is_bounded(
    damaged: tuple[Path, LostObject], limits: dict[str, int], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit, the error names the object without the commands that repair the branch."""
    for name, value in limits.items():
        monkeypatch.setattr(f"gitsched.git.lost_objects.{name}", value)
    told = str(describe_loss(damaged[1]))
    assert "cannot be read" in told
    assert (text in told) if text else ("refs/heads/" not in told)
