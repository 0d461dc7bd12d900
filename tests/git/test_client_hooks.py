"""A hook of the user's repository that refuses what gitsched does there is named, with its output and a cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.git import Repository, remote_refs
from gitsched.git.notes import push_notes
from gitsched.git.refs import update_ref
from gitsched.model.errors import GitschedError, Permanent

from .test_remote_refs import OUT, make

PRE_PUSH = "#!/bin/sh\necho 'no pushes on Fridays' >&2\nexit 1\n"
FROZEN = "#!/bin/sh\n[ \"$1\" != prepared ] || { echo 'refs are frozen' >&2; exit 1; }\n"


@pytest.fixture
def mine(work: Path) -> Repository:
    return Repository(work)


def write_hook(directory: Path, name: str, script: str) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(script)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("place", [".git/hooks", "own hooks"])
def test_a_pre_push_hook_that_refuses_is_named(mine: Repository, work: Path, bare: Path, git, place: str) -> None:
    url, commit = bare.as_uri(), make(mine, "a")
    if place != ".git/hooks":
        git("config", "core.hooksPath", place, at=work)
    hook = write_hook(work / place, "pre-push", PRE_PUSH)
    with pytest.raises(Permanent) as raised:
        remote_refs.push(mine, url, OUT, commit, None)
    text = str(raised.value)
    assert f"the pre-push hook {hook} refused it: no pushes on Fridays" in text
    assert text.endswith("where no hook of this repository runs")
    assert f"or give --output-repository {url} instead of --push" in text
    git("update-ref", "refs/notes/gitsched", commit, at=work)
    failure = push_notes(mine, url, "refs/notes/gitsched")
    assert isinstance(failure, Permanent)
    assert f"the pre-push hook {hook} refused it" in str(failure)
    assert git("for-each-ref", at=bare) == ""
    hook.write_text("#!/bin/sh\nexit 0\n")
    assert remote_refs.push(mine, url, OUT, commit, None)


def test_a_hook_is_not_blamed_for_what_the_server_refuses(mine: Repository, work: Path, bare: Path) -> None:
    write_hook(work / ".git/hooks", "pre-push", "#!/bin/sh\nexit 0\n")
    write_hook(bare / "hooks", "pre-receive", "#!/bin/sh\necho 'policy: no' >&2\nexit 1\n")
    for url in (bare.as_uri(), f"{bare.as_uri()}-missing"):
        with pytest.raises(GitschedError) as raised:
            remote_refs.push(mine, url, OUT, make(mine, "a"), None)
        assert "pre-push" not in str(raised.value)


def test_a_hook_that_refuses_to_move_a_ref_is_named(mine: Repository, work: Path, bare: Path, git) -> None:
    commit = make(mine, "a")
    remote_refs.push(mine, bare.as_uri(), OUT, commit, None)
    hook = write_hook(work / ".git/hooks", "reference-transaction", FROZEN)
    named = f"the reference-transaction hook {hook} refused it: refs are frozen"
    with pytest.raises(Permanent, match=r"let it pass refs/heads/placements$") as raised:
        update_ref(mine, "refs/heads/placements", commit, None)
    assert named in str(raised.value)
    with pytest.raises(Permanent, match=r"let it pass refs/remotes/origin/placements$") as raised:
        remote_refs.fetch(mine, bare.as_uri(), [f"+{OUT}:refs/remotes/origin/placements"])
    assert named in str(raised.value)
    assert git("for-each-ref", "--format=%(refname)", at=work) == "refs/heads/main"
