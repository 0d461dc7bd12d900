"""Answer from the state of the last run, or leave it to a complete plan."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from gitsched.model.system_errors import is_bug
from gitsched.query.errors import DamagedStoreError
from gitsched.reconcile.cache.row_format import CorruptCacheError

T = TypeVar("T")

_log = logging.getLogger("gitsched.reconcile")


def attempt(answer: Callable[[], T], expected: type[Exception] = CorruptCacheError) -> T | None:
    """Return what `answer` finds from a state; None if it raises an `expected` error, if the state is damaged, or if a bug shows, which is
    reported."""
    try:
        return answer()
    except (expected, CorruptCacheError, DamagedStoreError) as error:
        _log.debug("the state of the last plan is not enough: %s", error)
        return None
    except Exception as error:
        if not is_bug(error):
            raise
        report_fallback(error)
        return None


def report_fallback(error: Exception) -> None:
    """Log a bug that showed when a plan was continued, in place of which everything is planned."""
    from gitsched.model.fault import describe_fault  # only after a bug

    _log.warning("%s while the last plan was continued: everything is planned anew; report this bug", describe_fault(error))
