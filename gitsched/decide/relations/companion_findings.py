"""Describe companions that do not go where their targets go, as findings with the cure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gitsched.decide.relations.companion_placement import (
    CompanionPlacement,
    DeliveredCompanion,
    Entry,
    UnselectedCompanion,
    read_companion,
    read_untargeted,
)
from gitsched.decide.relations.delivered_manifests import NO_CLUSTERS, Clusters
from gitsched.decide.relations.located_findings import (
    MAX_FINDINGS,
    SEPARATED_CODE,
    FindingSources,
    KnownFindings,
    LocatedFinding,
)
from gitsched.decide.relations.object_queries import RelationReader
from gitsched.decide.relations.placement_texts import join_clusters, join_names
from gitsched.decide.relations.schema import (
    ANNOTATIONS,
    PLACEMENT,
    SEPARATED,
    SEPARATED_COUNT,
    UNSELECTED,
    UNSELECTED_COUNT,
    UNTARGETED,
    UNTARGETED_COUNT,
)
from gitsched.kinds.companion_kinds import FOLLOW_ANNOTATION
from gitsched.model.document import Key
from gitsched.model.finding import Finding, Location, Severity

if TYPE_CHECKING:
    from gitsched.query import Database

NOT_SELECTED = "companion-not-selected"
SERVICE_WITHOUT_PODS = "service-selects-nothing"
UNKNOWN_VALUE = "companion-annotation"
_SETTING = "spec.followTargets: true in gitsched.yaml"
_NAMES_SHOWN, _CLUSTERS_SHOWN = 3, 3
"""The numbers of companions and of clusters that the finding about one policy names."""
_WHOLE = 4
"""The number of strings of a key."""


def list_companion_findings(db: Database, sources: FindingSources, known: KnownFindings | None) -> Iterator[LocatedFinding]:
    """Yield a finding for each companion that is apart from its targets, and one for all companions of the workloads of one policy that no
    policy selects."""
    yield from _list_unknown_values(db, sources)
    for row in db.rows_of(SEPARATED, ("",), MAX_FINDINGS):
        entry = row[1 + _WHOLE :]
        placement = read_companion(db, entry)
        assert isinstance(placement, CompanionPlacement), "only a companion with a placement is separated"
        found = known.find((SEPARATED_CODE, *entry), ((PLACEMENT, entry),)) if known is not None else None
        if found is None:
            owner = placement.companion.owner
            location = sources.locate(owner)
            finding = _make_separated_finding(placement, location, reschedules=sources.reschedules(placement.shared_api))
            concerned = (owner, *(target.owner for target in placement.targets))
            found = LocatedFinding(owner if location is not None else None, finding, (SEPARATED_CODE, *entry), concerned)
        yield found
    text = "companions do not go where their targets go; `gitsched explain` shows them by workload"
    yield from _list_more(db, SEPARATED_COUNT, "warning", SEPARATED_CODE, text)
    yield from _list_untargeted(db, sources)
    for policy in db.list_keys(UNSELECTED_COUNT):
        yield _find_unselected(db, policy, sources, known)


def _list_untargeted(db: Database, sources: FindingSources) -> Iterator[LocatedFinding]:
    """Yield a note for each delivered Service that selects no pods of the source."""
    for row in db.rows_of(UNTARGETED, ("",), MAX_FINDINGS):
        entry = row[_WHOLE:]
        service = read_untargeted(db, entry)
        key, near = service.companion.key, service.near
        location = sources.locate(service.companion.owner)
        if near is None:
            cure = "correct its selector, or the labels of the pods"
            hint = f'{cure}, or, if its pods come from elsewhere, annotate it with {FOLLOW_ANNOTATION}: "false"'
        else:
            where = sources.locate(near)
            place = f" ({where.text})" if where is not None else ""
            hint = f"{near} has them{place}: is metadata.namespace: {key.namespace} missing there?"
        message = f"{key} selects pods with {service.labels}, and no workload of namespace {key.namespace} has such pods; {hint}"
        finding = Finding("info", SERVICE_WITHOUT_PODS, message, location, key.resource)
        yield LocatedFinding(
            service.companion.owner if location is not None else None, finding, (SERVICE_WITHOUT_PODS, *entry), (key,)
        )
    text = "Services select nothing that is delivered with them"
    yield from _list_more(db, UNTARGETED_COUNT, "info", SERVICE_WITHOUT_PODS, text)


def _list_more(db: Database, count: str, severity: Severity, code: str, text: str) -> Iterator[LocatedFinding]:
    """Yield how many findings there are besides those that are listed."""
    more = (db.read(count, ("",)) or 0) - MAX_FINDINGS
    if more > 0:
        yield LocatedFinding(None, Finding(severity, code, f"{more} more {text}"))


def _list_unknown_values(db: RelationReader, sources: FindingSources) -> Iterator[LocatedFinding]:
    """Yield a finding for each annotation of a companion or policy that is neither true nor false."""
    for *plain, value in db.rows_of(ANNOTATIONS, ("",)):
        key = Key(*plain)
        message = f'the annotation {FOLLOW_ANNOTATION} of {key} is {value!r}, so it has no effect: write "true" or "false"'
        finding = Finding("warning", UNKNOWN_VALUE, message, sources.locate(key), key.resource)
        yield LocatedFinding(key, finding, (UNKNOWN_VALUE, *key), (key,))


def _find_unselected(db: RelationReader, policy: Entry, sources: FindingSources, known: KnownFindings | None) -> LocatedFinding:
    """Return the finding about the companions of the workloads of one policy that no policy selects."""
    entries = [row[_WHOLE:] for row in db.rows_of(UNSELECTED, policy)]
    group = [one for entry in entries if isinstance(one := read_companion(db, entry), UnselectedCompanion)]
    workloads = [_find_workload(one) for one in group]
    found = (
        known.find((NOT_SELECTED, *policy), ((UNSELECTED_COUNT, policy), *((PLACEMENT, entry) for entry in entries)))
        if known is not None
        else None
    )
    if found is not None:
        return found
    first = group[0].companion.key
    location = sources.locate(first)
    api, name = policy
    finding = _make_unselected_finding(api, name, group, workloads[0], sources, location)
    concerned = (*(one.companion.key for one in group), *(one.owner for one in workloads))
    return LocatedFinding(first if location is not None else None, finding, (NOT_SELECTED, *policy), concerned)


def _make_separated_finding(placement: CompanionPlacement, location: Location | None, *, reschedules: bool) -> Finding:
    """Return the finding about a companion that does not go where its targets go."""
    key, lacking, idle = placement.companion.key, placement.lacking, placement.idle
    targets = [target for target in placement.targets if not target.active.isdisjoint(lacking)]
    parts = []
    if lacking:
        parts.append(f"does not go to {join_clusters(lacking)}, where {_join_targets(targets)}")
    if idle:
        parts.append(f"goes to {join_clusters(idle)}, where {_join_targets(placement.targets)} not")
    places = placement.placement if lacking else f"for {placement.about}, {placement.placement}"
    message = f"{key} {', and '.join(parts)}: {places}; {_describe_cures(placement, reschedules)}"
    return Finding("warning" if placement.is_serious else "info", SEPARATED_CODE, message, location, key.resource)


def _join_targets(targets: Sequence[DeliveredCompanion]) -> str:
    names = list(dict.fromkeys(target.key for target in targets))
    return f"its target{'s' if len(names) > 1 else ''} {_join_keys(names)} {'are' if len(names) > 1 else 'is'}"


def _describe_cures(placement: CompanionPlacement, reschedules: bool) -> str:
    """Return what brings a companion and its targets together. If one policy places both, other clusters in it do not, but history, a
    division or the capacity separates them."""
    companion, targets = placement.companion, placement.targets
    accept = f'if this is intended, annotate it with {FOLLOW_ANNOTATION}: "false"'
    if companion.key != companion.owner:
        return f"add its targets to {companion.owner}, or, {accept}"
    if not placement.lacking and not any(target.state for target in targets):
        return f"select {'its target' if len(targets) == 1 else 'one of its targets'} with a policy, or, {accept}"
    change = "" if placement.shared_api else "change the clusters in its policy, "
    keys = [*dict.fromkeys(target.owner for target in placement.apart), companion.key]
    if reschedules and len({key.namespace for key in keys}) == 1:
        names = " ".join(f"{key.kind}/{key.name}" for key in keys)
        change = f"if scheduling history separates them, run gitsched rebalance -n {companion.key.namespace} {names}; else "
    leave = "leave it out of policies and " if placement.idle else ""
    return f"{change}{leave}set {_SETTING}, or, {accept}"


def _make_unselected_finding(
    api: str,
    policy: str,
    group: list[UnselectedCompanion],
    workload: DeliveredCompanion,
    sources: FindingSources,
    location: Location | None,
) -> Finding:
    first = group[0].companion.key
    clusters: Clusters = NO_CLUSTERS.union(*(one.clusters for one in group))
    where = join_clusters(clusters) if len(clusters) <= _CLUSTERS_SHOWN else f"{len(clusters):,} clusters"
    if len(group) > 1:
        verb, whose = "they belong", f"workloads of {policy}" if policy else str(workload.owner)
    else:
        verb, whose = "it belongs", str(workload.key)
    names = join_names(list(dict.fromkeys(str(one.companion.key) for one in group)), _NAMES_SHOWN)
    cure = _describe_selection(api, workload, group, sources)
    message = f"no policy selects {names}: {verb} to {whose} in {where}; {cure}"
    return Finding("warning", NOT_SELECTED, message, location, first.resource)


def _describe_selection(api: str, workload: DeliveredCompanion, group: list[UnselectedCompanion], sources: FindingSources) -> str:
    """Return what selects the companions: a change for the API of the workload, and the setting."""
    them = "them" if len(group) > 1 else "it"
    accept = f'leave {them} out with the annotation {FOLLOW_ANNOTATION}: "false"'
    if workload.key != workload.owner:
        return f"add {them} to {workload.owner}, or {accept}"
    change = sources.describe_selection(api, workload.owner, [one.companion.key for one in group])
    return f"{change or f'select {them} with a policy'}, set {_SETTING}, or {accept}"


def _find_workload(one: UnselectedCompanion) -> DeliveredCompanion:
    """Return the first workload that runs where the companion should be."""
    return next(workload for workload in one.workloads if not workload.active.isdisjoint(one.clusters))


def _join_keys(keys: Iterable[Key]) -> str:
    return join_names([str(key) for key in dict.fromkeys(keys)])
