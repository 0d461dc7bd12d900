"""Fetch the source commit and the output branch, and read the previous output. Records are decoded on demand."""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched import __version__
from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.output_config import OutputConfig as OutputConfig
from gitsched.apis.gitsched.source_config import FactsConfig
from gitsched.apis.registered import Registered
from gitsched.decide.commit_metadata import SOURCE_TRAILER
from gitsched.decide.incremental.plan_state import NO_OUTPUT, PreviousOutput
from gitsched.git import OutputRepository, Repository, is_url, open_output
from gitsched.git.notes import NOTES_REF
from gitsched.git.output import list_state_refs
from gitsched.git.process import run_git
from gitsched.git.refs import list_linked_worktrees
from gitsched.model.commit import Commit
from gitsched.model.errors import DamagedOutput, Permanent
from gitsched.model.similar_names import describe_similar
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.storage import identify_build
from gitsched.reconcile.output.output_records import open_records
from gitsched.reconcile.output.recorded_output import follow_output
from gitsched.reconcile.run import Fetched, OutputLocation, ReconciledSource, RunContext, TrustedConfig
from gitsched.reconcile.source.config_file import read_config
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES
from gitsched.render.format_versions import FORMAT_VERSION
from gitsched.render.output_files import (
    CLUSTERS,
    FREEZE,
    KEPT,
    PLACEMENTS,
    RUN_METADATA,
    STATUS,
)
from gitsched.render.run_metadata import RunMetadata, parse_run_metadata
from gitsched.temporary_directory import TemporaryDirectory

if TYPE_CHECKING:
    from gitsched.model.document import Body

_FETCH_FACTS = Registered("gitsched.reconcile.facts.facts_branches", "fetch_facts")

_log = logging.getLogger("gitsched.reconcile")
_OUTPUT_NAMES = re.compile(rf"(README|LICENSE|\.git|hydrator\.metadata$|({CLUSTERS}|{STATUS}|{PLACEMENTS}|{KEPT})$)", re.IGNORECASE)
"""Names at the root of a branch that gitsched may take over: those it writes, and those that forges put into a new repository."""
MAX_FREEZE_SIZE = 1 << 16
"""Bytes of the file FREEZE that are read."""
_MAX_EDITS = 100
"""Commits of the output branch that are searched for the one that damaged it."""
MAX_FREEZE_LENGTH = 200
"""Characters of its first line that are shown."""


def fetch(context: RunContext, base: Commit | None = None, *, publishes: bool = False, shows_findings: bool = False) -> Fetched:
    """Fetch the source and the output.

    Options say where the output is, then earlier runs, then the settings of `base`, or of the source commit where there is none. Only
    remotes are contacted that options name or that the repository of the operator has. For a run that `publishes`, the settings of the
    source can keep the output from being pushed. The output of an earlier format version is returned in the present form. That a clone may
    lack the output branch of its origin is logged, unless the caller `shows_findings` of the output.
    """
    settings, source, _ = context
    commit, name, settled = _read_planned(context, base)
    config = settled.output
    if publishes and config.push is False and settings.push:
        context = context._replace(settings=settings._replace(push=None))
    open_location = partial(_open_location, context, publishes)
    location = open_location(config)
    trusted, reconciled = TrustedConfig(settled, base, base is not None), ReconciledSource()
    chosen = None
    if location.record is not None or location.has_notes:
        read_settings = partial(read_config_or_defaults, context)
        location, trusted, reconciled, chosen = follow_output(context, location, trusted, commit, open_location, read_settings)
    output, output_head, output_tree, prefix, record, _, is_edited = location
    if chosen is None:
        chosen = (output.branch, prefix.rstrip("/")) != (settled.output.branch.removeprefix("refs/heads/"), settled.output.path)
    named = bool(settings.output_branch) or settled.output.branch == OutputConfig().branch
    options = (*settings.paths, "--strict") if settings.strict else settings.paths
    # What distinguishes the uses of gitsched on this machine, without the remote: the output tree says which state a plan has, and commands
    # that only look do not name the remote that runs push to.
    key = (identify_build(), source.repository.common_dir, output.location, output.branch, prefix, *options)
    is_trusted = base is not None or (named and not settled.output.path)
    fetched = Fetched(
        commit,
        output,
        output_head,
        output_tree,
        prefix,
        record,
        is_trusted,
        sha256("\0".join(key).encode("utf-8", "surrogateescape")).hexdigest(),
        trusted,
        chosen_by_operator=chosen,
        is_edited=is_edited,
        reconciled=reconciled,
        branch=name or "",
    )
    for finding in () if shows_findings else output.unfetched:
        _log.warning("%s", finding.message)
    if publishes and name is None:
        fetched = fetched._replace(branch=_find_tracking_branch(source.repository, commit.oid))
    if trusted.config.source.facts != FactsConfig():
        fetched = fetched._replace(facts=_FETCH_FACTS(context, trusted.config, settings.push))
    fetched = fetched._replace(frozen=_read_freeze(fetched)) if output_tree else fetched
    if record is None or record.format_version == FORMAT_VERSION:
        return fetched
    from gitsched.reconcile.output.upgraded_output import upgrade_output  # only after an upgrade

    return upgrade_output(context, fetched, record)


