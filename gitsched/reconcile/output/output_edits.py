"""Find what people changed in the files of the output since the last run, and what a run makes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from gitsched.decide.commit_metadata import CAUSE_TRAILER, SOURCE_TRAILER
from gitsched.git import Repository
from gitsched.git.notes import list_noted_commits
from gitsched.manifests.parser import parse_file
from gitsched.model.commit import RELEASE_CLUSTER_TRAILER, RELEASE_TRAILER, Commit
from gitsched.model.document import Key
from gitsched.model.finding import Finding, format_names
from gitsched.model.fleet_status import HandEdit
from gitsched.model.history import SourceChange
from gitsched.model.time import format_time
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.output.history_records import MAX_RECORD, CommitRecords, HistoryBranch
from gitsched.reconcile.run import Fetched
from gitsched.reconcile.source.unread_entries import read_regular_file
from gitsched.render.output_files import FREEZE, METADATA_FILES, STATUS, escape_segment
from gitsched.report.lines import abbreviate_oid

MAX_EDITS = 100
"""Commits of people since the last run that are examined, and latest commits among which the edit of a record is searched."""
MAX_NOTED_COMMITS = 10_000
"""Commits with a note among which the original of an amended commit is searched."""
_UNKNOWN_FILES = "files that cannot be named without its parents, which were not fetched,"
MAX_NAMED_PATHS, MAX_AUTHOR_LENGTH = 5, 100


def is_written_by_run(commit: Commit) -> bool:
    """Return whether a run made a commit of the output branch."""
    return any(name == SOURCE_TRAILER for name, _ in commit.trailers)


def name_author(commit: Commit) -> str:
    """Return who made a commit of the output branch: the author, or who committed or amended the commit of a run."""
    return commit.name if is_written_by_run(commit) else commit.author_name


class EditFindings(NamedTuple):
    """Warnings about commits of people on the output branch, and the ids of those that changed records from which the run has decided."""

    findings: list[Finding]
    deciding: list[str]


def find_undone_edits(fetched: Fetched, tree: str) -> EditFindings:
    """Return a warning for each commit whose changes to files of the output are not in the planned `tree`, or are records that stay in it,
    from which the run has decided; the newest first."""
    findings, deciding = list[Finding](), list[str]()
    for count, (commit, before, is_complete) in enumerate(_list_edits(fetched), start=1):
        if count > MAX_EDITS:
            message = (
                f"people made more than {MAX_EDITS} commits on the output branch since the last run: those up to "
                f"{abbreviate_oid(commit.oid)} are not examined, and a run takes back what they changed; protect the branch"
            )
            findings.append(Finding("warning", "output-edited", message, is_change=True))
            break
        if not is_complete:
            findings.append(_report_edit(commit, _UNKNOWN_FILES))
            break
        repository = fetched.output.repository
        undone, kept = list[str](), list[str]()
        for name in _select_files(fetched.prefix, repository.changed_paths(before, commit.tree)):
            entry = repository.find_entry(commit.tree, f"{fetched.prefix}{name}")
            if entry == _find_head_entry(fetched, f"{fetched.prefix}{name}"):
                if repository.find_entry(tree, f"{fetched.prefix}{name}") != entry:
                    undone.append(name)
                elif name.startswith(f"{STATUS}/"):
                    kept.append(name)
        if undone:
            findings.append(_report_edit(commit, format_names(undone, MAX_NAMED_PATHS)))
        if kept:
            effect = (
                f"a run decides from these records: unless that is meant, git revert {abbreviate_oid(commit.oid)} on that branch"
            )
            findings.append(_report_edit(commit, format_names(kept, MAX_NAMED_PATHS), effect))
            deciding.append(commit.oid)
    return EditFindings(findings, deciding)


def list_hand_edits(fetched: Fetched) -> Iterator[HandEdit]:
    """Yield the commits of people since the last run that changed files of the output, the newest first. A freeze changes none."""
    for commit, before, is_complete in islice(_list_edits(fetched), MAX_EDITS):
        changed = fetched.output.repository.changed_paths(before, commit.tree) if is_complete else []
        files = tuple(_select_files(fetched.prefix, changed))
        if files:
            yield _make_hand_edit(commit, files)


def list_changed_entries(
    fetched: Fetched,
) -> Iterator[tuple[Commit, list[tuple[str, tuple[str, int] | None, tuple[str, int] | None]]]]:
    """Yield the commits of people since the last run, the newest first, with the files of the output that they changed and that are still
    so, each with the entries before and after. Those without their parents have no files."""
    repository = fetched.output.repository
    for commit, before, is_complete in islice(_list_edits(fetched), MAX_EDITS):
        changed = []
        for name in _select_files(fetched.prefix, repository.changed_paths(before, commit.tree) if is_complete else []):
            path = f"{fetched.prefix}{name}"
            entry = repository.find_entry(commit.tree, path)
            if entry == _find_head_entry(fetched, path):
                changed.append((name, repository.find_entry(before, path) if before is not None else None, entry))
        yield commit, changed


class EarlierEdits(NamedTuple):
    """The commits of people between two runs that changed files of the output, the newest first, and these files."""

    commits: tuple[SourceChange, ...] = ()
    files: frozenset[str] = frozenset()


def list_earlier_edits(repository: Repository, prefix: str, commit: Commit) -> EarlierEdits:
    """Return the commits of people since the last run, up to one of the branch. Of an amended commit of a run, the files are not known."""
    found, files = list[SourceChange](), set[str]()
    for _ in range(MAX_EDITS):
        is_run = is_written_by_run(commit)
        has_parent = not is_run and bool(commit.parents) and repository.has(commit.parents[0])
        parent = repository.commit(commit.parents[0]) if has_parent else None
        changed = (
            set(_select_files(prefix, repository.changed_paths(parent.tree, commit.tree))) if parent is not None else set[str]()
        )
        if changed or (is_run and commit.is_rewritten):
            found.append(_describe_edit(commit))
            files |= changed
        if parent is None:
            break
        commit = parent
    return EarlierEdits(tuple(found), frozenset(files))


def find_cause(commit: Commit, edits: EarlierEdits, moved: Collection[Key], *, is_same: bool) -> str:
    """Return the cause of the commit of a run with what people edited before it: "records" if only their edits of records moved workloads,
    "edit" if it takes back what they changed, of one of the same inputs "release" if it released something, else "rerun". `is_same`: no
    input changed since the run before."""
    trailers = dict(commit.trailers)
    cause = trailers.get(CAUSE_TRAILER, "")
    records = [path for path in edits.files if path.startswith(f"{STATUS}/")]
    if moved and all(any(_is_record_of(path, key) for path in records) for key in moved):
        return "records"
    if edits.commits and is_same and cause in ("source", "facts"):
        return "edit"
    if not (is_same and cause == "source"):
        return cause
    return "rerun" if trailers.keys().isdisjoint((RELEASE_TRAILER, RELEASE_CLUSTER_TRAILER)) else "release"


def list_edited_workloads(records: CommitRecords, output: HistoryBranch, commit: Commit, parent: Commit) -> list[Key]:
    """Return the workloads that the filter selects whose records a commit of people changed."""
    changed = _select_files(output.prefix, output.repository.changed_paths(parent.tree, commit.tree))
    edited = {_read_record_name(path) for path in changed if path.startswith(f"{STATUS}/")}
    return [key for key in records.list_selected(parent) if not edited.isdisjoint(_list_record_names(key))] if edited else []


def find_record_edit(fetched: Fetched, key: Key) -> SourceChange | None:
    """Return the latest commit of people on the output branch that changed the record of a workload as runs still have it; None without
    one among the latest commits, as far as they are here."""
    edits = _list_kept_records(fetched, lambda name: _is_record_of(name, key))
    return next((_describe_edit(commit) for commit, _, _ in edits), None)


def list_followed_edits(fetched: Fetched) -> Iterator[HandEdit]:
    """Yield the latest commits of people on the output branch whose records runs have followed and still have, with these records. A
    revert, which restores what a run wrote, is none."""
    found: dict[str, tuple[Commit, list[str]]] = {}
    for commit, name, is_followed in _list_kept_records(fetched, lambda _: True):
        if is_followed and "\nThis reverts commit " not in commit.message:
            found.setdefault(commit.oid, (commit, []))[1].append(name)
    yield from (_make_hand_edit(*one) for one in found.values())


def _make_hand_edit(commit: Commit, files: Iterable[str]) -> HandEdit:
    one = _describe_edit(commit)
    return HandEdit(commit.oid, one.subject, one.author, commit.time, tuple(files))


def _list_kept_records(fetched: Fetched, is_meant: Callable[[str], bool]) -> Iterator[tuple[Commit, str, bool]]:
    """Yield the latest commits of people on the output branch with each record that runs still have as it is there, and whether a run came
    after it."""
    repository, head, newer = fetched.output.repository, fetched.output_head, fetched.output_tree
    is_followed = False
    for _ in range(MAX_EDITS):
        if head is None or not repository.has(head):
            return
        commit = repository.commit(head)
        head = commit.parents[0] if commit.parents else None
        if is_written_by_run(commit):
            newer, is_followed = commit.tree, True
            continue
        if head is None or not repository.has(head):
            return
        before = repository.commit(head).tree
        for name in _select_files(fetched.prefix, repository.changed_paths(before, commit.tree)):
            if name.startswith(f"{STATUS}/") and is_meant(name):
                path = f"{fetched.prefix}{name}"
                old, edited, kept = (repository.find_entry(tree, path) if tree else None for tree in (before, commit.tree, newer))
                is_kept = kept == edited or _read_decision(repository, kept) != _read_decision(repository, old)
                if is_kept and _find_head_entry(fetched, path) in {edited, kept} - {old}:
                    yield commit, name, is_followed


def _read_decision(repository: Repository, entry: tuple[str, int] | None) -> Any:
    """Return what a record says apart from times, which a run writes anew where it takes an edit back; None without a record."""
    data = read_regular_file(repository, entry, MAX_RECORD)
    if data is None:
        return None
    parsed = parse_file(data, path="record.yaml", validate=None)
    return [_omit_times(document.body) for document in parsed.documents]


def _omit_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _omit_times(one) for name, one in value.items() if not name.endswith("Time")}
    return [_omit_times(one) for one in value] if isinstance(value, list) else value


def _is_record_of(path: str, key: Key) -> bool:
    """Return whether a path is that of the record of a workload."""
    return _read_record_name(path) in _list_record_names(key)


def _read_record_name(path: str) -> tuple[str, str]:
    """Return the segments of namespace and name of the path of a record."""
    *_, namespace, name = path.removesuffix(".yaml").split("/")
    return namespace, name


def _list_record_names(key: Key) -> list[tuple[str, str]]:
    """Return the segments of namespace and name of the records of a workload: of itself, and of its binding, which has its kind in the
    name."""
    return [(escape_segment(key.namespace), escape_segment(name)) for name in (key.name, f"{key.name}-{key.kind.lower()}")]


def _describe_edit(commit: Commit) -> SourceChange:
    return SourceChange(commit.oid, commit.subject[:MAX_AUTHOR_LENGTH], name_author(commit)[:MAX_AUTHOR_LENGTH], commit.time)


def _select_files(prefix: str, paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths of files of the output that hold decisions, without the prefix."""
    own = (path.removeprefix(prefix) for path in paths if path.startswith(prefix))
    return (name for name in own if name not in METADATA_FILES and name != FREEZE)


