"""Reconcile an output branch with its source. `pipeline.run` is one run; `reconciler` offers it once, with retries, and repeatedly.

Everything is loaded on first use, because a run that has nothing to do needs little of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan as Plan
    from gitsched.reconcile.reconciler import Reconciler as Reconciler
    from gitsched.reconcile.reconciler import preview as preview
    from gitsched.reconcile.reconciler import reconcile as reconcile
    from gitsched.reconcile.reconciler import validate_source as validate_source
    from gitsched.reconcile.run import RunResult as RunResult
    from gitsched.reconcile.run_settings import RunSettings as RunSettings

_LAZY_MODULES = {
    "Plan": "gitsched.decide.plan_result",
    "Reconciler": "gitsched.reconcile.reconciler",
    "RunResult": "gitsched.reconcile.run",
    "RunSettings": "gitsched.reconcile.run_settings",
    "preview": "gitsched.reconcile.reconciler",
    "reconcile": "gitsched.reconcile.reconciler",
    "validate_source": "gitsched.reconcile.reconciler",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY_MODULES[name]), name)
