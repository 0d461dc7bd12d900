"""PropagationPolicy and ClusterPropagationPolicy: which policy applies to a workload, with preemption, lazy activation and
schedulePriority."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import merge
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from gitsched.apis.karmada.defaulting import apply_defaults
from gitsched.apis.karmada.names import POLICY
from gitsched.model.document import Body, Document, Key, get_field, read_json, read_labels
from gitsched.model.labels import Requirement, Selector, parse_selector
from gitsched.model.scheduling import (
    CLUSTER_FIELD,
    REGION_FIELD,
    Affinity,
    AffinityGroup,
    ReplicaDivision,
    SpreadConstraint,
    StaticWeight,
)
from gitsched.model.taints import Toleration, parse_toleration
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.karmada.policy.selector_groups import SelectorEntry, SelectorGroup

_MEMBER_ORDER = (
    "affinityName labelSelector matchLabels matchExpressions fieldSelector clusterNames exclude clusterAffinity "
    "clusterAffinities overflowAffinities clusterTolerations key operator value values effect tolerationSeconds "
    "spreadConstraints spreadByField spreadByLabel maxGroups minGroups replicaScheduling replicaSchedulingType "
    "replicaDivisionPreference weightPreference staticWeightList targetCluster weight dynamicWeight workloadAffinity "
    "affinity antiAffinity groupByLabelKey"
)
_MEMBER_RANK = {name: rank for rank, name in enumerate(_MEMBER_ORDER.split())}


class PolicyPlacement(NamedTuple):
    """A parsed placement.

    `division` applies to workloads with replicas; `has_replica_scheduling` is false without replicaScheduling, which means Duplicated.
    """

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

    def list_spreads(self, *, strict: bool) -> tuple[SpreadConstraint, ...]:
        """Return the spread constraints that choose clusters: only if `strict`, those by zone and provider do so beside others."""
        chosen = tuple(one for one in self.spreads if strict or one.field in (CLUSTER_FIELD, REGION_FIELD))
        return chosen or self.spreads

    def find_group_index(self, observed: str) -> int:
        """Return the index of a group by name; 0 when there is no such group."""
        return next((i for i, group in enumerate(self.groups) if group.name == observed), 0)


def parse_placement(body: Body) -> PolicyPlacement:
    """Parse a placement with its defaults (spec/karmada.md §1); malformed parts match nothing."""
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
    """Parse a ClusterAffinity, an affinity term or an overflow term."""
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
    """Return the value of the applied-placement annotation: compact JSON with members in the order of Karmada's types."""
    return json.dumps(_order_members(placement), separators=(",", ":"), ensure_ascii=False)


def has_placement_changed(placement: Body, applied: str | None, observed: str) -> bool:
    """Return whether a placement differs from the applied one so that the workload is rescheduled (spec/karmada.md §3.1).

    A missing annotation differs, an unreadable one does not. Of the affinity groups only the observed one is compared; workloadAffinity
    is not compared.
    """
    return has_applied_changed(serialize_placement(placement), applied, observed)


def has_applied_changed(present: str, applied: str | None, observed: str) -> bool:
    """Return the same for a placement as the annotation has it."""
    return applied is None or (applied != present and _differs(present, applied, observed))


def read_applied_placement(applied: str | None) -> Body | None:
    """Return the placement that the annotation has; None without a readable one."""
    try:
        placement: Any = read_json(applied) if applied else None
    except ValueError:
        return None
    return placement if isinstance(placement, dict) else None


@lru_cache(maxsize=1 << 8)  # asked for each workload of a policy that changed
def _differs(present_text: str, applied: str, observed: str) -> bool:
    applied_placement = read_applied_placement(applied)
    if applied_placement is None:
        return False
    present, previous = _normalize_placement(json.loads(present_text)), _normalize_placement(applied_placement)
    terms, old_terms = present.pop("clusterAffinities", []), previous.pop("clusterAffinities", [])
    if present != previous:
        return True
    if terms == old_terms:
        return False
    term, old_term = _find_term(terms, observed), _find_term(old_terms, observed)
    return not observed or term is None or old_term is None or term != old_term


@lru_cache(maxsize=1 << 8)
def read_applied_division(applied: str) -> ReplicaDivision:
    """Return how an applied placement divides replicas; "duplicated" for an unreadable one."""
    scheduling = (read_applied_placement(applied) or {}).get("replicaScheduling")
    return _read_division(scheduling) if isinstance(scheduling, dict) else "duplicated"


def _normalize_placement(placement: Body) -> Body:
    pruned = {name: _prune_empty(value) for name, value in placement.items() if name != "workloadAffinity"}
    return {name: value for name, value in pruned.items() if value not in (None, [])}


def _prune_empty(value: Any) -> Any:
    """Remove what Go's omitempty omits: null members and empty lists or strings, at any depth."""
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
    return "dynamic" if get_field(replica_scheduling, "weightPreference", "dynamicWeight") else "static"


