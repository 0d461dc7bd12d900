"""Write README.md, gitsched.json, hydrator.metadata and the commit message of an output commit."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from hashlib import sha256
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from gitsched.decide.guard.guard_settings import DEFAULT_GUARD, write_guard_record
from gitsched.model.commit import RELEASE_CLUSTER_TRAILER, RELEASE_TRAILER, Commit
from gitsched.model.finding import format_count, format_names
from gitsched.model.holds import describe_release
from gitsched.model.observation import write_observations
from gitsched.model.scheduling import AtLeast
from gitsched.model.time import EPOCH, format_time
from gitsched.render.format_versions import describe_upgrade
from gitsched.render.output_files import CLUSTERS, HYDRATOR_METADATA, KEPT, README, RUN_METADATA
from gitsched.render.readme import write_readme
from gitsched.render.readme_content import DecisionRow, FleetRow, HeldRow, ReadmeContent, RecordedRow
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord, RunMetadata, write_hydrator_metadata, write_run_metadata
from gitsched.report.lines import format_key

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.model.changes import Move, RecordChange
    from gitsched.model.holds import Releases
    from gitsched.model.planned_files import PlannedFile
    from gitsched.model.scheduling import RecordTarget

CommitCause = Literal["source", "facts", "deadline", "observation", "upgrade"]
SOURCE_TRAILER = "Gitsched-Source"
"""The source commit of an output commit."""
CAUSE_TRAILER = "Gitsched-Cause"
"""Why a run made an output commit, as a CommitCause."""
FACTS_TRAILER = "Gitsched-Facts"
"""The commits of the facts branches, as BRANCH@COMMIT; gitsched.json has all of them."""
_MAX_FACTS = 5
SUBJECT_LIMIT = 100
LINE_LIMIT = 200
BODY_LIMIT = 50
_BLANKS = re.compile(r" {2,}")
# [skip ci] in the subject of a source commit must not disable the pipelines of the output branch.
_BRACKETS = str.maketrans("[]", "()")


def render_metadata_files(
    source: Commit,
    plan: Plan,
    url: str | None,
    version: str,
    facts: Mapping[str, str] = MappingProxyType({}),
    builds: BuildRecord = NOTHING_BUILT,
    kept_files: Mapping[str, str] = MappingProxyType({}),
    tenants: tuple[Mapping[str, Any], ...] = (),
) -> dict[str, PlannedFile]:
    """Render README.md, gitsched.json and hydrator.metadata. `facts` are the commits of the facts branches by branch; `builds` says how
    kustomize roots were built; `kept_files` are the commits whose versions of broken files are used; `tenants` are the Tenants that the
    next run trusts.

    The input digest does not cover the previous output: a delayed run starts from an earlier output than a run on time, and writes the
    same bytes.
    """
    totals = plan.totals
    readme = ReadmeContent(
        source=source.oid,
        version=version,
        time=plan.time,
        fleet=[
            FleetRow(
                facts.name,
                facts.region,
                "retiring" if name in totals.retiring else "",
                facts.workloads,
                AtLeast(facts.replicas) if facts.marked else facts.replicas,
            )
            for name, facts in totals.overview.first_clusters.items()
        ],
        decisions=[
            DecisionRow(
                format_key(key),
                outcome.policy or outcome.reason,
                [*outcome.replicas_by_cluster.items()],
                outcome.variant_paths,
            )
            for key, outcome in totals.overview.first_outcomes.items()
        ],
        recorded=[
            RecordedRow(format_key(decision.subject), decision.target_kind, [_format_target(each) for each in decision.targets])
            for decision in plan.totals.engines.recorded
        ],
        held=_list_held_rows(plan),
        copies=_list_copy_lines(plan._replace(ended=())),
        workloads=len(plan.outcomes),
        clusters=totals.overview.cluster_count,
        findings=Counter(finding.severity for finding in plan.findings),
        unclaimed=totals.overview.unclaimed,
        repository=url,
        next_wakeup=plan.next_wakeup,
        freeze="" if plan.guard == DEFAULT_GUARD else plan.freeze,
        withheld=len(plan.withheld.moves),
        allowance=plan.withheld.digest,
    )
    observations = write_observations(plan.observations) if plan.observations else {}
    inputs = [source.tree, format_time(plan.time), version, *([json.dumps(observations)] if observations else [])]
    inputs += [json.dumps(facts, sort_keys=True)] if facts else []
    inputs += [builds.builder, json.dumps(builds.kept, sort_keys=True)] if builds.builder else []
    inputs += [json.dumps(kept_files, sort_keys=True)] if kept_files else []
    inputs += [json.dumps(tenants, sort_keys=True)] if tenants else []
    entry = RunMetadata(
        source=source.oid,
        version=version,
        time=plan.time,
        source_tree=source.tree,
        builds=builds,
        kept_files=kept_files,
        findings=plan.findings,
        next_wakeup=plan.next_wakeup,
        observations=observations,
        observed_at=plan.observations.time,
        input_digest=sha256("\n".join(inputs).encode()).hexdigest(),
        retiring=totals.retiring,
        facts=facts,
        retained=totals.retained,
        placed=totals.capacity.placed,
        undelivered=tuple(sorted(totals.undelivered)),
        rollouts=plan.rollout_records,
        workloads={state: count for state, count in totals.overview.state_counts.items() if count},
        unclaimed=totals.overview.unclaimed,
        adopted=plan.adopted,
        guard={} if plan.guard == DEFAULT_GUARD else write_guard_record(plan.guard),
        tenants=tenants,
    )
    return {
        README: write_readme(readme),
        RUN_METADATA: write_run_metadata(entry),
        HYDRATOR_METADATA: write_hydrator_metadata(source.oid, url, source.subject, source.author, source.time),
    }


def _list_held_rows(plan: Plan) -> list[HeldRow]:
    if not plan.totals.held:
        return []
    return [
        HeldRow(
            format_key(key), _list_clusters(held.clusters), held.reason, _list_clusters(held.wanted), describe_release(key, held)
        )
        for key, held in plan.totals.held.items()
    ]


def make_commit_message(
    source: Commit,
    plan: Plan,
    record_changes: Sequence[RecordChange],
    changed_entries: Set[str],
    version: str,
    facts_time: datetime = EPOCH,
    facts: Mapping[str, str] = MappingProxyType({}),
    trailers: Mapping[str, str] = MappingProxyType({}),
    *,
    follows_edits: bool = False,
    withheld_before: str = "",
) -> str:
    """Return the commit message. The cause is the latest event: the source commit, newer facts, a deadline or an observation.

    `record_changes` are the changed recorded decisions, `changed_entries` the names at the root of the output that differ from the last
    commit. `facts` are the commits of the facts branches by branch, of which the message names the first ones. `trailers` are others.
    The run `follows_edits` if it decides from records that people changed. `withheld_before` is the digest of what the last run withheld.
    """
    cause = _find_cause(source, plan, facts_time)
    moved, recorded, withheld = _count_moves(plan.moves), len(record_changes), plan.withheld
    parts = (
        moved,
        "edited records followed" if follows_edits else "",
        f"{recorded} recorded decision{'s' if recorded != 1 else ''} changed" if recorded else "",
        f"{len(plan.ended)} overlap{'s' if len(plan.ended) != 1 else ''} ended" if plan.ended and not moved else "",
        f"withheld: {_count_moves(withheld.moves)}" if withheld.moves and withheld.digest != withheld_before else "",
    )
    summary = ", ".join(filter(None, parts)) or _summarize_changed_entries(changed_entries, plan)
    lines = [f"{move.key}: {_format_replicas(move.before)} -> {_format_replicas(move.after)}" for move in plan.moves]
    lines += _list_copy_lines(plan)
    if plan.rollouts:
        from gitsched.report.rollouts import describe_rollouts  # few runs roll out in waves

        lines += [line.strip() for line in describe_rollouts(plan.rollouts)]
    lines += [
        f"{change.subject}, {change.target_kind}: {_format_targets(change.before)} -> {_format_targets(change.after)}"
        for change in record_changes
    ]
    return write_commit_message(
        f"{summary} ({source.subject})",
        lines,
        source=source.oid,
        version=version,
        cause=cause,
        trailers={**_list_trailers(plan, facts), **trailers},
        fixed_subject=plan.totals.config.output.commit_subject,
    )


def _count_moves(moves: Iterable[Move]) -> str:
    """Return what happens to how many workloads, the gravest first; "" if nothing does."""
    counts = dict.fromkeys(("unplaced", "removed", "moved", "scaled", "placed", "placed again"), 0)
    for move in moves:
        if not move.after:
            counts["removed" if move.intended else "unplaced"] += 1
        elif not move.before:
            counts["placed again" if move.copies and move.copies.keys() == move.after.keys() else "placed"] += 1
        else:
            counts["scaled" if move.after.keys() == move.before.keys() else "moved"] += 1
    found = [(number, what) for what, number in counts.items() if number]
    first = [f"{format_count(number, 'workload')} {what}" for number, what in found[:1]]
    return ", ".join([*first, *(f"{number:,} {what}" for number, what in found[1:])])


def make_rewrite_message(before: RunMetadata, source: str, version: str, fixed_subject: str = "") -> str:
    """Return the message of the commit that rewrites the output of an earlier version. `source` is the source commit of the last run."""
    summary = f"output rewritten for {describe_upgrade(before.format_version, before.version, version)}"
    lines = ["no workload moves"]
    return write_commit_message(summary, lines, source=source, version=version, cause="upgrade", fixed_subject=fixed_subject)


def make_plain_commit_message(
    source: Commit, plan: Plan, version: str, facts_time: datetime = EPOCH, facts: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the commit message without what changed, for when a bug shows in describing that. It has the same trailers."""
    cause = _find_cause(source, plan, facts_time)
    return write_commit_message(
        "what changed is not described", (), source=source.oid, version=version, cause=cause, trailers=_list_trailers(plan, facts)
    )


