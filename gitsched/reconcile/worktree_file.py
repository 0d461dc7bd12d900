"""Files of a worktree that commands write: paths that stay inside, and writes that keep what others changed in the meantime."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from gitsched.model.errors import Permanent


def resolve_worktree_file(root: Path, path: str) -> Path:
    """Return a path below the top of a worktree. Raise Permanent for one that leads outside, to a directory `.git` or to a symlink."""
    found = root / PurePosixPath(path)
    try:
        real, top = found.resolve(), root.resolve()
        linked = found.is_symlink()
    except (OSError, RuntimeError) as error:  # before Python 3.13, a loop of symlinks is a RuntimeError
        raise Permanent(f"{path} cannot be used: {getattr(error, 'strerror', None) or 'its symlinks form a loop'}") from error
    parts = {*PurePosixPath(path).parts, *real.parts[len(top.parts) :]}
    if linked or not real.is_relative_to(top) or any(part.lower() == ".git" for part in parts):
        raise Permanent(f"{path} is not a path inside the worktree")
    return found


def create_file(file: Path, text: str) -> None:
    """Write a new file, and the directories around it. Raise OSError if it exists, also as a symlink, or if it cannot be written: no part
    of it stays, which a later run would take for a file of the user."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(text.encode())
    except OSError:
        file.unlink(missing_ok=True)
        raise


def replace_file(file: Path, before: bytes, after: bytes | None) -> None:
    """Replace the content of a file at once, so that no reader finds half of it; None deletes the file.

    Raise Permanent if the file no longer has the content `before`, and OSError if it cannot be written.
    """
    if file.read_bytes() != before:
        raise Permanent(f"{file.name} has changed in the meantime and is left alone; run the command again")
    if after is None:
        file.unlink()
        return
    handle, name = tempfile.mkstemp(prefix=f".{file.name[:50]}.", suffix=".tmp", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as temporary:
            temporary.write(after)
        shutil.copymode(file, name)
        Path(name).replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