def _read_planned(context: RunContext, base: Commit | None) -> tuple[Commit, str | None, Config]:
    """Fetch the source, and return the commit to plan, its branch, and the settings of `base`, else of that commit."""
    head = _read_head(context) if context.settings.branch is None else None
    branch = context.settings.branch or (head.config.source.branch if head is not None else "") or None
    context.report_step("fetching")
    context.source.fetch(branch)
    commit, name = _read_source_commit(context, branch, head)
    tree = (base or commit).tree
    settled = head.config if head is not None and head.commit.tree == tree else read_config_or_defaults(context, tree)
    return commit, name, settled


def _find_tracking_branch(repository: Repository, commit: str) -> str:
    """Return the branch of the origin whose head a commit is, as for a detached HEAD in CI; "" if there is none, or several."""
    prefix = "refs/remotes/origin/"
    names = [ref.removeprefix(prefix) for ref, oid in repository.list_refs(prefix) if oid == commit and ref != f"{prefix}HEAD"]
    return names[0] if len(names) == 1 else ""


def _open_location(context: RunContext, publishes: bool, config: OutputConfig) -> OutputLocation:
    """Open and fetch the output branch that options name, otherwise the settings. Only options can name another repository."""
    settings = context.settings
    output = open_output(
        context.source,
        branch=settings.output_branch or config.branch,
        location=settings.output,
        push=settings.push,
        cache=settings.cache,
        publishes=publishes,
    )
    path = config.path if settings.output_path is None else settings.output_path
    prefix = f"{path}/" if path else ""
    asks_state = output.remote is not None and settings.state != "off"
    head = output.fetch(list_state_refs(output.branch, prefix) if asks_state else ())
    if settings.choices.pinned is not None:
        head = _pin_output(output, settings.choices.pinned.output)
    repository = output.repository
    commit = repository.commit(head) if head else None
    tree = commit.tree if commit is not None else None
    is_edited = commit is not None and (commit.is_rewritten or not any(name == SOURCE_TRAILER for name, _ in commit.trailers))
    try:
        record = read_run_record(repository, tree, prefix)
    except DamagedOutput as error:
        raise DamagedOutput(f"{error}{_name_edit(repository, head, prefix)}") from error
    return OutputLocation(output, head, tree, prefix, record, repository.resolve_ref(NOTES_REF) is not None, is_edited)


def _name_edit(repository: Repository, head: str | None, prefix: str) -> str:
    """Return the commit of people that changed gitsched.json last, as far as it is one of the latest, and how to revert it."""
    for commit, parent in pairwise(repository.list_first_parents(head, _MAX_EDITS + 1)):
        found, before = (repository.find_entry(each.tree, f"{prefix}{RUN_METADATA}") for each in (commit, parent))
        if found != before:
            who = f"{commit.subject[:MAX_FREEZE_LENGTH]}, by {commit.author_name[:MAX_FREEZE_LENGTH]}"
            return f": git revert {commit.oid[:10]} on that branch ({who})"
    return ""


def fetch_output_history(fetched: Fetched, count: int) -> None:
    """Fetch the last `count` commits of the output branch from its remote, if the repository lacks some of them."""
    repository, head = fetched.output.repository, fetched.output_head
    if head is None or not repository.is_shallow:
        return
    known = [*repository.list_first_parents(head, count)]
    if known and len(known) < count and known[-1].parents:
        fetched.output.fetch_history(head, count)


def _pin_output(output: OutputRepository, commit: str) -> str | None:
    """Return a commit of the output branch that counts in place of its head; None for "". Raise Permanent if it is not available."""
    if not commit:
        return None
    if not output.repository.has_commit(commit) and not output.fetch_history(commit, 1).has_commit(commit):
        raise Permanent(f"commit {commit} of the output branch {output.branch} is not available in {output.location}")
    return commit


