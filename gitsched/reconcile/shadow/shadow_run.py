"""Compare two dumps of a hub: read and check them, decide, and explain the differences."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from gitsched.diff.hub_comparison import compare_hub
from gitsched.diff.hub_decisions import load_comparisons
from gitsched.model.finding import sort_findings
from gitsched.model.hub_comparison import HubComparisonResult
from gitsched.model.time import EPOCH
from gitsched.reconcile.shadow.dump_checks import INCOMPARABLE, check_dumps, check_result
from gitsched.reconcile.shadow.hub_dumps import HubDumpReader


def shadow_hub(first: Path, second: Path, settings: Mapping[str, Any], now: datetime | None = None) -> HubComparisonResult:
    """Compare the decisions of a hub between two dumps, each a file or a directory, with those of gitsched.

    `settings` is the spec of a gitsched.yaml; what it leaves out is as on a hub without flags. `now` is the time of the second dump; the
    latest time that it mentions by default. Whatever is wrong with the dumps is a finding.
    """
    comparisons = load_comparisons()
    before = HubDumpReader("first", first, comparisons).read()
    after = HubDumpReader("second", second, comparisons).read()
    found = [*before.findings, *after.findings, *check_dumps(before, after)]
    result = HubComparisonResult((), (), before.dump.time, after.dump.time)
    if not any(finding.code in INCOMPARABLE for finding in found):
        result = compare_hub(before.dump, after.dump, settings, now or after.dump.time or EPOCH)
        found += [*check_result(after, result), *result.findings]
    return result._replace(findings=sort_findings(found))
