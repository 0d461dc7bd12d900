"""OverridePolicy and ClusterOverridePolicy: the manifest of a workload in each cluster.

ClusterOverridePolicies apply first, then the OverridePolicies of the workload's namespace; of each kind the less specific selector first
(kind, labels, name), then the smaller name. Rules of a policy apply in their order, so the last one takes precedence. Replicas are
divided before, as in Karmada.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from gitsched.apis.karmada.defaulting import apply_defaults
from gitsched.apis.karmada.names import CLUSTER_OVERRIDE, OVERRIDE, POLICY_GROUP
from gitsched.apis.karmada.overrides.combined_rules import (
    CombinedRules,
    InapplicableOverride,
    OverrideRule,
    apply_rules,
    assign_rules,
    find_overrider,
    list_effective,
)
from gitsched.apis.karmada.overrides.overriders import list_containers, list_entries, list_overriders
from gitsched.apis.karmada.policy.propagation_policy import (
    BY_KIND,
    BY_LABELS,
    BY_NAME,
    Positions,
    ResourceSelector,
    SelectorIndex,
    parse_affinity,
    parse_resource_selector,
)
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Body, Document, Key, read_labels
from gitsched.model.explanation import AppliedOverride
from gitsched.model.finding import FieldOrigin, Finding, Pointer, format_names, locate_document, locate_field
from gitsched.model.json_values import is_same_json
from gitsched.model.scheduling import TargetCluster
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import set_counts
from gitsched.schedule.fleet import Fleet

if TYPE_CHECKING:
    from gitsched.apis.karmada.overrides.overridden_objects import DoubtfulOverride, OverrideCheck
    from gitsched.manifests.custom_schemas import CustomKind

_MAX_CACHED_ENTRIES = 1_000_000
"""Approximate maximum number of cached entries, one for each cluster and set of policies."""


OVERRIDE_UNUSED = "override-unused"
"""Code of the finding about a policy that applies to no cluster of the workload that it names."""
OVERRIDE_KINDS = ((POLICY_GROUP, CLUSTER_OVERRIDE), (POLICY_GROUP, OVERRIDE))


class OverridePolicy(NamedTuple):
    """An OverridePolicy or ClusterOverridePolicy; without selectors it applies to every object in its scope."""

    document: Document
    selectors: tuple[ResourceSelector, ...]
    rules: tuple[OverrideRule, ...]

    @property
    def key(self) -> Key:
        return self.document.key

    @property
    def is_namespaced(self) -> bool:
        return self.key.kind == OVERRIDE


FindDefinition = Callable[[str, str], "Document | None"]
"""Return the CustomResourceDefinition of a group and kind; None if the source has none."""
PolicyNumbers = tuple[int, ...]
"""Ascending positions of override policies in `OverrideIndex.policies`, which are sorted by name."""
ClusterRules = dict[str, CombinedRules | None]
"""The rules of each cluster that has any; None if they are unknown."""


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


def read_overrides(snapshot: Snapshot, fleet: Fleet) -> OverrideIndex:
    """Read every override policy of a commit."""
    documents = (document for kind in OVERRIDE_KINDS for document in snapshot.documents.get(kind, ()))
    duplicated = (
        copy for key, copies in sorted(snapshot.duplicates.items()) if (key.group, key.kind) in OVERRIDE_KINDS for copy in copies
    )
    strict = snapshot.config.source.strict
    return OverrideIndex(documents, duplicated, fleet, checked=not snapshot.single_cycle, strict=strict)


class OverrideIndex:
    """Every override policy of a commit (`policies`), indexed by its selectors. The rules of policies are combined once for each set of
    policies of one scope that are equally specific, so that workloads which have these in common share them."""

    __slots__ = ("_cache", "_checked", "_fleet", "_index", "_keys", "_selectors", "_strict", "_unselective", "names", "policies")

    def __init__(
        self,
        documents: Iterable[Document],
        duplicated: Iterable[Document],
        fleet: Fleet,
        *,
        checked: bool = False,
        strict: bool = False,
    ) -> None:
        """With `checked`, an override that makes an object one that an API server refuses cannot be applied, and with `strict` not even
        one after which it may drop a field."""
        self._fleet, self._checked, self._strict = fleet, checked, strict
        parsed = [
            *map(parse_override_policy, documents),
            *(parse_override_policy(document, True) for document in duplicated),
        ]
        self.policies = sorted(parsed, key=lambda policy: policy.key.name)
        self._keys = frozenset(policy.key for policy in self.policies)
        self._unselective: dict[str, list[int]] = {}
        self._selectors: list[tuple[int, ResourceSelector]] = []
        for number, policy in enumerate(self.policies):
            if policy.rules and not policy.selectors:
                self._unselective.setdefault(policy.key.namespace, []).append(number)
            self._selectors += [(number, selector) for selector in policy.selectors if policy.rules]
        self.names = frozenset(selector.name for _, selector in self._selectors)  # of the workloads that policies name
        scopes = (self.policies[number].key.namespace for number, _ in self._selectors)
        self._index = SelectorIndex(zip(scopes, (selector for _, selector in self._selectors), strict=True))
        self._cache: _OverrideCache | None = None

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def apply(
        self, template: Document, targets: tuple[TargetCluster, ...], find_definition: FindDefinition
    ) -> tuple[tuple[TargetCluster, ...], tuple[Finding, ...]]:
        """Set the manifest of each target cluster whose rules change it; returns the same tuple when no policy applies.

        A cluster whose rules cannot be applied keeps its present manifest (`TargetCluster.keeps_manifest`), and so does one whose rules
        are unknown: its Cluster document is invalid, or a policy for it is defined more than once.
        """
        planned = self._plan_rules(self._match_policies(template))
        if not planned:
            return targets, ()
        manifests: dict[tuple[tuple[int, ...], tuple[tuple[str, int], ...]], Body | InapplicableOverride | None] = {}
        checks: dict[tuple[int, ...], OverrideCheck] = {}
        failures: dict[tuple[int, str], tuple[InapplicableOverride, list[str]]] = {}
        doubtful: dict[tuple[int, str, str], tuple[DoubtfulOverride, list[str]]] = {}
        results = []
        for target in targets:
            rules = [one[target.cluster] for one in planned if target.cluster in one]
            if not rules or None in rules:
                results.append(target._replace(keeps_manifest=True) if rules else target)
                continue
            identity = tuple(map(id, rules))
            cache_key = (identity, target.edits)
            if cache_key not in manifests:
                known = [one for one in rules if one is not None]
                manifest = _override_manifest(template, known, target.edits)
                if self._checked and isinstance(manifest, dict):  # the same for all numbers of replicas
                    if identity not in checks:
                        checks[identity] = self._check(template, manifest, known, target.edits, find_definition)
                    manifest = checks[identity].failure or manifest
                manifests[cache_key] = manifest
            manifest = manifests[cache_key]
            for one in checks[identity].doubtful if identity in checks else ():
                doubtful.setdefault((id(one.rule), one.code, one.reason), (one, []))[1].append(target.cluster)
            if isinstance(manifest, InapplicableOverride):
                failures.setdefault((id(manifest.rule), manifest.reason), (manifest, []))[1].append(target.cluster)
                results.append(target._replace(keeps_manifest=True))
            else:
                results.append(target if manifest is None else target._replace(body=manifest))
        return tuple(results), (
            *(_make_finding(template, *failure) for failure in failures.values()),
            *(_make_warning(template, *entry) for entry in doubtful.values()),
        )

    def find_overrider(self, template: Document, cluster: str, path: Sequence[str]) -> FieldOrigin | None:
        """Return the overrider that changes a field of a workload's manifest in a cluster last; None if none does."""
        rules = (one.get(cluster) for one in self._plan_rules(self._match_policies(template)))
        return find_overrider(template.body, filter(None, rules), path)

    def _check(
        self,
        template: Document,
        manifest: Body,
        rules: Sequence[CombinedRules],
        counts: tuple[tuple[str, int], ...],
        find_definition: FindDefinition,
    ) -> OverrideCheck:
        """Return what overriders make wrong in a manifest."""
        from gitsched.apis.karmada.overrides.overridden_objects import check_override, make_rules  # few sources have overrides

        object_rules = make_rules(find_definition(*template.key[:2]), self._strict, self._known.custom_kinds)
        return check_override(set_counts(template.body, counts), manifest, rules, object_rules)

    def selects(self, template: Document) -> bool:
        """Return whether a policy with rules selects an object."""
        return bool(self._match_policies(template))

    def names_kind(self, template: Document) -> bool:
        """Return whether a policy selects an object by its kind, and not only because it selects everything."""
        labels = read_labels(template.body)
        return any(self._index.match(scope, template, labels) for scope in _list_scopes(template))

    def explain(self, template: Document, targets: Iterable[TargetCluster]) -> tuple[AppliedOverride, ...]:
        """Return the policies that select a workload with these clusters, in the order in which they are applied."""
        matched = self._match_policies(template)
        planned = self._plan_rules(matched)
        applied: dict[Key, tuple[dict[str, None], dict[str, bool]]] = {}
        known: dict[tuple[object, ...], set[tuple[Key, str]] | None] = {}
        for target in targets:
            found = [one[target.cluster] for one in planned if target.cluster in one]
            combined = [one for one in found if one is not None] if None not in found else []
            cache_key = (target.edits, *map(id, combined))
            if cache_key not in known:
                known[cache_key] = list_effective(set_counts(template.body, target.edits), combined)
            effective = known[cache_key]
            for rule in (rule for rules in combined for rule in rules.rules):
                clusters, changes = applied.setdefault(rule.policy.key, ({}, {}))
                clusters[target.cluster] = None
                for name in list_overriders(rule.overriders):
                    is_change = effective is None or (rule.policy.key, name) in effective
                    changes[name] = changes.get(name, False) or is_change
        documents = (self.policies[number].document for numbers in matched for number in numbers)
        return tuple(_describe_applied(document, *applied.get(document.key, ({}, {}))) for document in documents)

    def find_unused(self, template: Document, targets: Iterable[TargetCluster]) -> Iterator[Finding]:
        """Yield a note for each policy that names a workload and applies to none of the clusters that it is in, or to containers that
        the workload does not have."""
        clusters = sorted(target.cluster for target in targets if not target.evicting)
        matched = self._match_policies(template) if clusters else []
        every: list[OverrideRule] = []
        for numbers, rules in zip(matched, self._plan_rules(matched), strict=True):
            found = dict.fromkeys(rules[cluster] for cluster in clusters if cluster in rules)
            applied = [rule for one in found if one is not None for rule in one.rules]
            every += applied
            for policy in map(self.policies.__getitem__, numbers if None not in found else ()):
                own = [rule for rule in applied if rule.policy.key == policy.key]
                yield from _find_unused_overriders(policy, template, clusters, own, every)

    def _match_policies(self, template: Document) -> list[PolicyNumbers]:
        """Return the policies that select a workload, in the order in which they are applied: one entry for each scope and specificity."""
        if not self.policies:
            return []
        labels = read_labels(template.body)
        found: list[PolicyNumbers] = []
        for scope in _list_scopes(template):
            parts = tuple(self._index.match(scope, template, labels))
            merged = self._known.merged.get((scope, parts))
            if merged is None:
                merged = self._known.merged[scope, parts] = self._merge(scope, parts)
                self._known.count(sum(map(len, merged)))
            found += merged
        return found

    def _merge(self, scope: str, parts: tuple[Positions, ...]) -> tuple[PolicyNumbers, ...]:
        """Return the policies with some selectors, and those without any, each once and where its most specific selector has it."""
        specific = dict.fromkeys(self._unselective.get(scope, ()), BY_KIND)
        for position in chain.from_iterable(parts):
            number, selector = self._selectors[position]
            specific[number] = max(specific.get(number, 0), selector.implicit_priority)
        by_priority = (
            tuple(sorted(number for number, found in specific.items() if found == priority))
            for priority in (BY_KIND, BY_LABELS, BY_NAME)
        )
        return tuple(filter(None, by_priority))

    def _plan_rules(self, policies: Iterable[PolicyNumbers]) -> list[ClusterRules]:
        """Return the rules of each entry of matched policies, by cluster."""
        planned = []
        for numbers in policies:
            rules = self._known.rules.get(numbers)
            if rules is None:
                assigned = [rule for number in numbers for rule in self.policies[number].rules]
                rules = self._known.rules[numbers] = assign_rules(assigned, self._fleet)
                self._known.count(len(rules) + len(assigned))
            planned.append(rules)
        return planned

    @property
    def _known(self) -> _OverrideCache:
        if self._cache is None or self._cache.size > _MAX_CACHED_ENTRIES:  # almost every workload has its own set of policies
            self._cache = _OverrideCache()
        return self._cache


