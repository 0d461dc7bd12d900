"""Read the notes on output commits, and which source commits earlier runs have planned: from the note, and from earlier output commits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from gitsched.git.notes import read_note
from gitsched.model.document import as_object
from gitsched.model.errors import Permanent
from gitsched.render.output_files import RUN_METADATA
from gitsched.render.run_metadata import parse_run_metadata

if TYPE_CHECKING:
    from gitsched.git import Repository
    from gitsched.git.source import SourceRepository
    from gitsched.reconcile.run import Fetched

OPERATOR_OUTPUTS: Final = "operatorOutputs"
"""The member of a note with the outputs that the operator chose in their first runs."""
OUTPUT_MOVES: Final = "outputMoves"
"""The member of a note that says how often the operator had moved the output when a branch was chosen, by branch."""
MAX_OUTPUT_COMMITS = 100
"""Commits of the output branch that are searched for the source commits of earlier runs."""


MAX_MOVES = 1_000_000
"""Moves of the output that a note may count."""


class OutputNote(NamedTuple):
    """The note on an output commit: the newest source commit that a run has planned, the outputs that the operator chose, and how often the
    operator had moved the output when they were chosen."""

    source: str = ""
    operator_outputs: tuple[str, ...] = ()
    moves: Mapping[str, int] = {}


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
    return OutputNote(oid if isinstance(oid, str) else "", names, moves)


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
