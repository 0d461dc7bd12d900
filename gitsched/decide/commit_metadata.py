"""Write README.md, gitsched.json, hydrator.metadata and the commit message of an output commit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Set
from hashlib import sha256

from gitsched.decide.plan import Plan
from gitsched.model.commit import Commit
from gitsched.model.observation import write_observations
from gitsched.model.planned_files import PlannedFile
from gitsched.model.time import format_time
from gitsched.render.layout import CLUSTERS, HYDRATOR_METADATA, KEPT, README, RUN_METADATA
from gitsched.render.readme import DecisionRow, FleetRow, ReadmeContent, write_readme
from gitsched.render.run_metadata import CommitCause, RunMetadata, write_commit_message, write_hydrator_metadata, write_run_metadata


def render_metadata_files(source: Commit, plan: Plan, url: str | None, version: str) -> dict[str, PlannedFile]:
    """README.md, gitsched.json and hydrator.metadata.

    The digest leaves the previous output out: a late run comes from an earlier one than a punctual run, to the same bytes.
    """
    summary = ReadmeContent(
        source=source.oid,
        version=version,
        time=plan.time,
        fleet=[
            FleetRow(facts.name, facts.region, "retiring" if name in plan.retiring else "", facts.workloads, facts.replicas)
            for name, facts in plan.first_clusters.items()
        ],
        decisions=[
            DecisionRow(
                f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}",
                outcome.policy or outcome.reason,
                [*outcome.replicas_by_cluster.items()],
            )
            for key, outcome in plan.first_outcomes.items()
        ],
        workloads=len(plan.outcomes),
        clusters=plan.cluster_count,
        findings=Counter(finding.severity for finding in plan.findings),
        unclaimed=plan.unclaimed,
        repository=url,
        next_wakeup=plan.next_wakeup,
    )
    observations = write_observations(plan.observations)
    parts = [source.tree, format_time(plan.time), version, *([json.dumps(observations)] if observations else [])]
    entry = RunMetadata(
        source=source.oid,
        version=version,
        time=plan.time,
        source_tree=source.tree,
        findings=plan.findings,
        next_wakeup=plan.next_wakeup,
        observations=observations,
        observed_at=plan.observations.time,
        input_digest=sha256("\n".join(parts).encode()).hexdigest(),
        retiring=plan.retiring,
    )
    return {
        README: write_readme(summary),
        RUN_METADATA: write_run_metadata(entry),
        HYDRATOR_METADATA: write_hydrator_metadata(source.oid, url, source.subject, source.author, source.time),
    }


def make_commit_message(source: Commit, plan: Plan, parts: Set[str], version: str) -> str:
    """The commit message; what happened last, the source's commit, a deadline or an observation, is the cause.

    `parts` are the entries of the output's root that differ from the last commit's.
    """
    cause: CommitCause = (
        "source" if plan.time <= source.time else "observation" if plan.time == plan.observations.time else "deadline"
    )
    moved = len(plan.moves)
    summary = f"{moved} workload{'s' if moved != 1 else ''} moved" if moved else _summarize_changed_entries(parts)
    lines = [f"{move.key}: {_format_replicas(move.before)} -> {_format_replicas(move.after)}" for move in plan.moves]
    return write_commit_message(f"{summary} ({source.subject})", lines, source=source.oid, version=version, cause=cause)


def _summarize_changed_entries(parts: Set[str]) -> str:
    """What changed when nothing moved, by what matters most to who delivers it."""
    if CLUSTERS in parts:
        return "manifests changed"
    if KEPT in parts:
        return "last valid files kept, or no longer"
    return "records changed"


def _format_replicas(shares: object) -> str:
    entries = shares.items() if isinstance(shares, dict) else ()
    return ", ".join(name if count is None else f"{name}:{count}" for name, count in entries) or "nowhere"
