"""What a worker of a Dask cluster runs for `gitsched simulate --dask`."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gitsched.cli.options import find_cache_directory
from gitsched.reconcile.review.dask_losses import LossWorker

_WORKER = LossWorker()
_THREAD = ThreadPoolExecutor(1)
"""The thread of all shards: a plan belongs to the thread that made it."""


def compute_shard(task: bytes) -> bytes:
    """Return the file of a shard, or an object of JSON that says why there is none. It raises nothing."""
    operator_file = os.environ.get("GITSCHED_OPERATOR_SETTINGS")
    cache = Path(os.environ.get("GITSCHED_CACHE_DIR") or find_cache_directory())
    return _THREAD.submit(_WORKER.compute, task, cache, Path(operator_file) if operator_file else None).result()
