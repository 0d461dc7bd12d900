"""Find where earlier runs have written decisions, so that a commit cannot send them elsewhere: only the operator moves the output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.output_config import OutputConfig
from gitsched.git.remote_refs import list_remote_refs
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.run import RECONCILED, Fetched, OutputLocation, ReconciledSource, RunContext, TrustedConfig
from gitsched.reconcile.source.source_notes import (
    OPERATOR_OUTPUTS,
    OUTPUT_MOVES,
    OutputNote,
    name_location,
    read_output_note,
    read_reconciled,
)
from gitsched.render.output_files import CLUSTERS, PLACEMENTS, RUN_METADATA, STATUS

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.git import OutputRepository, Repository, SourceRepository
    from gitsched.model.commit import Commit

MAX_DIRECTORIES = 2_000
"""Directories of an output branch that are searched for gitsched.json."""
MAX_PARENTS = 1_000
"""Commits of the source that are searched for those of earlier runs."""
_HEADS, _TRACKING = "refs/heads/", "refs/remotes/origin/"
_OUTPUT_DIRECTORIES = frozenset((CLUSTERS, STATUS, PLACEMENTS))


OpenLocation = Callable[[OutputConfig], OutputLocation]


class FollowedOutput(NamedTuple):
    """Where earlier runs have decided, the settings that count there, what they have reconciled, and whether options chose the location,
    None if no run is recorded there."""

    location: OutputLocation
    trusted: TrustedConfig
    reconciled: ReconciledSource
    chosen_by_operator: bool | None


def follow_output(
    context: RunContext,
    found: OutputLocation,
    settled: TrustedConfig,
    planned: Commit,
    open_location: OpenLocation,
    read_settings: Callable[[str], Config],
) -> FollowedOutput:
    """Follow the earlier runs of this source from the location that settings name. The settings of the last source commit that they have
    planned count, unless `settled` are those of a given commit. `read_settings` returns those of a tree."""
    config, trusted = settled.config.output, settled
    location = find_recorded_location(context, found, config, open_location)
    if settled.commit is None:
        last = find_last_reconciled(context.source, location)
        if last is not None:
            trusted = TrustedConfig(settled.config if last.tree == planned.tree else read_settings(last.tree), last)
        other_named = trusted.config.output.branch.removeprefix(_HEADS) != location.output.branch
        is_next = last is not None and last.oid in (planned.oid, *planned.parents)
        if context.settings.output_branch is None and (other_named or not is_next):
            later = find_moved_location(context, location, config, open_location)
            if later is None and last is not None:
                later = find_later_location(context, location, trusted, planned, open_location)
            location = later or location
            last = find_last_reconciled(context.source, later) if later is not None else None
            if last is not None:
                trusted = TrustedConfig(read_settings(last.tree), last)
    chosen = is_chosen_by_operator(location) if location.record is not None else None
    return FollowedOutput(location, trusted, read_reconciled(location), chosen)


def find_recorded_location(
    context: RunContext, found: OutputLocation, config: OutputConfig, open_location: OpenLocation
) -> OutputLocation:
    """Return the location that earlier runs of this source have used in place of the one that settings name; `found` if there is none.

    Options of the operator decide where they are given. Otherwise a branch counts that gitsched wrote for this source, unless the operator
    chose it by other options than those of this run.
    """
    settings, source = context.settings, context.source
    if settings.output_branch is None and not _is_own(source, found):
        for branch in _list_written_branches(found.output, source):
            if branch != found.output.branch:
                other = _open_directory(context, config._replace(branch=branch), open_location)
                if _is_own(source, other):
                    return other
    if settings.output_path is None and found.record is None and found.tree is not None:
        return _open_directory(context, config._replace(branch=found.output.branch), open_location)
    return found


def find_last_reconciled(source: SourceRepository, location: OutputLocation) -> Commit | None:
    """Return the newest source commit that a run has planned for this output; None if there is none, or it is not available."""
    if location.record is None or location.head is None:
        return None
    for oid in (read_reconciled(location).source, location.record.source):
        if oid and source.fetch_commit(oid):
            return source.repository.commit(oid)
    return None


def find_later_location(
    context: RunContext, found: OutputLocation, trusted: TrustedConfig, planned: Commit, open_location: OpenLocation
) -> OutputLocation | None:
    """Return the location where a later run has decided than the last one at `found`, so that a commit cannot send decisions back to a
    branch that the operator has left; None if there is none. Runs count in the order of the first parents of the planned commit."""
    source, order = context.source, {oid: age for age, oid in enumerate(_list_first_parents(context.source.repository, planned))}
    last = trusted.commit
    if last is None or last.oid not in order:
        return None
    later: list[tuple[int, str]] = []
    for branch, head in sorted(_list_heads(found.output).items()):
        noted = read_output_note(found.output.repository, head).source
        age = order[noted] if noted in order and noted else len(order)  # files of a worktree have no id, and most branches no note
        is_named = branch == trusted.config.output.branch.removeprefix(_HEADS)
        if branch != found.output.branch and (age < order[last.oid] or (age == order[last.oid] and is_named)):
            later.append((age, branch))
    for _, branch in sorted(later):
        other = _open_directory(context, trusted.config.output._replace(branch=branch), open_location)
        if _is_own(source, other):
            return other
    return None


def _list_first_parents(repository: Repository, commit: Commit) -> Iterator[str]:
    """Yield a commit, which has no id if it is a worktree, and its first parents, as far as they are available."""
    yield commit.oid
    parents = repository.list_first_parents(commit.parents[0] if commit.parents else None, MAX_PARENTS - 1)
    yield from (parent.oid for parent in parents)


def is_chosen_by_operator(location: OutputLocation) -> bool:
    """Return whether options and not the settings of the source chose the location in the first run."""
    note = read_output_note(location.output.repository, location.head) if location.head else OutputNote()
    return name_location(location.output.branch, location.prefix) in note.operator_outputs


def _is_own(source: SourceRepository, location: OutputLocation) -> bool:
    """Return whether the last run there was of this source and had its location from the settings of the source."""
    record = location.record
    if record is None or not record.source or is_chosen_by_operator(location):
        return False
    return source.fetch_commit(record.source)


def _open_directory(context: RunContext, config: OutputConfig, open_location: OpenLocation) -> OutputLocation:
    """Open a branch at the directory that holds the output of this source; as the settings say if there is none."""
    opened = open_location(config)
    if opened.record is not None or opened.tree is None or context.settings.output_path is not None:
        return opened
    for path in _find_directories(opened.output.repository, opened.tree):
        other = open_location(config._replace(path=path))
        if _is_own(context.source, other):
            return other
    return opened


def _find_directories(repository: Repository, tree: str) -> Iterator[str]:
    """Yield the directories of a tree that hold a gitsched.json."""
    pending, seen = [""], 0
    while pending and seen < MAX_DIRECTORIES:
        path, seen = pending.pop(0), seen + 1
        entries = repository.list_directory(tree, path)
        if RUN_METADATA in entries:
            yield path
            continue
        inside = sorted(name for name, (_, mode) in entries.items() if mode == 0o040000 and name not in _OUTPUT_DIRECTORIES)
        pending += [f"{path}/{name}" if path else name for name in inside]


def _list_written_branches(output: OutputRepository, source: SourceRepository) -> list[str]:
    """Return the branches of the output repository that gitsched wrote for this source: a note on their head names a commit of it. The one
    of the newest source commit is the first."""
    repository = output.repository
    found: list[tuple[float, str]] = []
    for branch, head in sorted(_list_heads(output).items()):
        noted = read_output_note(repository, head).source
        if noted and source.fetch_commit(noted):
            found.append((-source.repository.commit(noted).time.timestamp(), branch))
    return [branch for _, branch in sorted(found)]


def _list_heads(output: OutputRepository) -> Mapping[str, str]:
    if output.remote is not None:
        refs = list_remote_refs(output.remote, [f"{_HEADS}*"], repository=output.repository)
        return {ref.removeprefix(_HEADS): oid for ref, oid in refs.items()}
    heads: dict[str, str] = {}
    for prefix in (_TRACKING, _HEADS):  # a local branch is preferred to that of the origin
        heads |= {ref.removeprefix(prefix): oid for ref, oid in output.repository.list_refs(prefix)}
    return heads


def describe_outputs(context: RunContext, fetched: Fetched, commit: str) -> dict[str, object]:
    """Return the members of the note on an output commit: what was reconciled, the outputs that the operator chose in their first runs,
    and how often the outputs were moved. What the notes on this commit and on the head say of other outputs stays.

    The source branch that is recorded first remains until the operator names another.
    """
    repository, head, name = fetched.output.repository, fetched.output_head, name_location(fetched.output.branch, fetched.prefix)
    found, before = read_output_note(repository, commit), read_output_note(repository, head) if head else OutputNote()
    before = before.of_branch(fetched.output.branch)
    outputs = {*found.operator_outputs, *before.operator_outputs, *([name] if fetched.chosen_by_operator else [])}
    count = _count_moves(fetched, name) if context.settings.output_branch and not fetched.chosen_by_operator else 0
    moves = {**found.moves, **before.moves}
    moves |= {name: max(count, moves.get(name, 0))}
    moves = {name: count for name, count in sorted(moves.items()) if count}
    branch = fetched.branch if context.settings.branch is not None else fetched.reconciled.branch or fetched.branch
    reconciled = {**before.reconciled, **found.reconciled, name: ReconciledSource(fetched.source.oid, branch)}
    members: dict[str, object] = {RECONCILED: {name: each._asdict() for name, each in sorted(reconciled.items())}}
    members |= {OPERATOR_OUTPUTS: sorted(outputs)} if outputs else {}
    return members | ({OUTPUT_MOVES: moves} if moves else {})


def _count_moves(fetched: Fetched, name: str) -> int:
    """Return how often the operator has moved the output: one more than before if another branch had it until now."""
    repository, own, others = fetched.output.repository, 0, [0]
    for branch, head in sorted(_list_heads(fetched.output).items()):
        note = read_output_note(repository, head)
        if branch == fetched.output.branch:
            own = note.moves.get(name, 0)
        elif note.source:
            others += (1, *(1 + count for count in note.moves.values()))
    return max(own, *others) if max(others) > own else own


def find_moved_location(
    context: RunContext, found: OutputLocation, config: OutputConfig, open_location: OpenLocation
) -> OutputLocation | None:
    """Return the location to which the operator has moved the output after `found` was in use; None if there is none.

    Notes on the output commits say so, so that this does not depend on the history of the source.
    """
    source, repository = context.source, found.output.repository
    notes = {branch: read_output_note(repository, head) for branch, head in _list_heads(found.output).items()}
    own = read_output_note(repository, found.head).moves if found.head else {}
    count = own.get(name_location(found.output.branch, found.prefix), 0)
    later = [
        (-moves, branch, name.partition(":")[2])
        for branch, note in notes.items()
        if branch != found.output.branch
        for name, moves in note.moves.items()
        if moves > count and name.partition(":")[0] == branch
    ]
    for _, branch, path in sorted(later):
        other = open_location(config._replace(branch=branch, path=path))
        if _is_own(source, other) or (other.record is not None and _is_unverifiable(context, other)):
            return other
    return None


def _is_unverifiable(context: RunContext, location: OutputLocation) -> bool:
    """Return whether the output is in the repository of the source, and a shallow clone does not have the source commits of its runs."""
    is_inside = context.settings.output is None and not is_chosen_by_operator(location)
    return is_inside and context.source.repository.is_shallow
