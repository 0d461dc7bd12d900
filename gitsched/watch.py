"""When to run again: a ref moved, a deadline passed, the interval is over. The only clock and the only sleep of a resident process."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from gitsched.model.errors import Conflict, GitschedError, Temporary
from gitsched.model.time import format_time
from gitsched.reconcile import Run

LOGGER = logging.getLogger("gitsched")
STEP = timedelta(seconds=1)
"""How often refs on this machine are looked at when no event arrives: file systems of networks and containers lose events."""
BACKOFF = timedelta(seconds=5)
RACE = timedelta(milliseconds=100)
LONGEST = timedelta(minutes=5)
"""The first pause after what is temporary, after a lost race, and the longest one; a pause doubles from the first to the last."""

Stamps = dict[str, tuple[int, int, int]]


class Resident(Protocol):
    """What is run again and again, with a memory: `gitsched.reconcile.Session`."""

    def run(self, now: datetime) -> Run:
        """Bring the output branch up to date."""

    def watch_paths(self) -> list[Path]:
        """Files and directories of this machine in which a moved ref shows; none for a remote."""


def watch(
    session: Resident,
    *,
    interval: timedelta,
    report: Callable[[Run], None],
    stop: threading.Event | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Run until `stop` is set, and never leave because of the input.

    What is permanent waits for the next change, what is temporary for a pause that doubles. A stop is heeded between two runs, so no
    run is left half done.
    """
    stop = stop or threading.Event()
    failures = 0
    while not stop.is_set():
        paths = session.watch_paths()
        # Looked at before the run: what moves meanwhile is seen right after it.
        seen = stamp(paths)
        wait = interval
        try:
            run = session.run(now())
        except (Temporary, Conflict) as error:
            failures += 1
            wait = pause(failures, error)
            LOGGER.warning("%s; trying again in %g s", error, wait.total_seconds(), extra={"fields": {"event": "temporary"}})
            stop.wait(wait.total_seconds())
            continue
        except GitschedError as error:
            failures = 0
            LOGGER.error("%s; waiting for a change", error, extra={"fields": {"event": "permanent"}})
        else:
            failures = 0
            report(run)
            if run.plan.next_wakeup is not None:
                wait = min(wait, max(run.plan.next_wakeup - now(), timedelta()))
                LOGGER.debug("next wake-up at %s", format_time(run.plan.next_wakeup))
        wait_for_change(paths, seen, max(wait, timedelta(milliseconds=1)), stop)


def pause(failures: int, error: GitschedError) -> timedelta:
    """How long to wait after so many failures in a row; what the other side asks for is not undercut."""
    asked = error.retry_after if isinstance(error, Temporary) else None
    doubled: timedelta = (RACE if isinstance(error, Conflict) else BACKOFF) * 2 ** min(failures - 1, 16)
    return max(min(doubled, LONGEST), timedelta(seconds=asked or 0))


def wait_for_change(paths: list[Path], seen: Stamps, wait: timedelta, stop: threading.Event) -> None:
    """Return when a ref differs from what was seen, when the time is over, or when `stop` is set.

    An event only says that it is worth looking; whether something moved, the files say, and what it means, the next run.
    """
    if not paths:
        stop.wait(wait.total_seconds())
        return
    if stamp(paths) != seen:
        return
    # Here, because only `watch` needs it and it loads a compiled library.
    from watchfiles import watch as events

    ending = threading.Event()
    timer = threading.Timer(wait.total_seconds(), ending.set)
    timer.daemon = True
    timer.start()
    try:
        existing = [path for path in paths if path.exists()]
        for _ in events(
            *existing,
            watch_filter=None,
            debounce=50,
            step=20,
            rust_timeout=int(min(STEP, wait).total_seconds() * 1000) or 1,
            yield_on_timeout=True,
            stop_event=_Either(stop, ending),
        ):
            if stamp(paths) != seen:
                return
    finally:
        timer.cancel()


class _Either:
    """Set when one of the events is: what watchfiles asks of a stop event."""

    def __init__(self, *events: threading.Event) -> None:
        self.events = events

    def is_set(self) -> bool:
        return any(event.is_set() for event in self.events)


def stamp(paths: Iterable[Path]) -> Stamps:
    """Inode, size and time of change of every file at or below the paths."""
    stamps: Stamps = {}
    for path in paths:
        _stamp(str(path), stamps)
    return stamps


def _stamp(path: str, stamps: Stamps) -> None:
    try:
        if os.path.isdir(path):  # noqa: PTH112  # a walk over many refs, once a second
            with os.scandir(path) as entries:
                for name in [entry.path for entry in entries if not entry.name.endswith(".lock")]:
                    _stamp(name, stamps)
        else:
            status = os.stat(path)  # noqa: PTH116
            stamps[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
    except FileNotFoundError:
        # Gone between two looks; its absence is what the comparison sees.
        stamps.pop(path, None)