class _OverrideCache:
    """Policies that are merged, their rules by cluster, and custom kinds."""

    def __init__(self) -> None:
        self.merged: dict[tuple[str, tuple[Positions, ...]], tuple[PolicyNumbers, ...]] = {}
        self.rules: dict[PolicyNumbers, ClusterRules] = {}
        self.custom_kinds: dict[str, tuple[Body, CustomKind]] = {}
        self.size = 0

    def __reduce__(self) -> tuple[type[_OverrideCache], tuple[()]]:
        return _OverrideCache, ()  # it is made again where it is needed

    def count(self, number: int) -> None:
        """Count what was added."""
        self.size += number + 1


NO_OVERRIDES = OverrideIndex((), (), Fleet(()))


def _list_scopes(template: Document) -> tuple[str, ...]:
    """Return the scopes of policies that may select an object, in the order in which they are applied."""
    return ("", template.key.namespace) if template.key.namespace else ("",)


def _override_manifest(
    template: Document, rules: Sequence[CombinedRules], counts: tuple[tuple[str, int], ...]
) -> Body | InapplicableOverride | None:
    """Apply rules to the manifest of a workload; None when they do not change it."""
    before = set_counts(template.body, counts)
    after = apply_rules(before, rules)
    return after if isinstance(after, InapplicableOverride) or not is_same_json(before, after) else None


