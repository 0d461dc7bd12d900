"""Read the notes on output commits, and which source commits earlier runs have planned: from the note, and from earlier output commits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from gitsched.git.notes import read_note
from gitsched.git.refs import REF_FORMAT
from gitsched.model.document import as_object
from gitsched.model.errors import Permanent
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.run import RECONCILED, ReconciledSource
from gitsched.render.output_files import RUN_METADATA
from gitsched.render.run_metadata import parse_run_metadata

if TYPE_CHECKING:
    from gitsched.git import Repository
    from gitsched.git.source import SourceRepository
    from gitsched.reconcile.run import Fetched, OutputLocation
    from gitsched.render.run_metadata import RunMetadata

OPERATOR_OUTPUTS: Final = "operatorOutputs"
"""The member of a note with the outputs that the operator chose in their first runs."""
OUTPUT_MOVES: Final = "outputMoves"
"""The member of a note that says how often the operator had moved the output when a branch was chosen, by branch."""
MAX_OUTPUT_COMMITS = 100
"""Commits of the output branch that are searched for the source commits of earlier runs."""
MAX_MOVES = 1_000_000
"""Moves of the output that a note may count."""
_OBJECT_ID = re.compile(r"[0-9a-f]{40}")


class OutputNote(NamedTuple):
    """The note on an output commit: the newest source commit that a run has planned, the outputs that the operator chose, how often the
    operator had moved the output when they were chosen, and what was reconciled for each output."""

    source: str = ""
    operator_outputs: tuple[str, ...] = ()
    moves: Mapping[str, int] = {}
    reconciled: Mapping[str, ReconciledSource] = {}

    def of_branch(self, branch: str) -> OutputNote:
        """Return what the note says of the outputs in an output branch: other branches may have had the same commit."""
        return self._replace(
            operator_outputs=tuple(name for name in self.operator_outputs if name.partition(":")[0] == branch),
            moves={name: count for name, count in self.moves.items() if name.partition(":")[0] == branch},
            reconciled={name: found for name, found in self.reconciled.items() if name.partition(":")[0] == branch},
        )


def read_output_note(repository: Repository, commit: str) -> OutputNote:
    """Return the note of an output commit; an empty one if there is none, or gitsched has not written it."""
    try:
        note = json.loads(read_note(repository, commit) or "{}")
    except (ValueError, RecursionError):
        return OutputNote()
    note = as_object(note)
    oid, outputs = note.get("drySha"), note.get(OPERATOR_OUTPUTS)
    names = tuple(name for name in outputs if isinstance(name, str)) if isinstance(outputs, list) else ()
    moves = {
        name: count for name, count in as_object(note.get(OUTPUT_MOVES)).items() if type(count) is int and 0 < count <= MAX_MOVES
    }
    reconciled = {name: _parse_reconciled(as_object(value)) for name, value in as_object(note.get(RECONCILED)).items()}
    return OutputNote(oid if isinstance(oid, str) else "", names, moves, reconciled)


def _parse_reconciled(value: Mapping[str, object]) -> ReconciledSource:
    """Return what whoever can push may have edited: only the id of an object and the name of a branch count."""
    source, branch = str(value.get("source")), str(value.get("branch"))
    is_branch = branch.isprintable() and REF_FORMAT.fullmatch(f"refs/heads/{branch}")
    return ReconciledSource(source if _OBJECT_ID.fullmatch(source) else "", branch if "branch" in value and is_branch else "")


def read_reconciled(location: OutputLocation) -> ReconciledSource:
    """Return the newest source commit that a run has planned for an output, and its branch: as the note on the head says, otherwise the
    commit in gitsched.json.

    Outputs in directories share the head, and the note of an earlier version does not say for which of them its commit was planned.
    """
    if location.record is None or location.head is None:
        return ReconciledSource()
    output = location.output
    return find_reconciled(output.repository, location.head, output.branch, location.prefix, location.record)


def find_reconciled(repository: Repository, commit: str, branch: str, prefix: str, record: RunMetadata) -> ReconciledSource:
    """Return the newest source commit that was planned while an output branch was at a commit with this record; see `read_reconciled`."""
    note = read_output_note(repository, commit)
    found = note.reconciled.get(name_location(branch, prefix), ReconciledSource())
    noted = found.source or ("" if prefix else note.source)
    return found._replace(source=noted or record.source)


def name_location(branch: str, prefix: str) -> str:
    """Return the name of an output in notes: the branch, and the directory if there is one."""
    return f"{branch}:{prefix.rstrip('/')}" if prefix else branch


def find_earlier_source(source: SourceRepository, fetched: Fetched) -> str:
    """Return the newest source commit of an earlier run that is available, where that of the last run is not; "" if there is none."""
    return next((oid for oid in list_earlier_sources(fetched) if oid and source.fetch_commit(oid)), "")


def list_earlier_sources(fetched: Fetched) -> Iterator[str]:
    """Yield the source commits besides that of the last run that the output branch names, the newest first."""
    repository, oid = fetched.output.repository, fetched.output_head or ""
    if oid:
        yield read_output_note(repository, oid).source
    for _ in range(MAX_OUTPUT_COMMITS):
        parents = repository.commit(oid).parents if oid and repository.has(oid) else ()
        oid = parents[0] if parents else ""
        if not oid or not repository.has(oid):
            return
        yield _read_recorded_source(repository, oid, fetched.prefix)


def _read_recorded_source(repository: Repository, commit: str, prefix: str) -> str:
    try:
        entry = repository.find_entry(repository.commit(commit).tree, f"{prefix}{RUN_METADATA}")
        return parse_run_metadata(repository.blob(entry[0])).source if entry is not None else ""
    except Permanent:  # another format version, or not written by gitsched
        return ""
