"""Commit files of a worktree as `git commit` does for the person who runs gitsched: with their environment, configuration, hooks and
signature."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gitsched.git.process import GitResult, run_git
from gitsched.model.errors import Permanent

_READABLE_FORMATS = {"GIT_DEFAULT_HASH": "sha1", "GIT_DEFAULT_REF_FORMAT": "files"}
"""Formats of a new repository that libgit2 reads. Git takes these variables before `init.defaultObjectFormat` and the like."""
_UNFINISHED = {"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick or rebase"}
"""Refs that exist while git refuses to commit some files only."""
_TERMINATION_GRACE = 5.0
"""Seconds in which git deletes its lock files after SIGTERM."""


def create_repository(directory: Path) -> None:
    """Create a repository with a worktree, as `git init` does. Raise Permanent if git fails."""
    _run(["init", "--quiet"], directory, _READABLE_FORMATS)


def check_commit(directory: Path) -> None:
    """Raise Permanent if `commit_files` would certainly fail in this directory, the top of a worktree or of none yet.

    That is so without an identity, while a merge is in progress, and where variables such as GIT_DIR lead git to another repository.
    """
    variables = [name for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR") if name in os.environ]
    if variables and _find_repository(directory, os.environ) != _find_repository(directory, {}):
        raise Permanent(f"{' and '.join(variables)} leads git to another repository than that of {directory}: unset it")
    for ref, action in _UNFINISHED.items():
        if _query(["rev-parse", "--quiet", "--verify", ref], directory).exit_code == 0:
            raise Permanent(f"{action} is in progress in {directory}: finish or abort it first")
    for role in ("AUTHOR", "COMMITTER"):
        found = _query(["var", f"GIT_{role}_IDENT"], directory)
        if found.exit_code != 0:
            reason = found.stderr.strip().rpartition("\n")[2].removeprefix("fatal: ")
            raise Permanent(
                f"git cannot tell the {role.lower()} of a commit: {reason}. Set user.name and user.email (`git config --global user.name "
                f"NAME`, `git config --global user.email EMAIL`), and check GIT_{role}_NAME, GIT_{role}_EMAIL and GIT_{role}_DATE"
            )


def read_author(directory: Path) -> tuple[str, str] | None:
    """Return the name and address of the author that git would use in a directory, as far as someone has set them; None otherwise."""
    found = _query(["-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"], directory)
    name, _, rest = found.stdout.partition(" <")
    email = rest.partition(">")[0]
    return (name, email) if found.exit_code == 0 and name and email else None


def commit_files(root: Path, paths: Sequence[str], message: str) -> bool:
    """Commit these files of a worktree and nothing else that is staged; return whether there was something to commit.

    git and its hooks write to stderr, may ask on the terminal and have no time limit. Raise Permanent if git fails, such as because of a
    hook: the files stay staged.
    """
    _run(["add", "--", *paths], root)
    if _query(["diff", "--cached", "--quiet", "--", *paths], root).exit_code == 0:
        return False
    _run(["commit", "--quiet", "--message", message, "--", *paths], root)
    return True


def _find_repository(directory: Path, environment: Mapping[str, str]) -> str:
    """Return the Git directory and the worktree that git uses in a directory; "" without a repository."""
    arguments = ["rev-parse", "--absolute-git-dir", "--show-toplevel"]
    found = run_git(arguments, cwd=str(directory), extra_environment=environment)
    return found.stdout if found.exit_code == 0 else ""


def _query(arguments: Sequence[str], directory: Path) -> GitResult:
    return run_git(arguments, cwd=str(directory), extra_environment={**os.environ, "LC_ALL": "C"})


def _run(arguments: Sequence[str], directory: Path, variables: Mapping[str, str] | None = None) -> None:
    """Run git in the foreground with the environment of this process. An interrupt ends git before it ends this process."""
    try:
        child = subprocess.Popen(["git", *arguments], cwd=directory, env={**os.environ, **(variables or {})}, stdout=2)
    except FileNotFoundError as error:
        raise Permanent("the git executable is not on the PATH") from error
    try:
        code = child.wait()
    except BaseException:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_TERMINATION_GRACE)
        raise
    if code != 0:
        raise Permanent(f"`git {arguments[0]}` failed in {directory}, with exit code {code}: what it and its hooks print is above")