def _make_finding(template: Document, failure: InapplicableOverride, clusters: list[str]) -> Finding:
    rule, reason, pointer = failure
    policy, origin = rule.policy.key, rule.policy.origin
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rule.pointer)[1:]
    kept = f"whose manifest in {format_names(clusters)} does not change"
    joined = "." if len(pointer) > len(rule.pointer) else ": "  # the reason begins with the overrider, or concerns all of them
    message = f"{policy.title} cannot be applied to {template.key}, {kept}: {path}{joined}{reason}"
    written = locate_field(origin, pointer)
    return Finding("error", "override-failed", message, locate_document(rule.policy), policy.resource, written)


def _make_warning(template: Document, doubtful: DoubtfulOverride, clusters: list[str]) -> Finding:
    rule, code, reason, pointer = doubtful
    policy, origin = rule.policy.key, rule.policy.origin
    message = f"{policy.title} changes {template.key} in {format_names(clusters)}: {reason}"
    written = locate_field(origin, pointer)
    return Finding("warning", code, message, locate_document(rule.policy), policy.resource, written)


def _make_unused_finding(policy: OverridePolicy, template: Document, clusters: Sequence[str]) -> Finding:
    where = f"{template.key} is in {format_names(clusters)}"
    message = f"{policy.key.title} changes nothing: {where}, which its targetCluster does not match"
    field = locate_field(policy.document.origin, policy.rules[0].pointer)
    return Finding("info", OVERRIDE_UNUSED, message, locate_document(policy.document), policy.key.resource, field)