def _list_trailers(plan: Plan, facts: Mapping[str, str]) -> dict[str, str]:
    trailers = _list_release_trailers(plan.releases) if plan.releases is not None else {}
    if facts:
        named = [f"{branch}@{oid}" for branch, oid in list(facts.items())[:_MAX_FACTS]]
        trailers |= {FACTS_TRAILER: ", ".join(named) + (f" and {len(facts) - _MAX_FACTS} more" if len(facts) > _MAX_FACTS else "")}
    return trailers


def _list_release_trailers(releases: Releases) -> dict[str, str]:
    """Return the trailers that record what was released."""
    names = {RELEASE_TRAILER: releases.workloads, RELEASE_CLUSTER_TRAILER: releases.clusters}
    return {trailer: ", ".join(sorted(found)) for trailer, found in names.items() if found}


def _list_copy_lines(plan: Plan) -> list[str]:
    """Return the copies that stay for an overlap, and those that go because it is over."""
    retained = plan.totals.retained
    if not retained and not plan.ended:
        return []
    from gitsched.decide.plan_result import mark_awaited
    from gitsched.report.retained_copies import describe_ended_copies, describe_retained_copies  # few plans have any

    return [*describe_retained_copies(mark_awaited(retained, plan.findings)), *describe_ended_copies(plan.ended)]


