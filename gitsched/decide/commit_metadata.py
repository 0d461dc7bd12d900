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
from gitsched.render.output_files import CLUSTERS, HYDRATOR_METADATA, KEPT, README, RUN_METADATA
from gitsched.render.run_metadata import (
    CommitCause,
    DecisionRow,
    FleetRow,
    ReadmeContent,
    RunMetadata,
    write_commit_message,
    write_hydrator_metadata,
    write_readme,
    write_run_metadata,
)


def render_metadata_files(source: Commit, plan: Plan, url: str | None, version: str) -> dict[str, PlannedFile]:
    """Render README.md, gitsched.json and hydrator.metadata.

    The input digest does not cover the previous output: a delayed run starts from an earlier output than a run on time, and writes the
    same bytes.
    """
    totals = plan.totals
    readme = ReadmeContent(
        source=source.oid,
        version=version,
        time=plan.time,
        fleet=[
            FleetRow(facts.name, facts.region, "retiring" if name in totals.retiring else "", facts.workloads, facts.replicas)
            for name, facts in totals.first_clusters.items()
        ],
        decisions=[
            DecisionRow(
                f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}",
                outcome.policy or outcome.reason,
                [*outcome.replicas_by_cluster.items()],
            )
            for key, outcome in totals.first_outcomes.items()
        ],
        workloads=len(plan.outcomes),
        clusters=totals.cluster_count,
        findings=Counter(finding.severity for finding in plan.findings),
        unclaimed=totals.unclaimed,
        repository=url,
        next_wakeup=plan.next_wakeup,
    )
    observations = write_observations(plan.observations) if plan.observations else {}
    inputs = [source.tree, format_time(plan.time), version, *([json.dumps(observations)] if observations else [])]
    entry = RunMetadata(
        source=source.oid,
        version=version,
        time=plan.time,
        source_tree=source.tree,
        findings=plan.findings,
        next_wakeup=plan.next_wakeup,
        observations=observations,
        observed_at=plan.observations.time,
        input_digest=sha256("\n".join(inputs).encode()).hexdigest(),
        retiring=totals.retiring,
    )
    return {
        README: write_readme(readme),
        RUN_METADATA: write_run_metadata(entry),
        HYDRATOR_METADATA: write_hydrator_metadata(source.oid, url, source.subject, source.author, source.time),
    }


def make_commit_message(source: Commit, plan: Plan, changed_entries: Set[str], version: str) -> str:
    """Return the commit message. The cause is the latest event: the source commit, a deadline or an observation.

    `changed_entries` are the names at the root of the output that differ from the last commit.
    """
    cause: CommitCause = (
        "source" if plan.time <= source.time else "observation" if plan.time == plan.observations.time else "deadline"
    )
    moved = len(plan.moves)
    summary = f"{moved} workload{'s' if moved != 1 else ''} moved" if moved else _summarize_changed_entries(changed_entries)
    lines = [f"{move.key}: {_format_replicas(move.before)} -> {_format_replicas(move.after)}" for move in plan.moves]
    return write_commit_message(f"{summary} ({source.subject})", lines, source=source.oid, version=version, cause=cause)


def _summarize_changed_entries(names: Set[str]) -> str:
    """Summarize a commit that moves no workload: manifests matter most."""
    if CLUSTERS in names:
        return "manifests changed"
    if KEPT in names:
        return "last valid files changed"
    return "records changed"


def _format_replicas(replicas: object) -> str:
    entries = replicas.items() if isinstance(replicas, dict) else ()
    return ", ".join(name if count is None else f"{name}:{count}" for name, count in entries) or "nowhere"