def _find_unused_overriders(
    policy: OverridePolicy,
    template: Document,
    clusters: Sequence[str],
    own: Iterable[OverrideRule],
    applied: Iterable[OverrideRule],
) -> Iterator[Finding]:
    """Yield a note if a policy that names a workload has none of its `own` rules in its clusters, or one for each container that the
    workload, the only one of the policy, does not have. A plaintext overrider of what is `applied` so far may add containers."""
    if all(selector.name != template.key.name for selector in policy.selectors):
        return
    if not own:
        yield _make_unused_finding(policy, template, clusters)
    if len(policy.selectors) == 1 and not any(rule.overriders.get("plaintext") for rule in applied):
        yield from _find_missing_containers({rule.pointer: rule for rule in own}.values(), template)


def _find_missing_containers(rules: Iterable[OverrideRule], template: Document) -> Iterator[Finding]:
    """Yield a note for each overrider of a container that a workload does not have."""
    names = list_containers(template.body)
    for rule in rules:
        for name, index, entry in list_entries(rule.overriders):
            wanted, policy = entry.get("containerName"), rule.policy
            if wanted is not None and wanted not in names:
                there = f"it has {format_names(names)}" if names else "it has none that overriders change"
                message = f"an overrider of {policy.key.title} changes nothing: {template.key} has no container {wanted}; {there}"
                field = locate_field(policy.origin, (*rule.pointer, name, index, "containerName"))
                yield Finding("info", OVERRIDE_UNUSED, message, locate_document(policy), policy.key.resource, field)


def _describe_applied(document: Document, clusters: Iterable[str], changes: Mapping[str, bool]) -> AppliedOverride:
    """Return what a policy changes in these clusters; `changes` says for each overrider that it uses there whether it changes anything."""
    parts = (tuple(name for name, is_change in changes.items() if is_change is wanted) for wanted in (True, False))
    return AppliedOverride(document.key.title, _format_location(document), tuple(clusters), *parts)


def _format_location(document: Document) -> str:
    location = locate_document(document)
    return f"{location.path}:{location.line}" if location else ""
