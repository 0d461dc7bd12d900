"""What the refs of a repository point to, read without the modules that read and write objects."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from gitsched.git.libgit2 import reject_embedded_repository
from gitsched.git.pygit2_loader import load_extension
from gitsched.named_tuples import NamedTuple

MAX_REFS = 10_000
_CONFIGURATION = ("config", "shallow", "info/grafts", "objects/info/alternates")
"""Files of a Git directory that say, besides the refs, which objects there are and how they are read."""


class RefState(NamedTuple):
    """The Git directory, a digest of all refs and of the configuration of the repository, and the objects that refs point to."""

    git_directory: str
    digest: str
    targets: frozenset[str]


def read_ref_state(location: Path) -> RefState | None:
    """Return the state of the refs of the repository at a path or in a parent directory.

    None for what only a complete run can tell: no repository, one that git does not trust, a linked worktree, or more than MAX_REFS refs.
    """
    extension = load_extension()
    try:
        found = extension.discover_repository(str(location))
        if found is None or (Path(found) / "commondir").exists():
            return None
        reject_embedded_repository(Path(found))
        repository = extension.Repository(extension.init_file_backend(found, 0))
        names = sorted(repository.raw_listall_references())
        if len(names) > MAX_REFS:
            return None
        refs = [(name, repository.lookup_reference(name).target) for name in ["HEAD", *(name.decode() for name in names)]]
        files = [path.read_bytes() if path.is_file() else b"" for path in (Path(found, name) for name in _CONFIGURATION)]
    except (extension.GitError, KeyError, OSError, UnicodeDecodeError):
        return None
    rows = [*(f"{name} {target}".encode() for name, target in refs), *(sha256(data).digest() for data in files)]
    return RefState(found, sha256(b"\0".join(rows)).hexdigest(), frozenset(str(target) for _, target in refs))


def has_commits(git_directory: str, commits: Iterable[str]) -> bool:
    """Return whether commits and their trees can be read."""
    extension = load_extension()
    try:
        repository = extension.Repository(extension.init_file_backend(git_directory, 0))
        for commit in commits:
            repository.revparse_single(f"{commit}^{{tree}}")
    except (extension.GitError, KeyError, OSError, ValueError):
        return False
    return True