def _parse_spread_constraint(entry: Body) -> SpreadConstraint:
    field = entry.get("spreadByField") or ("" if entry.get("spreadByLabel") else "cluster")
    return SpreadConstraint(str(field), int(entry.get("minGroups") or 0) or 1, int(entry.get("maxGroups") or 0))


BY_KIND, BY_LABELS, BY_NAME = 1, 2, 3
"""Implicit priorities of resource selectors: the more specific, the higher."""


class ResourceSelector(NamedTuple):
    """A parsed resourceSelector: `labels` None and an empty `namespace` or `name` match all; an `invalid` one selects nothing."""

    api_version: str
    kind: str
    namespace: str
    name: str
    implicit_priority: int
    labels: Selector | None
    invalid: bool

    def selects(self, template: Document, labels: Mapping[str, str]) -> bool:
        """Return whether the selector matches a template with these labels."""
        key = template.key
        if self.kind != key.kind or self.invalid or self.api_version != template.api_version:
            return False
        if self.name not in ("", key.name) or self.namespace not in ("", key.namespace):
            return False
        return self.labels is None or self.labels.matches(labels)


def parse_resource_selector(body: Body) -> ResourceSelector:
    """Parse a resourceSelector; its labels are ignored when it has a name."""
    api_version, kind, namespace, name = (str(body.get(part) or "") for part in ("apiVersion", "kind", "namespace", "name"))
    labels = body.get("labelSelector")
    implicit = BY_NAME if name else BY_KIND if labels is None else BY_LABELS
    parsed = parse_selector(labels) if implicit == BY_LABELS else None
    return ResourceSelector(api_version, kind, namespace, name, implicit, parsed, implicit == BY_LABELS and parsed is None)


_Scope = tuple[str, str, str]
"""The scope of policies, apiVersion and kind."""
_Place = tuple[str, str]
"""Namespace and name; "" for what a selector does not have."""
_Label = tuple[str, str]
"""A label with its value; "" for a selector without one."""
_MAX_COMPARED = 8
"""Selectors of a place that are compared one by one."""
Positions = tuple[int, ...]
"""Ascending positions of selectors in the order in which an index was given them."""


class SelectorIndex:
    """Selectors, each with the scope of its policy: a namespace, or "" for all.

    They are grouped by all that can be looked up: scope, apiVersion, kind, namespace, name and a label with its value.
    """

    __slots__ = ("_groups", "_large")

    def __init__(self, selectors: Iterable[tuple[str, ResourceSelector]]) -> None:
        self._groups: dict[_Scope, dict[_Place, dict[_Label, list[SelectorEntry]]]] = {}
        self._large: dict[tuple[_Scope, _Place, _Label], SelectorGroup] = {}
        for position, (scope, selector) in enumerate(selectors):
            if selector.invalid:
                continue
            of_kind = self._groups.setdefault((scope, selector.api_version, selector.kind), {})
            requirements = selector.labels.requirements if selector.labels is not None else ()
            wanted = next((one for one in requirements if one.operator == "In"), None)
            rest = tuple(one for one in requirements if one is not wanted)
            labels = [("", "")] if wanted is None else [(wanted.key, value) for value in wanted.values]
            of_place = of_kind.setdefault((selector.namespace, selector.name), {})
            for label in labels:
                of_place.setdefault(label, []).append((position, rest))

    def match(self, scope: str, template: Document, labels: Mapping[str, str]) -> list[Positions]:
        """Return the selectors of policies of a scope that select a template with these labels: each in one entry, none of them empty."""
        scoped = scope, template.api_version, template.key.kind
        of_kind = self._groups.get(scoped)
        if of_kind is None:
            return []
        _, _, namespace, name = template.key
        found = []
        for place in [("", ""), ("", name), (namespace, ""), (namespace, name)] if namespace else [("", ""), ("", name)]:
            of_place = of_kind.get(place)
            if of_place is None:
                continue
            for label in (("", ""), *labels.items()):
                entries = of_place.get(label)
                if entries is not None and (positions := self._match_group(entries, (scoped, place, label), labels)):
                    found.append(positions)
        return found

    def _match_group(
        self, entries: list[SelectorEntry], group_key: tuple[_Scope, _Place, _Label], labels: Mapping[str, str]
    ) -> Positions:
        if len(entries) <= _MAX_COMPARED:
            return tuple([at for at, required in entries if not required or all(one.matches(labels) for one in required)])
        group = self._large.get(group_key)
        if group is None:
            from gitsched.apis.karmada.policy.selector_groups import SelectorGroup  # few sources have so many policies

            group = self._large[group_key] = SelectorGroup(entries)
        return group.match(labels)


_SKIPPED_NAMESPACE = re.compile(r"karmada-system|karmada-cluster|karmada-es-.*|kube-.*", re.ASCII)


_SKIPPED_TEMPLATE = ("ConfigMap", "kube-system", "extension-apiserver-authentication")


