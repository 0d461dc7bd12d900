"""Where both ends are before a run: the commit to be read, and the output branch as it is."""

from __future__ import annotations

from typing import NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.config import Output as OutputConfig
from gitsched.git import Commit, Output, Source, is_url, open_output
from gitsched.model.errors import Permanent
from gitsched.reconcile.memo import Memo
from gitsched.reconcile.previous import read_record
from gitsched.reconcile.settings import Settings
from gitsched.reconcile.snapshot import read_config
from gitsched.reconcile.worktree import write_worktree
from gitsched.render.record import Record


class Observed(NamedTuple):
    """What a run starts from. `prefix` is where the output lies inside its branch: "" or "path/".

    `vouched` says that not the commit itself says where its output is, which a stranger's would say as a stranger likes.
    """

    source: Commit
    output: Output
    head: str | None
    tree: str | None
    prefix: str
    record: Record | None
    vouched: bool = True


def observe(settings: Settings, source: Source, memo: Memo, settled: Commit | None = None) -> Observed:
    """Fetch both ends, and see where they are. `settled` is the commit whose settings say where the output is; the source's own by
    default, which for a stranger's commit would be wherever a stranger likes."""
    branch = settings.branch or _configured_branch(settings, source, memo)
    source.fetch(branch)
    commit = _commit(settings, source, branch)
    config = (read_config(source.repository, (settled or commit).tree, memo) or Config()).output
    push = settings.push or ("origin" if config.push and not is_url(settings.location) and not config.repository else None)
    output = open_output(
        source,
        branch=settings.output_branch or config.branch,
        location=settings.output or config.repository or None,
        push=push,
        cache=settings.cache,
    )
    head = output.observe()
    tree = output.repository.commit(head).tree if head else None
    prefix = f"{config.path}/" if config.path else ""
    named = (bool(settings.output_branch) or config.branch == OutputConfig().branch) and (
        bool(settings.output) or not config.repository
    )
    vouched = settled is not None or (named and not config.path)
    return Observed(commit, output, head, tree, prefix, read_record(output.repository, tree, prefix), vouched)


def find(settings: Settings, source: Source, revision: str) -> Commit:
    """The commit that a branch, tag or id names; what is not here is looked for at the remote."""
    if is_url(settings.location):
        try:
            source.fetch(None if revision == "HEAD" else revision)
        except Permanent:
            source.fetch_commit(revision)  # no branch: a commit by its id
    repository = source.repository
    found = repository.resolve(revision) or repository.resolve(f"refs/remotes/origin/{revision}")
    if found is None:
        raise Permanent(f"{repository.place} has no branch, tag or commit {revision!r}")
    return repository.commit(found)


def _configured_branch(settings: Settings, source: Source, memo: Memo) -> str | None:
    """The branch that gitsched.yaml on HEAD asks for; HEAD's own without one."""
    if is_url(settings.location):
        return None
    repository = source.repository
    head = repository.resolve("HEAD")
    if head is None:
        return None
    return (read_config(repository, repository.commit(head).tree, memo) or Config()).source.branch or None


def _commit(settings: Settings, source: Source, branch: str | None) -> Commit:
    repository = source.repository
    if settings.worktree and repository.resolve("HEAD") is None:
        return Commit("", write_worktree(repository), (), settings.now, "files not committed yet", "", ())
    oid = source.head(branch)
    commit = repository.commit(oid) if settings.revision is None else find(settings, source, settings.revision)
    if settings.worktree:
        return commit._replace(oid="", tree=write_worktree(repository))
    return commit
