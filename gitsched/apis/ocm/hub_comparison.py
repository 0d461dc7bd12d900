"""Compare decisions with those of a hub of Open Cluster Management: its PlacementDecisions, and what it has not finished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitsched.apis.hub_comparison import PENDING, HubComparison, HubObjectParts
from gitsched.apis.ocm import names
from gitsched.apis.ocm.adoption import reduce_record
from gitsched.apis.ocm.decisions import list_decision_clusters
from gitsched.model.document import Body, Key, get_field, get_text, list_objects, parse_api_group, read_labels
from gitsched.model.finding import format_count
from gitsched.model.hub_comparison import DifferenceCause, HubChange, HubDecision, HubProgress

_MISCONFIGURED = "PlacementMisconfigured"


def split(body: Body) -> HubObjectParts:
    """Divide an object of a hub. The status of a Placement is what the hub has decided."""
    group, kind = parse_api_group(get_text(body, "apiVersion")), body.get("kind")
    if group == names.WORK_GROUP and kind != names.MANIFEST_WORK_REPLICA_SET:
        return HubObjectParts(None, None)
    if group != names.GROUP or kind not in (names.PLACEMENT, names.PLACEMENT_DECISION):
        return HubObjectParts(body, None)
    if kind == names.PLACEMENT_DECISION:
        return HubObjectParts(None, body)
    return HubObjectParts({name: member for name, member in body.items() if name != "status"}, body)


def read_decisions(records: Mapping[Key, Body]) -> Iterator[HubDecision]:
    """Yield the decisions of Placements, from their PlacementDecisions and their conditions."""
    slices: dict[Key, list[tuple[Key, Body]]] = {key: [] for key in records if key.kind == names.PLACEMENT}
    for key, body in records.items():
        owner = read_labels(body).get(names.PLACEMENT_LABEL)
        if key.kind == names.PLACEMENT_DECISION and owner:
            slices.setdefault(names.placement_key(key.namespace, owner), []).append((key, body))
    for placement, decisions in sorted(slices.items()):
        yield _read_decision(placement, records.get(placement), sorted(decisions, key=_get_order))


def _get_order(decision: tuple[Key, Body]) -> tuple[int, str]:
    """Return the number at the end of the name of a PlacementDecision."""
    number = decision[0].name.rpartition("-")[2]
    return int(number) if number.isdecimal() and len(number) < 10 else 0, decision[0].name


def _read_decision(placement: Key, record: Body | None, decisions: list[tuple[Key, Body]]) -> HubDecision:
    groups: dict[str, list[str]] = {}
    for _, body in decisions:
        labels = read_labels(body)
        group = labels.get(names.GROUP_NAME_LABEL) or labels.get(names.GROUP_INDEX_LABEL, "0")
        groups.setdefault(group, []).extend(list_decision_clusters(body))
    details = {"decision groups": "; ".join(f"{name}: {', '.join(clusters)}" for name, clusters in groups.items() if clusters)}
    satisfied = _find_condition(record, "PlacementSatisfied")
    if satisfied.get("reason"):
        details["condition"] = f"{satisfied.get('status')} {satisfied['reason']}"
    key = placement if record is not None else decisions[0][0]
    clusters: dict[str, int | None] = {name: None for found in groups.values() for name in found}
    return HubDecision(placement, key, clusters, frozenset(), details, placement)


def _find_condition(record: Body | None, kind: str) -> Body:
    conditions = list_objects(get_field(record or {}, "status", "conditions"))
    return next((condition for condition in conditions if condition.get("type") == kind), {})


def find_progress(change: HubChange, hub: HubDecision | None, own: HubDecision | None) -> HubProgress | None:
    """Return what the hub has not done yet; None if it has decided with what the second dump has."""
    subject = hub.subject if hub is not None else own.subject if own is not None else None
    record = change.second.records.get(subject) if subject is not None else None
    if record is None:
        return None
    if _find_condition(record, _MISCONFIGURED).get("status") == "True":
        text = "the hub reports that it is misconfigured: what the hub decides then depends on its caches, and gitsched keeps the decisions"
        return HubProgress("not-compared", text)
    text = _describe_pending(record, hub)
    return HubProgress("in-progress", text) if text else None


def _describe_pending(record: Body, hub: HubDecision | None) -> str:
    if get_field(record, "metadata", "deletionTimestamp"):
        return "the hub is deleting it"
    if not _find_condition(record, "PlacementSatisfied"):
        return f"{PENDING}: it has no condition PlacementSatisfied"
    generation = get_field(record, "metadata", "generation")
    observed = _find_condition(record, "PlacementSatisfied").get("observedGeneration")
    if isinstance(generation, int) and isinstance(observed, int) and 0 < observed < generation:
        return f"{PENDING}: the hub has seen generation {observed}, and it is at {generation}"
    count, found = get_field(record, "status", "numberOfSelectedClusters"), len(hub.clusters) if hub is not None else 0
    if isinstance(count, int) and count != found:
        return f"{PENDING}: its status has {format_count(count, 'cluster')}, its PlacementDecisions {found}"
    return ""


def _describe_history(_change: HubChange, _hub: HubDecision, _own: HubDecision | None) -> str:
    return "the decisions follow from those of before (Steady, Balance and tolerationSeconds), which have changed between the dumps"


def _is_kept(change: HubChange, hub: HubDecision) -> bool:
    """Return whether the decisions of a Placement are the same in both dumps."""
    namespace = {key: body for key, body in change.first.records.items() if key.namespace == hub.subject.namespace}
    before = next((one for one in read_decisions(namespace) if one.subject == hub.subject), None)
    return before is not None and before.details.get("decision groups") == hub.details.get("decision groups")


def _list_causes(change: HubChange, hub: HubDecision | None, own: HubDecision | None) -> Iterator[DifferenceCause]:
    if hub is not None and hub.subject not in change.second.documents:
        yield DifferenceCause("input", f"the second dump does not have {hub.subject.title}")
    elif hub is not None and _is_kept(change, hub):
        text = (
            "the hub has kept the decisions of the first dump: it evaluates a Placement again when that, its sets, clusters or scores "
            "change; gitsched evaluates it now, also with what has become of other Placements (Balance)"
        )
        yield DifferenceCause("history", text)
    elif hub is None and own is not None:
        yield DifferenceCause("input", f"the second dump has no PlacementDecisions and no status of {own.subject.title}")


HUB_COMPARISON = HubComparison(
    split,
    reduce_record,
    read_decisions,
    find_progress,
    _describe_history,
    _list_causes,
    lambda _: (),
    frozenset({(names.GROUP, names.MANAGED_CLUSTER), (names.GROUP, names.ADDON_SCORE)}),
)
"""The entry of Open Cluster Management in the registry of policy APIs."""