def _find_cause(source: Commit, plan: Plan, facts_time: datetime) -> CommitCause:
    if plan.time <= source.time:
        return "source"
    if plan.time == plan.observations.time:
        return "observation"
    if plan.time <= facts_time:
        return "facts"
    # A release takes effect at the time of its run, whether people or a deadline started it.
    return "source" if plan.releases is not None and any(plan.releases) else "deadline"


def _summarize_changed_entries(names: Set[str], plan: Plan) -> str:
    """Summarize a commit that moves no workload: manifests matter most."""
    if CLUSTERS in names:
        return "manifests changed"
    if KEPT in names:
        return "last valid files changed"
    if names:
        return "records changed"
    stopped = [one.name for one in plan.rollouts if one.state == "stopped"]
    if stopped:
        return f"rollout{'s' if len(stopped) > 1 else ''} {format_names(stopped)} {'are' if len(stopped) > 1 else 'is'} stopped"
    if plan.rollouts:
        return "a rollout advanced"
    return "releases recorded" if plan.releases is not None else "the guard changed"


def _format_targets(targets: Sequence[RecordTarget]) -> str:
    return ", ".join(map(_format_target, targets)) or "none"


def _format_target(target: RecordTarget) -> str:
    text = target.name if target.amount is None else f"{target.name} {target.amount}"
    return f"{text} ({target.group})" if target.group else text


def _list_clusters(replicas: Mapping[str, int | None]) -> list[str]:
    return [name if count is None else f"{name} {count}" for name, count in replicas.items()]


def _format_replicas(replicas: object) -> str:
    entries = replicas.items() if isinstance(replicas, dict) else ()
    return ", ".join(name if count is None else f"{name} {count}" for name, count in entries) or "nowhere"


def format_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Return untrusted text as one line of at most `limit` printable characters."""
    printable = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    line = _BLANKS.sub(" ", printable).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def write_commit_message(
    summary: str,
    lines: Iterable[str],
    *,
    source: str,
    version: str,
    cause: CommitCause,
    trailers: Mapping[str, str] | None = None,
    fixed_subject: str = "",
) -> str:
    """Return the subject `place: <summary>`, a list of the lines (at most 50, then a count), and the trailers.

    With a `fixed_subject`, this is the first line, and the summary is the first one of the list.
    `trailers` follow the standard trailers; their names are constants of the caller, never input. The text ends in one newline.
    """
    fixed_subject = format_line(fixed_subject, SUBJECT_LIMIT).translate(_BRACKETS)
    subject = fixed_subject or format_line(f"place: {summary}", SUBJECT_LIMIT).translate(_BRACKETS)
    rest = iter((summary, *lines) if fixed_subject else lines)
    entries = (format_line(line).translate(_BRACKETS) for line in rest)
    # A list item cannot be mistaken for a trailer, a comment, or the "---" at which Git ends a message.
    body = [f"- {entry}" for entry in islice(filter(None, entries), BODY_LIMIT)]
    if more := sum(not line.isspace() for line in rest if line):
        body.append(f"- and {more} more")
    all_trailers = {SOURCE_TRAILER: source, "Gitsched-Version": version, CAUSE_TRAILER: cause, **(trailers or {})}
    tail = "\n".join(f"{name}: {format_line(value)}" for name, value in all_trailers.items())
    return "\n\n".join(part for part in (subject, "\n".join(body), tail) if part) + "\n"
