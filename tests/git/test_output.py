"""Commit the output tree and move the output branch."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitsched.git import OutputRepository, open_output, open_source
from gitsched.git.notes import read_note
from gitsched.git.refs import update_ref
from gitsched.model.errors import Conflict, Permanent, Temporary
from gitsched.model.planned_files import NewBlob

ADA = {"name": "Ada", "email": "ada@example.org", "time": datetime(2024, 5, 1, tzinfo=UTC)}
REF = "refs/heads/placements"


def make(output: OutputRepository, text: str, *parents: str) -> str:
    tree = output.repository.write_tree({"f": NewBlob(text.encode())}, base=None, read=output.repository)
    return output.repository.commit_tree(tree, parents, text, **ADA)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def output(request: pytest.FixtureRequest, work: Path, bare: Path, git, cache: Path) -> OutputRepository:
    """The output in each kind of repository, by name; it is always pushed to `bare`."""
    url = f"file://{bare}"
    git("push", "-q", url, "main", at=work)
    git("remote", "add", "origin", url, at=work)
    source = open_source(url if request.param == "url-source" else str(work), cache=cache)
    source.fetch(None)
    source.resolve_branch(None)
    location, push = {
        "same-repository": (None, None),
        "other-path": (str(bare), None),
        "other-url": (url, None),
        "url-source": (None, None),
        "url-source-named": (url, None),
        "push-to-remote": (None, "origin"),
        "push-to-url": (None, url),
    }[request.param]
    return open_output(source, branch="placements", location=location, push=push, cache=cache)


LOCAL = ["same-repository", "other-path"]
PUSHED = ["other-url", "url-source", "push-to-remote", "push-to-url"]


@pytest.mark.parametrize("output", [*LOCAL, *PUSHED], indirect=True)
def test_a_branch_is_created_updated_and_has_notes(output: OutputRepository, work: Path, bare: Path, git, request):
    assert output.branch == "placements"
    assert output.fetch() is None
    a = make(output, "a")
    output.publish(a, None, '{"drySha": "1"}')
    assert output.fetch() == a
    b = make(output, "b", a)
    output.publish(b, a, '{"drySha": "2"}')
    output.publish(b, b, '{"drySha": "3"}')
    assert output.fetch() == b
    at = work if "same-repository" in request.node.name else bare
    assert git("rev-parse", REF, at=at) == b
    assert git("notes", "--ref=hydrator.metadata", "show", a, at=at) == '{"drySha": "1"}'
    assert git("notes", "--ref=hydrator.metadata", "show", b, at=at) == '{"drySha": "3"}'
    assert (
        git("log", "-1", "--format=%an %ad", "--date=iso", "refs/notes/hydrator.metadata", at=at) == "Ada 2024-05-01 00:00:00 +0000"
    )
    git("fsck", "--strict", at=at)
    if "push-to" in request.node.name:
        assert git("rev-parse", REF, at=work) == b, "the local branch follows"


@pytest.mark.parametrize("output", [*LOCAL, *PUSHED], indirect=True)
def test_a_concurrent_update_is_a_conflict_and_changes_nothing(output: OutputRepository, work: Path, bare: Path, git, request):
    at = work if "same-repository" in request.node.name else bare
    assert output.fetch() is None
    a = make(output, "a")
    other = git("commit-tree", "-m", "other", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", at=at)
    git("hash-object", "-t", "tree", "-w", "--stdin", at=at, data="")
    git("update-ref", REF, other, at=at)
    with pytest.raises(Conflict):
        output.publish(a, None, "n")
    assert git("rev-parse", REF, at=at) == other
    assert git("for-each-ref", "refs/notes", at=at) == ""
    assert output.fetch() == other
    b = make(output, "b", other)
    output.publish(b, other, None)
    assert output.fetch() == b


@pytest.mark.parametrize("output", ["push-to-remote", "push-to-url"], indirect=True)
def test_a_branch_that_only_the_clone_has_is_continued_on_the_remote(output: OutputRepository, work: Path, bare: Path, git):
    a = make(output, "a")
    update_ref(output.repository, REF, a, None)
    git("notes", "--ref=hydrator.metadata", "add", "-m", "of a", a, at=work)
    assert output.fetch() == a
    assert git("for-each-ref", "refs/heads/placements", at=bare) == "", "a reader pushes nothing"
    b = make(output, "b", a)
    output.publish(b, a, "of b")
    assert git("rev-list", REF, at=bare).split() == [b, a]
    assert [read_note(output.repository, each) for each in (a, b)] == ["of a\n", "of b\n"]
    assert git("rev-parse", "refs/notes/hydrator.metadata", at=bare) == git("rev-parse", "refs/notes/hydrator.metadata", at=work)
    assert output.fetch() == b


@pytest.mark.parametrize("output", ["push-to-remote"], indirect=True)
def test_a_branch_that_appears_on_the_remote_before_the_push_is_a_conflict(output: OutputRepository, work: Path, bare: Path, git):
    a, other = make(output, "a"), make(output, "other")
    update_ref(output.repository, REF, a, None)
    assert output.fetch() == a
    git("push", "-q", str(bare), f"{other}:{REF}", at=work)
    with pytest.raises(Conflict):
        output.publish(make(output, "b", a), a, None)
    assert git("rev-parse", REF, at=bare) == other
    assert output.fetch() == other


@pytest.mark.parametrize("output", ["other-url", "url-source"], indirect=True)
def test_a_branch_deleted_on_the_remote_is_seen(output: OutputRepository, bare: Path, git):
    a = make(output, "a")
    output.publish(a, None, None)
    git("update-ref", "-d", REF, at=bare)
    assert output.fetch() is None
    output.publish(make(output, "again"), None, None)


@pytest.mark.parametrize("output", [*LOCAL, *PUSHED], indirect=True)
def test_a_commit_on_another_parent_is_a_bug(output: OutputRepository):
    a = make(output, "a")
    output.publish(a, None, None)
    with pytest.raises(ValueError, match="parents"):
        output.publish(make(output, "orphan"), a, None)
    with pytest.raises(ValueError, match="parents"):
        output.publish(make(output, "b", a), None, None)


@pytest.mark.parametrize("output", ["push-to-remote"], indirect=True)
def test_a_new_checkout_uses_the_branch_of_the_remote(output: OutputRepository, work: Path, bare: Path, git, cache: Path):
    a = make(output, "a")
    output.publish(a, None, None)
    git("clone", "-q", "--depth=1", "--branch=main", f"file://{bare}", "ci", at=work.parent)
    ci = open_output(
        open_source(str(work.parent / "ci"), cache=cache), branch="placements", location=None, push="origin", cache=cache
    )
    assert ci.fetch() == a
    b = make(ci, "b", a)
    ci.publish(b, a, "n")
    assert output.fetch() == b, "fetched, and noted"
    assert read_note(output.repository, b) == "n\n"
    assert output.repository.resolve_ref("refs/remotes/origin/placements") == b
    assert not output.repository.is_shallow
    output.publish(make(output, "c", b), b, None)


@pytest.mark.parametrize("output", ["same-repository"], indirect=True)
def test_a_local_branch_that_origin_has_continued_is_not_read(output: OutputRepository, git, work: Path):
    a = make(output, "a")
    b, own = make(output, "b", a), make(output, "own", a)
    git("update-ref", REF, a, at=work)
    git("update-ref", "refs/remotes/origin/placements", b, at=work)
    assert output.fetch() == b, "another machine has published it since"
    c = make(output, "c", b)
    output.publish(c, b, None)
    assert output.repository.resolve_ref(REF) == output.fetch() == c
    git("update-ref", REF, own, at=work)
    assert output.fetch() == own, "a commit that origin does not have"
    with pytest.raises(Conflict):
        output.publish(make(output, "d", b), b, None)


@pytest.mark.parametrize("output", ["push-to-remote"], indirect=True)
def test_local_commits_that_the_remote_never_had_are_kept(output: OutputRepository, work: Path, git, caplog):
    own = make(output, "own")
    update_ref(output.repository, REF, own, None)
    a = make(output, "a")
    with caplog.at_level(logging.WARNING):
        output.publish(a, None, None)
    assert output.fetch() == a
    assert output.repository.resolve_ref(REF) == own
    assert "commits that are not on the remote" in caplog.text


@pytest.mark.parametrize("output", ["push-to-remote", "other-url"], indirect=True)
def test_a_note_that_the_server_rejects_is_logged(output: OutputRepository, bare: Path, caplog):
    hook = bare / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/notes/*) exit 1;; esac\n')
    hook.chmod(0o755)
    a = make(output, "a")
    with caplog.at_level(logging.WARNING):
        output.publish(a, None, "n")
    assert output.fetch() == a
    assert "was not written" in caplog.text


def test_the_source_branch_is_rejected_as_output_branch(work: Path, bare: Path, git, cache: Path):
    git("push", "-q", str(bare), "main", "main:dev", at=work)
    git("checkout", "-q", "--detach", at=work)
    url = f"file://{bare}"
    git("remote", "add", "origin", url, at=work)
    cases = [(str(work), "main", None), (str(work), "main", str(work / "apps")), (str(work), "main", f"file://{work}")]
    cases += [(str(work), "main", url), (url, "dev", None), (url, "dev", url), (url, "dev", str(bare)), (str(bare), "dev", url)]
    for location, branch, where in cases:
        source = open_source(location, cache=cache)
        source.resolve_branch(branch)
        with pytest.raises(Permanent, match="is the source branch"):
            open_output(source, branch=branch, location=where, push=None, cache=cache)
    source = open_source(str(work), cache=cache)
    late = open_output(source, branch="dev2", location=None, push=None, cache=cache)
    git("branch", "dev2", at=work)
    source.resolve_branch("dev2")
    with pytest.raises(Permanent, match="is the source branch"):
        late.publish(source.resolve_branch("dev2"), source.resolve_branch("dev2"), None)
    git("init", "-q", "--bare", "other.git", at=bare.parent)
    other = open_output(source, branch="dev2", location=str(bare.parent / "other.git"), push=None, cache=cache)
    assert other.fetch() is None, "the same name in another repository is another branch"


@pytest.mark.parametrize(
    "name", ["refs/tags/v1", "refs/remotes/origin/x", "refs/notes/x", "", "HEAD", "-x", "a..b", "a b", "a.lock"]
)
def test_a_name_that_is_not_a_branch_is_rejected(name: str, work: Path, cache: Path):
    with pytest.raises(Permanent):
        open_output(open_source(str(work), cache=cache), branch=name, location=None, push=None, cache=cache)


def test_a_symbolic_branch_is_rejected_before_a_push(work: Path, bare: Path, git, cache: Path):
    git("remote", "add", "origin", str(bare), at=work)
    source = open_source(str(work), cache=cache)
    output = open_output(source, branch="placements", location=None, push="origin", cache=cache)
    a = make(output, "a")
    git("symbolic-ref", "refs/heads/placements", "refs/heads/main", at=work)
    with pytest.raises(Permanent, match="symbolic"):
        output.publish(a, None, None)
    assert git("for-each-ref", at=bare) == ""
    with pytest.raises(Permanent, match="symbolic"):
        open_output(source, branch="placements", location=None, push=None, cache=cache)


def test_a_missing_or_invalid_remote_is_rejected(work: Path, bare: Path, cache: Path):
    source = open_source(str(work), cache=cache)
    with pytest.raises(Permanent, match="no remote 'nowhere'"):
        open_output(source, branch="p", location=None, push="nowhere", cache=cache)
    with pytest.raises(Permanent, match="ext::"):
        open_output(source, branch="p", location=None, push="ext::sh", cache=cache)
    with pytest.raises(Permanent, match="already"):
        open_output(source, branch="p", location=f"file://{bare}", push="origin", cache=cache)


def test_a_damaged_private_clone_of_the_output_is_repaired(work: Path, bare: Path, cache: Path):
    output = open_output(
        open_source(str(work), cache=cache), branch="placements", location=f"file://{bare}", push=None, cache=cache
    )
    a = make(output, "a")
    output.publish(a, None, None)
    for path in cache.glob("*.git/objects/*/*"):
        path.unlink()
    fresh = open_output(open_source(str(work), cache=cache), branch="placements", location=f"file://{bare}", push=None, cache=cache)
    assert fresh.fetch() == a
    fresh.publish(make(fresh, "b", a), a, "n")


def test_a_remote_that_is_down_is_temporary(work: Path, server, cache: Path):
    source = open_source(str(work), cache=cache)
    output = open_output(source, branch="placements", location=server.url("down"), push=None, cache=cache)
    with pytest.raises(Temporary):
        output.fetch()
