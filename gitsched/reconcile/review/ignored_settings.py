"""Log settings that have no effect."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan

_log = logging.getLogger("gitsched.reconcile")


def log_ignored_settings(plan: Plan) -> None:
    """Log the settings that have no effect because only the operator decides about them. For commands that do not show all findings."""
    for finding in plan.findings:
        if finding.code == "setting-ignored":
            _log.warning("%s", finding.without_severity, extra={"fields": {"event": "finding", "code": finding.code}})