class PropagationPolicy(NamedTuple):
    """A parsed PropagationPolicy or ClusterPropagationPolicy; `applied_placement` is the value of that annotation.

    `is_lazy`: an edit of the policy takes effect only when the workload is edited.
    """

    document: Document
    spec: Body
    priority: int
    placement: PolicyPlacement
    applied_placement: str
    key: Key
    is_lazy: bool

    @property
    def is_namespaced(self) -> bool:
        return self.key.kind == POLICY

    @property
    def priority_class_name(self) -> str:
        """The name of the PriorityClass in spec.schedulePriority, or ""."""
        return str((self.spec.get("schedulePriority") or {}).get("priorityClassName") or "")

    @property
    def has_prerequisites(self) -> bool:
        """Whether the policy names override policies or a PriorityClass that must exist before it applies."""
        return bool(self.spec.get("dependentOverrides") or self.priority_class_name)


class SelectorRule(NamedTuple):
    """One resourceSelector of a policy."""

    policy: PropagationPolicy
    selector: ResourceSelector

    @property
    def implicit_priority(self) -> int:
        """How specific the selector is: 3 by name, 2 by labels, 1 by kind."""
        return self.selector.implicit_priority


KnownPlacements = dict[str, tuple[PolicyPlacement, str]]
"""Parsed placements with their annotation, by their JSON: policies with the same placement share one."""


def parse_policy(document: Document, known: KnownPlacements | None = None) -> PropagationPolicy:
    """Parse a valid policy. Its placement is looked up in `known`, and added there."""
    spec = apply_defaults(document.body)["spec"]
    placement, applied = _read_placement(spec.get("placement") or {}, {} if known is None else known)
    priority, is_lazy = int(spec.get("priority") or 0), spec.get("activationPreference") == "Lazy"
    return PropagationPolicy(document, spec, priority, placement, applied, document.key, is_lazy)


def _read_placement(placement: Body, known: KnownPlacements) -> tuple[PolicyPlacement, str]:
    text = json.dumps(placement)
    if text not in known:
        known[text] = parse_placement(placement), serialize_placement(placement)
    return known[text]


def is_skipped(template: Key) -> bool:
    """Return whether Karmada's detector ignores a workload because of its namespace."""
    if template.namespace and _SKIPPED_NAMESPACE.fullmatch(template.namespace):
        return True
    return (template.kind, template.namespace, template.name) == _SKIPPED_TEMPLATE


class PolicyIndex:
    """Policies with their `selectors`, and the order of precedence among those that select a template: the higher priority first, then the
    more specific selector, then the smaller name."""

    __slots__ = ("_index", "_rules", "policies", "selectors")

    def __init__(self, policies: Iterable[PropagationPolicy]) -> None:
        self.policies = {policy.key: policy for policy in policies}
        self.selectors = {
            policy.key: tuple(map(parse_resource_selector, policy.spec.get("resourceSelectors") or ()))
            for policy in self.policies.values()
        }
        rules = (SelectorRule(policy, selector) for policy in self.policies.values() for selector in self.selectors[policy.key])
        self._rules = sorted(rules, key=lambda rule: (-rule.policy.priority, -rule.implicit_priority, rule.policy.key.name))
        self._index = SelectorIndex([(rule.policy.key.namespace, rule.selector) for rule in self._rules])

    def match(self, template: Document) -> PropagationPolicy | None:
        """Return the policy of a workload without a claim.

        PropagationPolicies of its namespace take precedence over ClusterPropagationPolicies.
        """
        if is_skipped(template.key):
            return None
        for found in self._match_scopes(template):
            if found:
                return self._rules[min(positions[0] for positions in found)].policy
        return None

    def selects(self, policy: PropagationPolicy, template: Document) -> bool:
        """Return whether a policy selects a workload."""
        labels = read_labels(template.body)
        in_scope = policy.key.namespace in ("", template.key.namespace)
        return in_scope and any(selector.selects(template, labels) for selector in self.selectors.get(policy.key, ()))

    def list_policies_by_name(self, template: Document) -> list[PropagationPolicy]:
        """Return the policies that select a workload by its name."""
        rules = (rule for rule in self.list_matching_rules(template) if rule.implicit_priority == BY_NAME)
        return list({rule.policy.key: rule.policy for rule in rules}.values())

    def list_matching_rules(self, template: Document, most: int | None = None) -> list[SelectorRule]:
        """Return every rule that selects a workload, or the first ones, in order of precedence."""
        positions = chain.from_iterable(merge(*found) for found in self._match_scopes(template))
        return [self._rules[position] for position in islice(positions, most)]

    def _match_scopes(self, template: Document) -> Iterator[list[Positions]]:
        """Yield the positions of the rules that select a workload: those of its namespace, then those of all namespaces."""
        labels = read_labels(template.body) if self._rules else {}
        for scope in (template.key.namespace, "") if template.key.namespace else ("",):
            yield self._index.match(scope, template, labels)