def _find_head_entry(fetched: Fetched, path: str) -> tuple[str, int] | None:
    return fetched.output.repository.find_entry(fetched.output_tree, path) if fetched.output_tree else None


def _list_edits(fetched: Fetched) -> Iterator[tuple[Commit, str | None, bool]]:
    """Yield the commits of people after the last one of a run, by first parents, the newest first, each with the tree before it, and
    whether that tree is known: the output branch is fetched without its history, and the rest may not be available.

    Someone may have amended the commit of the run. Then it is the last one, with the tree that the run wrote, if that commit still exists.
    """
    head = fetched.output_head
    for _ in range(MAX_EDITS + 1):
        repository = fetched.output.repository
        if head is None or not repository.has(head):
            return
        commit = repository.commit(head)
        if is_written_by_run(commit):
            original = _find_original(repository, commit) if commit.is_rewritten else None
            if original is not None:
                yield commit, original.tree, True
            return
        head = commit.parents[0] if commit.parents else None
        if head is not None and not repository.has(head):
            repository = fetched.output.fetch_history(commit.oid, MAX_EDITS + 1)
        is_complete = head is None or repository.has(head)
        yield commit, repository.commit(head).tree if head and is_complete else None, is_complete


def _find_original(repository: Repository, rewritten: Commit) -> Commit | None:
    """Return the commit that a run made of the same source on the same parent: runs write a note on each of their commits."""
    for oid in islice(list_noted_commits(repository), MAX_NOTED_COMMITS):
        if oid != rewritten.oid and repository.has_commit(oid):
            commit = repository.commit(oid)
            if commit.parents == rewritten.parents and commit.author == rewritten.author and not commit.is_rewritten:
                return commit
    return None


def _report_edit(commit: Commit, names: str, effect: str = "a run takes that back; change the source") -> Finding:
    author = f"{commit.name} <{commit.email}>" if is_written_by_run(commit) or not commit.author else commit.author
    message = (
        f"commit {abbreviate_oid(commit.oid)} of {author[:MAX_AUTHOR_LENGTH]} ({format_time(commit.time)}) changed {names} on the "
        f"output branch, which only runs write: {effect}, and protect the branch"
    )
    return Finding("warning", "output-edited", message, is_change=True)
