"""From one plan to the next where only the text of a few templates changed: what was read from nothing else stays as it is.

Whatever could make a difference elsewhere (other settings, a workload that comes or goes, a namespace, a finding that would have to move)
is not amended: the caller plans everything anew, to the same bytes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple, TypeVar

from gitsched.apis.world import Session, World
from gitsched.model.document import Document, Key
from gitsched.model.files import Keep, PlannedFile
from gitsched.model.finding import Finding, rank
from gitsched.model.outcome import Outcome
from gitsched.plan.deciding import decide_one, is_settled, list_relating
from gitsched.plan.ledger import Outcomes, Place, Rows, Sums, Trace, list_records, make_trace, strip
from gitsched.plan.planning import Plan, judge_removals, list_moves
from gitsched.plan.rendering import Canvas, Lookup, Share, count_places, make_share, with_namespaces
from gitsched.render.cluster import cluster_json
from gitsched.render.directory import complete_directory
from gitsched.render.layout import CLUSTER_FACTS, cluster_path

K = TypeVar("K")
V = TypeVar("V")
_SAME = Keep("")
"""Stands for a file of a directory that nobody touches."""


class Ledger(NamedTuple):
    """What an earlier plan left: its sums, its rows and its sessions."""

    sums: Sums
    rows: Rows
    sessions: tuple[Session, ...]


class Edition(NamedTuple):
    """What is new in the source: the templates that have to be decided again, by identity, and the findings of each changed file."""

    documents: Mapping[Key, Document]
    findings: Mapping[str, tuple[Finding, ...]]


class Amendment(NamedTuple):
    """A plan that says only what changes, and what changes of the ledger with it."""

    plan: Plan
    sums: Sums
    traces: Mapping[Key, Trace]
    places: Mapping[str, Place]


def amend(ledger: Ledger, edition: Edition, world: World, lookup: Lookup, canvas: Canvas) -> Amendment | None:
    """The next plan; None where the whole is due."""
    sums = ledger.sums
    told = (finding for found in (sums.others, sums.by_session) for finding in found)
    if world.at < sums.at or any(_is_about(finding, edition.findings) for finding in told):
        return None
    ends = [since + sums.config.output.retire_after for since in sums.retiring.values()]
    if any(end <= world.now for end in ends) or not _renew(ledger, world):
        return None
    shares: dict[Key, Share] = {}
    restless = set(sums.restless)
    documents = _list_documents(ledger, edition, world)
    if documents is None:
        return None
    for key, document in documents.items():
        outcome, trace = decide_one(document, ledger.sessions), ledger.rows.trace(key)
        if (outcome is None) != (trace is None) or key.kind == "Namespace":
            return None
        if outcome is None:
            continue
        if outcome.manifests is not None:
            return None  # what it renders may lie where another workload's manifests do
        shares[key] = make_share(outcome, document, False, lookup, canvas)
        (restless.discard if is_settled(outcome, world.previous) else restless.add)(key)
    held = (finding for key, found in sums.by_workload.items() if key not in shares for finding in found)
    if any(_is_about(finding, edition.findings) for finding in held) or _intrude(ledger.rows, shares, lookup):
        return None
    traces = {key: make_trace(share, _source(documents[key])) for key, share in shares.items()}
    outcomes = {key: share.outcome for key, share in shares.items()}
    places = _replace_places(ledger.rows, traces)
    after = _add_up(sums, ledger.rows, outcomes, places, edition, world)._replace(restless=frozenset(restless))
    wakeups = [*after.wakeups.values(), *ends, *(session.wakeup for session in ledger.sessions if session.wakeup is not None)]

    def lived(cluster: str) -> bool:
        return cluster not in sums.retiring and ledger.rows.place(cluster) is not None

    plan = Plan(
        outcomes=Outcomes(ledger.rows, sums.workloads, outcomes),
        findings=list_findings(after),
        moves=tuple(list_moves(outcomes.values(), lived)),
        unclaimed=sums.unclaimed,
        next_wakeup=min(wakeups, default=None),
        time=max((world.at, *(outcome.time for outcome in outcomes.values()))),
        files=dict(_list_changes(ledger, shares, places)),
        front=after.front,
        fleet=after.fleet,
        clusters=after.clusters,
        states=after.states,
        retiring=sums.retiring,
        refusal=judge_removals(outcomes.values(), lived, sums.workloads, sums.config),
    )
    return Amendment(plan, after, traces, places)


def list_findings(sums: Sums) -> tuple[Finding, ...]:
    """All findings, in the order in which they are shown."""
    by = (*sums.by_file.values(), *sums.by_workload.values())
    return tuple(sorted({*sums.others, *sums.by_session, *(finding for findings in by for finding in findings)}, key=rank))


def _renew(ledger: Ledger, world: World) -> bool:
    """Whether the sessions go on, and say of everything but workloads what they said before."""
    sums, sessions = ledger.sums, ledger.sessions
    return (
        all(session.renew(world) for session in sessions)
        and tuple(finding for session in sessions for finding in session.findings) == sums.by_session
        and list_records(sessions) == sums.records
        and all(session.time is None and (session.wakeup is None or session.wakeup > world.now) for session in sessions)
    )


def _list_documents(ledger: Ledger, edition: Edition, world: World) -> dict[Key, Document] | None:
    """What has to be decided, by (namespace, name): what is new, and what depends on it. None where something of that is not there."""
    dirty = frozenset(edition.documents)
    for session in list_relating(ledger.sessions):
        dirty |= session.further(dirty)
    found: dict[Key, Document] = {}
    for key in sorted(dirty, key=lambda key: (key.namespace, key.name, key)):
        document = edition.documents.get(key) or world.templates.get(key)
        if document is None:
            return None
        found[key] = document
    return found


def _is_about(finding: Finding, paths: Container[str]) -> bool:
    """Whether a finding stands in one of these files, or would point there."""
    by_rule = finding.rule is not None and finding.rule.origin.path in paths
    return by_rule or (finding.location is not None and finding.location.path in paths)


def _intrude(rows: Rows, shares: Mapping[Key, Share], lookup: Lookup) -> bool:
    """Whether a workload would write a record where one of somebody else's is, or two of them the same one."""
    fresh: list[str] = []
    for key, share in shares.items():
        trace = rows.trace(key)
        fresh += (path for path in share.records if trace is None or path not in trace.records)
    return len(set(fresh)) < len(fresh) or any(lookup(path) is not None for path in fresh)


