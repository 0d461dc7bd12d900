"""The loop of `gitsched apply --watch`: apply the output branch when it moves, and again at each interval."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from datetime import timedelta

from gitsched.model.errors import Temporary
from gitsched.model.merge_patch import ApplyReport
from gitsched.watch.loop import JITTER, compute_backoff, convert_error
from gitsched.watch.wakeup import Wakeup

_log = logging.getLogger("gitsched")


def watch_and_apply(
    run: Callable[[], ApplyReport], *, interval: timedelta, listener: Callable[[ApplyReport], None], wakeup: Wakeup
) -> None:
    """Apply until `wakeup` is stopped.

    Each run reads the branch again and compares it with the cluster, so that changes by others are undone. Errors are logged; after a
    temporary one, the delay grows from seconds to minutes.
    """
    failures = 0
    while not wakeup.stopped:
        delay = interval * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - jitter, not a secret
        try:
            listener(run())
        except Exception as caught:  # noqa: BLE001 - logged; no input ends the loop
            error = convert_error(caught)
            if isinstance(error, Temporary):
                failures += 1
                delay = max(compute_backoff(failures, error), delay)
            _log.error("%s; trying again in %g s", error, delay.total_seconds(), extra={"fields": {"event": "error"}})
        else:
            failures = 0
        wakeup.wait(delay.total_seconds())
