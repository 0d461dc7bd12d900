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
from gitsched.named_tuples import NamedTuple

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
    by_title = {policy.key.title: policy for policy in index.policies.values()}
    idle = [policy.key for title, policy in by_title.items() if title not in applying]
    lost = _list_selected(index, idle, list_workloads()) if idle else {}
    for key, entries in sorted(lost.items()):
        if all(entry.title in by_title for entry in entries):
            yield from _describe(index.policies[key], entries, by_title, may_preempt)


def list_rivals(index: PolicyIndex, policy: Key, workloads: Iterable[tuple[Document, str]]) -> list[tuple[Key, str, str]]:
    """Return the objects that a policy selects and that another one applies to, each with the title of that one and why it applies."""
    selected = _list_selected(index, (policy,), (entry for entry in workloads if entry[1] != policy.title))
    return [
        (one.template.key, one.title, _describe_precedence(one.winning, one.rule) if one.winning is not None else "")
        for one in selected.get(policy, ())
    ]


class _Selected(NamedTuple):
    """An object that a policy selects, with the most specific selector that does; the title of the policy that applies to it, and the
    selector of that one, None if it selects the object no longer."""

    template: Document
    rule: SelectorRule
    title: str
    winning: SelectorRule | None


def _list_selected(
    index: PolicyIndex, policies: Collection[Key], workloads: Iterable[tuple[Document, str]]
) -> dict[Key, list[_Selected]]:
    """Return what each of some policies selects. The selectors that match an object are looked up once."""
    kinds = {(one.api_version, one.kind) for policy in policies for one in index.selectors[policy]}
    wanted = frozenset(policies)
    found: dict[Key, list[_Selected]] = {}
    for template, title in workloads:
        if (template.api_version, template.key.kind) not in kinds or is_skipped(template.key):
            continue
        rules = {rule.policy.key: rule for rule in reversed(index.list_matching_rules(template))}
        selecting = rules.keys() & wanted
        winning = next((rule for key, rule in rules.items() if key.title == title), None) if selecting else None
        for key in selecting:
            found.setdefault(key, []).append(_Selected(template, rules[key], title, winning))
    return found


def _describe(
    policy: PropagationPolicy, entries: list[_Selected], by_title: dict[str, PropagationPolicy], may_preempt: bool
) -> Iterator[Finding]:
    for template, rule, title, winning in sorted(entries, key=lambda entry: entry.template.key):
        winner = by_title[title]
        reason = _describe_precedence(winning, rule) if winning is not None else _NAME_FIRST
        if reason == _NAME_FIRST:
            continue
        counts = Counter(entry.title for entry in entries)
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