def read_source_config(context: RunContext) -> Config:
    """Return the settings of the source commit as of the last fetch; the defaults where gitsched.yaml is missing or broken."""
    head = _read_head(context) if context.settings.branch is None else None
    configured = head.config.source.branch if head is not None else ""
    commit = context.source.resolve_branch(context.settings.branch or configured or None)
    return read_config_or_defaults(context, context.source.repository.commit(commit).tree)


def find_commit(context: RunContext, revision: str) -> Commit:
    """Return the commit of a branch, tag or id. A missing one is fetched from the remote."""
    source = context.source
    if is_url(context.settings.location):
        try:
            source.fetch(None if revision == "HEAD" else revision)
        except Permanent:
            source.fetch_commit(revision)  # not a branch: the id of a commit
    repository = source.repository
    found = repository.resolve(revision) or repository.resolve(f"refs/remotes/origin/{revision}")
    if found is None:
        prefixes = ("refs/heads/", "refs/tags/", "refs/remotes/origin/")
        names = {name.removeprefix(prefix) for prefix in prefixes for name, _ in repository.list_refs(prefix)}
        raise Permanent(f"{repository.root} has no branch, tag or commit {revision!r}{describe_similar(revision, names)}")
    return repository.commit(found)


class _Head(NamedTuple):
    """The commit at HEAD, its branch, None for a detached HEAD, and its settings, which may name another branch as the source."""

    commit: Commit
    branch: str | None
    config: Config


def _read_head(context: RunContext) -> _Head | None:
    """Return what is at HEAD; None for a remote, and for a repository without a commit."""
    repository = context.source.repository
    head = None if context.source.url is not None else repository.resolve("HEAD")
    if head is None:
        return None
    commit = repository.commit(head)
    return _Head(commit, repository.head_branch(), read_config_or_defaults(context, commit.tree))


def read_config_or_defaults(context: RunContext, tree: str) -> Config:
    """Return the settings of a tree; the defaults where gitsched.yaml is missing or broken."""
    return read_config(context.source.repository, tree, context.caches.files) or Config()


def _read_source_commit(context: RunContext, branch: str | None, head: _Head | None) -> tuple[Commit, str | None]:
    """Return the source commit, and its branch, None for a detached HEAD; what is at `head` has been read.

    For a worktree it has no id, and its tree holds the uncommitted files. If there are any, its time is now, that of the commit to come.
    """
    settings, repository = context.settings, context.source.repository
    if settings.worktree and repository.resolve("HEAD") is None:
        return Commit("", write_worktree(repository), (), settings.now, "files not committed yet", "", ()), None
    if branch is None and head is not None:
        commit, name, _ = head
    else:
        oid, name = context.source.find_head(branch)
        commit = repository.commit(oid)
    if settings.revision is not None:
        commit = find_commit(context, settings.revision)
    if not settings.worktree:
        return commit, name
    tree = write_worktree(repository)
    time = commit.time if tree == commit.tree else max(settings.now.replace(microsecond=0), commit.time)
    return commit._replace(oid="", tree=tree, parents=(commit.oid,), time=time), name


def write_worktree(repository: Repository) -> str:
    """Return the tree of the files in the worktree without ignored ones and without other worktrees. The index and the objects of the
    repository do not change."""
    root = Path(repository.root).resolve()
    linked = [Path(path).relative_to(root) for path in list_linked_worktrees(repository) if Path(path).is_relative_to(root)]
    excluded = [f":(exclude,literal){path}" for path in linked if path.parts]
    with TemporaryDirectory("index") as directory:
        index = {"GIT_INDEX_FILE": str(directory / "index"), **repository.scratch.environment}
        for arguments in (["add", "--all", "--", ".", *excluded], ["write-tree"]):
            done = run_git(arguments, cwd=repository.root, extra_environment=index)
            if done.exit_code != 0:
                raise Permanent(f"the files of {repository.root} cannot be read: {done.stderr.strip()}")
        return done.stdout.strip()


def _read_freeze(fetched: Fetched) -> str:
    """Return why the file FREEZE of the output branch freezes placements; "" if there is no such file.

    A directory, a symbolic link or a submodule of this name freezes them, too.
    """
    if _find_output_entry(fetched, FREEZE) is None:
        return ""
    blob, repository = find_output_blob(fetched, FREEZE), fetched.output.repository
    text = repository.read_small_blob(blob, MAX_FREEZE_SIZE) if blob is not None else None
    lines = (text or b"").decode("utf-8", "replace").strip().splitlines()
    return (lines[0].strip()[:MAX_FREEZE_LENGTH] if lines else "") or f"the output branch has the file {FREEZE}"


