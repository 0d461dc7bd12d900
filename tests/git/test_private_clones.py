"""Private clones: how git contacts the remote from them, and what makes gitsched fetch one again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitsched.git import OutputRepository, open_output, open_source
from gitsched.git.failures import CorruptRepository
from gitsched.git.private_clone import PrivateClone
from gitsched.model.errors import Permanent
from gitsched.model.planned_files import NewBlob

from .conftest import Git, Server

ADA = {"name": "Ada", "email": "ada@example.org", "time": datetime(2024, 5, 1, tzinfo=UTC)}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def origin(work: Path, bare: Path, git: Git) -> Path:
    git("push", "-q", str(bare), "main", at=work)
    return bare


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write the configuration of the user."""

    def write(text: str) -> None:
        (tmp_path / "gitconfig").write_text(text)
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))

    return write


def read(url: str, cache: Path) -> str:
    source = open_source(url, cache=cache)
    source.fetch(None)
    return source.resolve_branch(None)


def make(output: OutputRepository, text: str, *parents: str) -> str:
    repository = output.repository
    tree = repository.write_tree({"f": NewBlob(text.encode())}, base=None, read=repository)
    return repository.commit_tree(tree, parents, text, **ADA)


def test_the_user_says_how_git_authenticates(
    origin: Path, server: Server, cache: Path, configure: Callable[[str], None], tmp_path: Path, git: Git
) -> None:
    url = server.url("auth")
    with pytest.raises(Permanent, match="could not read Username"):
        read(url, cache)
    (tmp_path / "more").write_text('[credential]\n\thelper = "!f() { echo username=ada; echo password=secret; }; f"\n')
    configure(f'[include]\n\tpath = {tmp_path / "more"}\n[credential]\n\thelper = "!f() {{ echo username=bob; }}; f"\n\thelper =\n')
    with pytest.raises(Permanent, match="could not read Username"):
        read(url, cache)  # an empty helper removes the earlier ones
    configure(f'[includeIf "gitdir:{cache}/"]\n\tpath = {tmp_path / "more"}\n')
    head = read(url, cache)
    assert head == git("rev-parse", "main", at=origin)


@pytest.mark.parametrize("kind", ["insteadOf", "pushInsteadOf"])
def test_the_user_says_where_a_url_leads(
    origin: Path, cache: Path, configure: Callable[[str], None], tmp_path: Path, git: Git, kind: str
) -> None:
    """The longest prefix counts, and one for pushes before others."""
    other = git("init", "-q", "--bare", "-b", "main", "other.git") or tmp_path / "other.git"
    rules = {"/no/where/": "https://example.org/", f"{origin.parent}/bare.": "https://example.org/team/"}
    text = "".join(f'[url "{base}"]\n\tinsteadOf = {prefix}\n' for base, prefix in rules.items())
    pushed = origin if kind == "insteadOf" else other
    configure(text + (f'[url "{other.parent}/other."]\n\tpushInsteadOf = https://example.org/team/\n' if pushed is other else ""))
    source = open_source("https://example.org/team/git", cache=cache)
    source.fetch(None)
    assert source.resolve_branch(None) == git("rev-parse", "main", at=origin)
    output = open_output(source, branch="placements", location=None, push=None, cache=cache)
    assert output.fetch() is None
    commit = make(output, "a")
    if pushed is other:  # what is pushed is then not where it is read from
        assert output.publish(commit, None, None)
    else:
        output.publish(commit, None, None)
        assert output.fetch() == commit
    assert git("rev-parse", "placements", at=pushed) == commit


@pytest.mark.parametrize("variable", ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "HOME"])
def test_the_configuration_of_the_user_applies_to_a_server_on_this_machine(
    origin: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """It is not for private clones: the repository that is fetched from or pushed to is the user's own."""
    home = tmp_path / "the user's"
    home.mkdir()
    config = home / ".gitconfig"
    config.write_text("[uploadpack]\n\thideRefs = refs/heads/main\n")
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    monkeypatch.setenv(variable, str(home if variable == "HOME" else config))
    with pytest.raises(Permanent, match="has no refs/heads/main"):
        read(f"file://{origin}", cache)


def test_a_clone_in_which_a_push_fails_is_fetched_again(origin: Path, cache: Path, git: Git) -> None:
    def open_remote() -> OutputRepository:
        source = open_source(f"file://{origin}", cache=cache)
        source.fetch(None)
        output = open_output(source, branch="placements", location=None, push=None, cache=cache)
        assert output.fetch() is None
        return output

    output = open_remote()
    commit = make(output, "a")
    repository = output.repository
    blob = Path(repository.path, "objects", *split(repository.find_entry(repository.commit(commit).tree, "f")[0]))
    blob.chmod(0o644)
    blob.write_bytes(b"\0" * 20)
    with pytest.raises(CorruptRepository, match="is damaged and will be made anew"):
        output.publish(commit, None, None)
    output = open_remote()
    assert make(output, "a") == commit
    output.publish(commit, None, None)
    assert git("rev-parse", "placements", at=origin) == commit


def test_a_branch_of_the_remote_may_become_a_directory_of_branches(origin: Path, cache: Path, git: Git) -> None:
    git("branch", "dev", "main", at=origin)
    open_source(f"file://{origin}", cache=cache).fetch("dev")
    git("branch", "-m", "dev", "dev/one", at=origin)
    source = open_source(f"file://{origin}", cache=cache)
    source.fetch("dev/one")
    assert source.resolve_branch("dev/one") == git("rev-parse", "main", at=origin)


def test_a_configuration_that_git_cannot_read_is_an_error(origin: Path, cache: Path, configure: Callable[[str], None]) -> None:
    configure("[credential\n")
    with pytest.raises(Permanent, match="git cannot read its configuration: fatal: bad config line 1"):
        read(f"file://{origin}", cache)


def test_objects_that_only_the_state_of_a_plan_refers_to_may_be_elsewhere(origin: Path, cache: Path) -> None:
    clone = PrivateClone(f"file://{origin}", cache)
    repository = clone.repository
    tree = repository.write_tree({"f": NewBlob(b"elsewhere")}, base=None, read=repository)
    commit = repository.commit_tree(tree, [], "state", **ADA)
    Path(repository.path, "objects", *split(repository.find_entry(tree, "f")[0])).unlink()
    repository.set_ref("refs/gitsched/state/placements/plan", commit)
    assert repository.private is not None
    assert not repository.private.find_damage()
    repository.set_ref("refs/heads/placements", commit)
    assert repository.private.find_damage()
    assert not clone.repository.has(commit), "it has been made anew"


def split(oid: str) -> tuple[str, str]:
    return oid[:2], oid[2:]


def test_mistakes_in_objects_that_the_user_accepts_are_no_damage(
    origin: Path, cache: Path, configure: Callable[[str], None], git: Git
) -> None:
    blob = git("hash-object", "-w", "--stdin", at=origin, data="x")
    row = b"100644 a\0" + bytes.fromhex(blob)
    tree = git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", at=origin, data=row + row)
    git("update-ref", "refs/heads/main", git("commit-tree", "-m", "twice", tree, at=origin), at=origin)
    with pytest.raises(Permanent, match="duplicateEntries"):
        read(f"file://{origin}", cache)
    configure('[fetch "fsck"]\n\tduplicateEntries = ignore\n')
    head = read(f"file://{origin}", cache)
    clone = PrivateClone(f"file://{origin}", cache).repository
    assert clone.has_commit(head)
    assert clone.private is not None
    assert not clone.private.find_damage()
    configure("")
    assert clone.private.find_damage(), "as for a clone with such an object that nobody has accepted"
