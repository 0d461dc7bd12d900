"""Write blobs, trees and commits."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitsched.git import Repository
from gitsched.git.objects import _encode_index
from gitsched.git.refs import update_ref
from gitsched.git.trees import BLOB, apply_edits, check_path, hash_object
from gitsched.model.errors import Permanent
from gitsched.model.planned_files import EditedBlob, ExistingBlob, NewBlob, TextEdit
from tests.search_depth import count_examples

AT = datetime(2024, 5, 1, 10, tzinfo=UTC)
ADA = {"name": "Ada", "email": "ada@example.org", "time": AT}

NAMES = st.sampled_from(["a", "a.b", "a-b", "a0", "b", "ab", "é", ".gitattributes", "A"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


def without_clashes(paths: dict[str, bytes]) -> dict[str, bytes]:
    """The paths less those that need another path as their directory."""
    return {path: data for path, data in paths.items() if not any(other.startswith(path + "/") for other in paths)}


FILES = st.dictionaries(PATHS, st.binary(max_size=8), max_size=12).map(without_clashes)


def write_tree(git, at: Path, files: dict[str, bytes], index: Path) -> str:
    """The id that git itself gives to a tree of these files."""
    index.unlink(missing_ok=True)
    rows = [f"100644 {git('hash-object', '-w', '--stdin', at=at, data=data)} 0\t{path}\0" for path, data in sorted(files.items())]
    env = f"GIT_INDEX_FILE={index}"
    subprocess.run(["env", env, "git", "update-index", "-z", "--index-info"], cwd=at, input="".join(rows).encode(), check=True)
    return subprocess.run(["env", env, "git", "write-tree"], cwd=at, capture_output=True, check=True).stdout.decode().strip()


@settings(max_examples=count_examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(before=FILES, after=FILES)
def test_trees_are_those_that_git_writes(before, after, bare: Path, git, tmp_path: Path):
    repository = Repository(bare)
    old = repository.write_tree({path: NewBlob(data) for path, data in before.items()}, base=None, read=repository)
    assert old == write_tree(git, bare, before, tmp_path / "index")
    changes = {path: NewBlob(after[path]) if path in after else None for path in {*before, *after}}
    new = repository.write_tree(changes, base=old, read=repository)
    assert new == write_tree(git, bare, after, tmp_path / "index")
    expected = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    assert repository.changed_paths(old, new) == sorted(expected)
    assert {entry.path: repository.blob(entry.blob) for entry in Repository(bare).entries(new)} == after


def test_many_objects_become_one_pack_that_git_verifies(bare: Path, git):
    repository = Repository(bare)
    files = {f"d{i % 50}/f{i}": NewBlob(b"%d\n" % i * (i * 7 % 3000)) for i in range(400)}
    files |= {f"same{i}/x": NewBlob(b"x") for i in range(50)}
    tree = repository.write_tree(files, base=None, read=repository)
    commit = repository.commit_tree(tree, [], "All", **ADA)
    update_ref(repository, "refs/heads/out", commit, None)
    (pack,) = (bare / "objects/pack").glob("*.pack")
    git("verify-pack", str(pack.with_suffix(".idx")), at=bare)
    git("fsck", "--strict", "--full", "--no-dangling", at=bare)
    assert git("count-objects", at=bare).startswith("1 objects"), "only the commit is loose"
    assert {entry.path: NewBlob(repository.blob(entry.blob)) for entry in repository.entries(tree)} == files
    again = repository.write_tree(files, base=None, read=repository)
    assert again == tree
    assert list((bare / "objects/pack").glob("*.pack")) == [pack], "the same objects make the same pack"
    assert not list((bare / "objects/pack").glob("tmp_*"))


def test_a_pack_beyond_two_gigabytes_has_64_bit_offsets():
    places = sorted((bytes([i]) * 20, i, offset) for i, offset in enumerate((12, 1 << 31, (1 << 33) + 5)))
    index = _encode_index(places, b"p" * 20)
    near = index[8 + 1024 + 3 * 24 :][:12]
    assert near == bytes.fromhex("0000000c8000000080000001")
    assert index[8 + 1024 + 3 * 28 :][:16] == (1 << 31).to_bytes(8, "big") + ((1 << 33) + 5).to_bytes(8, "big")


@pytest.mark.parametrize("kind", ["few", "many"])
def test_a_full_disk_leaves_nothing_half_written(bare: Path, kind: str):
    count = 3 if kind == "few" else 300
    script = f"""
