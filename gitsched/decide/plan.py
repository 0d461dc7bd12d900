"""Make the complete plan of a commit: decisions, moves, files of the output branch and the result of the removal guard.

output tree = plan(source commit, previous output, observations, now)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import RawDocument
from gitsched.decide.decisions import DecisionCache, DecisionSet, decide
from gitsched.decide.rendered_tree import LastValidFile, RenderCache, RenderedTree, render, render_last_valid
from gitsched.model.changes import Move
from gitsched.model.document import Body, Key, get_field, parse_api_group
from gitsched.model.finding import Finding, finding_sort_key
from gitsched.model.observation import Observations
from gitsched.model.planned_files import ClusterInfo, PlannedFile
from gitsched.model.scheduling import Outcome
from gitsched.render.layout import escape_segment, kept_path
from gitsched.render.readme import MAX_ROWS


class PreviousOutput(NamedTuple):
    """The previous output: its records by identity, those that are none of the given ones, the blob of a path, its cluster directories,
    and since when which ones retire."""

    records: Mapping[Key, Body]
    list_other_records: Callable[[Iterable[Key]], Iterable[Body]]
    find_blob: Callable[[str], str | None]
    clusters: frozenset[str]
    retiring: Mapping[str, datetime]


class PlanInput(NamedTuple):
    """Everything a plan is made from.

    `findings` are by source file, `beside` those about the source but about no file that was read. `kept` maps source files that are
    broken now to their last valid bytes, `observations` are what metrics say.
    """

    documents: Iterable[RawDocument]
    file_findings: Mapping[str, tuple[Finding, ...]]
    other_findings: tuple[Finding, ...]
    previous: PreviousOutput
    config: Config
    source_time: datetime
    now: datetime
    last_valid: Mapping[str, LastValidFile]
    observations: Observations = Observations()


class PlanDetails(NamedTuple):
    """What only a whole plan has: every decision with all that it was read from, and what was rendered of it."""

    decisions: DecisionSet
    rendered: RenderedTree


class Plan(NamedTuple):
    """`outcomes` are by (namespace, name), `states` counts them. `time` is the moment of the latest event that changed something.

    `files` are those of the output tree but for the front page and the record of the run: all of them in a `whole` plan, else those that
    differ from the previous tree, None where one goes. `front` are the first outcomes and `fleet` the first of so many `clusters`, as
    many as the front page may show. `refusal` is why the guard refuses the commit, or "".
    """

    outcomes: Mapping[Key, Outcome]
    findings: tuple[Finding, ...]
    moves: tuple[Move, ...]
    unclaimed: int
    next_wakeup: datetime | None
    time: datetime
    files: Mapping[str, PlannedFile | None]
    first_outcomes: Mapping[Key, Outcome]
    first_clusters: Mapping[str, ClusterInfo]
    cluster_count: int
    state_counts: Mapping[str, int]
    retiring: Mapping[str, datetime]
    refusal: str
    observations: Observations = Observations()
    details: PlanDetails | None = None

    @property
    def complete(self) -> bool:
        """Whether everything was planned anew."""
        return self.details is not None

    @property
    def decisions(self) -> DecisionSet:
        """What `explain` and simulations need; an error where the plan is no whole one."""
        assert self.details is not None, "only a whole plan has it"
        return self.details.decisions

    @property
    def cluster_facts(self) -> Mapping[str, ClusterInfo]:
        """Every cluster with a directory; an error where the plan is no whole one."""
        assert self.details is not None, "only a whole plan has it"
        return self.details.rendered.cluster_facts


class InMemoryCaches:
    """What a resident process remembers between plans."""

    __slots__ = ("decisions", "rendered")

    def __init__(self) -> None:
        self.decisions, self.rendered = DecisionCache(), RenderCache()


def make_plan(source: PlanInput, workspace: InMemoryCaches | None = None) -> Plan:
    """Plan a commit. Pure: the same input gives the same plan; the workspace only saves work."""
    workspace = workspace or InMemoryCaches()
    config, before = source.config, source.previous
    decided = decide(
        source.documents, before.records, config, source.source_time, source.now, workspace.decisions, source.observations
    )
    known = {name for session in decided.engines for name in session.clusters()}
    retiring, retirement, retired = _list_retiring_clusters(before, known, source)
    rendered = render(decided, retiring, before.find_blob, workspace.rendered)
    outcomes = decided.outcomes
    standing = before.clusters - before.retiring.keys()

    def lived(cluster: str) -> bool:
        return escape_segment(cluster) in standing

    moves = (*list_moves(outcomes.values(), lived), *_list_removed_workloads(decided, before))
    findings = [*source.other_findings, *decided.findings, *rendered.findings]
    findings += [finding for found in source.file_findings.values() for finding in found]
    findings += [finding for outcome in outcomes.values() for finding in outcome.findings]
    kept = ((kept_path(path), render_last_valid(kept, outcomes)) for path, kept in source.last_valid.items())
    return Plan(
        outcomes=outcomes,
        findings=tuple(sorted(set(findings), key=finding_sort_key)),
        moves=moves,
        unclaimed=decided.unclaimed,
        next_wakeup=min((*decided.wakeups, *retirement), default=None),
        # An outcome is later than the source only where a deadline changed it, be it but the end of an eviction, which moves nothing.
        time=max((source.source_time, *retired, *_list_deadlines(decided), *(outcome.time for outcome in outcomes.values()))),
        files={**rendered.files, **{path: file for path, file in kept if file is not None}},
        first_outcomes=dict(islice(outcomes.items(), MAX_ROWS)),
        first_clusters=dict(sorted(rendered.cluster_facts.items())[:MAX_ROWS]),
        cluster_count=len(rendered.cluster_facts),
        state_counts=Counter(outcome.state for outcome in outcomes.values()),
        retiring=retiring,
        refusal=check_removal_guard(outcomes.values(), lived, len(outcomes), config),
        observations=source.observations,
        details=PlanDetails(decided, rendered),
    )


def _list_retiring_clusters(
    before: PreviousOutput, known: set[str], source: PlanInput
) -> tuple[dict[str, datetime], list[datetime], list[datetime]]:
    """Clusters that lost their document keep a directory for a while, so that delivery tools prune before it goes.

    Since when they retire, when that ends, and when it ended for those whose directory goes now.
    """
    retiring: dict[str, datetime] = {}
    ends: list[datetime] = []
    ended: list[datetime] = []
    for name in sorted((before.clusters | before.retiring.keys()) - known):
        since = before.retiring.get(name, source.source_time)
        end = since + source.config.output.retire_after
        if end > source.now:
            retiring[name] = since
            ends.append(end)
        else:
            ended.append(end)
    return retiring, ends, ended


def _list_deadlines(decided: DecisionSet) -> list[datetime]:
    """Deadlines that changed a record of no workload."""
    return [session.time for session in decided.engines if session.time is not None]


HadWorkloads = Callable[[str], bool]
"""Whether a cluster took workloads in the previous output: one without a document does not, though bindings may still name it."""


def list_moves(outcomes: Iterable[Outcome], lived: HadWorkloads) -> Iterator[Move]:
    """What moves among the outcomes, in their order."""
    for outcome in outcomes:
        earlier, later = _list_previous_replicas(outcome, lived), outcome.replicas_by_cluster
        if earlier != later:
            yield Move(outcome.key, earlier, later, describe_reason(outcome))


def describe_reason(outcome: Outcome) -> str:
    """Why a workload is where it is, in one line."""
    return "; ".join(filter(None, (outcome.reason, outcome.trigger)))


def _list_removed_workloads(decided: DecisionSet, before: PreviousOutput) -> list[Move]:
    """Workloads that the last run had placed and nobody places any more."""
    held = [key for outcome in decided.outcomes.values() for key, _ in outcome.records]
    moves = []
    for body in before.list_other_records(held):
        move = _make_application_removal(body)
        if move is not None:
            moves.append(move)
            continue
        spec = body.get("spec") or {}
        entries = (spec, *(spec.get("requiredBy") or ()))
        clusters, resource = [cluster for entry in entries for cluster in entry.get("clusters") or ()], spec.get("resource")
        if not clusters or not resource:
            continue
        template = Key(
            parse_api_group(str(resource.get("apiVersion"))),
            str(resource.get("kind")),
            str(resource.get("namespace") or ""),
            str(resource.get("name")),
        )
        why = "it is not in the repository any more"
        if template in decided.templates:
            why = "nothing brings it along any more" if spec.get("requiredBy") else "no policy selects it any more"
        own = {str(entry.get("name")): entry.get("replicas") for entry in spec.get("clusters") or ()}
        moves.append(Move(template, {**{str(entry.get("name")): None for entry in clusters}, **own}, {}, why))
    return moves


def _make_application_removal(record: Body) -> Move | None:
    """The end of an Application of Krake's, whose record says itself where it ran."""
    target = get_field(record, "status", "scheduled_to")
    if (record.get("api"), record.get("kind")) != ("kubernetes", "Application") or not isinstance(target, dict):
        return None
    metadata = record.get("metadata") or {}
    key = Key("kubernetes", "Application", str(metadata.get("namespace")), str(metadata.get("name")))
    cluster = f"{target.get('namespace')}.{target.get('name')}"
    return Move(key, {cluster: None}, {}, "it is not in the repository any more")


def _list_previous_replicas(outcome: Outcome, lived: HadWorkloads) -> dict[str, int | None]:
    """Where a workload ran as far as the previous output goes."""
    return {place.cluster: place.replicas for place in outcome.previous_targets if not place.evicting and lived(place.cluster)}


def check_removal_guard(decided: Iterable[Outcome], lived: HadWorkloads, workloads: int, config: Config) -> str:
    """Refuse when too many workloads would lose their last place though they are still selected: downstream tools would prune them.

    `decided` are those that were decided now, of so many `workloads`.
    """
    lost = [
        outcome
        for outcome in decided
        if outcome.previous_targets and not outcome.replicas_by_cluster and _list_previous_replicas(outcome, lived)
    ]
    percent = 100 * len(lost) / workloads if workloads else 0.0
    if len(lost) <= config.guard.max_removals or percent <= config.guard.max_removals_percent:
        return ""
    first = ", ".join(str(outcome.key) for outcome in sorted(lost, key=lambda outcome: outcome.key)[:5])
    return f"{len(lost)} of {workloads} workloads would lose their last placement ({first}{', ...' if len(lost) > 5 else ''})"
