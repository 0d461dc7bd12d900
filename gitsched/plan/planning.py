"""The plan of a commit: decisions, what they change, the files of the output branch and whether the guard lets them pass.

output tree = plan(source commit, previous output, observations, now)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.model.change import Move
from gitsched.model.cluster import ClusterFacts
from gitsched.model.document import Body, Key, group_of, member
from gitsched.model.files import PlannedFile
from gitsched.model.finding import Finding, rank
from gitsched.model.observation import Observations
from gitsched.model.outcome import Outcome
from gitsched.plan.catalog import Loose
from gitsched.plan.deciding import Decided, Memory, decide
from gitsched.plan.keeping import Kept, keep_bytes
from gitsched.plan.rendering import Canvas, Picture, render
from gitsched.render.layout import kept_path, segment
from gitsched.render.summary import ROWS


class Before(NamedTuple):
    """The previous output: its records by identity, those that are none of the given ones, the blob of a path, its cluster directories,
    and since when which ones retire."""

    documents: Mapping[Key, Body]
    others: Callable[[Iterable[Key]], Iterable[Body]]
    lookup: Callable[[str], str | None]
    clusters: frozenset[str]
    retiring: Mapping[str, datetime]


class Input(NamedTuple):
    """Everything a plan is made from.

    `findings` are by source file, `beside` those about the source but about no file that was read. `kept` maps source files that are
    broken now to their last valid bytes, `observations` are what metrics say.
    """

    documents: Iterable[Loose]
    findings: Mapping[str, tuple[Finding, ...]]
    beside: tuple[Finding, ...]
    before: Before
    config: Config
    at: datetime
    now: datetime
    kept: Mapping[str, Kept]
    observations: Observations = Observations()


class Details(NamedTuple):
    """What only a whole plan has: every decision with all that it was read from, and what was rendered of it."""

    decided: Decided
    picture: Picture


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
    front: Mapping[Key, Outcome]
    fleet: Mapping[str, ClusterFacts]
    clusters: int
    states: Mapping[str, int]
    retiring: Mapping[str, datetime]
    refusal: str
    observations: Observations = Observations()
    details: Details | None = None

    @property
    def whole(self) -> bool:
        """Whether everything was planned anew."""
        return self.details is not None

    @property
    def decided(self) -> Decided:
        """What `explain` and simulations need; an error where the plan is no whole one."""
        assert self.details is not None, "only a whole plan has it"
        return self.details.decided

    @property
    def facts(self) -> Mapping[str, ClusterFacts]:
        """Every cluster with a directory; an error where the plan is no whole one."""
        assert self.details is not None, "only a whole plan has it"
        return self.details.picture.facts


class Workspace:
    """What a resident process remembers between plans."""

    __slots__ = ("canvas", "memory")

    def __init__(self) -> None:
        self.memory, self.canvas = Memory(), Canvas()


def plan(source: Input, workspace: Workspace | None = None) -> Plan:
    """Plan a commit. Pure: the same input gives the same plan; the workspace only saves work."""
    workspace = workspace or Workspace()
    config, before = source.config, source.before
    decided = decide(source.documents, before.documents, config, source.at, source.now, workspace.memory, source.observations)
    known = {name for session in decided.sessions for name in session.clusters()}
    retiring, retirement, retired = _retire(before, known, source)
    rendered = render(decided, retiring, before.lookup, workspace.canvas)
    outcomes = decided.outcomes
    standing = before.clusters - before.retiring.keys()

    def lived(cluster: str) -> bool:
        return segment(cluster) in standing

    moves = (*list_moves(outcomes.values(), lived), *_removals(decided, before))
    findings = [*source.beside, *decided.findings, *rendered.findings]
    findings += [finding for found in source.findings.values() for finding in found]
    findings += [finding for outcome in outcomes.values() for finding in outcome.findings]
    kept = ((kept_path(path), keep_bytes(kept, outcomes)) for path, kept in source.kept.items())
    return Plan(
        outcomes=outcomes,
        findings=tuple(sorted(set(findings), key=rank)),
        moves=moves,
        unclaimed=decided.unclaimed,
        next_wakeup=min((*decided.wakeups, *retirement), default=None),
        # An outcome is later than the source only where a deadline changed it, be it but the end of an eviction, which moves nothing.
        time=max((source.at, *retired, *_deadlines(decided), *(outcome.time for outcome in outcomes.values()))),
        files={**rendered.files, **{path: file for path, file in kept if file is not None}},
        front=dict(islice(outcomes.items(), ROWS)),
        fleet=dict(sorted(rendered.facts.items())[:ROWS]),
        clusters=len(rendered.facts),
        states=Counter(outcome.state for outcome in outcomes.values()),
        retiring=retiring,
        refusal=judge_removals(outcomes.values(), lived, len(outcomes), config),
        observations=source.observations,
        details=Details(decided, rendered),
    )


def _retire(before: Before, known: set[str], source: Input) -> tuple[dict[str, datetime], list[datetime], list[datetime]]:
    """Clusters that lost their document keep a directory for a while, so that delivery tools prune before it goes.

    Since when they retire, when that ends, and when it ended for those whose directory goes now.
    """
    retiring: dict[str, datetime] = {}
    ends: list[datetime] = []
    ended: list[datetime] = []
    for name in sorted((before.clusters | before.retiring.keys()) - known):
        since = before.retiring.get(name, source.at)
        end = since + source.config.output.retire_after
        if end > source.now:
            retiring[name] = since
            ends.append(end)
        else:
            ended.append(end)
    return retiring, ends, ended


def _deadlines(decided: Decided) -> list[datetime]:
    """Deadlines that changed a record of no workload."""
    return [session.time for session in decided.sessions if session.time is not None]


Lived = Callable[[str], bool]
"""Whether a cluster took workloads in the previous output: one without a document does not, though bindings may still name it."""


def list_moves(outcomes: Iterable[Outcome], lived: Lived) -> Iterator[Move]:
    """What moves among the outcomes, in their order."""
    for outcome in outcomes:
        earlier, later = _list_earlier(outcome, lived), outcome.shares
        if earlier != later:
            yield Move(outcome.key, earlier, later, tell(outcome))


def tell(outcome: Outcome) -> str:
    """Why a workload is where it is, in one line."""
    return "; ".join(filter(None, (outcome.reason, outcome.cause)))


def _removals(decided: Decided, before: Before) -> list[Move]:
    """Workloads that the last run had placed and nobody places any more."""
    held = [key for outcome in decided.outcomes.values() for key, _ in outcome.documents]
    moves = []
    for body in before.others(held):
        move = _removed_application(body)
        if move is not None:
            moves.append(move)
            continue
        spec = body.get("spec") or {}
        entries = (spec, *(spec.get("requiredBy") or ()))
        clusters, resource = [cluster for entry in entries for cluster in entry.get("clusters") or ()], spec.get("resource")
        if not clusters or not resource:
            continue
        template = Key(
            group_of(str(resource.get("apiVersion"))),
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


def _removed_application(record: Body) -> Move | None:
    """The end of an Application of Krake's, whose record says itself where it ran."""
    target = member(record, "status", "scheduled_to")
    if (record.get("api"), record.get("kind")) != ("kubernetes", "Application") or not isinstance(target, dict):
        return None
    metadata = record.get("metadata") or {}
    key = Key("kubernetes", "Application", str(metadata.get("namespace")), str(metadata.get("name")))
    cluster = f"{target.get('namespace')}.{target.get('name')}"
    return Move(key, {cluster: None}, {}, "it is not in the repository any more")


def _list_earlier(outcome: Outcome, lived: Lived) -> dict[str, int | None]:
    """Where a workload ran as far as the previous output goes."""
    return {place.cluster: place.replicas for place in outcome.before if not place.leaving and lived(place.cluster)}


def judge_removals(decided: Iterable[Outcome], lived: Lived, workloads: int, config: Config) -> str:
    """Refuse when too many workloads would lose their last place though they are still selected: downstream tools would prune them.

    `decided` are those that were decided now, of so many `workloads`.
    """
    lost = [outcome for outcome in decided if outcome.before and not outcome.shares and _list_earlier(outcome, lived)]
    percent = 100 * len(lost) / workloads if workloads else 0.0
    if len(lost) <= config.guard.max_removals or percent <= config.guard.max_removals_percent:
        return ""
    first = ", ".join(str(outcome.key) for outcome in sorted(lost, key=lambda outcome: outcome.key)[:5])
    return f"{len(lost)} of {workloads} workloads would lose their last placement ({first}{', ...' if len(lost) > 5 else ''})"