import resource, signal, sys
from gitsched.git import Repository
from gitsched.model.errors import Temporary
from gitsched.model.planned_files import NewBlob
import os, random
repository = Repository({str(bare)!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
files = {{f"f{{i}}": NewBlob(random.Random(i).randbytes(9000)) for i in range({count})}}
try:
    repository.write_tree(files, base=None, read=repository)
except Temporary as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", script], capture_output=True, text=True, check=True
    )  # -B: nor bytecode in part
    assert f"cannot write objects to {bare}" in done.stdout
    assert not list((bare / "objects/pack").iterdir())


def test_only_changed_trees_are_written(bare: Path, git):
    repository = Repository(bare)
    base = repository.write_tree({f"d{i}/e/f": NewBlob(b"%d" % i) for i in range(60)}, base=None, read=repository)
    before = int(git("count-objects", at=bare).split()[0])
    tree = repository.write_tree({"d7/e/f": NewBlob(b"new")}, base=base, read=repository)
    assert repository.changed_paths(base, tree) == ["d7/e/f"]
    assert int(git("count-objects", at=bare).split()[0]) == before + 4, "the blob and three trees"
    assert repository.write_tree({"d7/e/f": NewBlob(b"new"), "gone": None, "d7/e/f/g": None}, base=tree, read=repository) == tree


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        pytest.param({}, ["a/b", "a/c", "d"], id="nothing"),
        pytest.param({"a/b": None}, ["a/c", "d"], id="a-file"),
        pytest.param({"a/b": None, "a/c": None}, ["d"], id="a-directory-that-empties"),
        pytest.param({"a": None}, ["d"], id="a-directory"),
        pytest.param({"a": NewBlob(b"")}, ["a", "d"], id="a-file-instead-of-a-directory"),
        pytest.param({"a": NewBlob(b""), "a/b": None}, ["a", "d"], id="a-file-instead-of-a-directory-that-empties"),
        pytest.param({"d/e/f": NewBlob(b"")}, ["a/b", "a/c", "d/e/f"], id="a-directory-instead-of-a-file"),
        pytest.param({"a": None, "a/n": NewBlob(b"")}, ["a/n", "d"], id="a-directory-created-again"),
        pytest.param({"d/x": None}, ["a/b", "a/c", "d"], id="nothing-below-a-file"),
        pytest.param({"x/y/z": None}, ["a/b", "a/c", "d"], id="nothing-below-nothing"),
        pytest.param({"a": None, "d": None}, [], id="everything"),
    ],
)
def test_paths_are_set_and_removed(bare: Path, git, changes, paths):
    repository = Repository(bare)
    base = repository.write_tree({path: NewBlob(b"old") for path in ("a/b", "a/c", "d")}, base=None, read=repository)
    tree = repository.write_tree(changes, base=base, read=repository)
    assert [entry.path for entry in repository.entries(tree)] == paths
    assert git("ls-tree", "-rd", tree, at=bare).count("\n") < 3
    assert paths or tree == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_entries_of_other_writers_are_kept(work: Path, git):
    (work / "apps/link").symlink_to("x")
    (work / "apps/run").write_text("#!")
    (work / "apps/run").chmod(0o755)
    (Path(str(work) + "/apps/").joinpath("odd")).write_text("")
    git("add", ".", at=work)
    head = git("rev-parse", "HEAD", at=work)
    git("update-index", "--add", "--cacheinfo", f"160000,{head},apps/sub", at=work)
    base = git("write-tree", at=work)
    repository = Repository(work)
    tree = repository.write_tree({"apps/new": NewBlob(b"n")}, base=base, read=repository)
    assert repository.changed_paths(base, tree) == ["apps/new"]


def test_kept_and_edited_files_come_from_the_source_repository(work: Path, bare: Path, git):
    source, output = Repository(work), Repository(bare)
    (work / "crlf.yaml").write_bytes("# grün 🌍\r\nreplicas: 3\r\nend: 1\r\n".encode())
    blob = git("hash-object", "-w", "crlf.yaml", at=work)
    text = source.blob(blob).decode()
    start = text.index("3")
    edit = EditedBlob(blob, (TextEdit(0, 0, "#!\n"), TextEdit(start, start + 1, "12")))
    tree = output.write_tree({"kept": ExistingBlob(blob), "x/edited": edit, "y/edited": edit}, base=None, read=source)
    assert output.blob(output.find_entry(tree, "kept")[0]) == source.blob(blob)
    assert output.find_entry(tree, "kept")[0] == blob
    assert output.blob(output.find_entry(tree, "x/edited")[0]) == "#!\n# grün 🌍\r\nreplicas: 12\r\nend: 1\r\n".encode()
    assert output.list_directory(tree, "x") == output.list_directory(tree, "y")
    git("fsck", "--strict", at=bare)


