"""OverridePolicy and ClusterOverridePolicy: the manifest of a workload in each cluster.

ClusterOverridePolicies come first, then the OverridePolicies of the workload's namespace; of each kind the less specific selector first
(kind, labels, name), then the smaller name. Rules of a policy apply in their order, so the last one has the last word. Replicas are
divided before, as upstream does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gitsched.apis.engine import Snapshot
from gitsched.apis.karmada.defaulting import apply_defaults
from gitsched.apis.karmada.names import CLUSTER_OVERRIDE, OVERRIDE, POLICY_GROUP, format_clusters
from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject, is_same_json
from gitsched.apis.karmada.overrides.overriders import apply_overriders, list_overriders
from gitsched.apis.karmada.policy.propagation_policy import BY_KIND, ResourceSelector, parse_affinity, parse_resource_selector
from gitsched.model.document import Body, Document, as_string_map, get_field
from gitsched.model.explanation import AppliedOverride
from gitsched.model.finding import FieldOrigin, Finding, Pointer, locate_document
from gitsched.model.scheduling import Affinity, TargetCluster
from gitsched.render.cluster_directory import set_counts
from gitsched.schedule.fleet import Fleet

_MAX_CACHED_ENTRIES = 1_000_000
"""Entries of all the plans that are remembered, about."""


class OverrideRule(NamedTuple):
    """Overriders for some clusters; `affinity` None is for all of them. `pointer` is where they stand in the policy, which is `contested`
    when it stands in several places: nobody knows which of them counts."""

    policy: Document
    affinity: Affinity | None
    overriders: Body
    pointer: Pointer
    duplicated: bool

    @property
    def matches_by_name(self) -> bool:
        """Whether the cluster's name alone tells if the rule is for it."""
        return self.affinity is None or (self.affinity.labels is None and not self.affinity.fields and not self.affinity.invalid)


class OverridePolicy(NamedTuple):
    """A policy of either kind; without any selector it is for every object in reach."""

    document: Document
    selectors: tuple[ResourceSelector, ...]
    rules: tuple[OverrideRule, ...]


OverrideRules = tuple[OverrideRule, ...]


def parse_override_policy(document: Document, contested: bool = False) -> OverridePolicy:
    """Read a policy whose document passed its schema and rules. The older form counts where there are no overrideRules."""
    spec = apply_defaults(document.body)["spec"]
    listed = enumerate(spec.get("overrideRules") or ())
    entries: list[tuple[Body, Pointer]] = [(entry, ("spec", "overrideRules", index)) for index, entry in listed]
    rules = []
    for entry, place in entries or [(spec, ("spec",))]:
        target, overriders = entry.get("targetCluster"), entry.get("overriders") or {}
        if list_overriders(overriders):
            affinity = None if target is None else parse_affinity(target)
            rules.append(OverrideRule(document, affinity, overriders, (*place, "overriders"), contested))
    return OverridePolicy(document, tuple(map(parse_resource_selector, spec.get("resourceSelectors") or ())), tuple(rules))


class InapplicableOverride(NamedTuple):
    """A rule that cannot be applied to a workload, and why."""

    rule: OverrideRule
    reason: str
    pointer: Pointer


def read_overrides(world: Snapshot, fleet: Fleet) -> OverrideIndex:
    """Every override policy of a commit."""
    kinds = [(POLICY_GROUP, CLUSTER_OVERRIDE), (POLICY_GROUP, OVERRIDE)]
    documents = (document for kind in kinds for document in world.documents.get(kind, ()))
    contested = (copy for key, copies in sorted(world.duplicates.items()) if (key.group, key.kind) in kinds for copy in copies)
    return OverrideIndex(documents, contested, fleet)