def _source(document: Document) -> str:
    return document.origin.path if document.origin else ""


def _replace_places(rows: Rows, traces: Mapping[Key, Trace]) -> dict[str, Place]:
    """The clusters that workloads leave, reach, or have otherwise many replicas in."""
    counts: dict[str, tuple[int, int]] = {}
    gone: dict[str, set[str]] = {}
    come: dict[str, set[str]] = {}
    for key, trace in traces.items():
        before = rows.trace(key)
        if before is None:
            continue
        count_places(counts, before.outcome, -1)
        count_places(counts, trace.outcome, 1)
        for paths, manifests in ((gone, before.manifests), (come, trace.manifests)):
            for cluster, files in manifests.items():
                paths.setdefault(cluster, set()).update(files)
    places = {}
    for name in sorted({*counts, *gone, *come}):
        place = rows.place(name)
        if place is None:
            continue  # bound to a cluster that has no document, and so no directory
        workloads, replicas = counts.get(name, (0, 0))
        facts = place.facts._replace(workloads=place.facts.workloads + workloads, replicas=place.facts.replicas + replicas)
        places[name] = Place(facts, place.paths - gone.get(name, set()) | come.get(name, set()))
    return places


def _list_changes(
    ledger: Ledger, shares: Mapping[Key, Share], places: Mapping[str, Place]
) -> Iterable[tuple[str, PlannedFile | None]]:
    """The files of the output tree that are other ones now, None for those that go."""
    for key, share in shares.items():
        before = ledger.rows.trace(key)
        yield from ((path, None) for path in (before.records if before else ()) if path not in share.records)
        yield from share.records.items()
    for name, place in places.items():
        earlier = ledger.rows.place(name)
        fresh = {path: file for share in shares.values() for path, file in share.manifests.get(name, {}).items()}
        if earlier is not None and earlier.paths == place.paths:
            yield from ((cluster_path(name, path), file) for path, file in fresh.items())
            if earlier.facts != place.facts:
                yield cluster_path(name, CLUSTER_FACTS), cluster_json(*place.facts)
            continue
        old = _directory(earlier, {}, ledger.sums) if earlier else {}
        new = _directory(place, fresh, ledger.sums)
        yield from ((cluster_path(name, path), None) for path in old if path not in new)
        yield from ((cluster_path(name, path), file) for path, file in new.items() if file is not _SAME and old.get(path) != file)


def _directory(place: Place, fresh: Mapping[str, PlannedFile], sums: Sums) -> dict[str, PlannedFile]:
    files: dict[str, PlannedFile] = {path: fresh.get(path, _SAME) for path in place.paths}
    return complete_directory(place.facts, with_namespaces(files, sums.namespaces))


def _add_up(
    sums: Sums, rows: Rows, outcomes: Mapping[Key, Outcome], places: Mapping[str, Place], edition: Edition, world: World
) -> Sums:
    states, wakeups = dict(sums.states), dict(sums.wakeups)
    by_workload, by_file = dict(sums.by_workload), dict(sums.by_file)
    front, fleet = dict(sums.front), dict(sums.fleet)
    for path, findings in edition.findings.items():
        _put(by_file, path, findings)
    for key, outcome in outcomes.items():
        before = rows.trace(key)
        if before is not None:
            states[before.outcome.state] -= 1
        states[outcome.state] = states.get(outcome.state, 0) + 1
        _put(wakeups, key, outcome.wakeup)
        _put(by_workload, key, outcome.findings)
        if key in front:
            front[key] = strip(outcome)
    for name, place in places.items():
        if name in fleet:
            fleet[name] = place.facts
    return sums._replace(
        at=world.at,
        now=world.now,
        states=states,
        wakeups=wakeups,
        by_workload=by_workload,
        by_file=by_file,
        front=front,
        fleet=fleet,
    )


def _put(entries: dict[K, V], key: K, value: V | None) -> None:
    """Set an entry, or drop it where there is nothing to keep."""
    if value:
        entries[key] = value
    else:
        entries.pop(key, None)