def test_an_edit_is_computed_once_unless_its_result_was_pruned(work: Path, git):
    repository = Repository(work)
    blob = git("rev-parse", "HEAD:readme", at=work)
    edit = EditedBlob(blob, (TextEdit(0, 5, "HELLO"),))
    tree = repository.write_tree({"a": edit}, base=None, read=repository)
    (work / ".git/objects" / blob[:2] / blob[2:]).unlink()
    fresh = repository.write_tree({"b": edit}, base=tree, read=repository)
    assert repository.find_entry(fresh, "b") == repository.find_entry(tree, "a"), "the source is not read again"
    made = repository.find_entry(tree, "a")[0]
    (work / ".git/objects" / made[:2] / made[2:]).unlink()
    with pytest.raises(Permanent, match=blob):
        Repository(work).write_tree({"c": edit}, base=None, read=Repository(work))
    with pytest.raises(Permanent, match=blob):
        repository.write_tree({"c": edit}, base=None, read=repository)


@pytest.mark.parametrize("spans", [(TextEdit(0, 9, ""),), (TextEdit(2, 1, ""),), (TextEdit(0, 3, ""), TextEdit(2, 4, ""))])
def test_invalid_spans_are_a_value_error(spans):
    with pytest.raises(ValueError, match="span"):
        apply_edits(b"hello", spans)


UNSAFE = ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\0b", "a\\..\\b", "\udcff", "/".join("a" * 200)]
UNSAFE_FOR_GIT = [
    ".git",
    "a/.git/b",
    ".GIT",
    ".gitmodules",
    ".Git",
    ".git ",
    ".gitattributes2",
    ".GITATTRIBUTES",
    "GIT~1",
    "a\\.git\\x",
    ".g\u200cit",
]


@pytest.mark.parametrize("path", [*UNSAFE, *UNSAFE_FOR_GIT])
def test_unsafe_paths_are_a_value_error(path: str, bare: Path):
    with pytest.raises(ValueError):
        check_path(path)
    with pytest.raises(ValueError):
        Repository(bare).write_tree({path: NewBlob(b"")}, base=None, read=Repository(bare))


@pytest.mark.parametrize("path", [".gitattributes", "a/.gitattributes", "a.git", "...", "a/b.c/_d", ".sourceignore", "é/🌍", "git"])
def test_safe_paths_are_accepted(path: str):
    assert b"/".join(check_path(path)).decode() == path


def test_a_path_cannot_be_file_and_directory_at_once(bare: Path):
    for changes in ({"a": NewBlob(b""), "a/b": NewBlob(b"")}, {"a/b": NewBlob(b""), "a": NewBlob(b"")}):
        with pytest.raises(ValueError, match="both"):
            Repository(bare).write_tree(changes, base=None, read=Repository(bare))


def test_the_same_commit_has_the_same_id_in_any_repository(work: Path, bare: Path, git):
    ids = set()
    for path in (work, bare):
        repository = Repository(path)
        tree = repository.write_tree({"a": NewBlob(b"a")}, base=None, read=repository)
        first = repository.commit_tree(tree, [], "One", **ADA)
        ids.add(repository.commit_tree(tree, [first], "Two\n\nbody ü", **ADA))
        git("fsck", "--strict", at=path)
    (oid,) = ids
    commit = repository.commit(oid)
    assert (commit.tree, commit.parents, commit.time, commit.message) == (tree, (first,), AT, "Two\n\nbody ü\n")
    assert (commit.name, commit.email) == ("Ada", "ada@example.org")
    env = {"GIT_AUTHOR_DATE": "1714557600 +0000", "GIT_COMMITTER_DATE": "1714557600 +0000"}
    by_git = subprocess.run(
        ["env", *(f"{k}={v}" for k, v in env.items()), "git", "commit-tree", tree, "-p", first, "-m", "Two\n\nbody ü"],
        cwd=bare,
        capture_output=True,
        check=True,
    )
    assert by_git.stdout.decode().strip() == oid


def test_an_identity_cannot_forge_a_header(bare: Path, git):
    repository = Repository(bare)
    tree = repository.write_tree({}, base=None, read=repository)
    oid = repository.commit_tree(tree, [], "M", name="A\ncommitter B <b>", email="a>\n<b", time=AT)
    assert git("log", "-1", "--format=%an|%ae|%cn", oid, at=bare) == "A committer B b|a b|A committer B b"
    with pytest.raises(ValueError, match="name"):
        repository.commit_tree(tree, [], "M", name="<>", email="a", time=AT)
    with pytest.raises(ValueError, match="NUL"):
        repository.commit_tree(tree, [], "M\0", name="A", email="a", time=AT)


def test_object_ids_equal_those_of_git(bare: Path, git):
    assert hash_object(BLOB, b"x\r\n\0").hex() == git("hash-object", "--stdin", at=bare, data=b"x\r\n\0")
