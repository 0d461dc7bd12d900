"""Policies of the same rank that select the same objects, so that only their names decide which one applies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from gitsched.apis.karmada.policy.propagation_policy import (
    BY_KIND,
    BY_LABELS,
    BY_NAME,
    PolicyIndex,
    PropagationPolicy,
    ResourceSelector,
    SelectorRule,
    is_skipped,
)
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, format_count, format_names, locate_document, locate_field

PolicySelectors = Sequence[tuple[PropagationPolicy, Sequence[ResourceSelector]]]
"""Policies with their selectors."""
POLICIES_EQUAL = "karmada-policies-equal"
_EQUAL_SHOWN = 3
_MAX_COMPARED = 8
"""Rules that select an object that are compared with the first one."""
_RANKS = {BY_KIND: "by kind", BY_LABELS: "by labels", BY_NAME: "by name"}

_Rank = tuple[str, str, int, int, str, str, str]
"""Kind and namespace of policies, priority, how specific a selector is, and what it selects: apiVersion, kind and name."""


def find_equal_policies(
    policies: PolicySelectors, index: PolicyIndex, list_templates: Callable[[], Iterable[Document]]
) -> Iterator[Finding]:
    """Yield one note for each policy and another one that applies instead of it because of its name alone: equal selectors, and different
    ones that select the same object. Where priority, scope or a more specific selector decides, that is on purpose."""
    known = set()
    for loser, winner, finding in _find_equal_selectors(policies):
        known.add((loser, winner))
        yield finding
    yield from _find_overlaps(policies, index, list_templates, known)


def _find_equal_selectors(policies: PolicySelectors) -> Iterator[tuple[Key, Key, Finding]]:
    first: dict[tuple[str, str, int, ResourceSelector], PropagationPolicy] = {}
    for policy, selectors in sorted(policies, key=lambda entry: entry[0].key):
        found: dict[Key, list[tuple[int, ResourceSelector]]] = {}
        for position, selector in enumerate(selectors):
            if selector.invalid:
                continue
            winner = first.setdefault((policy.key.kind, policy.key.namespace, policy.priority, selector), policy)
            if winner.key != policy.key:
                found.setdefault(winner.key, []).append((position, selector))
        for winner_key, equal in found.items():
            names = list(dict.fromkeys(_describe_selected(selector) for _, selector in equal))
            yield policy.key, winner_key, _make_finding(policy, winner_key, format_names(names, _EQUAL_SHOWN), "", equal[0][0])


def _find_overlaps(
    policies: PolicySelectors, index: PolicyIndex, list_templates: Callable[[], Iterable[Document]], known: set[tuple[Key, Key]]
) -> Iterator[Finding]:
    """Yield a note for policies with different selectors, from the objects that both select, unless a note is `known`."""
    kinds = {rank[4:6] for rank in _list_contested_ranks(policies)}
    if not kinds:
        return
    first: dict[tuple[Key, Key], tuple[Document, SelectorRule]] = {}
    counts: Counter[tuple[Key, Key]] = Counter()
    for template in list_templates():
        if (template.api_version, template.key.kind) not in kinds or is_skipped(template.key):
            continue
        rules = index.list_matching_rules(template, _MAX_COMPARED)
        rivals = {rule.policy.key: rule for rule in reversed(rules[1:]) if _rank(rule) == _rank(rules[0])}
        for key, rule in rivals.items():
            pair = key, rules[0].policy.key
            if key != pair[1] and pair not in known:
                counts[pair] += 1
                if pair not in first or template.key < first[pair][0].key:
                    first[pair] = template, rule
    selectors = {policy.key: listed for policy, listed in policies}
    for (loser, winner), (template, rule) in sorted(first.items(), key=lambda entry: entry[0]):
        more = counts[loser, winner] - 1
        objects = template.key.title + (f" and {format_count(more, 'more object')}" if more else "")
        how = f" {_RANKS[rule.implicit_priority]}"
        yield _make_finding(rule.policy, winner, objects, how, selectors[loser].index(rule.selector))


def _rank(rule: SelectorRule) -> tuple[bool, int, int]:
    return rule.policy.is_namespaced, rule.policy.priority, rule.implicit_priority


def _list_contested_ranks(policies: PolicySelectors) -> Iterator[_Rank]:
    """Yield the ranks at which different selectors of several policies may select the same object."""
    ranks: dict[_Rank, list[tuple[Key, ResourceSelector]]] = {}
    for policy, selectors in policies:
        key = policy.key
        for one in selectors:
            if not one.invalid:
                rank = (key.kind, key.namespace, policy.priority, one.implicit_priority, one.api_version, one.kind, one.name)
                ranks.setdefault(rank, []).append((key, one))
    for rank, entries in ranks.items():
        everywhere = {key for key, selector in entries if not selector.namespace}
        namespaces = {(key, selector.namespace) for key, selector in entries}
        counts = Counter(namespace for _, namespace in namespaces)
        is_contested = len({key for key, _ in entries}) > 1 and len({selector for _, selector in entries}) > 1
        may_meet = is_contested and (everywhere or max(counts.values()) > 1)
        if may_meet and (rank[3] != BY_LABELS or not _are_disjoint([selector for _, selector in entries])):
            yield rank


def _are_disjoint(selectors: Sequence[ResourceSelector]) -> bool:
    """Return whether selectors of labels have a label in common that each of them wants with other values."""
    wanted = [
        {one.key: one.values for one in selector.labels.requirements if one.operator == "In"}
        for selector in selectors
        if selector.labels is not None
    ]
    common = set(wanted[0]).intersection(*wanted[1:]) if wanted else set()
    return any(max(Counter(value for each in wanted for value in each[key]).values()) == 1 for key in common)


def _make_finding(policy: PropagationPolicy, winner: Key, objects: str, how: str, position: int) -> Finding:
    name, first = policy.key.title, winner.title
    message = (
        f"{name} and {first} both select {objects}{how} with priority {policy.priority}: {first} applies, because its name comes first, "
        f"and {name} only keeps what it had before; remove one of the selectors, or set spec.priority"
    )
    document = policy.document
    pointer = ("spec", "resourceSelectors", position)
    field = locate_field(document.origin, pointer)
    return Finding("info", POLICIES_EQUAL, message, locate_document(document), policy.key.resource, field=field)


def _describe_selected(selector: ResourceSelector) -> str:
    name = "/".join(filter(None, (selector.namespace, selector.name)))
    return f"{selector.kind} {name}" if selector.name else f"{selector.kind} objects"
