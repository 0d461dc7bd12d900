"""Which policy governs a workload (spec/karmada.md §2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gitsched.apis.karmada.defaults import default
from gitsched.apis.karmada.names import POLICY
from gitsched.apis.karmada.placement import Placement, parse_placement, placement_json
from gitsched.apis.karmada.selectors import BY_NAME, ResourceSelector, parse_resource_selector
from gitsched.model.document import Body, Document, Key, member, text_map

_SKIPPED_NAMESPACE = re.compile(r"karmada-system|karmada-cluster|karmada-es-.*|kube-.*", re.ASCII)
_SKIPPED_TEMPLATE = ("ConfigMap", "kube-system", "extension-apiserver-authentication")


class Policy(NamedTuple):
    """A PropagationPolicy or ClusterPropagationPolicy, read once. `applied` is the JSON for the applied-placement annotation."""

    document: Document
    spec: Body
    priority: int
    placement: Placement
    applied: str

    @property
    def key(self) -> Key:
        return self.document.key

    @property
    def namespaced(self) -> bool:
        return self.key.kind == POLICY


class Rule(NamedTuple):
    """One resourceSelector of a policy."""

    policy: Policy
    selector: ResourceSelector

    @property
    def implicit(self) -> int:
        """How specific it is: 3 by name, 2 by labels, 1 for the kind."""
        return self.selector.implicit


def parse_policy(document: Document) -> Policy:
    """Read a policy whose document passed its schema and rules."""
    spec = default(document.body)["spec"]
    placement = spec.get("placement") or {}
    return Policy(document, spec, int(spec.get("priority") or 0), parse_placement(placement), placement_json(placement))


def is_skipped(template: Key) -> bool:
    """Whether Karmada's detector passes a workload over because of where it is."""
    if template.namespace and _SKIPPED_NAMESPACE.fullmatch(template.namespace):
        return True
    return (template.kind, template.namespace, template.name) == _SKIPPED_TEMPLATE


class PolicyIndex:
    """Policies by what they select, so that a workload is compared only with selectors of its own kind, and of its name or a label."""

    __slots__ = ("_general", "_labelled", "_named", "policies")

    def __init__(self, policies: Iterable[Policy]) -> None:
        self.policies = {policy.key: policy for policy in policies}
        self._named: dict[tuple[str, str, str, str], list[Rule]] = {}
        self._general: dict[tuple[str, str, str], list[Rule]] = {}
        self._labelled: dict[tuple[str, str, str], dict[str, dict[str, list[Rule]]]] = {}
        for policy in self.policies.values():
            for selector in policy.spec.get("resourceSelectors") or ():
                self._add(policy, selector)

    def match(self, template: Document) -> Policy | None:
        """The policy that wins a workload nobody has claimed.

        Policies of its own namespace come first; only when none selects it do cluster policies count. Among equals the higher
        priority wins, then the more specific selector, then the smaller name.
        """
        if is_skipped(template.key):
            return None
        scopes = (template.key.namespace, "") if template.key.namespace else ("",)
        for scope in scopes:
            best: dict[Key, Rule] = {}
            for rule in self._selecting(scope, template):
                known = best.get(rule.policy.key)
                if known is None or rule.implicit > known.implicit:
                    best[rule.policy.key] = rule
            if best:
                winner = min(best.values(), key=lambda rule: (-rule.policy.priority, -rule.implicit, rule.policy.key.name))
                return winner.policy
        return None

    def selects(self, policy: Policy, template: Document) -> bool:
        """Whether a policy still selects a workload that it claimed."""
        scope = policy.key.namespace
        return any(rule.policy.key == policy.key for rule in self._selecting(scope, template))

    def naming(self, template: Document) -> list[Policy]:
        """The policies that select a workload by its name."""
        scopes = (template.key.namespace, "") if template.key.namespace else ("",)
        rules = (rule for scope in scopes for rule in self._selecting(scope, template) if rule.implicit == BY_NAME)
        return list({rule.policy.key: rule.policy for rule in rules}.values())

    def candidates(self, template: Document) -> list[Rule]:
        """Every rule that selects a workload, for explain: winner's scope first."""
        scopes = (template.key.namespace, "") if template.key.namespace else ("",)
        rules = [rule for scope in scopes for rule in self._selecting(scope, template)]
        return sorted(rules, key=lambda r: (not r.policy.namespaced, -r.policy.priority, -r.implicit, r.policy.key.name))

    def _add(self, policy: Policy, selector: Body) -> None:
        rule = Rule(policy, parse_resource_selector(selector))
        scope, (api_version, kind, _, name, *_) = policy.key.namespace, rule.selector
        wanted = next((r for r in rule.selector.labels.requirements if r.operator == "In"), None) if rule.selector.labels else None
        if name:
            self._named.setdefault((scope, api_version, kind, name), []).append(rule)
        elif wanted is not None:
            values = self._labelled.setdefault((scope, api_version, kind), {}).setdefault(wanted.key, {})
            for value in dict.fromkeys(wanted.values):
                values.setdefault(value, []).append(rule)
        else:
            self._general.setdefault((scope, api_version, kind), []).append(rule)

    def _selecting(self, scope: str, template: Document) -> Iterator[Rule]:
        place = scope, template.api_version, template.key.kind
        rules = self._named.get((*place, template.key.name), []) + self._general.get(place, [])
        labelled = self._labelled.get(place)
        labels = text_map(member(template.body, "metadata", "labels")) if rules or labelled else {}
        for key, values in labelled.items() if labelled else ():
            rules += values.get(labels.get(key, ""), ())
        return (rule for rule in rules if rule.selector.selects(template.key.namespace, labels))
