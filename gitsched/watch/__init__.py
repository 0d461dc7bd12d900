"""The watch process: run reconcile whenever a ref moves, a webhook arrives or a deadline passes, and serve health, metrics and
webhooks over HTTP."""

from __future__ import annotations

from gitsched.watch.loop import MAX_BACKOFF, AttemptListener, ReconcileAttempt, compute_backoff, watch
from gitsched.watch.ref_watcher import read_file_states, wait_for_change
from gitsched.watch.wakeup import GracefulShutdown, RunAborted, Wakeup, handle_signals

__all__ = [
    "MAX_BACKOFF",
    "AttemptListener",
    "GracefulShutdown",
    "ReconcileAttempt",
    "RunAborted",
    "Wakeup",
    "compute_backoff",
    "handle_signals",
    "read_file_states",
    "wait_for_change",
    "watch",
]
