"""Detect moved refs of local repositories by file system events, with polling as the fallback."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Literal

from gitsched.watch.wakeup import Wakeup

POLL_INTERVAL = timedelta(seconds=1)
"""How often refs on this machine are looked at when no event arrives: file systems of networks and containers lose events."""

FileStates = dict[str, tuple[int, int, int]]
RunCause = Literal["time", "ref", "hook", "stop"]


def wait_for_change(paths: list[Path], seen: FileStates, wait: timedelta, bell: Wakeup) -> RunCause:
    """Return when a ref differs from what was seen, when the time is over, or when the bell rings; and which of these it was.

    An event only says that it is worth looking; whether something moved, the files say, and what it means, the next run.
    """
    moved = False
    if not paths:
        bell.wait(wait.total_seconds())
    else:
        moved = read_file_states(paths) != seen or _wait_for_event(paths, seen, wait, bell)
    if bell.stopped:
        return "stop"
    return "ref" if moved else "time" if bell.requested_at is None else "hook"


def _wait_for_event(paths: list[Path], seen: FileStates, wait: timedelta, bell: Wakeup) -> bool:
    # Here, because only `watch` needs it and it loads a compiled library.
    from watchfiles import watch as events

    ending = threading.Event()
    timer = threading.Timer(min(wait.total_seconds(), threading.TIMEOUT_MAX), ending.set)
    timer.daemon = True
    timer.start()
    try:
        existing = [path for path in paths if path.exists()]
        for _ in events(
            *existing,
            watch_filter=None,
            debounce=50,
            step=20,
            rust_timeout=int(min(POLL_INTERVAL, wait).total_seconds() * 1000) or 1,
            yield_on_timeout=True,
            stop_event=_StopEvent(bell, ending),
        ):
            if read_file_states(paths) != seen:
                return True
    finally:
        timer.cancel()
    return False


class _StopEvent:
    """Set when the bell rang or the time is over: what watchfiles asks of a stop event."""

    def __init__(self, bell: Wakeup, ending: threading.Event) -> None:
        self.wakeup, self.timeout = bell, ending

    def is_set(self) -> bool:
        return self.wakeup.is_set() or self.timeout.is_set()


def read_file_states(paths: Iterable[Path]) -> FileStates:
    """Inode, size and time of change of every file at or below the paths."""
    stamps: FileStates = {}
    for path in paths:
        _read_file_state(str(path), stamps)
    return stamps


def _read_file_state(path: str, stamps: FileStates) -> None:
    try:
        if os.path.isdir(path):  # noqa: PTH112  # a walk over many refs, once a second
            with os.scandir(path) as entries:
                for name in [entry.path for entry in entries if not entry.name.endswith(".lock")]:
                    _read_file_state(name, stamps)
        else:
            status = os.stat(path)  # noqa: PTH116
            stamps[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
    except FileNotFoundError:
        # Gone between two looks; its absence is what the comparison sees.
        stamps.pop(path, None)
