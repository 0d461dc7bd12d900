"""Describe companions that do not go where their targets go, as findings with the cure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from gitsched.apis.capabilities import CompanionSelecting
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.relations.companion_placement import (
    CompanionPlacement,
    CompanionPlacements,
    DeliveredCompanion,
    UnselectedCompanion,
)
from gitsched.decide.relations.delivered_objects import Clusters, DeliveredObjects
from gitsched.decide.relations.reference_findings import MAX_FINDINGS, LocatedFinding, describe_placement, join_names
from gitsched.kinds.companion_kinds import COMPANION_KINDS, FOLLOW_ANNOTATION
from gitsched.kinds.companion_targets import FOLLOW_VALUES, read_follow_annotation
from gitsched.model.document import Key
from gitsched.model.finding import Finding, Location, Severity, locate_document

SEPARATED = "companion-separated"
NOT_SELECTED = "companion-not-selected"
UNKNOWN_VALUE = "companion-annotation"
_SETTING = "followTargets: true in gitsched.yaml"


def list_companion_findings(
    companions: CompanionPlacements, decisions: DecisionSet, delivered: DeliveredObjects
) -> Iterator[LocatedFinding]:
    """Yield a finding for each companion that is apart from its targets, and one for all companions of the workloads of one policy that no
    policy selects."""
    yield from _list_unknown_values(companions, decisions)
    separated = sorted((one for one in companions.placements if one.is_separated), key=_get_order)
    for placement in separated[:MAX_FINDINGS]:
        owner = placement.companion.owner
        location = _locate_document(owner, decisions)
        finding = make_separated_finding(placement, lambda key: describe_placement(key, decisions, delivered), location)
        yield (owner if location is not None else None), finding
    if len(separated) > MAX_FINDINGS:
        yield None, count_separated(len(separated) - MAX_FINDINGS)
    by_policy: dict[tuple[str, str], list[UnselectedCompanion]] = {}
    for one in companions.unselected:
        if not one.clusters:
            continue
        outcome = decisions.outcomes[_find_workload(one).owner]
        by_policy.setdefault((outcome.api, outcome.policy), []).append(one)
    for (api, policy), group in sorted(by_policy.items()):
        group.sort(key=lambda one: one.companion.key)
        yield _locate(group[0].companion.key, decisions), _make_unselected_finding(api, policy, group, decisions)


def _list_unknown_values(companions: CompanionPlacements, decisions: DecisionSet) -> Iterator[LocatedFinding]:
    """Yield a finding for each annotation of a companion or policy that is neither true nor false."""
    values = [(decisions.catalog.templates.get(key), features.annotation) for key, features in companions.features.items()]
    values += [(document, read_follow_annotation(document.body)) for document in decisions.catalog.api_documents_by_key.values()]
    for document, value in values:
        if document is not None and value and value not in FOLLOW_VALUES:
            message = (
                f'the annotation {FOLLOW_ANNOTATION} of {document.key} is {value!r}, so it has no effect: write "true" or "false"'
            )
            finding = Finding("warning", UNKNOWN_VALUE, message, locate_document(document), document.key.resource)
            yield document.key, finding


def _get_order(placement: CompanionPlacement) -> tuple[bool, Key, Key]:
    return rate_separation(placement) != "warning", placement.companion.key, placement.companion.owner


def rate_separation(placement: CompanionPlacement) -> Severity:
    """Return the severity of the finding about a companion that does not go where its targets go."""
    vital = COMPANION_KINDS[placement.companion.key[:2]].vital
    return "warning" if placement.is_apart or (placement.lacking and vital) else "info"


def count_separated(count: int) -> Finding:
    """Return the finding that counts the companions without one of their own."""
    message = f"{count} more companions do not go where their targets go; `gitsched explain` shows them by workload"
    return Finding("warning", SEPARATED, message)


def make_separated_finding(placement: CompanionPlacement, describe: Callable[[Key], str], location: Location | None) -> Finding:
    """Return the finding about a companion that does not go where its targets go. `describe` says where the policies place an object."""
    key, lacking, idle = placement.companion.key, placement.lacking, placement.idle
    targets = [target for target in placement.targets if not target.active.isdisjoint(lacking)]
    parts = []
    if lacking:
        parts.append(f"does not go to {_join_clusters(lacking)}, where {_join_targets(targets)}")
    if idle:
        parts.append(f"goes to {_join_clusters(idle)}, where {_join_targets(placement.targets)} not")
    about = key if lacking else next((one for one in placement.targets if one.state), placement.targets[0]).key
    places = describe(about)
    message = f"{key} {', and '.join(parts)}: {places if lacking else f'for {about}, {places}'}; {_describe_cures(placement)}"
    return Finding(rate_separation(placement), SEPARATED, message, location, key.resource)


def _join_targets(targets: Sequence[DeliveredCompanion]) -> str:
    names = list(dict.fromkeys(target.key for target in targets))
    return f"its target{'s' if len(names) > 1 else ''} {_join_keys(names)} {'are' if len(names) > 1 else 'is'}"


def _describe_cures(placement: CompanionPlacement) -> str:
    companion = placement.companion
    accept = f'if this is intended, annotate it with {FOLLOW_ANNOTATION}: "false"'
    if companion.key != companion.owner:
        return f"add its targets to {companion.owner}, or, {accept}"
    if placement.lacking:
        return f"change the clusters in its policy, set {_SETTING}, or, {accept}"
    if not any(target.state for target in placement.targets):
        return f"select {'its target' if len(placement.targets) == 1 else 'one of its targets'} with a policy, or, {accept}"
    return f"change the clusters in its policy, leave it out of policies and set {_SETTING}, or, {accept}"


def _make_unselected_finding(api: str, policy: str, group: list[UnselectedCompanion], decisions: DecisionSet) -> Finding:
    first, workload = group[0], _find_workload(group[0])
    clusters: Clusters = frozenset().union(*(one.clusters for one in group))
    names = _join_keys(one.companion.key for one in group)
    if len(group) > 1:
        verb, whose = f"{len(group)} objects that belong", f"workloads of {policy}" if policy else str(workload.owner)
    else:
        verb, whose = "it belongs", str(workload.key)
    message = (
        f"no policy selects {names}: {verb} to {whose} in {_join_clusters(clusters)}; "
        f"{_describe_selection(api, workload, group, decisions)}"
    )
    return Finding("warning", NOT_SELECTED, message, _locate_document(first.companion.key, decisions), first.companion.key.resource)


def _describe_selection(api: str, workload: DeliveredCompanion, group: list[UnselectedCompanion], decisions: DecisionSet) -> str:
    """Return what selects the companions: a change for the API of the workload, and the setting."""
    them, they = ("them", "they are") if len(group) > 1 else ("it", "it is")
    accept = f'if {they} not for these clusters, annotate {them} with {FOLLOW_ANNOTATION}: "false"'
    if workload.key != workload.owner:
        return f"add {them} to {workload.owner}, or, {accept}"
    documents = [decisions.catalog.templates[one.companion.key] for one in group]
    engine = next((engine for engine in decisions.engines if engine.name == api and isinstance(engine, CompanionSelecting)), None)
    change = engine.describe_selection(decisions.templates[workload.owner], documents) if engine is not None else ""
    return f"{change or f'select {them} with a policy'}, set {_SETTING}, or, {accept}"


def _find_workload(one: UnselectedCompanion) -> DeliveredCompanion:
    """Return the first workload that runs where the companion should be."""
    return next(workload for workload in one.workloads if not workload.active.isdisjoint(one.clusters))


def _join_keys(keys: Iterable[Key]) -> str:
    return join_names([str(key) for key in dict.fromkeys(keys)])


def _join_clusters(clusters: Clusters) -> str:
    return join_names(sorted(clusters))


def _locate(key: Key, decisions: DecisionSet) -> Key | None:
    return key if _locate_document(key, decisions) is not None else None


def _locate_document(key: Key, decisions: DecisionSet) -> Location | None:
    template = decisions.templates.get(key) or decisions.catalog.templates.get(key)
    return locate_document(template) if template is not None else None
