"""Describe the selectors of policies that match nothing, with what they probably mean; entered only where there is one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from gitsched.apis.built_in_schemas import load_built_in_kinds
from gitsched.apis.karmada.policy.near_selection import AND_REMOVED, IF_REMOVED, KIND_SIMILARITY, POLICY_SELECTS_NOTHING
from gitsched.apis.karmada.warnings import SimilarObjects
from gitsched.kinds.operator_scopes import is_namespaced
from gitsched.model.document import Document, Key, is_known_group, parse_api_group, read_labels
from gitsched.model.finding import Finding, Pointer, Severity, format_names, locate_document, locate_field
from gitsched.model.known_values import find_near
from gitsched.model.labels import format_requirement
from gitsched.model.similar_names import find_similar

if TYPE_CHECKING:
    from gitsched.apis.karmada.overrides.override_policy import OverridePolicy
    from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy, ResourceSelector
    from gitsched.apis.karmada.warnings import SelectableResources, SelectingPolicies, UnmatchedPolicySelectors
    from gitsched.model.labels import Requirement, Selector

KnownLabels = Mapping[tuple[str, str, str], Mapping[str, Mapping[str, Key]]]
"""The first object with each label and value, by version, kind and namespace; "" for all namespaces."""
_CUSTOM_KIND_SIMILARITY = 0.9
_MAX_NAMESPACES = 3
_MAX_LOOKUPS = 100
"""Kinds, and other names and labels, for which a suggestion is looked up: each is compared with all existing ones."""


def compare_unmatched(
    policies: SelectingPolicies,
    unmatched: Collection[tuple[str, ResourceSelector]],
    resources: SelectableResources,
    list_templates: Callable[[], Iterable[Document]],
) -> Mapping[tuple[Key, int], SimilarObjects]:
    """Return what selectors that match nothing are similar to, by policy and position. `unmatched` are these selectors, with the scope of
    their policy."""
    comparison = _SelectorComparison(policies, resources, list_templates)
    divided = ((policy, _divide(policy, selectors, unmatched)) for policy, selectors in policies)
    return {(policy.key, index): comparison.compare(one, matched) for policy, (wrong, matched) in divided for index, one in wrong}


def describe_unmatched(policies: SelectingPolicies, unmatched: UnmatchedPolicySelectors) -> Iterator[Finding]:
    """Yield a finding for each policy that selects nothing, and one for each selector beside others that probably is a mistake.

    A selector of all objects of a kind, which may come later, is no mistake, nor is one that matches something in another version.
    """
    for policy, selectors in policies:
        wrong, matched = _divide(policy, selectors, unmatched.selectors)
        compared = [(index, one, unmatched.similar[policy.key, index]) for index, one in wrong]
        if compared:
            yield from _describe_policy(policy, compared, is_used=bool(matched))
        elif not selectors and policy.key.namespace in unmatched.empty:
            text = f"nothing: {_describe_scope(policy)} has no objects{AND_REMOVED}"
            yield _make_finding(policy, text, ("metadata", "namespace"), is_near=True)


def _divide(
    policy: PropagationPolicy | OverridePolicy,
    selectors: Sequence[ResourceSelector],
    unmatched: Collection[tuple[str, ResourceSelector]],
) -> tuple[list[tuple[int, ResourceSelector]], list[ResourceSelector]]:
    """Return the selectors that match nothing in any version, with their positions, and those that match something."""
    scope = policy.key.namespace
    wrong = [(index, one) for index, one in enumerate(selectors) if (scope, one) in unmatched]
    if not wrong:
        return [], list(selectors)
    matched = [one for one in selectors if (scope, one) not in unmatched]
    versions = {one._replace(api_version="") for one in matched}
    return [(index, one) for index, one in wrong if one._replace(api_version="") not in versions], matched


def _describe_policy(
    policy: PropagationPolicy | OverridePolicy, compared: Sequence[tuple[int, ResourceSelector, SimilarObjects]], *, is_used: bool
) -> Iterator[Finding]:
    """Yield the findings about selectors of a policy that match nothing; it `is_used` if others match something."""
    is_elsewhere = _are_elsewhere(policy, [found for *_, found in compared])
    if not is_used and (len(compared) == 1 or is_elsewhere or not any(found.is_near for *_, found in compared)):
        index, _, found = compared[0]
        names = format_names([_describe_selected(one, policy) for _, one, _ in compared])
        end = f"{found.hint}{IF_REMOVED if found.hint else AND_REMOVED}"
        text = found.misspelling or f"nothing: {_describe_scope(policy)} has no {names}{end}"
        selector: Pointer | None = ("spec", "resourceSelectors", index) if len(compared) == 1 else None
        yield _make_finding(policy, text, ("metadata", "namespace") if is_elsewhere else selector, is_near=found.is_near)
        return
    for index, one, found in compared:
        if found.is_near or one.name or one.labels is not None:
            text = f"{_describe_selected(one, policy)}, which {_describe_scope(policy)} does not have{found.hint}"
            yield _make_finding(policy, found.misspelling or text, ("spec", "resourceSelectors", index), is_near=found.is_near)


def _are_elsewhere(policy: PropagationPolicy | OverridePolicy, found: list[SimilarObjects]) -> bool:
    """Return whether another namespace than that of the policy, the same for all selectors, has what they match."""
    return policy.is_namespaced and len({one.hint for one in found}) == 1 and found[0].is_elsewhere


def _make_finding(policy: PropagationPolicy | OverridePolicy, text: str, pointer: Pointer | None, *, is_near: bool) -> Finding:
    document = policy.document
    field = locate_field(document.origin, pointer) if pointer is not None else None
    severity: Severity = "warning" if is_near else "info"
    message = f"{policy.key.title} selects {text}"
    return Finding(severity, POLICY_SELECTS_NOTHING, message, locate_document(document), policy.key.resource, field)


class _SelectorComparison:
    """Compares selectors with the objects of the source."""

    def __init__(
        self, policies: SelectingPolicies, resources: SelectableResources, list_templates: Callable[[], Iterable[Document]]
    ) -> None:
        self._resources, self._list_templates = resources, list_templates
        self._kinds = sorted(resources.versions)
        self._lower_kinds = {kind.lower(): kind for kind in self._kinds}
        self._near_kinds: dict[tuple[str, float], str] = {}
        self._lookups = 0
        selectors = [one for _, listed in policies for one in listed]
        self._selectors = frozenset(selectors)
        self._names = {(one.kind, one.name) for one in selectors}
        self._namespaces = {(one.kind, one.namespace) for one in selectors}
        self._labels = {
            (one.kind, requirement.key, value)
            for one in selectors
            for requirement in (one.labels.requirements if one.labels is not None else ())
            for value in ("", *requirement.values)
        }

    def compare(self, selector: ResourceSelector, matched: list[ResourceSelector]) -> SimilarObjects:
        """Return what a selector that matches nothing is similar to.

        `matched` are those of its policy that match something: beside them, the same objects in another namespace are not meant, unless
        that of the selector has nothing.
        """
        misspelling = self._describe_kind(selector, {one.kind for one in matched})
        if misspelling:
            return SimilarObjects(misspelling)
        in_use, namespace = bool(matched), selector.namespace
        elsewhere = self._list_namespaces(selector) if namespace else []
        elsewhere = [one for one in elsewhere if selector._replace(namespace=one) not in self._selectors]
        # Where another policy has such a selector, it is less likely to be meant.
        elsewhere = [one for one in elsewhere if (selector.kind, one) not in self._namespaces] or elsewhere
        if elsewhere and not ((in_use or not selector.name) and self._resources.has_objects(namespace)):
            return SimilarObjects(
                hint=f"; did you mean the namespace {' or '.join(elsewhere[:_MAX_NAMESPACES])}?", is_elsewhere=True
            )
        if selector.labels is not None:
            near = self._suggest_labels(selector, selector.labels)
        else:
            near = "" if not selector.name or (elsewhere and not in_use) else self._suggest_name(selector, in_use=in_use)
        return SimilarObjects(hint=f"; did you mean {near}?" if near else "")

    def _describe_kind(self, selector: ResourceSelector, used: Collection[str]) -> str:
        """Describe a selector whose kind exists with a similar name or in another version; "" if nothing is similar.

        A similar kind of operators that the policy has `used` already is another one."""
        written, group = f"{selector.kind} of {selector.api_version}", parse_api_group(selector.api_version)
        versions = self._resources.versions.get(selector.kind)
        if versions is not None:
            if selector.api_version in versions or _is_unrelated(selector, versions):
                return ""
            return f"{written}, but the repository has {selector.kind} of {' and '.join(sorted(versions))}"
        near = self._suggest_kind(selector.kind, KIND_SIMILARITY)
        if near in used and not load_built_in_kinds().lacks(group, selector.kind):
            same_group = (
                group in map(parse_api_group, self._resources.versions[near]) and is_namespaced(group, selector.kind) is None
            )
            near = self._suggest_kind(selector.kind, _CUSTOM_KIND_SIMILARITY) if same_group else ""
        if near:
            return f"{written}, which the repository does not have; did you mean {near}?"
        issues = load_built_in_kinds().check_kind((group, selector.api_version.rpartition("/")[2], selector.kind))
        return next((f"{written}: {issue.message}" for issue in issues if issue.severity == "error"), "")

    def _suggest_kind(self, kind: str, similarity: float) -> str:
        """Return the most similar kind of the source; "" when none is similar, or after too many lookups."""
        known = self._near_kinds.get((kind, similarity))
        if known is None:
            known = self._lower_kinds.get(kind.lower(), "")
            if not known and len(self._near_kinds) < _MAX_LOOKUPS:
                known = self._lower_kinds.get(find_similar(kind.lower(), self._lower_kinds, similarity), "")
            self._near_kinds[kind, similarity] = known
        return known

    def _suggest_name(self, selector: ResourceSelector, *, in_use: bool) -> str:
        """Return the similar name of an object that no other selector names. Where other selectors of the policy are `in_use`, names that
        any selector has in another namespace are not meant either."""
        kind, names = selector.kind, self._resources.names.get(selector[:3], set())
        free = (one for one in names if selector._replace(name=one) not in self._selectors)
        return self._find_near(selector.name, (one for one in free if not (in_use and (kind, one) in self._names)))

    def _list_namespaces(self, selector: ResourceSelector) -> list[str]:
        """Return the namespaces that have what a selector without its namespace matches; of labels, in place of one without objects."""
        if selector.labels is None:
            return self._resources.list_namespaces(*selector[:2], selector.name)
        self._lookups += 1
        if self._lookups > _MAX_LOOKUPS or self._resources.has_objects(selector.namespace):
            return []
        anywhere, templates = selector._replace(namespace=""), self._templates.get(selector[:2], ())
        return sorted({one.key.namespace for one in templates if anywhere.selects(one, read_labels(one.body))} - {""})

    def _suggest_labels(self, selector: ResourceSelector, labels: Selector) -> str:
        """Return the label that objects have in place of one that none has."""
        labels_of = self._labels_by_namespace if selector.namespace else self._labels_anywhere
        known = labels_of.get((selector.api_version, selector.kind, selector.namespace), {})
        found = (self._suggest_label(selector.kind, requirement, known) for requirement in labels.requirements if known)
        return next(filter(None, found), "")

    @cached_property
    def _templates(self) -> Mapping[tuple[str, str], list[Document]]:
        """The objects by version and kind."""
        found: dict[tuple[str, str], list[Document]] = {}
        for template in self._list_templates():
            found.setdefault((template.api_version, template.key.kind), []).append(template)
        return found

    @cached_property
    def _labels_anywhere(self) -> KnownLabels:
        return self._list_labels(lambda _: "")

    @cached_property
    def _labels_by_namespace(self) -> KnownLabels:
        return self._list_labels(lambda own: own.namespace)

    def _list_labels(self, find_namespace: Callable[[Key], str]) -> KnownLabels:
        found: dict[tuple[str, str, str], dict[str, dict[str, Key]]] = {}
        for template in chain.from_iterable(self._templates.values()):
            own = template.key
            known = found.setdefault((template.api_version, own.kind, find_namespace(own)), {})
            for key, value in read_labels(template.body).items():
                values = known.setdefault(key, {})
                first = values.get(value)
                if first is None or own < first:
                    values[value] = own
        return found

    def _suggest_label(self, kind: str, requirement: Requirement, known: Mapping[str, Mapping[str, Key]]) -> str:
        key, values = requirement.key, known.get(requirement.key)
        if requirement.operator not in ("In", "Exists") or (
            values is not None and not values.keys().isdisjoint(requirement.values)
        ):
            return ""
        if values is None:
            near = self._find_near(key, (one for one in known if (kind, one, "") not in self._labels))
            return f"the label {near} of {min(known[near].values()).title}" if near else ""
        free = [one for one in values if (kind, key, one) not in self._labels]
        near = next(filter(None, (self._find_near(value, free) for value in requirement.values)), "")
        return f"{key}={near} of {values[near].title}" if near else ""

    def _find_near(self, name: str, known: Iterable[str]) -> str:
        self._lookups += 1
        return find_near(name, known) if self._lookups <= _MAX_LOOKUPS else ""


def _is_unrelated(selector: ResourceSelector, versions: Collection[str]) -> bool:
    """Return whether a kind is another one than that of the same name which exists in `versions`: custom resources often have the name of a
    built-in kind, such as Service or Ingress."""
    group, groups = parse_api_group(selector.api_version), {parse_api_group(version) for version in versions}
    if group in groups:
        return False
    if is_known_group(group):
        return not any(map(is_known_group, groups))
    built_in = load_built_in_kinds()
    misspelled = built_in.check_group((group, selector.api_version.rpartition("/")[2], selector.kind))
    return "." in group and not misspelled and not find_near(group, (one for one in groups if not is_known_group(one)))


def _describe_scope(policy: PropagationPolicy | OverridePolicy) -> str:
    return f"namespace {policy.key.namespace}" if policy.is_namespaced else "this repository"


def _describe_selected(selector: ResourceSelector, policy: PropagationPolicy | OverridePolicy) -> str:
    where = f"in namespace {selector.namespace}" if selector.namespace and not policy.is_namespaced else ""
    labels = ", ".join(map(format_requirement, selector.labels.requirements)) if selector.labels is not None else ""
    return " ".join(filter(None, (selector.kind, selector.name, f"with {labels}" if labels else "", where)))
