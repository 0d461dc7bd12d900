"""Moves of a branch to a commit that does not have its previous one, as far as the log of the ref in this clone shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from gitsched.git.repository import Repository
from gitsched.named_tuples import NamedTuple

MAX_ENTRIES = 1_000
"""The newest entries of the log that are read."""
_MAX_BYTES = 1 << 20
_ENTRY = re.compile(r"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*?> (\d{1,11}) ")


class Rewind(NamedTuple):
    """A branch moved from a commit to another one that does not have it in its history."""

    old: str
    new: str
    time: datetime


def list_rewinds(repository: Repository, branch: str) -> Iterator[Rewind]:
    """Yield the rewinds of a local branch, the newest first. Bare repositories keep no log by default."""
    path = Path(repository.common_dir, "logs", "refs", "heads", branch)
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _MAX_BYTES, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in reversed(lines[-MAX_ENTRIES:]):
        match = _ENTRY.match(line)
        if match is None or not match[1].strip("0") or not match[2].strip("0"):
            continue
        if repository.has_commit(match[1]) and repository.has_commit(match[2]) and not repository.has_ancestor(match[2], match[1]):
            yield Rewind(match[1], match[2], datetime.fromtimestamp(int(match[3]), UTC))
