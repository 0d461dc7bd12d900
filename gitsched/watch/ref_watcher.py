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
"""How often local refs are polled when no event arrives: network and container file systems lose events."""
MAX_POLLED = 1000
"""Files that are polled at this interval; the interval of more files is longer, so that an idle process costs the same."""

FileStates = dict[str, tuple[int, int, int]]
RunCause = Literal["time", "ref", "hook", "stop"]


def wait_for_change(paths: list[Path], previous: FileStates, timeout: timedelta, wakeup: Wakeup) -> RunCause:
    """Return when a ref differs from `previous`, when the time is over, or when `wakeup` is set, and which of these it was.

    An event only triggers a comparison of the files; the next run finds out what the change means.
    """
    moved = False
    if not paths:
        wakeup.wait(timeout.total_seconds())
    else:
        moved = read_file_states(paths) != previous or _wait_for_event(paths, previous, timeout, wakeup)
    if wakeup.stopped:
        return "stop"
    return "ref" if moved else "time" if wakeup.requested_at is None else "hook"


def _wait_for_event(paths: list[Path], previous: FileStates, timeout: timedelta, wakeup: Wakeup) -> bool:
    # Lazy: only `watch` needs it, and it loads a compiled library.
    from watchfiles import watch as events

    time_is_over = threading.Event()
    timer = threading.Timer(min(timeout.total_seconds(), threading.TIMEOUT_MAX), time_is_over.set)
    timer.daemon = True
    timer.start()
    try:
        existing = [path for path in paths if path.exists()]
        for _ in events(
            *existing,
            watch_filter=None,
            debounce=50,
            step=20,
            rust_timeout=int(min(_compute_poll_interval(previous), timeout).total_seconds() * 1000) or 1,
            yield_on_timeout=True,
            stop_event=_StopEvent(wakeup, time_is_over),
        ):
            if read_file_states(paths) != previous:
                return True
    finally:
        timer.cancel()
    return False


def _compute_poll_interval(states: FileStates) -> timedelta:
    return POLL_INTERVAL * max(1, len(states) / MAX_POLLED)


class _StopEvent:
    """The stop event for watchfiles: set when `wakeup` is set or the time is over."""

    def __init__(self, wakeup: Wakeup, time_is_over: threading.Event) -> None:
        self.wakeup, self.timeout = wakeup, time_is_over

    def is_set(self) -> bool:
        return self.wakeup.is_set() or self.timeout.is_set()


def read_file_states(paths: Iterable[Path]) -> FileStates:
    """Return inode, size and modification time of every file at or below the paths."""
    states: FileStates = {}
    for path in paths:
        _read_file_state(str(path), states)
    return states


def _read_file_state(path: str, states: FileStates) -> None:
    try:
        if os.path.isdir(path):  # noqa: PTH112  # faster than pathlib for many refs, once a second
            with os.scandir(path) as entries:
                for name in [entry.path for entry in entries if not entry.name.endswith(".lock")]:
                    _read_file_state(name, states)
        else:
            status = os.stat(path)  # noqa: PTH116
            states[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
    except FileNotFoundError:
        # Deleted since the directory was listed; the comparison sees its absence.
        states.pop(path, None)
