"""List the refs of a remote."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gitsched.git import Repository, remote_refs, transport
from gitsched.git.notes import Signature, push_notes, write_note
from gitsched.model.errors import Conflict, Permanent, Temporary
from gitsched.model.planned_files import NewBlob
from tests.local import PATIENCE

OUT = "refs/heads/placements"
ADA = {"name": "Ada", "email": "ada@example.org", "time": datetime(2024, 5, 1, tzinfo=UTC)}


def make(repository: Repository, text: str, *parents: str) -> str:
    tree = repository.write_tree({"f": NewBlob(text.encode())}, base=None, read=repository)
    return repository.commit_tree(tree, parents, text, **ADA)


@pytest.fixture
def mine(work: Path) -> Repository:
    return Repository(work)


@pytest.fixture(params=["file", "http"])
def remote(request: pytest.FixtureRequest, bare: Path) -> str:
    """The bare repository's URL, once as file:// and once over HTTP."""
    return f"file://{bare}" if request.param == "file" else request.getfixturevalue("server").url("open")


def test_a_push_creates_and_moves_a_branch(mine: Repository, remote: str, git, bare: Path):
    a = make(mine, "a")
    b = make(mine, "b", a)
    assert remote_refs.read_remote_ref(remote, OUT) is None
    assert remote_refs.push(mine, remote, OUT, a, None)
    remote_refs.push(mine, remote, OUT, b, a)
    assert remote_refs.read_remote_ref(remote, OUT) == b == git("rev-parse", OUT, at=bare)
    git("fsck", "--strict", at=bare)


def test_a_concurrent_push_is_a_conflict(mine: Repository, remote: str):
    a, other = make(mine, "a"), make(mine, "other")
    remote_refs.push(mine, remote, OUT, a, None)
    with pytest.raises(Conflict, match="no longer absent"):
        remote_refs.push(mine, remote, OUT, other, None)
    b, c = make(mine, "b", a), make(mine, "c", a)
    remote_refs.push(mine, remote, OUT, b, a)
    with pytest.raises(Conflict, match=f"no longer at {a}"):
        remote_refs.push(mine, remote, OUT, c, a)
    assert remote_refs.read_remote_ref(remote, OUT) == b


def test_a_manual_reset_of_the_branch_is_not_undone(mine: Repository, remote: str, git, bare: Path):
    a = make(mine, "a")
    b = make(mine, "b", a)
    c = make(mine, "c", b)
    remote_refs.push(mine, remote, OUT, a, None)
    remote_refs.push(mine, remote, OUT, b, a)
    git("update-ref", OUT, a, at=bare)
    with pytest.raises(Conflict):
        remote_refs.push(mine, remote, OUT, c, b)
    assert remote_refs.read_remote_ref(remote, OUT) == a


def test_a_commit_that_would_drop_history_is_never_pushed(mine: Repository, remote: str):
    a = make(mine, "a")
    remote_refs.push(mine, remote, OUT, a, None)
    for commit, expected in ((make(mine, "orphan"), a), (make(mine, "two", a, make(mine, "x")), a), (make(mine, "b", a), None)):
        with pytest.raises(ValueError, match="parents"):
            remote_refs.push(mine, remote, OUT, commit, expected)
    assert remote_refs.read_remote_ref(remote, OUT) == a


def test_a_push_of_the_same_commit_succeeds(mine: Repository, remote: str):
    a = make(mine, "a")
    b = make(mine, "b", a)
    assert remote_refs.push(mine, remote, OUT, a, None)
    assert not remote_refs.push(mine, remote, OUT, a, None), "the second says that the first had done it"
    assert remote_refs.push(mine, remote, OUT, b, a)
    assert not remote_refs.push(mine, remote, OUT, b, a)


def test_a_push_whose_response_was_lost_is_a_success(mine: Repository, server):
    a = make(mine, "a")
    server.lose_ack = True
    remote_refs.push(mine, server.url("open"), OUT, a, None)
    assert not server.lose_ack
    assert remote_refs.read_remote_ref(server.url("open"), OUT) == a