class OverrideIndex:
    """Every override policy of a commit, by what it selects. The rules of each cluster are found once for each set of policies."""

    __slots__ = ("_fleet", "_keys", "_policies", "_rules_by_policies", "_selectors", "_unselective")

    def __init__(self, documents: Iterable[Document], contested: Iterable[Document], fleet: Fleet) -> None:
        self._fleet = fleet
        self._policies = [
            *map(parse_override_policy, documents),
            *(parse_override_policy(document, True) for document in contested),
        ]
        self._keys = frozenset(policy.document.key for policy in self._policies)
        self._unselective: dict[str, list[int]] = {}
        self._selectors: dict[tuple[str, str, str, str], list[tuple[int, ResourceSelector]]] = {}
        self._rules_by_policies: dict[tuple[int, ...], Mapping[str, OverrideRules | None]] = {}
        for number, policy in enumerate(self._policies):
            scope = policy.document.key.namespace
            if policy.rules and not policy.selectors:
                self._unselective.setdefault(scope, []).append(number)
            for selector in policy.selectors if policy.rules else ():
                by = (scope, selector.api_version, selector.kind, selector.name)
                self._selectors.setdefault(by, []).append((number, selector))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def apply(self, template: Document, placed: tuple[TargetCluster, ...]) -> tuple[tuple[TargetCluster, ...], tuple[Finding, ...]]:
        """The places with the manifest of each cluster whose rules change it; the very same places when no policy is concerned.

        A cluster whose rules do not fit the workload keeps the manifest that it has (`Placed.kept`). So it does where nobody knows which
        rules are for it: its own document is broken, or a policy for it stands in several places.
        """
        plan = self._plan_rules(self._match_policies(template))
        if not plan:
            return placed, ()
        made: dict[tuple[int, tuple[tuple[str, int], ...]], Body | InapplicableOverride | None] = {}
        misfits: dict[tuple[int, str], tuple[InapplicableOverride, list[str]]] = {}
        results = []
        for place in placed:
            rules = plan.get(place.cluster, ())
            if not rules:
                results.append(place if rules is not None else place._replace(keeps_manifest=True))
                continue
            question = (id(rules), place.edits)
            if question not in made:
                made[question] = _override_manifest(template, rules, place.edits)
            answer = made[question]
            if isinstance(answer, InapplicableOverride):
                misfits.setdefault((id(answer.rule), answer.reason), (answer, []))[1].append(place.cluster)
                results.append(place._replace(keeps_manifest=True))
            else:
                results.append(place if answer is None else place._replace(body=answer))
        return tuple(results), tuple(_make_finding(template, *misfit) for misfit in misfits.values())

    def explain(self, template: Document, clusters: Iterable[str]) -> tuple[AppliedOverride, ...]:
        """Which policies touch a workload in these clusters, in the order in which they are applied."""
        policies = self._match_policies(template)
        plan = self._plan_rules(policies)
        applied = [(cluster, rule) for cluster in clusters for rule in plan.get(cluster) or ()]
        told = []
        for number in policies:
            document = self._policies[number].document
            mine = [(cluster, rule) for cluster, rule in applied if rule.policy is document]
            changes = dict.fromkeys(name for _, rule in mine for name in list_overriders(rule.overriders))
            if mine:
                names = tuple(dict.fromkeys(cluster for cluster, _ in mine))
                told.append(AppliedOverride(document.key.title, _format_location(document), names, tuple(changes)))
        return tuple(told)

    def _match_policies(self, template: Document) -> tuple[int, ...]:
        """The policies that select a workload, in the order in which they are applied."""
        if not self._policies:
            return ()
        key = template.key
        found: list[int] = []
        labels: Mapping[str, str] | None = None
        for scope in ("", key.namespace) if key.namespace else ("",):
            specific = dict.fromkeys(self._unselective.get(scope, ()), BY_KIND)
            for name in (key.name, ""):
                for number, selector in self._selectors.get((scope, template.api_version, key.kind, name), ()):
                    if labels is None:
                        labels = as_string_map(get_field(template.body, "metadata", "labels"))
                    if selector.selects(key.namespace, labels):
                        specific[number] = max(specific.get(number, 0), selector.implicit_priority)
            found += sorted(specific, key=lambda number: (specific[number], self._policies[number].document.key.name, number))
        return tuple(found)

    def _plan_rules(self, policies: tuple[int, ...]) -> Mapping[str, OverrideRules | None]:
        """The rules of each cluster that has any, the same object for clusters that share them; None where nobody can tell."""
        if not policies:
            return {}
        known = self._rules_by_policies.get(policies)
        if known is None:
            if len(self._rules_by_policies) * len(self._fleet) > _MAX_CACHED_ENTRIES:
                self._rules_by_policies.clear()  # every workload has policies of its own
            known = self._rules_by_policies[policies] = self._assign_rules(
                [rule for number in policies for rule in self._policies[number].rules]
            )
        return known

    def _assign_rules(self, rules: list[OverrideRule]) -> dict[str, OverrideRules | None]:
        fleet = self._fleet
        masks = [fleet.all if rule.affinity is None else fleet.matching(rule.affinity) for rule in rules]
        unknown = 0 if all(rule.matches_by_name for rule in rules) else fleet.frozen
        for rule, mask in zip(rules, masks, strict=True):
            unknown |= mask if rule.duplicated else 0
        parts: list[tuple[int, OverrideRules]] = [(fleet.all & ~unknown, ())]
        for rule, mask in zip(rules, masks, strict=True):
            split = [(part & mask, (*before, rule)) for part, before in parts] + [(part & ~mask, before) for part, before in parts]
            parts = [(part, before) for part, before in split if part]
        spread: dict[str, OverrideRules | None] = {fleet.names[i]: None for i in fleet.members(unknown)}
        spread |= {fleet.names[i]: before for part, before in parts if before for i in fleet.members(part)}
        return spread


def _override_manifest(
    template: Document, rules: OverrideRules, counts: tuple[tuple[str, int], ...]
) -> Body | InapplicableOverride | None:
    """The manifest after these rules, or None when it is the one that it was."""
    before = set_counts(template.body, counts)
    draft = PatchedObject(before)
    for rule in rules:
        try:
            apply_overriders(draft, rule.overriders)
        except InapplicablePatch as error:
            return InapplicableOverride(rule, str(error), (*rule.pointer, *error.pointer))
    after: Body = draft.root
    return None if is_same_json(before, after) else after


def _make_finding(template: Document, misfit: InapplicableOverride, clusters: list[str]) -> Finding:
    rule, why, pointer = misfit
    policy, origin = rule.policy.key, rule.policy.origin
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rule.pointer)[1:]
    kept = f"whose manifest in {format_clusters(clusters)} stays as it was"
    message = f"{policy.title} cannot be applied to {template.key}, {kept}: {place}.{why}"
    written = FieldOrigin(origin, pointer) if origin is not None else None
    return Finding("error", "override-failed", message, locate_document(rule.policy), policy.resource, written)


def _format_location(document: Document) -> str:
    location = locate_document(document)
    return f"{location.path}:{location.line}" if location else ""
