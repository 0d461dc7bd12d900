"""OverridePolicy and ClusterOverridePolicy: the manifest of a workload in each cluster.

ClusterOverridePolicies apply first, then the OverridePolicies of the workload's namespace; of each kind the less specific selector first
(kind, labels, name), then the smaller name. Rules of a policy apply in their order, so the last one takes precedence. Replicas are
divided before, as in Karmada.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from gitsched.apis.karmada.defaulting import apply_defaults
from gitsched.apis.karmada.names import CLUSTER_OVERRIDE, OVERRIDE, POLICY_GROUP
from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject
from gitsched.apis.karmada.overrides.overriders import apply_overriders, list_overriders
from gitsched.apis.karmada.policy.propagation_policy import BY_KIND, ResourceSelector, parse_affinity, parse_resource_selector
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Body, Document, read_labels
from gitsched.model.explanation import AppliedOverride
from gitsched.model.finding import FieldOrigin, Finding, Pointer, format_names, locate_document
from gitsched.model.json_values import is_same_json
from gitsched.model.scheduling import Affinity, TargetCluster
from gitsched.render.output_files import set_counts
from gitsched.schedule.fleet import Fleet

_MAX_CACHED_ENTRIES = 1_000_000
"""Approximate maximum number of cached entries, one for each cluster and set of policies."""


OVERRIDE_KINDS = ((POLICY_GROUP, CLUSTER_OVERRIDE), (POLICY_GROUP, OVERRIDE))


class OverrideRule(NamedTuple):
    """Overriders for some clusters, all of them when `affinity` is None.

    `pointer` is their location in the policy; `duplicated` says that the policy is defined more than once, so it is unknown which
    definition applies.
    """

    policy: Document
    affinity: Affinity | None
    overriders: Body
    pointer: Pointer
    duplicated: bool

    @property
    def matches_by_name(self) -> bool:
        """Whether the name of a cluster is sufficient to match it."""
        return self.affinity is None or (self.affinity.labels is None and not self.affinity.fields and not self.affinity.invalid)


class OverridePolicy(NamedTuple):
    """An OverridePolicy or ClusterOverridePolicy; without selectors it applies to every object in its scope."""

    document: Document
    selectors: tuple[ResourceSelector, ...]
    rules: tuple[OverrideRule, ...]


OverrideRules = tuple[OverrideRule, ...]


def parse_override_policy(document: Document, duplicated: bool = False) -> OverridePolicy:
    """Parse a valid policy. The deprecated form is used when there are no overrideRules."""
    spec = apply_defaults(document.body)["spec"]
    listed = enumerate(spec.get("overrideRules") or ())
    entries: list[tuple[Body, Pointer]] = [(entry, ("spec", "overrideRules", index)) for index, entry in listed]
    rules = []
    for entry, pointer in entries or [(spec, ("spec",))]:
        target, overriders = entry.get("targetCluster"), entry.get("overriders") or {}
        if list_overriders(overriders):
            affinity = None if target is None else parse_affinity(target)
            rules.append(OverrideRule(document, affinity, overriders, (*pointer, "overriders"), duplicated))
    return OverridePolicy(document, tuple(map(parse_resource_selector, spec.get("resourceSelectors") or ())), tuple(rules))


class InapplicableOverride(NamedTuple):
    """A rule that cannot be applied to a workload, and the reason."""

    rule: OverrideRule
    reason: str
    pointer: Pointer


def read_overrides(snapshot: Snapshot, fleet: Fleet) -> OverrideIndex:
    """Read every override policy of a commit."""
    documents = (document for kind in OVERRIDE_KINDS for document in snapshot.documents.get(kind, ()))
    duplicated = (
        copy for key, copies in sorted(snapshot.duplicates.items()) if (key.group, key.kind) in OVERRIDE_KINDS for copy in copies
    )
    return OverrideIndex(documents, duplicated, fleet)


class OverrideIndex:
    """Every override policy of a commit (`policies`), indexed by its selectors. The rules of each cluster are computed once per set of
    policies."""

    __slots__ = ("_fleet", "_keys", "_labelled", "_rules_by_policies", "_selectors", "_unselective", "policies")

    def __init__(self, documents: Iterable[Document], duplicated: Iterable[Document], fleet: Fleet) -> None:
        self._fleet = fleet
        self.policies = [
            *map(parse_override_policy, documents),
            *(parse_override_policy(document, True) for document in duplicated),
        ]
        self._keys = frozenset(policy.document.key for policy in self.policies)
        self._unselective: dict[str, list[int]] = {}
        self._selectors: dict[tuple[str, str, str, str], list[tuple[int, ResourceSelector]]] = {}
        self._labelled: dict[tuple[str, str, str], dict[tuple[str, str], list[tuple[int, ResourceSelector]]]] = {}
        self._rules_by_policies: dict[tuple[int, ...], Mapping[str, OverrideRules | None]] = {}
        for number, policy in enumerate(self.policies):
            scope = policy.document.key.namespace
            if policy.rules and not policy.selectors:
                self._unselective.setdefault(scope, []).append(number)
            for selector in policy.selectors if policy.rules else ():
                by = (scope, selector.api_version, selector.kind, selector.name)
                wanted = (
                    next((one for one in selector.labels.requirements if one.operator == "In"), None) if selector.labels else None
                )
                if wanted is None or selector.name:
                    self._selectors.setdefault(by, []).append((number, selector))
                    continue
                labelled = self._labelled.setdefault(by[:3], {})
                for value in dict.fromkeys(wanted.values):
                    labelled.setdefault((wanted.key, value), []).append((number, selector))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def apply(
        self, template: Document, targets: tuple[TargetCluster, ...]
    ) -> tuple[tuple[TargetCluster, ...], tuple[Finding, ...]]:
        """Set the manifest of each target cluster whose rules change it; returns the same tuple when no policy applies.

        A cluster whose rules cannot be applied keeps its present manifest (`TargetCluster.keeps_manifest`), and so does one whose rules
        are unknown: its Cluster document is invalid, or a policy for it is defined more than once.
        """
        rules_by_cluster = self._plan_rules(self._match_policies(template))
        if not rules_by_cluster:
            return targets, ()
        manifests: dict[tuple[int, tuple[tuple[str, int], ...]], Body | InapplicableOverride | None] = {}
        failures: dict[tuple[int, str], tuple[InapplicableOverride, list[str]]] = {}
        results = []
        for target in targets:
            rules = rules_by_cluster.get(target.cluster, ())
            if not rules:
                results.append(target if rules is not None else target._replace(keeps_manifest=True))
                continue
            cache_key = (id(rules), target.edits)
            if cache_key not in manifests:
                manifests[cache_key] = _override_manifest(template, rules, target.edits)
            manifest = manifests[cache_key]
            if isinstance(manifest, InapplicableOverride):
                failures.setdefault((id(manifest.rule), manifest.reason), (manifest, []))[1].append(target.cluster)
                results.append(target._replace(keeps_manifest=True))
            else:
                results.append(target if manifest is None else target._replace(body=manifest))
        return tuple(results), tuple(_make_finding(template, *failure) for failure in failures.values())

    def selects(self, template: Document) -> bool:
        """Return whether a policy with rules selects an object."""
        return bool(self._match_policies(template))

    def names_kind(self, template: Document) -> bool:
        """Return whether a policy selects an object by its kind, and not only because it selects everything."""
        labels = read_labels(template.body)
        return any(
            selector.selects(template.key.namespace, labels)
            for scope in ("", template.key.namespace)
            for _, selector in self._list_candidates(scope, template, labels)
        )

    def explain(self, template: Document, clusters: Iterable[str]) -> tuple[AppliedOverride, ...]:
        """Return the policies that change a workload in these clusters, in the order in which they are applied."""
        policies = self._match_policies(template)
        rules_by_cluster = self._plan_rules(policies)
        applied = [(cluster, rule) for cluster in clusters for rule in rules_by_cluster.get(cluster) or ()]
        explained = []
        for number in policies:
            document = self.policies[number].document
            matching = [(cluster, rule) for cluster, rule in applied if rule.policy is document]
            changes = dict.fromkeys(name for _, rule in matching for name in list_overriders(rule.overriders))
            if matching:
                names = tuple(dict.fromkeys(cluster for cluster, _ in matching))
                explained.append(AppliedOverride(document.key.title, _format_location(document), names, tuple(changes)))
        return tuple(explained)

    def _match_policies(self, template: Document) -> tuple[int, ...]:
        """Return the numbers of the policies that select a workload, in the order in which they are applied."""
        if not self.policies:
            return ()
        key = template.key
        found: list[int] = []
        labels = read_labels(template.body)
        for scope in ("", key.namespace) if key.namespace else ("",):
            specific = dict.fromkeys(self._unselective.get(scope, ()), BY_KIND)
            for number, selector in self._list_candidates(scope, template, labels):
                if selector.selects(key.namespace, labels):
                    specific[number] = max(specific.get(number, 0), selector.implicit_priority)
            found += sorted(specific, key=lambda number: (specific[number], self.policies[number].document.key.name, number))
        return tuple(found)

    def _list_candidates(self, scope: str, template: Document, labels: Mapping[str, str]) -> Iterable[tuple[int, ResourceSelector]]:
        """Return the selectors that may select an object: those with its name, those without a label, and those with one of its labels."""
        of_kind = scope, template.api_version, template.key.kind
        labelled = self._labelled.get(of_kind)
        return chain(
            self._selectors.get((*of_kind, template.key.name), ()),
            self._selectors.get((*of_kind, ""), ()),
            *(labelled.get(label, ()) for label in labels.items() if labelled),
        )

    def _plan_rules(self, policies: tuple[int, ...]) -> Mapping[str, OverrideRules | None]:
        """Return the rules of each cluster that has any, the same object for equal rules; None if the rules are unknown."""
        if not policies:
            return {}
        rules_of_clusters = self._rules_by_policies.get(policies)
        if rules_of_clusters is None:
            if len(self._rules_by_policies) * len(self._fleet) > _MAX_CACHED_ENTRIES:
                self._rules_by_policies.clear()  # almost every workload has its own set of policies
            rules_of_clusters = self._rules_by_policies[policies] = self._assign_rules(
                [rule for number in policies for rule in self.policies[number].rules]
            )
        return rules_of_clusters

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
        rules_by_cluster: dict[str, OverrideRules | None] = {fleet.names[i]: None for i in fleet.members(unknown)}
        rules_by_cluster |= {fleet.names[i]: before for part, before in parts if before for i in fleet.members(part)}
        return rules_by_cluster


NO_OVERRIDES = OverrideIndex((), (), Fleet(()))


def _override_manifest(
    template: Document, rules: OverrideRules, counts: tuple[tuple[str, int], ...]
) -> Body | InapplicableOverride | None:
    """Apply rules to the manifest of a workload; None when they do not change it."""
    before = set_counts(template.body, counts)
    draft = PatchedObject(before)
    for rule in rules:
        try:
            apply_overriders(draft, rule.overriders)
        except InapplicablePatch as error:
            return InapplicableOverride(rule, str(error), (*rule.pointer, *error.pointer))
    after: Body = draft.root
    return None if is_same_json(before, after) else after


def _make_finding(template: Document, failure: InapplicableOverride, clusters: list[str]) -> Finding:
    rule, reason, pointer = failure
    policy, origin = rule.policy.key, rule.policy.origin
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rule.pointer)[1:]
    kept = f"whose manifest in {format_names(clusters)} does not change"
    message = f"{policy.title} cannot be applied to {template.key}, {kept}: {path}.{reason}"
    written = FieldOrigin(origin, pointer) if origin is not None else None
    return Finding("error", "override-failed", message, locate_document(rule.policy), policy.resource, written)


def _format_location(document: Document) -> str:
    location = locate_document(document)
    return f"{location.path}:{location.line}" if location else ""
