"""Read commits, trees and blobs."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitsched.git import Repository, TreeEntry, objects, trees
from gitsched.git.trees import MAX_DEPTH, TreeReader
from gitsched.model.errors import Permanent

EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def tree_of(git, at: Path, *rows: tuple[bytes, bytes, str]) -> str:
    """A raw tree object, unchecked, from (mode, name, id) rows."""
    data = b"".join(b"%b %b\0%b" % (mode, name, bytes.fromhex(oid)) for mode, name, oid in rows)
    return git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", at=at, data=data)


def empty_blob(git, at: Path) -> str:
    return git("hash-object", "-w", "--stdin", at=at, data="")


def test_a_repository_is_found_from_a_directory_inside_it_and_from_a_bare_one(work: Path, bare: Path):
    assert Repository(work / "apps").path == str(work / ".git")
    assert Repository(bare).path == str(bare)
    assert Repository(bare).is_bare
    assert not Repository(str(work)).is_bare


def test_a_missing_repository_is_reported_with_its_path(tmp_path: Path):
    with pytest.raises(Permanent, match=r"home is not in a Git repository"):
        Repository(tmp_path / "home")
    with pytest.raises(Permanent, match="no file or directory"):
        Repository(tmp_path / "absent")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a repository away")
def test_a_repository_of_another_user_is_opened_only_if_git_trusts_it(work: Path, git, monkeypatch, tmp_path: Path):
    for path in (work, *work.rglob("*")):
        os.chown(path, 12345, 12345)
    with pytest.raises(Permanent, match=r"safe\.directory"):
        Repository(work)
    config = tmp_path / "trusting"
    config.write_text(f"[safe]\n\tdirectory = {work}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    assert Repository(work).head_branch() == "main"


def test_revisions_resolve_to_commits(work: Path, git):
    oid = git("rev-parse", "HEAD", at=work)
    git("tag", "-a", "-m", "one", "v1", at=work)
    repository = Repository(work)
    assert {repository.resolve(name) for name in ("main", "refs/heads/main", "v1", "HEAD", oid, oid[:8])} == {oid}
    for name in ("nothing", "", "f" * 40, "main:readme", git("rev-parse", "HEAD:readme", at=work), "..", "-x", "a b\n"):
        assert repository.resolve(name) is None


def test_an_ambiguous_abbreviation_is_rejected(bare: Path):
    repository = Repository(bare)
    tree = repository.write_tree({}, base=None, read=repository)
    seen: set[str] = set()
    for second in range(2000):
        commit_time = datetime.fromtimestamp(second, UTC)
        oid = repository.commit_tree(tree, [], "m", name="A", email="a", time=commit_time)
        if oid[:4] in seen:
            break
        seen.add(oid[:4])
    with pytest.raises(Permanent, match="more than one"):
        repository.resolve(oid[:4])
    assert repository.resolve(oid) == oid


def test_an_object_missing_in_a_partial_clone_is_explained(work: Path, bare: Path, git, tmp_path: Path):
    git("config", "uploadpack.allowFilter", "true", at=bare)
    git("push", "-q", str(bare), "main", at=work)
    git("clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{bare}", "partial")
    repository = Repository(tmp_path / "partial")
    (entry, _) = repository.entries(repository.commit(repository.resolve("HEAD")).tree)
    with pytest.raises(Permanent, match="partial clone"):
        repository.blob(entry.blob)


def test_the_branch_of_head(work: Path, bare: Path, git):
    assert Repository(work).head_branch() == "main"
    assert Repository(bare).head_branch() == "main", "not born yet"
    git("checkout", "-q", "--detach", at=work)
    assert Repository(work).head_branch() is None


def test_a_commit_has_its_tree_parents_time_subject_and_trailers(work: Path, git):
    repository = Repository(work)
    first = repository.resolve("HEAD")
    git("commit", "-q", "--allow-empty", "-m", "Two\nlines\n\nBody: not last\n\nA: 1\nB:  2\n  more", at=work)
    commit = repository.commit(repository.resolve("HEAD"))
    assert commit.parents == (first,)
    assert commit.tree == git("rev-parse", "HEAD^{tree}", at=work)
    assert commit.time == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert commit.subject == "Two lines"
    assert commit.trailers == (("A", "1"), ("B", "2 more"))
    assert repository.commit(first).trailers == (("Reviewed-by", "Bob"),)


@pytest.mark.parametrize(
    "message",
    [
        "S",
        "S: no trailer",
        "S\n\nK: v",
        "S\n\nK: v\nplain",
        "S\n\nplain\nSigned-off-by: A <a@b>",
        "S\n\nplain\nplain\nplain\nplain\nSigned-off-by: A <a@b>",
        "S\n\nK: v\n\nL: w\n",
        "S\n\nK: v\n\nend.",
        "S\n\nK : v",
        "S\n\nno key: v",
        "S\n\nK:",
    ],
)
def test_trailers_are_those_that_git_sees(work: Path, git, message: str):
    git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", message, at=work)
    seen = git("log", "-1", "--format=%(trailers:only,unfold)", at=work).splitlines()
    repository = Repository(work)
    assert [f"{key}: {value}".strip() for key, value in repository.commit(repository.resolve("HEAD")).trailers] == seen


@pytest.mark.parametrize("stamp", ["99999999999999 +0000", "-5 +0000", "", "x y"])
def test_a_commit_with_an_impossible_date_is_readable(work: Path, git, stamp: str):
    tree = git("rev-parse", "HEAD^{tree}", at=work)
    data = f"tree {tree}\nauthor A <a> {stamp}\ncommitter A <a> {stamp}\nencoding no-such\n\nb\xff\n"
    oid = git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", at=work, data=data)
    assert Repository(work).commit(oid).time.tzinfo is UTC


def test_listings_show_files_symlinks_and_submodules_but_follow_none(work: Path, git):
    (work / "link").symlink_to("/etc/passwd")
    (work / "apps/loop").symlink_to("../apps")
    (work / "run.sh").write_text("#!")
    (work / "run.sh").chmod(0o755)
    git("add", ".", at=work)
    head = git("rev-parse", "HEAD", at=work)
    git("update-index", "--add", "--cacheinfo", f"160000,{head},sub", at=work)
    tree = git("write-tree", at=work)
    repository = Repository(work)
    modes = {entry.path: entry.mode for entry in repository.entries(tree)}
    assert modes == {
        "apps/loop": 0o120000,
        "apps/web.yaml": 0o100644,
        "link": 0o120000,
        "readme": 0o100644,
        "run.sh": 0o100755,
        "sub": 0o160000,
    }
    assert repository.blob(repository.find_entry(tree, "link")[0]) == b"/etc/passwd"
    assert repository.find_entry(tree, "apps/loop/web.yaml") is None
    listed = git("ls-tree", "-r", "--format=%(path) %(objectname)", tree, at=work).splitlines()
    assert listed == [f"{entry.path} {entry.blob}" for entry in repository.entries(tree)]


def test_a_subdirectory_of_a_tree_is_listed(work: Path):
    repository = Repository(work)
    tree = repository.commit(repository.resolve("HEAD")).tree
    web = repository.find_entry(tree, "apps/web.yaml")
    assert repository.entries(tree, "apps") == repository.entries(tree, "apps/") == [TreeEntry("apps/web.yaml", *web)]
    assert repository.entries(tree, "apps/web.yaml") == [TreeEntry("apps/web.yaml", *web)]
    assert repository.entries(tree, "nowhere") == repository.entries(tree, "readme/x") == []
    assert repository.list_directory(tree, "apps") == {"web.yaml": web}
    assert set(repository.list_directory(tree, "")) == {"apps", "readme"}
    assert repository.list_directory(tree, "nowhere") == repository.list_directory(tree, "readme") == {}
    assert repository.find_entry(tree, "apps")[1] == 0o040000
    assert repository.blob_size(web[0]) == len(b"kind: Deployment\n")


def test_unsafe_names_are_listed_and_flagged(work: Path, git):
    blob = empty_blob(git, work)
    inner = tree_of(git, work, (b"100644", b"x", blob))
    tree = tree_of(
        git,
        work,
        (b"40000", b"..", inner),
        (b"100644", b".GIT", blob),
        (b"100644", b"a/b", blob),
        (b"100644", b"bad\xff.yaml", blob),
        (b"100644", "gr\u00fcn.yaml".encode(), blob),
        (b"100644", b"twice", blob),
        (b"100644", b"twice", blob),
    )
    assert [(entry.path, entry.unsafe) for entry in Repository(work).entries(tree)] == [
        ("../x", True),
        (".GIT", True),
        ("a/b", True),
        ("bad\\xff.yaml", True),
        ("gr\u00fcn.yaml", False),
        ("twice", False),
        ("twice", True),
    ]


def test_directories_nested_too_deep_are_one_unsafe_entry(work: Path, git):
    tree = tree_of(git, work, (b"100644", b"deep", empty_blob(git, work)))
    for _ in range(MAX_DEPTH + 50):
        tree = tree_of(git, work, (b"40000", b"d", tree))
    (entry,) = Repository(work).entries(tree)
    assert entry.unsafe
    assert entry.mode == 0o040000
    assert Repository(work).changed_paths(None, tree) == [entry.path]


def test_a_tree_that_expands_to_ten_billion_files_is_rejected(work: Path, git, monkeypatch):
    monkeypatch.setattr(trees.EntryLimit.__init__, "__defaults__", (5_000,))
    oid, mode = empty_blob(git, work), b"100644"
    for _ in range(10):
        oid = tree_of(git, work, *((mode, b"%d" % i, oid) for i in range(10)))
        mode = b"40000"
    repository = Repository(work)
    with pytest.raises(Permanent, match="more than 5,000 entries"):
        repository.entries(oid, limit=5_000)
    with pytest.raises(Permanent, match="more than 5,000 entries"):
        repository.changed_paths(oid, None)


@pytest.mark.parametrize("data", [b"100644 a", b"100644 a\0short", b"junk", b"100644 \0" + b"x" * 20])
def test_a_malformed_tree_is_reported_with_its_id(work: Path, git, data: bytes):
    oid = git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", at=work, data=data)
    with pytest.raises(Permanent, match=oid):
        Repository(work).entries(oid)


def test_an_object_missing_or_of_another_type_is_reported(work: Path, git):
    repository = Repository(work)
    blob = git("rev-parse", "HEAD:readme", at=work)
    for read in (repository.commit, repository.entries):
        with pytest.raises(Permanent, match=blob):
            read(blob)
    for read in (repository.blob, repository.blob_size):
        with pytest.raises(Permanent, match="missing"):
            read("1" * 40)


def test_a_damaged_object_is_reported(work: Path, git):
    blob = git("rev-parse", "HEAD:readme", at=work)
    path = work / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"garbage")
    with pytest.raises(Permanent, match=blob):
        Repository(work).blob(blob)


def test_changes_between_trees_are_paths(work: Path, git):
    repository = Repository(work)
    old = repository.commit(repository.resolve("HEAD")).tree
    (work / "apps/web.yaml").write_text("kind: Job\n")
    (work / "readme").unlink()
    (work / "readme").mkdir()
    (work / "readme/inner").write_text("")
    (work / "b").mkdir()
    (work / "b/c").write_text("")
    git("add", "-A", ".", at=work)
    new = git("write-tree", at=work)
    expected = git("diff-tree", "-r", "--no-renames", "--name-only", old, new, at=work).splitlines()
    assert repository.changed_paths(old, new) == repository.changed_paths(new, old) == sorted(expected)
    assert repository.changed_paths(new, new) == []
    assert repository.changed_paths(None, old) == ["apps/web.yaml", "readme"]


def test_a_ref_moved_by_another_process_is_seen_by_an_open_repository(work: Path, git):
    repository = Repository(work)
    before = repository.resolve("main")
    git("commit", "-q", "--allow-empty", "-m", "next", at=work)
    git("gc", "-q", at=work)
    after = repository.resolve("main")
    assert after == git("rev-parse", "HEAD", at=work) != before
    assert repository.commit(after).parents == (before,)


@pytest.mark.parametrize("encoding", ["undefined", "idna", "punycode", "unicode_escape", "hex", "rot13", "x" * 1000, "\x01"])
def test_a_commit_with_an_unknown_encoding_is_read_as_utf_8(encoding: str):
    raw = f"tree {'0' * 40}\ncommitter A <a@b> 1 +0000\nencoding {encoding}\n\nfür\n\n{'a-' * 300_000}\n\nA: b\n"
    commit = objects.parse_commit("0" * 40, raw.encode())
    assert (commit.subject, commit.trailers) == ("für", (("A", "b"),))


def test_a_trailer_of_many_lines_is_joined_in_linear_time():
    (trailer,) = objects.parse_trailers("Subject\n\nA: b\n" + " c\n" * 1_000_000)
    assert trailer == ("A", "b" + " c" * 1_000_000)


@pytest.mark.parametrize("below", ["", "refs"])
def test_a_repository_committed_in_another_is_not_opened(tmp_path: Path, git, below: str):
    """Its configuration could execute programs."""
    git("init", "-q", "-b", "main", str(tmp_path), at=tmp_path)
    inner = tmp_path / "apps" / "inner"
    git("init", "-q", "--bare", str(inner), at=tmp_path)
    assert Repository(inner).is_bare, "a repository that is not committed may be opened"
    for directory in ("objects", "refs"):
        (inner / directory / "kept").touch()
    git("add", "-A", "-f", at=tmp_path)
    git("commit", "-q", "-m", "Everything", at=tmp_path)
    with pytest.raises(Permanent, match=r"apps/inner is a bare repository committed in .*select a repository with -C"):
        Repository(inner / below)
    assert Repository(tmp_path / "apps").root == str(tmp_path)


def test_listings_that_the_last_runs_did_not_need_are_removed() -> None:
    trees: dict[str, bytes] = {}

    def list_tree(count: int, number: int) -> str:
        oid = f"{count:020x}{number:020x}"
        trees[oid] = b"".join(b"100644 %d\0%s" % (1_000_000 + entry, bytes.fromhex(f"{number:040x}")) for entry in range(count))
        assert len(reader.entries(oid)) == count
        return oid

    reads: list[str] = []
    reader = TreeReader(lambda oid: reads.append(oid) or trees[oid])  # type: ignore[func-returns-value]
    for number in range(200):
        list_tree(50, number)
        reader.end_run()
    assert 4 <= len(reader._listing_cache) < 50
    assert 4 <= len(reader._tree_cache) < 50
    large = list_tree(5_000, 1)
    reader.end_run()
    for number in range(200):
        list_tree(50, 1_000 + number)
        reader.end_run()
    reads.clear()
    reader.entries(large)
    assert not reads, "a large tree stays while runs add little"