def test_a_rejecting_hook_is_permanent_and_its_output_is_shown(mine: Repository, remote: str, bare: Path):
    hook = bare / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'the branch is protected' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(Permanent, match="the branch is protected"):
        remote_refs.push(mine, remote, OUT, make(mine, "a"), None)


def test_a_stale_lock_on_the_server_is_reported(mine: Repository, remote: str, bare: Path, monkeypatch):
    monkeypatch.setattr(remote_refs, "_PUSH_RETRY_DELAYS", (0.01,))
    lock = bare / f"{OUT}.lock"
    lock.touch()
    with pytest.raises(Temporary, match=rf"remote rejected.*nobody else has moved {OUT}: .* remove {OUT}\.lock"):
        remote_refs.push(mine, remote, OUT, make(mine, "a"), None)
    lock.unlink()
    remote_refs.push(mine, remote, OUT, make(mine, "a"), None)


def test_a_lock_on_the_server_that_is_released_meanwhile_is_no_error(mine: Repository, remote: str, bare: Path, monkeypatch):
    lock = bare / f"{OUT}.lock"
    lock.touch()
    monkeypatch.setattr(remote_refs.time, "sleep", lambda seconds: lock.unlink(missing_ok=True))
    a = make(mine, "a")
    assert remote_refs.push(mine, remote, OUT, a, None)
    assert remote_refs.read_remote_ref(remote, OUT) == a


@pytest.mark.parametrize("setting", ["denyCurrentBranch=refuse", "hideRefs=refs/heads/new", "denyNonFastForwards=true", "shallow"])
def test_what_the_server_is_configured_to_refuse_is_permanent(
    mine: Repository, remote: str, git, bare: Path, work: Path, setting: str
):
    a = make(mine, "a")
    remote_refs.push(mine, remote, OUT, a, None)
    ref, expected, new, rewrite = OUT, a, make(mine, "b", a), False
    name, _, value = setting.partition("=")
    if name == "denyCurrentBranch":
        git("config", "core.bare", "false", at=bare)
        git("symbolic-ref", "HEAD", OUT, at=bare)
    elif name == "hideRefs":
        ref, expected = value, None
    elif name == "denyNonFastForwards":
        new, rewrite = make(mine, "other"), True
    else:
        new = make(mine, "c", new)
        (work / ".git/shallow").write_text(f"{mine.commit(new).parents[0]}\n")
        mine = Repository(work)
        rewrite = True
    if value:
        git("config", f"receive.{name}", value, at=bare)
    with pytest.raises(Permanent, match="remote rejected"):
        remote_refs.push(mine, remote, ref, new, expected, rewrite=rewrite or ref != OUT)
    assert remote_refs.read_remote_ref(remote, ref) == expected


def test_a_ref_that_the_server_shows_to_no_push_is_reported(mine: Repository, remote: str, git, bare: Path, monkeypatch):
    monkeypatch.setattr(remote_refs, "_PUSH_RETRY_DELAYS", ())
    a = make(mine, "a")
    remote_refs.push(mine, remote, OUT, a, None)
    git("config", "receive.hideRefs", "refs/heads", at=bare)
    with pytest.raises(Temporary, match=rf"the server shows {OUT} to who fetches, but not to who pushes \(receive.hideRefs\)"):
        remote_refs.push(mine, remote, OUT, make(mine, "b", a), a)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_a_repository_of_another_user_is_not_pushed_to(mine: Repository, bare: Path):
    os.chown(bare, 65534, 65534)
    with pytest.raises(Permanent, match="dubious ownership"):
        remote_refs.push(mine, f"file://{bare}", OUT, make(mine, "a"), None)


