"""`gitsched init --commit` makes the commit that `git commit` would make there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests import fork_server
from tests.cli.conftest import Run

MESSAGE = "Describe the fleet"
FILES = ("gitsched.yaml", "fleet/clusters.yaml", "fleet/policies.yaml", "apps/web.yaml")
DATES = {"GIT_AUTHOR_DATE": "1772442000 +0100", "GIT_COMMITTER_DATE": "1772449999 -0300"}
PEOPLE = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"), "")
"""Variables to leave out."""
HOOKS = {
    "pre-commit": "echo pre-commit: $(git diff --cached --name-only) >> \"$LOG\"; echo 'said by a hook'",
    "prepare-commit-msg": 'echo "prepare-commit-msg: $2" >> "$LOG"; echo >> "$1"; echo "Reviewed-by: Carl <carl@example.org>" >> "$1"',
    "commit-msg": 'echo "commit-msg: $(head -n 1 "$1")" >> "$LOG"',
    "post-commit": 'echo "post-commit: $(git log -1 --format=%s)" >> "$LOG"',
}


@pytest.fixture
def commit_twice(tmp_path: Path, environment: dict[str, str]) -> Callable[..., tuple[str, str]]:
    """Make the same repository twice, and commit the files of `init` in the first with gitsched and in the second with git.

    Return what each repository is then, and what both wrote to stderr.
    """

    def run(prepare: str, variables: Mapping[str, str]) -> tuple[str, str]:
        chosen = {name: text for name, text in {**environment, **DATES, **variables}.items() if text}
        states = []
        said = ""
        for name in ("gitsched", "git"):
            top = tmp_path / name / "top"
            top.mkdir(parents=True)
            own = chosen | {"LOG": str(tmp_path / f"{name}.log"), "HOME": str(tmp_path)}

            def shell(script: str, at: Path, own: Mapping[str, str] = own) -> subprocess.CompletedProcess[str]:
                return subprocess.run(["sh", "-c", script], cwd=at, env=own, capture_output=True, text=True, check=False)

            done = shell(f"set -e; git init -q -b main .; {prepare}", top)
            assert done.returncode == 0, done.stderr
            place = top / "linked" if (top / "linked").exists() else top
            done = fork_server.run(("init", *(("--commit",) if name == "gitsched" else ())), place, own)
            if name == "gitsched":
                said = done.stderr
            else:
                shell(f"git add {' '.join(FILES)} && git commit -q -m '{MESSAGE}' -- {' '.join(FILES)}", place)
            reads = 'git cat-file commit HEAD; git status --porcelain=v1 --branch; git log --format=%H%n%D --all; cat "$LOG"'
            states.append(shell(reads, place).stdout)
        return states[0] if states[0] == states[1] else f"{states[0]}\n\nis not what git does:\n\n{states[1]}", said

    return run


FIRST = "git commit -q --allow-empty -m First"
CASES: dict[str, tuple[str, dict[str, str], str]] = {
    "variables": ("", {}, "author Ada <ada@example.org> 1772442000 +0100\ncommitter Ada <ada@example.org> 1772449999 -0300\n"),
    "another committer": ("", {"GIT_COMMITTER_NAME": "Carl"}, "committer Carl <ada@example.org>"),
    "settings": ("git config user.name Bea; git config user.email bea@example.org", PEOPLE, "author Bea <bea@example.org>"),
    "settings of a role": (
        "git config user.name Bea; git config user.email b@example.org; git config author.name Cid; git config committer.email d@x",
        PEOPLE,
        "author Cid <b@example.org> 1772442000 +0100\ncommitter Bea <d@x> ",
    ),
    "EMAIL": ("git config user.name Bea", {**PEOPLE, "EMAIL": "mail@example.org"}, "author Bea <mail@example.org>"),
    "an existing branch": (FIRST, {}, "parent "),
    "a detached HEAD": (f"{FIRST}; git checkout -q --detach", {}, "## HEAD (no branch)"),
    "a linked worktree": (f"{FIRST}; git worktree add -q -b other linked", {}, "## other"),
    "other staged files": ("echo a > mine; git add mine; echo b >> mine", {}, "\nAM mine\n"),
    "an own index": (f"{FIRST}; echo a > mine; git add mine", {"GIT_INDEX_FILE": ".git/other"}, "\nA  mine\n"),
    "an encoding": ("git config i18n.commitEncoding ISO-8859-1", {}, "encoding ISO-8859-1"),
    "a message that is cleaned": (
        "git config commit.cleanup strip; git config core.commentChar D",
        {},
        "## No commits yet on main\nA  apps/web.yaml",
    ),
    "a template": ("echo text > .git/text; git config commit.template .git/text", {}, f"\n\n{MESSAGE}\n"),
    "a hook that refuses": (
        "printf '#!/bin/sh\\nexit 3\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        {},
        "## No commits yet on main\nA  apps/web.yaml",
    ),
    "a refused signature": ("git config commit.gpgSign true; git config gpg.program false", {}, "## No commits yet on main\n"),
}


@pytest.mark.parametrize(("prepare", "variables", "found"), CASES.values(), ids=CASES)
def test_init_commits_as_git_does(
    commit_twice: Callable[..., tuple[str, str]], prepare: str, variables: dict[str, str], found: str
) -> None:
    state, _ = commit_twice(f"mkdir -p .git/hooks; {prepare}", variables)
    assert found in state, state
    assert "is not what git does" not in state, state


def test_init_runs_the_hooks_of_the_repository(commit_twice: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name, script in HOOKS.items():
        (hooks / name).write_text(f"#!/bin/sh\n{script}\n")
        (hooks / name).chmod(0o755)
    state, said = commit_twice(f"git config core.hooksPath {hooks}", {})
    assert state.endswith(
        f"pre-commit: {' '.join(sorted(FILES))}\nprepare-commit-msg: message\ncommit-msg: {MESSAGE}\npost-commit: {MESSAGE}\n"
    ), state
    assert "Reviewed-by: Carl <carl@example.org>\n" in state
    assert said == "said by a hook\n"


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_init_signs_as_git_does(commit_twice: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", str(key)], check=True)
    state, _ = commit_twice(f"git config commit.gpgSign true; git config gpg.format ssh; git config user.signingKey {key}", {})
    assert "gpgsig -----BEGIN SSH SIGNATURE-----" in state
    assert "is not what git does" not in state, state


OTHER = "gitsched: GIT_DIR leads git to another repository than that of "
FAILURES: dict[str, tuple[str, dict[str, str], str]] = {
    "no identity": (
        "git init -q .; git config user.useConfigOnly true",
        PEOPLE,
        "gitsched: git cannot tell the author of a commit: ",
    ),
    "no date": ("git init -q .", {"GIT_COMMITTER_DATE": "soon"}, "gitsched: git cannot tell the committer of a commit: "),
    "a merge": (
        "git init -q -b main .; git commit -q --allow-empty -m A; git checkout -q -b b; git commit -q --allow-empty -m B; "
        "git checkout -q main; git merge -q --no-ff --no-commit b",
        {},
        "gitsched: a merge is in progress in ",
    ),
    "another repository": ("git init -q .; git init -q other", {"GIT_DIR": "other/.git"}, OTHER),
    "no repository": ("git init -q other", {"GIT_DIR": "other/.git"}, OTHER),
}


@pytest.mark.parametrize(("prepare", "variables", "message"), FAILURES.values(), ids=FAILURES)
def test_init_writes_nothing_where_git_cannot_commit(
    tmp_path: Path, environment: dict[str, str], prepare: str, variables: dict[str, str], message: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    subprocess.run(["sh", "-ec", prepare], cwd=place, env=environment, check=True)
    before = sorted(place.iterdir())
    chosen = {name: text for name, text in {**environment, **variables}.items() if text}
    done = fork_server.run(("init", "--commit"), place, chosen)
    assert (done.returncode, done.stdout, done.stderr[: len(message)], done.stderr.count("\n")) == (1, "", message, 1)
    assert sorted(place.iterdir()) == before


def test_init_says_what_remains_when_git_fails(gitsched: Run, tmp_path: Path, git: Callable[..., str]) -> None:
    git("init", "-q", ".", at=tmp_path)
    (tmp_path / ".gitignore").write_text("/fleet/\n")
    done = gitsched("init", "--commit", at=tmp_path)
    assert (done.returncode, "wrote fleet/policies.yaml" in done.stdout) == (1, True)
    assert "fleet\n" in done.stderr, "git names what is ignored"
    assert done.stderr.endswith(
        f"gitsched: `git add` failed in {tmp_path}, with exit code 1: what it and its hooks print is above\n"
    )


def test_init_makes_a_repository_that_gitsched_reads(gitsched: Run, tmp_path: Path, git: Callable[..., str]) -> None:
    place = tmp_path / "place"
    place.mkdir()
    done = gitsched(
        "init", "--commit", at=place, GIT_DEFAULT_HASH="sha256", GIT_CONFIG_COUNT="1", **_set("init.defaultBranch", "trunk")
    )
    assert (done.returncode, "committed these files\n" in done.stdout) == (0, True)
    assert git("rev-parse", "--show-object-format", "--abbrev-ref", "HEAD", at=place) == "sha1\ntrunk"
    assert gitsched("plan", at=place).returncode == 0


def _set(key: str, value: str) -> dict[str, str]:
    return {"GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": value}
