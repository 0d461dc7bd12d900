"""What a report about findings is written from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome


class FindingReport(NamedTuple):
    """Findings, the outcomes of all workloads, and the files that a change touches; nothing where a command has none."""

    findings: Sequence[Finding]
    outcomes: Iterable[Outcome] = ()
    changed_paths: Collection[str] = ()
