"""A version of a source file that an earlier commit or the output branch has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.git import Repository


class FileVersion(NamedTuple):
    """An earlier version of a file: its blob, the repository that has it, and the source commit ("" if that is not known)."""

    repository: Repository
    blob: str
    commit: str
