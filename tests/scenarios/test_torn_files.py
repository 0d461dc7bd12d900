"""After a crash of the machine, files that were written last can be empty or cut off. Those of the output branch are written again."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.git import torn_files
from gitsched.git.repository import Repository
from gitsched.model.errors import GitschedError
from gitsched.reconcile import reconciler

from .conftest import UNGUARDED, Fleet, deployment

HALVES = {"empty": 0.0, "cut off": 0.5}


def find_object(fleet: Fleet, revision: str) -> Path:
    oid = fleet.git("rev-parse", revision)
    return fleet.path / ".git/objects" / oid[:2] / oid[2:]


def tear(path: Path, kept: float = 0.0) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * kept)])


@pytest.fixture
def twice(pair: Fleet) -> Fleet:
    """A fleet with two commits on the output branch, and without what a cache knows of them."""
    pair.commit({"gitsched.yaml": UNGUARDED})
    pair.reconcile()
    pair.commit({f"apps/app-{number}.yaml": deployment(f"app-{number}", number + 3) for number in range(2)}, hour=1)
    pair.reconcile(1)
    pair.cache = pair.cache.with_name("other")
    return pair


def list_restored(run) -> list[str]:
    return [finding.message for finding in run.plan.findings if finding.code == "output-restored"]


@pytest.mark.parametrize("kept", HALVES.values(), ids=HALVES)
@pytest.mark.parametrize("torn", ["placements", "placements^{tree}", "placements:gitsched.json"])
def test_a_damaged_object_of_the_output_branch_is_written_again(twice: Fleet, torn: str, kept: float) -> None:
    complete, expected = twice.git("rev-parse", "placements^"), twice.files()
    path = find_object(twice, torn)
    tear(path, kept)
    with pytest.raises(GitschedError, match=r"its file is damaged: .*; .* `gitsched reconcile` writes it again"):
        twice.preview(2)
    (message,) = list_restored(twice.reconcile(2))
    assert "has damaged objects at commit" in message
    assert f"it continues from {complete[:10]}" in message
    assert twice.files().keys() == expected.keys()
    twice.git("fsck", "--strict", "--no-dangling")
    kept_files = list((twice.path / ".git" / torn_files.TORN).iterdir())
    assert [file.name for file in kept_files] == [path.parent.name + path.name]
    assert list_restored(twice.reconcile(3)) == []


@pytest.mark.parametrize("content", ["", "\0" * 41], ids=["empty", "zeros"])
@pytest.mark.parametrize("logged", [True, False], ids=["log", "notes"])
def test_a_damaged_file_of_the_output_branch_is_written_again(twice: Fleet, content: str, logged: bool) -> None:
    head, expected = twice.head, twice.files()
    ref = twice.path / ".git/refs/heads/placements"
    ref.write_text(content)
    if not logged:
        (twice.path / ".git/logs/refs/heads/placements").unlink()
    with pytest.raises(GitschedError, match="is damaged and names no commit: `gitsched reconcile` lets"):
        twice.preview(2)
    run = twice.reconcile(2)
    (message,) = list_restored(run)
    assert f"it continues from {head[:10]}" in message
    assert (twice.head, twice.files()) == (head, expected), "nothing else has changed"


def test_a_branch_of_which_no_commit_is_known_begins_again(twice: Fleet) -> None:
    for name in ("refs/heads/placements", "refs/notes/hydrator.metadata"):
        (twice.path / ".git" / name).write_text("")
    (twice.path / ".git/logs/refs/heads/placements").unlink()
    (message,) = list_restored(twice.reconcile(2))
    assert "it begins anew" in message
    assert twice.git("rev-list", "--count", "placements") == "1"
    assert twice.git("notes", "--ref", "hydrator.metadata", "list", twice.head)


def test_an_object_that_the_source_needs_is_left_alone(twice: Fleet) -> None:
    """A manifest that is placed as it is has the blob of the source, which only another clone of the source has, too."""
    for revision in ("main", "main^{tree}", "main:apps/app-1.yaml"):
        path = find_object(twice, revision)
        content = path.read_bytes()
        tear(path, 0.5)
        before = twice.git("rev-parse", "placements")
        with pytest.raises(GitschedError, match="its file is damaged"):
            twice.reconcile(2)
        assert path.stat().st_size == len(content) // 2
        assert twice.git("rev-parse", "placements") == before
        path.write_bytes(content)
    assert not (twice.path / ".git" / torn_files.TORN).exists()


def test_only_so_many_objects_are_checked(twice: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    tear(find_object(twice, "placements"))
    repository = Repository(str(twice.path))
    assert len(torn_files.list_torn_objects(repository)) == 1
    monkeypatch.setattr(torn_files, "MAX_OBJECTS", 0)
    assert torn_files.list_torn_objects(repository) == {}
    with pytest.raises(GitschedError, match="its file is damaged"):
        twice.reconcile(2)


def test_a_ref_that_another_process_has_written_meanwhile_stays(twice: Fleet) -> None:
    repository = Repository(str(twice.path))
    head, ref = twice.head, "refs/heads/placements"
    torn_files.replace_torn_ref(repository, ref, None)
    assert twice.head == head
    lock = twice.path / f".git/{ref}.lock"
    lock.touch()
    (twice.path / ".git" / ref).write_text("")
    with pytest.raises(GitschedError, match="remove that file if no other Git process is running"):
        twice.reconcile(2)
    assert lock.exists()


def test_only_so_many_damages_are_repaired_by_one_run(twice: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    (twice.path / ".git/refs/heads/placements").write_text("")
    monkeypatch.setattr(reconciler, "MAX_RESTORATIONS", 0)
    with pytest.raises(GitschedError, match="is damaged and names no commit"):
        twice.reconcile(2)
    monkeypatch.undo()
    assert len(list_restored(twice.reconcile(2))) == 1
