"""Parse a policy's placement into affinity groups, tolerations, spread constraints and replica scheduling."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from gitsched.model.document import Body
from gitsched.model.labels import Requirement, parse_selector
from gitsched.model.scheduling import Affinity, AffinityGroup, ReplicaDivision, SpreadConstraint, StaticWeight
from gitsched.model.taints import Toleration, parse_toleration

_MEMBER_ORDER = (
    "affinityName",
    "labelSelector",
    "matchLabels",
    "matchExpressions",
    "fieldSelector",
    "clusterNames",
    "exclude",
    "clusterAffinity",
    "clusterAffinities",
    "overflowAffinities",
    "clusterTolerations",
    "key",
    "operator",
    "value",
    "values",
    "effect",
    "tolerationSeconds",
    "spreadConstraints",
    "spreadByField",
    "spreadByLabel",
    "maxGroups",
    "minGroups",
    "replicaScheduling",
    "replicaSchedulingType",
    "replicaDivisionPreference",
    "weightPreference",
    "staticWeightList",
    "targetCluster",
    "weight",
    "dynamicWeight",
    "workloadAffinity",
    "affinity",
    "antiAffinity",
    "groupByLabelKey",
)
_MEMBER_RANK = {name: rank for rank, name in enumerate(_MEMBER_ORDER)}


class PolicyPlacement(NamedTuple):
    """`divided` tells whether replicas are shared out; `declared` whether replicaScheduling is present at all (an absent one is
    Duplicated). `division` is what a workload with replicas gets."""

    groups: tuple[AffinityGroup, ...]
    tolerations: tuple[Toleration, ...]
    division: ReplicaDivision
    has_replica_scheduling: bool
    weights: tuple[StaticWeight, ...]
    spreads: tuple[SpreadConstraint, ...]
    spread_fields: tuple[str, ...]

    @property
    def is_divided(self) -> bool:
        return self.division != "duplicated"

    def find_group_index(self, observed: str) -> int:
        """The position of a group by name; 0 when there is no such group."""
        return next((i for i, group in enumerate(self.groups) if group.name == observed), 0)


def parse_placement(body: Body) -> PolicyPlacement:
    """Read a placement with its defaults filled in (spec/karmada.md §1); anything malformed matches nothing."""
    terms = body.get("clusterAffinities") or []
    if body.get("clusterAffinity"):
        groups: tuple[AffinityGroup, ...] = (AffinityGroup("", parse_affinity(body["clusterAffinity"])),)
    elif terms:
        groups = tuple(
            AffinityGroup(
                str(term.get("affinityName", "")),
                parse_affinity(term),
                tuple(map(parse_affinity, term.get("overflowAffinities") or ())),
            )
            for term in terms
        )
    else:
        groups = (AffinityGroup("", None),)
    replica_scheduling = body.get("replicaScheduling")
    preference = (replica_scheduling or {}).get("weightPreference") or {}
    spreads = tuple(_parse_spread_constraint(entry) for entry in body.get("spreadConstraints") or ())
    return PolicyPlacement(
        groups,
        tuple(map(parse_toleration, body.get("clusterTolerations") or ())),
        _read_division(replica_scheduling),
        replica_scheduling is not None,
        tuple(
            StaticWeight(parse_affinity(rule.get("targetCluster") or {}), int(rule.get("weight") or 0))
            for rule in preference.get("staticWeightList") or ()
        ),
        spreads,
        tuple(sorted({spread.field for spread in spreads} & {"provider", "region", "zone"})),
    )


def parse_affinity(body: Body) -> Affinity:
    """A ClusterAffinity, an affinity term or an overflow term."""
    labels = body.get("labelSelector")
    selector = parse_selector(labels) if labels is not None else None
    expressions = (body.get("fieldSelector") or {}).get("matchExpressions") or ()
    return Affinity(
        tuple(body.get("clusterNames") or ()),
        tuple(body.get("exclude") or ()),
        selector,
        tuple(
            Requirement(str(e.get("key")), str(e.get("operator")), tuple(sorted(set(e.get("values") or ())))) for e in expressions
        ),
        labels is not None and selector is None,
    )


def serialize_placement(placement: Body) -> str:
    """The placement as the applied-placement annotation holds it: compact JSON, members in the order of Karmada's types."""
    return json.dumps(_order_members(placement), separators=(",", ":"), ensure_ascii=False)


def has_placement_changed(placement: Body, applied: str | None, observed: str) -> bool:
    """Whether a placement differs from the one last acted on in a way that reschedules (spec/karmada.md §3.1).

    A missing annotation differs; one that cannot be parsed does not. Of the ordered groups only the observed one counts, and workload
    affinity does not count at all.
    """
    if applied is None:
        return True
    if applied == serialize_placement(placement):
        return False
    try:
        before = json.loads(applied)
    except ValueError:
        return False
    if not isinstance(before, dict):
        return False
    mine, theirs = _normalize_placement(placement), _normalize_placement(before)
    terms, old_terms = mine.pop("clusterAffinities", []), theirs.pop("clusterAffinities", [])
    if mine != theirs:
        return True
    if terms == old_terms:
        return False
    term, old_term = _find_term(terms, observed), _find_term(old_terms, observed)
    return not observed or term is None or old_term is None or term != old_term


def _normalize_placement(placement: Body) -> Body:
    pruned = {name: _prune_empty(value) for name, value in placement.items() if name != "workloadAffinity"}
    return {name: value for name, value in pruned.items() if value not in (None, [])}


def _prune_empty(value: Any) -> Any:
    """Leave out what Go's omitempty would: null members and empty lists or strings, at any depth."""
    if isinstance(value, dict):
        pruned = {name: _prune_empty(entry) for name, entry in value.items()}
        return {name: entry for name, entry in pruned.items() if entry is not None and entry != [] and entry != ""}
    return [_prune_empty(entry) for entry in value] if isinstance(value, list) else value


def _find_term(terms: Iterable[Body], name: str) -> Body | None:
    return next((term for term in terms if term.get("affinityName") == name), None)


def _order_members(value: Any) -> Any:
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (_MEMBER_RANK.get(name, len(_MEMBER_RANK)), name))
        return {name: _order_members(value[name]) for name in names if value[name] is not None}
    return [_order_members(entry) for entry in value] if isinstance(value, list) else value


def _read_division(replica_scheduling: Body | None) -> ReplicaDivision:
    if replica_scheduling is None or replica_scheduling.get("replicaSchedulingType", "Divided") != "Divided":
        return "duplicated"
    if replica_scheduling.get("replicaDivisionPreference", "Weighted") == "Aggregated":
        return "aggregated"
    return "dynamic" if (replica_scheduling.get("weightPreference") or {}).get("dynamicWeight") else "static"


def _parse_spread_constraint(entry: Body) -> SpreadConstraint:
    field = entry.get("spreadByField") or ("" if entry.get("spreadByLabel") else "cluster")
    return SpreadConstraint(str(field), int(entry.get("minGroups") or 0) or 1, int(entry.get("maxGroups") or 0))