@pytest.mark.parametrize("content", ["empty", "one commit"])
@pytest.mark.parametrize("protocol", [0, 2])
def test_a_remote_with_sha256_ids_is_refused_with_the_cure(
    mine: Repository, server, git, bare: Path, work: Path, content: str, protocol: int
):
    git("init", "-q", "--bare", "-b", "main", "--object-format=sha256", "long.git")
    git("config", "http.receivepack", "true", at=bare.parent / "long.git")
    git("config", "protocol.version", str(protocol), at=work)
    if content != "empty":
        git("init", "-q", "--object-format=sha256", "other")
        git("commit", "-q", "--allow-empty", "-m", "a", at=bare.parent / "other")
        git("push", "-q", "../long.git", "HEAD:main", at=bare.parent / "other")
    for url in (f"file://{bare.parent}/long.git", server.url("open", "long.git")):
        attempts = [
            lambda url=url: remote_refs.push(mine, url, OUT, make(mine, "a"), None),
            lambda url=url: remote_refs.fetch(mine, url, ["refs/heads/main:refs/heads/main"]),
            lambda url=url: remote_refs.read_default_branch(url, repository=mine),
        ]
        for attempt in attempts[: 1 if content == "empty" else 3]:
            with pytest.raises(Permanent, match=r"SHA-256 object ids.*git init --object-format=sha1"):
                attempt()


def test_a_remote_that_keeps_refs_in_a_reftable_is_used_or_refused_with_the_cure(mine: Repository, git, tmp_path: Path):
    """git reads such a repository from version 2.45 on."""
    place = tmp_path / "table.git"
    git("init", "-q", "--bare", "-b", "main", *(("--ref-format=reftable",) if (new := has_reftable(git)) else ()), str(place))
    if new:
        a = make(mine, "a")
        assert remote_refs.push(mine, f"file://{place}", OUT, a, None)
        assert remote_refs.read_remote_ref(f"file://{place}", OUT) == a
        return
    git("config", "core.repositoryFormatVersion", "1", at=place)
    git("config", "extensions.refStorage", "reftable", at=place)
    with pytest.raises(Permanent, match="refs migrate --ref-format=files"):
        remote_refs.read_remote_ref(f"file://{place}", OUT)


def has_reftable(git) -> bool:
    return tuple(map(int, re.findall(r"\d+", git("version"))[:2])) >= (2, 45)


def test_a_conflicting_branch_name_is_permanent(mine: Repository, remote: str):
    remote_refs.push(mine, remote, OUT, make(mine, "a"), None)
    for name in (OUT + "/x", OUT + "/x/y"):
        with pytest.raises(Permanent, match=f"'{OUT}' exists in {remote}, so that '{name}' cannot be created"):
            remote_refs.push(mine, remote, name, make(mine, "a"), None)
    remote_refs.push(mine, remote, "refs/heads/a/b/c", make(mine, "a"), None)
    with pytest.raises(Permanent, match=r"'refs/heads/a/b/c' exists in .*, so that 'refs/heads/a' cannot be created"):
        remote_refs.push(mine, remote, "refs/heads/a", make(mine, "a"), None)


def test_a_fetched_branch_may_conflict_with_one_that_exists_here(mine: Repository, remote: str, git, bare: Path, work: Path):
    remote_refs.push(mine, remote, OUT + "/x", make(mine, "a"), None)
    git("update-ref", "refs/gitsched/placements", "HEAD", at=work)
    with pytest.raises(
        Permanent, match=f"'refs/gitsched/placements' exists in {work}.*, so that 'refs/gitsched/placements/x' cannot"
    ):
        remote_refs.fetch(mine, remote, [f"{OUT}/x:refs/gitsched/placements/x"])


def test_a_symbolic_branch_is_refused(mine: Repository, remote: str, git, bare: Path):
    remote_refs.push(mine, remote, "refs/heads/main", make(mine, "a"), None)
    git("symbolic-ref", OUT, "refs/heads/main", at=bare)
    with pytest.raises(Permanent, match="symbolic ref to refs/heads/main"):
        remote_refs.read_remote_ref(remote, OUT)


