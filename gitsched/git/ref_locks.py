"""Lock files of refs that git leaves behind when it is killed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def describe_locks(refs: str, locks: Sequence[Path]) -> str:
    """Return the reason that refs were not moved when these lock files exist, and what to do: git leaves them behind when it is killed."""
    files, these = " and ".join(map(str, locks)), "that file" if len(locks) == 1 else "those files"
    return f"{refs} is locked by {files}; remove {these} if no other Git process is running"
