"""Deliver changes in waves: clusters of later waves keep the files of the previous output until those before are healthy.

Decisions and records are those of the policy APIs; this concerns only what the directories of clusters have. What a policy takes away, and
what replaces it elsewhere, is delivered at once: overlaps, holds and the guard are for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.rollout import RolloutSpec, parse_rollout
from gitsched.apis.gitsched.tenancy import find_owner
from gitsched.decide.rollouts.broken_rollouts import list_broken_rollouts, make_broken_finding
from gitsched.decide.rollouts.lost_clusters import read_cluster_states
from gitsched.decide.rollouts.rollout_findings import find_overlaps
from gitsched.decide.rollouts.rollout_members import PlacedFacts, list_members, make_rules, read_placed_facts
from gitsched.decide.rollouts.rollout_source import RolloutSource
from gitsched.decide.rollouts.rollout_steps import RolloutSteps
from gitsched.decide.rollouts.workload_policies import WorkloadPolicies
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.rollouts import ROLLOUT_KIND, RolloutResult

if TYPE_CHECKING:
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.decide.catalog import Catalog
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.plan_input import PlanInput
    from gitsched.decide.relations.object_queries import RelationReader
    from gitsched.decide.relations.plan_relations import FactChanges
    from gitsched.decide.workload_files import WorkloadFiles
    from gitsched.model.changes import CopyRetention, Move
    from gitsched.model.document import Key
    from gitsched.model.rollouts import RolloutInput


def list_rollouts(catalog: Catalog) -> list[RolloutSpec]:
    """Return the Rollouts of a source, the broken ones last."""
    return [*map(parse_rollout, catalog.api_documents.get(ROLLOUT_KIND, ())), *list_broken_rollouts(catalog)]


def add_rollout_facts(changes: FactChanges, decisions: DecisionSet) -> FactChanges:
    """Return the facts of a complete plan with what Rollouts select, and what they read of all workloads."""
    catalog, tenancy = decisions.catalog, decisions.tenancy
    placed: dict[Key, PlacedFacts | None] = {
        key: read_placed_facts(outcome, decisions.templates[key], tenancy) for key, outcome in decisions.outcomes.items()
    }
    return changes._replace(rules=make_rules(list_rollouts(catalog), catalog.api_documents, tenancy), placed=placed)


def roll_out(
    source: RolloutSource,
    specs: Sequence[RolloutSpec],
    database: RelationReader,
    files: dict[Key, WorkloadFiles],
    tenancy: Tenancy | None,
) -> RolloutResult:
    """Take the steps of all Rollouts, and return what came of them. `files` are those of a plan, or of the workloads that it has decided
    again; those of the previous output take their place where a cluster waits."""
    members, steps = list_members(database, specs, files), RolloutSteps(source)
    taken = steps.take(specs, members, files)
    broken = [make_broken_finding(spec, step, find_owner(tenancy, spec.document.key)) for spec, step in taken if spec.broken]
    return steps.summarize(taken, members, (*broken, *find_overlaps(database, specs)))


class RolloutGate:
    """Holds files back while a plan is rendered; `result` has what came of it."""

    def __init__(
        self,
        source: PlanInput,
        given: RolloutInput,
        decisions: DecisionSet,
        moves: Iterable[Move],
        retention: CopyRetention,
        database: RelationReader,
    ) -> None:
        self.result = RolloutResult()
        self._decisions, self._database = decisions, database
        config, previous = source.source.config, source.previous
        self._source = RolloutSource(
            given,
            previous,
            decisions.catalog.api_documents.get(CLUSTER_REPORT, ()),
            source.observations,
            config,
            source.times,
            read_cluster_states(decisions.engines),
            WorkloadPolicies(decisions.engines, decisions.templates, decisions.variants, config.delivery, previous.find_blob),
            moves,
            retention,
            decisions.quarantined,
        )

    def __call__(self, rendered: Mapping[Key, WorkloadFiles]) -> dict[Key, WorkloadFiles]:
        """Return the files with those of the previous output where a cluster waits."""
        files, specs = dict(rendered), list_rollouts(self._decisions.catalog)
        self.result = roll_out(self._source, specs, self._database, files, self._decisions.tenancy)
        return files
