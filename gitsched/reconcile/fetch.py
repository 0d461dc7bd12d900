"""Fetch the source commit and the head of the output branch; uncommitted files of a worktree count as a commit."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.config import OutputConfig as OutputConfig
from gitsched.git import OutputRepository, Repository, SourceRepository, is_url, open_output
from gitsched.git.process import run_git
from gitsched.model.commit import Commit
from gitsched.model.errors import Permanent
from gitsched.reconcile.cache.parse_cache import ParseCache
from gitsched.reconcile.previous_output import read_run_record
from gitsched.reconcile.run import RunSettings
from gitsched.reconcile.source_tree import read_config
from gitsched.render.run_metadata import RunMetadata


def write_worktree(repository: Repository) -> str:
    """The tree of the files as they lie in the work tree, ignored ones left out; the index is not touched."""
    with tempfile.TemporaryDirectory() as directory:
        index = {"GIT_INDEX_FILE": str(Path(directory) / "index")}
        for arguments in (["add", "--all", "--", "."], ["write-tree"]):
            done = run_git(arguments, cwd=repository.root, extra_environment=index)
            if done.exit_code != 0:
                raise Permanent(f"the files of {repository.root} cannot be read: {done.stderr.strip()}")
        return done.stdout.strip()


class Fetched(NamedTuple):
    """What a run starts from. `prefix` is where the output lies inside its branch: "" or "path/".

    `vouched` says that not the commit itself says where its output is, which a stranger's would say as a stranger likes.
    """

    source: Commit
    output: OutputRepository
    output_head: str | None
    output_tree: str | None
    prefix: str
    record: RunMetadata | None
    output_trusted: bool = True


def fetch(settings: RunSettings, source: SourceRepository, memo: ParseCache, settled: Commit | None = None) -> Fetched:
    """Fetch both ends, and see where they are. `settled` is the commit whose settings say where the output is; the source's own by
    default, which for a stranger's commit would be wherever a stranger likes."""
    branch = settings.branch or _read_configured_branch(settings, source, memo)
    source.fetch(branch)
    commit = _read_source_commit(settings, source, branch)
    config = (read_config(source.repository, (settled or commit).tree, memo) or Config()).output
    push = settings.push or ("origin" if config.push and not is_url(settings.location) and not config.repository else None)
    output = open_output(
        source,
        branch=settings.output_branch or config.branch,
        location=settings.output or config.repository or None,
        push=push,
        cache=settings.cache,
    )
    head = output.fetch()
    tree = output.repository.commit(head).tree if head else None
    prefix = f"{config.path}/" if config.path else ""
    named = (bool(settings.output_branch) or config.branch == OutputConfig().branch) and (
        bool(settings.output) or not config.repository
    )
    vouched = settled is not None or (named and not config.path)
    return Fetched(commit, output, head, tree, prefix, read_run_record(output.repository, tree, prefix), vouched)


def find_commit(settings: RunSettings, source: SourceRepository, revision: str) -> Commit:
    """The commit that a branch, tag or id names; what is not here is looked for at the remote."""
    if is_url(settings.location):
        try:
            source.fetch(None if revision == "HEAD" else revision)
        except Permanent:
            source.fetch_commit(revision)  # no branch: a commit by its id
    repository = source.repository
    found = repository.resolve(revision) or repository.resolve(f"refs/remotes/origin/{revision}")
    if found is None:
        raise Permanent(f"{repository.root} has no branch, tag or commit {revision!r}")
    return repository.commit(found)


def _read_configured_branch(settings: RunSettings, source: SourceRepository, memo: ParseCache) -> str | None:
    """The branch that gitsched.yaml on HEAD asks for; HEAD's own without one."""
    if is_url(settings.location):
        return None
    repository = source.repository
    head = repository.resolve("HEAD")
    if head is None:
        return None
    return (read_config(repository, repository.commit(head).tree, memo) or Config()).source.branch or None


def _read_source_commit(settings: RunSettings, source: SourceRepository, branch: str | None) -> Commit:
    repository = source.repository
    if settings.worktree and repository.resolve("HEAD") is None:
        return Commit("", write_worktree(repository), (), settings.now, "files not committed yet", "", ())
    oid = source.resolve_branch(branch)
    commit = repository.commit(oid) if settings.revision is None else find_commit(settings, source, settings.revision)
    if settings.worktree:
        return commit._replace(oid="", tree=write_worktree(repository))
    return commit