def test_notes_are_pushed_and_never_block_a_push(mine: Repository, remote: str, git, bare: Path):
    a = make(mine, "a")
    notes = "refs/notes/hydrator.metadata"
    write_note(mine, a, "n", Signature(**ADA))
    remote_refs.push(mine, remote, OUT, a, None)
    assert push_notes(mine, remote, notes) is None
    assert git("notes", f"--ref={notes}", "show", a, at=bare) == "n"
    git("update-ref", notes, git("commit-tree", "-m", "x", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", at=bare), at=bare)
    b = make(mine, "b", a)
    remote_refs.push(mine, remote, OUT, b, a)
    complaint = push_notes(mine, remote, notes)
    assert isinstance(complaint, Conflict)
    assert "rejected" in str(complaint)
    assert remote_refs.read_remote_ref(remote, OUT) == b


def test_a_fetch_is_complete_or_shallow(mine: Repository, remote: str, git, tmp_path: Path, bare: Path):
    a = make(mine, "a")
    b = make(mine, "b", a)
    git("push", "-q", remote, f"{b}:{OUT}", f"{b}:refs/tags/v1", at=mine.path)
    git("init", "-q", "--bare", "shallow")
    git("init", "-q", "--bare", "whole")
    shallow, whole = Repository(tmp_path / "shallow"), Repository(tmp_path / "whole")
    remote_refs.fetch(whole, remote, [f"+{OUT}:{OUT}"])
    assert whole.resolve_ref(OUT) == b
    assert whole.has(a)
    assert whole.resolve_ref("refs/tags/v1") is None
    remote_refs.fetch(shallow, remote, [f"+{OUT}:{OUT}"], depth=1)
    assert (shallow.resolve_ref(OUT), shallow.has(a), shallow.is_shallow) == (b, False, True)
    remote_refs.fetch(shallow, remote, [a], depth=1)
    assert shallow.has(a)
    c = make(shallow, "c", b)
    remote_refs.push(shallow, remote, OUT, c, b)
    assert git("rev-list", "--count", OUT, at=bare) == "3"
    with pytest.raises(Permanent, match="has no refs/heads/absent"):
        remote_refs.fetch(shallow, remote, ["refs/heads/absent:refs/heads/absent"])


def test_a_malicious_tree_is_rejected_by_a_fetch(mine: Repository, remote: str, git, bare: Path, tmp_path: Path):
    blob = git("hash-object", "-w", "--stdin", at=bare, data="x")
    inner = git("mktree", at=bare, data=f"100644 blob {blob}\tx\n")
    tree = git("mktree", at=bare, data=f"040000 tree {inner}\t..\n")
    git("update-ref", OUT, git("commit-tree", "-m", "evil", tree, at=bare), at=bare)
    git("init", "-q", "--bare", "fresh")
    with pytest.raises(Permanent, match="hasDotdot"):
        remote_refs.fetch(Repository(tmp_path / "fresh"), remote, [f"+{OUT}:{OUT}"])


def test_credentials_come_from_the_callers_helper(mine: Repository, server, tmp_path: Path, monkeypatch):
    url = server.url("auth")
    a = make(mine, "a")
    with pytest.raises(Permanent, match="could not read Username"):
        remote_refs.push(mine, url, OUT, a, None)
    config = tmp_path / "gitconfig"
    config.write_text('[credential]\n\thelper = "!f() { echo username=ada; echo password=$MY_TOKEN; }; f"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("MY_TOKEN", "wrong")
    with pytest.raises(Permanent, match="Authentication failed"):
        remote_refs.push(mine, url, OUT, a, None)
    monkeypatch.setenv("MY_TOKEN", "secret")
    remote_refs.push(mine, url, OUT, a, None)
    assert remote_refs.read_remote_ref(url, OUT) == a


def test_the_token_of_a_ci_checkout_is_used(mine: Repository, server, git, work: Path):
    url = server.url("auth")
    header = "AUTHORIZATION: basic YWRhOnNlY3JldA=="
    git("config", f"http.http://127.0.0.1:{server.port}/.extraheader", header, at=work)
    with pytest.raises(Permanent, match="could not read Username"):
        remote_refs.read_remote_ref(url, OUT)
    a = make(mine, "a")
    remote_refs.push(mine, url, OUT, a, None)
    assert remote_refs.read_remote_ref(url, OUT, repository=mine) == a


def test_a_password_in_the_url_works_and_is_never_shown(mine: Repository, server):
    a = make(mine, "a")
    remote_refs.push(mine, server.url("auth", user="ada:secret"), OUT, a, None)
    for url in (
        server.url("auth", user="ada:s3cret"),
        server.url("forbidden", user="ada:s3cret"),
        server.url("down", user="ada:s3cret"),
    ):
        with pytest.raises((Permanent, Temporary)) as caught:
            remote_refs.push(mine, url, OUT, make(mine, "b", a), a)
        assert "s3cret" not in "".join(map(str, (caught.value, caught.value.__cause__, caught.value.__context__)))


@pytest.mark.parametrize(
    ("zone", "error", "words"),
    [("forbidden", Permanent, "403"), ("down", Temporary, "503"), ("open", Permanent, "not found")],
)
def test_responses_of_the_server_are_classified(mine: Repository, server, zone: str, error: type[Exception], words: str):
    url = server.url(zone, "absent.git")
    for attempt in (
        lambda: remote_refs.read_remote_ref(url, OUT),
        lambda: remote_refs.fetch(mine, url, [f"{OUT}:{OUT}"]),
        lambda: remote_refs.push(mine, url, OUT, make(mine, "a"), None),
    ):
        with pytest.raises(error, match=words):
            attempt()


def test_an_unreachable_server_is_temporary(mine: Repository):
    for url in ("https://127.0.0.1:1/x", "https://no-such-host.invalid/x"):
        with pytest.raises(Temporary):
            remote_refs.read_remote_ref(url, OUT)
    with pytest.raises(Permanent, match="does not appear"):
        remote_refs.read_remote_ref("file:///no/such/repository", OUT)


def test_a_server_without_a_response_times_out(mine: Repository, monkeypatch, tmp_path: Path):
    script = tmp_path / "ssh"
    script.write_text(f"#!/bin/sh\nsleep 4\ntouch {tmp_path}/survived\n")
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(script))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    monkeypatch.setattr(transport, "LS_REMOTE_TIMEOUT", 0.5)
    with pytest.raises(Temporary, match="did not finish"):
        remote_refs.read_remote_ref("ssh://example.org/x", OUT)
    assert not (tmp_path / "survived").exists(), "ssh was ended along with git"


def test_a_url_that_configuration_rewrites_to_another_protocol_is_rejected(mine: Repository, git, work: Path):
    git("config", "url.git://127.0.0.1:1/.insteadOf", "https://example.org/", at=work)
    with pytest.raises(Permanent, match="transport 'git' not allowed"):
        remote_refs.read_remote_ref("https://example.org/x", OUT, repository=mine)


def test_a_relative_remote_is_relative_to_the_worktree(mine: Repository, work: Path, bare: Path, git):
    git("remote", "add", "near", "../bare.git", at=work)
    git("remote", "add", "far", "https://example.org/x", at=work)
    git("remote", "set-url", "--push", "far", "git@example.org:x", at=work)
    assert remote_refs.find_remote_url(mine, "near") == str(bare)
    assert remote_refs.find_remote_url(mine, "far") == "git@example.org:x"
    assert remote_refs.find_remote_url(mine, "none") is None
    with pytest.raises(Permanent):
        remote_refs.find_remote_url(mine, "--all")


RACE = """
import sys
from datetime import UTC, datetime
from gitsched.git import Repository, remote_refs
from gitsched.model.errors import Conflict, Temporary
from gitsched.model.planned_files import NewBlob
mine, url, name, ref = Repository(sys.argv[1]), sys.argv[2], sys.argv[3], "refs/heads/placements"
won = 0
while won < 5:
    head = remote_refs.read_remote_ref(url, ref)
    if head and not mine.has(head):
        remote_refs.fetch(mine, url, [head])
    base = mine.commit(head).tree if head else None
    tree = mine.write_tree({f"{name}-{won}": NewBlob(b"")}, base=base, read=mine)
    new = mine.commit_tree(tree, [head] if head else [], "m", name="A", email="a", time=datetime(2024, 5, 1, tzinfo=UTC))
    try:
        remote_refs.push(mine, url, ref, new, head)
        won += 1
    except Conflict:
        pass
"""


def test_two_writers_racing_on_one_remote_lose_nothing(git, bare: Path, tmp_path: Path):
    for name in "ab":
        git("init", "-q", "--bare", name)
    racers = [subprocess.Popen([sys.executable, "-c", RACE, str(tmp_path / name), f"file://{bare}", name]) for name in "ab"]
    assert [racer.wait(PATIENCE) for racer in racers] == [0, 0]
    names = git("ls-tree", "--name-only", OUT, at=bare).splitlines()
    assert names == [f"{name}-{i}" for name in "ab" for i in range(5)]
    assert git("rev-list", "--count", OUT, at=bare) == "10"
    assert git("rev-list", "--min-parents=2", OUT, at=bare) == ""


PUSH = """
import sys
from gitsched.git import Repository, remote_refs
print("pushing", flush=True)
remote_refs.push(Repository(sys.argv[1]), sys.argv[2], "refs/heads/placements", sys.argv[3], sys.argv[4])
"""


@pytest.mark.parametrize("delay", [0.0, 0.1, *(pytest.param(delay, marks=pytest.mark.long) for delay in (0.05, 0.2, 0.4))])
def test_a_killed_push_leaves_the_old_or_the_new_commit(mine: Repository, git, bare: Path, work: Path, delay: float):
    url = f"file://{bare}"
    a = make(mine, "a")
    remote_refs.push(mine, url, OUT, a, None)
    tree = mine.write_tree({f"big{i}": NewBlob(os.urandom(200_000)) for i in range(100)}, base=None, read=mine)
    b = mine.commit_tree(tree, [a], "big", **ADA)
    writer = subprocess.Popen([sys.executable, "-c", PUSH, str(work), url, b, a], stdout=subprocess.PIPE, start_new_session=True)
    assert writer.stdout is not None
    writer.stdout.readline()
    time.sleep(delay)
    children = Path(f"/proc/{writer.pid}/task/{writer.pid}/children")
    git_processes = [int(pid) for pid in children.read_text().split()] if children.exists() else []
    os.kill(writer.pid, signal.SIGKILL)
    for pid in git_processes:
        with contextlib.suppress(ProcessLookupError):  # it was done meanwhile
            os.killpg(pid, signal.SIGKILL)
    writer.communicate()
    seen = remote_refs.read_remote_ref(url, OUT)
    assert seen in (a, b)
    git("fsck", "--strict", "--connectivity-only", at=bare)
    remote_refs.push(mine, url, OUT, b, a)
    assert remote_refs.read_remote_ref(url, OUT) == b


@pytest.mark.needs("pgrep")
@pytest.mark.parametrize("helper", ["silent server", "silent credential helper"])
def test_a_remote_that_accepts_and_says_nothing_ends_at_the_deadline(
    mine: Repository, monkeypatch: pytest.MonkeyPatch, helper: str, request: pytest.FixtureRequest, git: Any
) -> None:
    """Also the program that git starts, such as a credential helper, is ended."""
    monkeypatch.setattr(transport, "TRANSFER_TIMEOUT", 0.5)
    mark = f"86{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/r.git"
        if helper != "silent server":
            git("config", "credential.helper", f"!sleep {mark}; :", at=Path(mine.root))
            url = request.getfixturevalue("server").url("auth")
        with pytest.raises(Temporary, match=r"did not finish within 0\.5 seconds"):
            remote_refs.fetch(mine, url, ["+refs/heads/main:refs/gitsched/x"])
    assert subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True).returncode == 1
