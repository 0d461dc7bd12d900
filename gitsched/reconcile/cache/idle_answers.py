"""Answers of commands that found nothing to do, for the next process that is started in the same way.

A run reads commits, options and the time. So where all refs are the same, the options and the environment are the same, the code is the
same, and nothing is due, it finds nothing to do again, and gives the same answer. Only the answer of a run is kept that changed nothing and
of which `RunResult.state_file` says that nothing else has an effect on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from gitsched.git.ref_state import RefState, has_commits, read_ref_state
from gitsched.git.urls import is_url
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.checked_file import read_checked, write_checked
from gitsched.reconcile.cache.ownership import check_cache_directory
from gitsched.reconcile.package_digest import identify_code, list_plugins

if TYPE_CHECKING:
    from gitsched.reconcile.run import RunResult

_SHELL_VARIABLES = frozenset({"_", "OLDPWD", "SHLVL"})
"""Variables that a shell changes with each command. They have no effect on a command."""
_CONTACTING = ("operator_file", "output_repository", "push", "facts_repository", "reviewed")
"""Options that name what is neither in the source repository nor in the environment."""


class IdleAnswers(NamedTuple):
    """Where the answer of one way to start a command is kept. `key` identifies everything that the run depends on; `refs` is a part of
    it."""

    file: Path
    key: str
    refs: RefState
    location: Path
    now: datetime

    def read(self) -> str | None:
        """Return what the command wrote to stdout the last time; None if it may find something else now."""
        found = read_checked(self.file, self.key)
        if found is None:
            return None
        start, end = parse_time(found["start"]), parse_time(found["end"] or "")
        if start is None or self.now < start or (found["end"] and (end is None or end <= self.now)):
            return None
        if found["state"] != _identify_file(Path(found["state_file"])) or not has_commits(
            self.refs.git_directory, found["commits"]
        ):
            return None
        return str(found["text"])

    def keep(self, run: RunResult, text: str) -> None:
        """Keep what the command wrote to stdout, if another run would do the same."""
        if run.state_file is None or run.changed or not {run.source, run.before} <= self.refs.targets:
            return
        if read_ref_state(self.location) != self.refs or list_plugins():
            return
        value = {
            "start": format_time(self.now),
            "end": None if run.plan.next_wakeup is None else format_time(run.plan.next_wakeup),
            "commits": [run.source, run.before],
            "state_file": str(run.state_file),
            "state": _identify_file(run.state_file),
            "text": text,
        }
        write_checked(self.file, self.key, value)


def open_idle_answers(
    cache: Path,
    location: str,
    now: datetime,
    options: Mapping[str, Any],
    environment: Mapping[str, str],
    terminal: tuple[object, ...],
) -> IdleAnswers | None:
    """Return where the answer for these options is kept; None if anything else has an effect on it.

    `terminal` says how text is written. Raise Permanent for a cache directory that is part of the checked-out commit.
    """
    plain = all(map(_is_plain, options.values())) and not any(options.get(name) for name in _CONTACTING)
    if not plain or is_url(location) or list_plugins():
        return None
    path = Path(location).absolute()
    check_cache_directory(cache)
    refs = read_ref_state(path)
    if refs is None:
        return None
    variables = sorted((name, value) for name, value in environment.items() if name not in _SHELL_VARIABLES)
    parts = (identify_code(), str(path), str(Path.cwd()), sorted(options.items()), variables, terminal, refs.digest)
    name = sha256(refs.git_directory.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    key = sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return IdleAnswers(cache / f"idle-{name}.json", key, refs, path, now)


def _is_plain(value: object) -> bool:
    """Return whether the text of a value says all about it."""
    return (
        value is None
        or isinstance(value, str | int | float | PurePath)
        or (isinstance(value, tuple) and all(map(_is_plain, value)))
    )


def _identify_file(path: Path) -> list[int]:
    """Return what changes when a file is written; empty if there is none."""
    try:
        status = path.stat()
    except OSError:
        return []
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