def read_run_record(repository: Repository, tree: str | None, prefix: str) -> RunMetadata | None:
    """Return gitsched.json of an output tree; None if there is none.

    Raise Permanent for a branch that gitsched did not write: a run replaces the content of the branch, so a mistyped name must not
    empty it. So does an output without the file: a run would begin anew, without holds, overlaps and the guard.
    """
    entry = repository.find_entry(tree, f"{prefix}{RUN_METADATA}") if tree else None
    if entry is not None and entry[1] not in REGULAR_FILE_MODES:
        raise DamagedOutput(f"{prefix}{RUN_METADATA} of the output branch is no file: revert the commit that changed it")
    if tree and entry is None and repository.find_entry(tree, f"{prefix}{STATUS}") is not None:
        raise DamagedOutput(f"the output branch has records, but no {prefix}{RUN_METADATA}: revert the commit that removed it")
    if tree and entry is None and not prefix:
        foreign = [name for name in repository.list_directory(tree, "") if not _OUTPUT_NAMES.match(name)]
        if foreign:
            known = ", ".join(sorted(foreign)[:3])
            raise Permanent(
                f"the output branch exists, and gitsched did not write it: it holds no {RUN_METADATA}, but {known}. "
                "Choose another branch, or set spec.output.path in gitsched.yaml to share this one"
            )
    return _parse_record(repository.blob(entry[0])) if entry else None


@lru_cache(maxsize=6)
def _parse_record(data: bytes) -> RunMetadata:
    """Parse gitsched.json once: a command reads those of the newest commits for several questions."""
    return parse_run_metadata(data, __version__)


def read_previous_output(context: RunContext, fetched: Fetched) -> PreviousOutput:
    """Return the previous output for a complete plan."""
    caches, tree = context.caches, fetched.output_tree
    written, caches.last_written = caches.last_written, None
    if tree is None:
        return NO_OUTPUT
    records, repository = open_records(context, fetched), fetched.output.repository
    if written is not None and written.output_tree == tree:
        records.add_written(document for outcome in written.plan.outcomes.values() for document in outcome.records)
    records.prefetch()
    clusters = repository.list_directory(tree, f"{fetched.prefix}{CLUSTERS}")
    retiring = fetched.record.retiring if fetched.record else {}
    return PreviousOutput(
        records,
        records.list_except,
        partial(find_output_blob, fetched),
        frozenset(clusters),
        retiring,
        partial(_list_delivered, repository, clusters),
        fetched.record.retained if fetched.record else (),
        frozenset(fetched.record.undelivered if fetched.record else ()),
        partial(_read_manifest, fetched),
        partial(_has_files, fetched),
        fetched.record.placed if fetched.record else {},
    )


def _read_manifest(fetched: Fetched, path: str) -> Body | None:
    from gitsched.manifests.parser import parse_file  # few runs compare what was delivered with what was decided

    blob = find_output_blob(fetched, path)
    file = parse_file(fetched.output.repository.blob(blob), path=path, validate=None) if blob is not None else None
    return file.documents[0].body if file is not None and file.documents else None


def _has_files(fetched: Fetched, commit: str, paths: Iterable[str]) -> bool | None:
    from gitsched.reconcile.rollout_input import list_output_commits  # few outputs have files that wait for reports

    repository = fetched.output.repository
    if commit not in list_output_commits(repository, fetched.output_head):
        return None
    tree = repository.commit(commit).tree
    entries = ((repository.find_entry(tree, f"{fetched.prefix}{path}"), find_output_blob(fetched, path)) for path in paths)
    return all(entry is not None and entry[0] == blob for entry, blob in entries)


_DIRECTORY_MODE = 0o040000


def _list_delivered(
    repository: Repository, clusters: Mapping[str, tuple[str, int]], paths: Iterable[str]
) -> dict[str, frozenset[str]]:
    """Return which of these paths each cluster directory has; a directory without any is left out."""
    wanted = frozenset(paths)
    directories = sorted({posixpath.dirname(path) for path in wanted})
    found = {}
    for name, (tree, mode) in clusters.items():
        if mode != _DIRECTORY_MODE:
            continue
        listed = (
            posixpath.join(directory, entry) for directory in directories for entry in repository.list_directory(tree, directory)
        )
        present = wanted.intersection(listed)
        if present:
            found[name] = present
    return found


def find_output_blob(fetched: Fetched, path: str) -> str | None:
    """Return the blob of a regular file in the previous output; None for anything else at the path."""
    entry = _find_output_entry(fetched, path)
    return entry[0] if entry and entry[1] in REGULAR_FILE_MODES else None


def _find_output_entry(fetched: Fetched, path: str) -> tuple[str, int] | None:
    tree = fetched.output_tree
    return fetched.output.repository.find_entry(tree, f"{fetched.prefix}{path}") if tree else None
