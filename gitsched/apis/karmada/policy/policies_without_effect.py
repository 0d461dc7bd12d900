"""Policies that apply to nothing, because other policies apply to all that they select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from gitsched.apis.karmada.policy.policy_options import describe_takeover
from gitsched.apis.karmada.policy.propagation_policy import (
    BY_KIND,
    BY_LABELS,
    BY_NAME,
    PolicyIndex,
    PropagationPolicy,
    SelectorRule,
    is_skipped,
)
from gitsched.model.document import Document, Key
from gitsched.model.finding import WITHOUT_EFFECT, Finding, Severity, format_count, locate_document

_NAME_FIRST = "its name comes first"
_HOW = {BY_KIND: "kind", BY_LABELS: "labels", BY_NAME: "name"}


def find_policies_without_effect(
    index: PolicyIndex,
    applying: Collection[str],
    list_workloads: Callable[[], Iterable[tuple[Document, str]]],
    may_preempt: bool,
) -> Iterator[Finding]:
    """Yield a finding for each policy that selects objects, all of which other policies apply to. It is a warning if a policy with a lower
    priority does. Where nothing but names decides, `karmada-policies-equal` says so.

    `applying` are the titles of the policies that apply to anything. `list_workloads` returns all objects, each with the title of the
    policy that applies to it, or "" if that is not known. `may_preempt`: the settings let policies preempt others.
    """
    idle = PolicyIndex(policy for policy in index.policies.values() if policy.key.title not in applying)
    if not idle.policies:
        return
    by_title = {policy.key.title: policy for policy in index.policies.values()}
    lost = _list_selected(idle, list_workloads())
    for key, entries in sorted(lost.items()):
        if all(title in by_title for _, _, title in entries):
            yield from _describe(idle.policies[key], entries, by_title, index, may_preempt)


def list_rivals(index: PolicyIndex, policy: Key, workloads: Iterable[tuple[Document, str]]) -> list[tuple[Key, str, str]]:
    """Return the objects that a policy selects and that another one applies to, each with the title of that one and why it applies."""
    title = policy.title
    selected = _list_selected(PolicyIndex((index.policies[policy],)), (entry for entry in workloads if entry[1] != title))
    by_title = {one.key.title: one.key for one in index.policies.values()}
    found = []
    for template, rule, other in selected.get(policy, ()):
        winning = _find_rule(index, template, by_title[other]) if other in by_title else None
        found.append((template.key, other, _describe_precedence(winning, rule) if winning is not None else ""))
    return found


def _find_rule(index: PolicyIndex, template: Document, policy: Key) -> SelectorRule | None:
    """Return the most specific selector with which a policy selects an object; None if it does not any more."""
    return next((rule for rule in index.list_matching_rules(template) if rule.policy.key == policy), None)


def _list_selected(
    index: PolicyIndex, workloads: Iterable[tuple[Document, str]]
) -> dict[Key, list[tuple[Document, SelectorRule, str]]]:
    """Return what each policy of an index selects: the object, the most specific selector, and the title of the policy that applies."""
    kinds = {(one.api_version, one.kind) for selectors in index.selectors.values() for one in selectors}
    found: dict[Key, list[tuple[Document, SelectorRule, str]]] = {}
    for template, title in workloads:
        if (template.api_version, template.key.kind) not in kinds or is_skipped(template.key):
            continue
        rules = {rule.policy.key: rule for rule in reversed(index.list_matching_rules(template))}
        for key, rule in rules.items():
            found.setdefault(key, []).append((template, rule, title))
    return found


def _describe(
    policy: PropagationPolicy,
    entries: list[tuple[Document, SelectorRule, str]],
    by_title: dict[str, PropagationPolicy],
    index: PolicyIndex,
    may_preempt: bool,
) -> Iterator[Finding]:
    for template, rule, title in sorted(entries, key=lambda entry: entry[0].key):
        winner = by_title[title]
        winning = _find_rule(index, template, winner.key)
        reason = _describe_precedence(winning, rule) if winning is not None else _NAME_FIRST
        if reason == _NAME_FIRST:
            continue
        counts = Counter(found for _, _, found in entries)
        origin = winner.document.origin
        place = f" ({origin.path}:{origin.line})" if origin is not None else ""
        others = f" and {format_count(len(counts) - 1, 'more policy', 'more policies')} apply" if len(counts) > 1 else " applies"
        cure = describe_takeover(policy, winner, by_name=rule.implicit_priority == BY_NAME, enabled=may_preempt)
        which = (
            f"applies to none of the {format_count(len(entries), 'object')}"
            if len(entries) > 1
            else "does not apply to the one object"
        )
        message = (
            f"{policy.key.title} {which} that it selects: "
            f"{title}{place}{others} instead, to {template.key.title} because {reason}; {cure}"
        )
        severity: Severity = "warning" if policy.priority > winner.priority else "info"
        yield Finding(severity, WITHOUT_EFFECT, message, locate_document(policy.document), policy.key.resource)
        return


def _describe_precedence(winning: SelectorRule, rule: SelectorRule) -> str:
    """Return why the rule of one policy applies to an object that the rule of another policy selects, too."""
    winner, policy = winning.policy, rule.policy
    if winner.is_namespaced != policy.is_namespaced:
        if winner.is_namespaced:
            return "a PropagationPolicy takes precedence over a ClusterPropagationPolicy, whatever their priorities"
    elif winner.priority > policy.priority:
        return f"its priority is {winner.priority} and not {policy.priority}"
    elif winner.priority == policy.priority:
        if winning.implicit_priority > rule.implicit_priority:
            return (
                f"it selects by {_HOW[winning.implicit_priority]} and not by {_HOW[rule.implicit_priority]}, with the same priority"
            )
        if winning.implicit_priority == rule.implicit_priority and winner.key.name < policy.key.name:
            return _NAME_FIRST
    return "it has claimed the object before, and a claim stays"
