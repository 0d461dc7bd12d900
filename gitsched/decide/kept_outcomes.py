"""Workloads that keep their previous placement although something else was decided about them: what depends on them, and the records and
findings of the engines, follow what they keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.decide.engines import EngineRecords, list_engine_findings, list_engine_records, replace_engine_findings
from gitsched.decide.workload_decision import decide_workload
from gitsched.model.document import Key
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.model.document import Document
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome


class KeptOutcomes(NamedTuple):
    """Decisions after some workloads kept their placement. `outcomes` are those of these workloads and of the `followers`, which were
    decided again; None for one that no policy selects any more. `records` and `findings` are those of all engines, and other findings."""

    outcomes: Mapping[Key, Outcome | None]
    followers: frozenset[Key]
    records: EngineRecords
    findings: tuple[Finding, ...]


def keep_outcomes(
    kept: Mapping[Key, Outcome],
    engines: Sequence[PolicyEngine],
    templates: Mapping[Key, Document],
    snapshot: Snapshot,
    findings: Iterable[Finding],
) -> KeptOutcomes:
    """Let the engines of a snapshot know what workloads keep, and decide again what depends on them. `findings` are all that were made,
    including those of the engines."""
    before = frozenset(list_engine_findings(engines))
    dependent = frozenset[Key]().union(*(engine.keep_outcomes(kept) for engine in engines))
    followers = frozenset(key for key in dependent if key in templates and key not in kept)
    decided = {key: decide_workload(templates[key], engines, snapshot) for key in sorted(followers)}
    found = tuple(replace_engine_findings(findings, before, engines))
    return KeptOutcomes({**kept, **decided}, followers, list_engine_records(engines), found)
