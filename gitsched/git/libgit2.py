"""Open repositories with libgit2."""

from __future__ import annotations

import re
import shlex
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.git.process import run_git
from gitsched.git.pygit2_loader import load_pygit2
from gitsched.model.errors import Permanent

if TYPE_CHECKING:
    from pygit2 import Repository

_owner_validation_lock = threading.Lock()

SHA256_REFUSAL = (
    "has SHA-256 object ids, and gitsched works with SHA-1 repositories only: make one with `git init --object-format=sha1`, and commit "
    "the files there"
)
"""The end of the error for a repository, after its path or URL."""

_ADVICE = re.compile(r"^\s*git config --global --add safe\.directory (.+)$", re.MULTILINE)
"""The advice of git about a repository of another user, which has the path that it compares."""


def open_libgit2(path: Path) -> Repository:
    """Open the repository at a path or in a parent directory; Permanent when there is none or access is not allowed."""
    from gitsched.git.loaded_pygit2 import pygit2  # an idle run only looks at refs

    if not path.exists():
        raise Permanent(f"there is no file or directory {path}")
    found = pygit2.discover_repository(str(path))
    if found is None:
        raise Permanent(f"{path.resolve()} is not in a Git repository; change to one, or select it with -C")
    reject_embedded_repository(Path(found))
    try:
        return pygit2.Repository(found)
    except pygit2.GitError as error:
        reject_format(f"the repository at {path}", Path(found))
        try:
            opened = _open_without_validation(found)
        except pygit2.GitError:
            raise Permanent(f"cannot open the repository at {path}: {error}") from error
        # libgit2 reads safe.directory from fewer files than git (not from GIT_CONFIG_GLOBAL, for example), so git's answer decides.
        asked = run_git(["-C", str(path if path.is_dir() else path.parent), "rev-parse", "--git-dir"])
        if asked.exit_code != 0:
            advice = _ADVICE.search(asked.stderr)
            directory = advice[1] if advice is not None else shlex.quote(str(path.resolve()))
            raise Permanent(
                f"the repository at {path} belongs to another user; `git config --global --add safe.directory {directory}` allows access"
            ) from error
        return opened


def _open_without_validation(git_directory: str) -> Repository:
    """Open a repository that may belong to another user."""
    pygit2 = load_pygit2()
    with _owner_validation_lock:
        pygit2.settings.owner_validation = False
        try:
            opened: Repository = pygit2.Repository(git_directory)
            return opened
        finally:
            pygit2.settings.owner_validation = True


def reject_format(location: str, git_directory: Path) -> None:
    """Raise Permanent for a Git directory in one of the formats that libgit2 does not read, which git 3 chooses for new repositories. No
    effect for any other directory."""
    pygit2 = load_pygit2()
    pointer = git_directory / "commondir"
    config = Path(git_directory / pointer.read_text().strip() if pointer.is_file() else git_directory, "config")
    if not config.is_file():
        return
    try:
        settings = {entry.name.lower(): (entry.value or "").lower() for entry in pygit2.Config(str(config))}
    except pygit2.GitError:
        return
    if settings.get("extensions.objectformat", "sha1") != "sha1":
        raise Permanent(f"{location} {SHA256_REFUSAL}")
    if settings.get("extensions.refstorage", "files") != "files":
        raise Permanent(
            f"{location} keeps its refs in a reftable, which gitsched does not read: `git -C {shlex.quote(str(git_directory))} refs "
            "migrate --ref-format=files`, with git 2.49 or newer, keeps them in files"
        )


def reject_embedded_repository(path: Path) -> None:
    """Raise Permanent for a bare repository that is committed in the repository around it: its configuration could execute
    programs."""
    root = next((parent for parent in path.parents if (parent / ".git").exists()), None)
    if ".git" in path.parts or root is None or path.name == ".git":
        return
    pygit2 = load_pygit2()
    try:
        outer = pygit2.Repository(str(root))
        committed = _has_path(outer, (path.relative_to(root) / "HEAD").as_posix())
    except pygit2.GitError:
        return  # not a repository, or another user's, which git would not trust either
    if committed:
        raise Permanent(
            f"{path} is a bare repository committed in the repository at {root}; its configuration could execute programs: "
            "select a repository with -C"
        )


def _has_path(repository: Repository, path: str) -> bool:
    pygit2 = load_pygit2()
    try:
        return path in repository.revparse_single("HEAD").peel(pygit2.Tree)
    except KeyError:
        return False
