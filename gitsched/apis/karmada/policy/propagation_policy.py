"""PropagationPolicy and ClusterPropagationPolicy: which policy applies to a workload, with preemption, lazy activation and
schedulePriority."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from gitsched.apis.karmada.defaulting import apply_defaults
from gitsched.apis.karmada.names import POLICY
from gitsched.apis.karmada.policy.placement import PolicyPlacement, parse_placement, serialize_placement
from gitsched.model.document import Body, Document, Key, as_string_map, get_field
from gitsched.model.finding import Finding, locate_document
from gitsched.model.labels import Selector, parse_selector

BY_KIND, BY_LABELS, BY_NAME = 1, 2, 3
"""How specific a selector is: the implicit priority of what it selects."""


class ResourceSelector(NamedTuple):
    """`labels` None matches all; `namespace` and `name` are "" where any will do. An `invalid` one selects nothing."""

    api_version: str
    kind: str
    namespace: str
    name: str
    implicit_priority: int
    labels: Selector | None
    invalid: bool

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether it selects an object that already has its apiVersion, kind and, where it gives one, name."""
        if self.invalid or (self.namespace and self.namespace != namespace):
            return False
        return self.labels is None or self.labels.matches(labels)


def parse_resource_selector(body: Body) -> ResourceSelector:
    """Read one resourceSelector; labels beside a name are ignored."""
    api_version, kind, namespace, name = (str(body.get(part) or "") for part in ("apiVersion", "kind", "namespace", "name"))
    labels = body.get("labelSelector")
    implicit = BY_NAME if name else BY_KIND if labels is None else BY_LABELS
    parsed = parse_selector(labels) if implicit == BY_LABELS else None
    return ResourceSelector(api_version, kind, namespace, name, implicit, parsed, implicit == BY_LABELS and parsed is None)


_SKIPPED_NAMESPACE = re.compile(r"karmada-system|karmada-cluster|karmada-es-.*|kube-.*", re.ASCII)
_SKIPPED_TEMPLATE = ("ConfigMap", "kube-system", "extension-apiserver-authentication")


class PropagationPolicy(NamedTuple):
    """A PropagationPolicy or ClusterPropagationPolicy, read once. `applied` is the JSON for the applied-placement annotation."""

    document: Document
    spec: Body
    priority: int
    placement: PolicyPlacement
    applied_placement: str

    @property
    def key(self) -> Key:
        return self.document.key

    @property
    def is_namespaced(self) -> bool:
        return self.key.kind == POLICY


class SelectorRule(NamedTuple):
    """One resourceSelector of a policy."""

    policy: PropagationPolicy
    selector: ResourceSelector

    @property
    def implicit_priority(self) -> int:
        """How specific it is: 3 by name, 2 by labels, 1 for the kind."""
        return self.selector.implicit_priority


def parse_policy(document: Document) -> PropagationPolicy:
    """Read a policy whose document passed its schema and rules."""
    spec = apply_defaults(document.body)["spec"]
    placement = spec.get("placement") or {}
    return PropagationPolicy(
        document, spec, int(spec.get("priority") or 0), parse_placement(placement), serialize_placement(placement)
    )


def is_skipped(template: Key) -> bool:
    """Whether Karmada's detector passes a workload over because of where it is."""
    if template.namespace and _SKIPPED_NAMESPACE.fullmatch(template.namespace):
        return True
    return (template.kind, template.namespace, template.name) == _SKIPPED_TEMPLATE


class PolicyIndex:
    """Policies by what they select, so that a workload is compared only with selectors of its own kind, and of its name or a label."""

    __slots__ = ("_general", "_labelled", "_named", "policies")

    def __init__(self, policies: Iterable[PropagationPolicy]) -> None:
        self.policies = {policy.key: policy for policy in policies}
        self._named: dict[tuple[str, str, str, str], list[SelectorRule]] = {}
        self._general: dict[tuple[str, str, str], list[SelectorRule]] = {}
        self._labelled: dict[tuple[str, str, str], dict[str, dict[str, list[SelectorRule]]]] = {}
        for policy in self.policies.values():
            for selector in policy.spec.get("resourceSelectors") or ():
                self._add(policy, selector)

    def match(self, template: Document) -> PropagationPolicy | None:
        """The policy that wins a workload nobody has claimed.

        Policies of its own namespace come first; only when none selects it do cluster policies count. Among equals the higher
        priority wins, then the more specific selector, then the smaller name.
        """
        if is_skipped(template.key):
            return None
        scopes = (template.key.namespace, "") if template.key.namespace else ("",)
        for scope in scopes:
            best: dict[Key, SelectorRule] = {}
            for rule in self._list_rules(scope, template):
                known = best.get(rule.policy.key)
                if known is None or rule.implicit_priority > known.implicit_priority:
                    best[rule.policy.key] = rule
            if best:
                winner = min(best.values(), key=lambda rule: (-rule.policy.priority, -rule.implicit_priority, rule.policy.key.name))
                return winner.policy
        return None

    def selects(self, policy: PropagationPolicy, template: Document) -> bool:
        """Whether a policy still selects a workload that it claimed."""
        scope = policy.key.namespace
        return any(rule.policy.key == policy.key for rule in self._list_rules(scope, template))

    def list_policies_by_name(self, template: Document) -> list[PropagationPolicy]:
        """The policies that select a workload by its name."""
        scopes = (template.key.namespace, "") if template.key.namespace else ("",)
        rules = (rule for scope in scopes for rule in self._list_rules(scope, template) if rule.implicit_priority == BY_NAME)
        return list({rule.policy.key: rule.policy for rule in rules}.values())

    def list_matching_rules(self, template: Document) -> list[SelectorRule]:
        """Every rule that selects a workload, for explain: winner's scope first."""
        scopes = (template.key.namespace, "") if template.key.namespace else ("",)
        rules = [rule for scope in scopes for rule in self._list_rules(scope, template)]
        return sorted(
            rules, key=lambda r: (not r.policy.is_namespaced, -r.policy.priority, -r.implicit_priority, r.policy.key.name)
        )

    def _add(self, policy: PropagationPolicy, selector: Body) -> None:
        rule = SelectorRule(policy, parse_resource_selector(selector))
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

    def _list_rules(self, scope: str, template: Document) -> Iterator[SelectorRule]:
        place = scope, template.api_version, template.key.kind
        rules = self._named.get((*place, template.key.name), []) + self._general.get(place, [])
        labelled = self._labelled.get(place)
        labels = as_string_map(get_field(template.body, "metadata", "labels")) if rules or labelled else {}
        for key, values in labelled.items() if labelled else ():
            rules += values.get(labels.get(key, ""), ())
        return (rule for rule in rules if rule.selector.selects(template.key.namespace, labels))


def find_preempting_policy(claimed: PropagationPolicy, naming: Iterable[PropagationPolicy]) -> PropagationPolicy:
    """Who governs a workload that a policy has claimed: the one that preempts it, else the claimer itself.

    `naming` are the policies that select it by name. Of several that may preempt the highest priority wins, then the first name.
    """
    rivals = [policy for policy in naming if _may_preempt(policy, claimed)]
    return min(rivals, key=lambda policy: (not policy.is_namespaced, -policy.priority, policy.key.name), default=claimed)


def find_disabled_preemption(policies: Iterable[PropagationPolicy], enabled: bool) -> list[Finding]:
    """Policies that ask for preemption while nothing allows it."""
    return [
        Finding(
            "info",
            "karmada-preemption-off",
            f"{policy.key.title} asks for preemption, which has no effect: karmada.preemption is not true in gitsched.yaml",
            locate_document(policy.document),
            policy.key.resource,
        )
        for policy in policies
        if not enabled and policy.spec.get("preemption") == "Always"
    ]


def _may_preempt(policy: PropagationPolicy, claimed: PropagationPolicy) -> bool:
    if policy.spec.get("preemption") != "Always" or policy.key == claimed.key:
        return False
    if policy.is_namespaced != claimed.is_namespaced:
        return policy.is_namespaced
    return policy.priority > claimed.priority


TEMPLATE_DIGEST = "gitsched.io/template-digest"
"""On a binding whose policy is Lazy: the digest of the manifest for which the policy was last applied."""
_BINDING_FIELDS = (
    "schedulerName",
    "propagateDeps",
    "failover",
    "conflictResolution",
    "preserveResourcesOnDeletion",
    "schedulePriority",
)
_CLAIM_PREFIXES = ("policy.karmada.io", "propagationpolicy.karmada.io", "clusterpropagationpolicy.karmada.io")
_SERVER_OWNED = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink")


def is_lazy(policy: PropagationPolicy) -> bool:
    """Whether edits of a policy wait for edits of its workloads."""
    return policy.spec.get("activationPreference") == "Lazy"


def digest_template(template: Document) -> str:
    """SHA-256, in hex, of what people write in a manifest: without status, server-made metadata, and Karmada's own marks."""
    body = {name: value for name, value in template.body.items() if name != "status"}
    metadata = {name: value for name, value in (body.get("metadata") or {}).items() if name not in _SERVER_OWNED}
    for marks in ("labels", "annotations"):
        kept = {name: text for name, text in as_string_map(metadata.pop(marks, None)).items() if not _is_claim_label(name)}
        if kept:
            metadata[marks] = kept
    text = json.dumps({**body, "metadata": metadata}, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_activation_pending(policy: PropagationPolicy, template: Document, binding: Body | None) -> bool:
    """Whether a policy counts for a workload only as the binding has it: it is Lazy, and the workload was not edited since."""
    if not is_lazy(policy) or not isinstance(get_field(binding or {}, "spec", "placement"), dict):
        return False
    noted = as_string_map(get_field(binding or {}, "metadata", "annotations")).get(TEMPLATE_DIGEST)
    return noted is None or noted == digest_template(template)


def apply_activation_preference(policy: PropagationPolicy, template: Document, binding: Body | None) -> PropagationPolicy:
    """The policy as it counts for a workload: itself, or what the binding has of it while a Lazy one waits for an edit.

    A workload without a binding is bound at once: nobody can know whether it or the policy came first. A binding without a digest was
    written before the policy turned Lazy, which is an edit of the policy like any other.
    """
    if binding is None or not is_activation_pending(policy, template, binding):
        return policy
    own: Body = binding["spec"]
    placement: Body = own["placement"]
    spec = {name: value for name, value in policy.spec.items() if name not in (*_BINDING_FIELDS, "placement", "suspension")}
    spec |= {name: own[name] for name in _BINDING_FIELDS if name in own}
    suspension = {name: value for name, value in (own.get("suspension") or {}).items() if name != "scheduling"}
    applied = serialize_placement(placement)
    more = {"placement": placement, **({"suspension": suspension} if suspension else {})}
    return policy._replace(spec={**spec, **more}, placement=_parse_applied_placement(applied), applied_placement=applied)


@lru_cache(maxsize=1 << 10)
def _parse_applied_placement(applied: str) -> PolicyPlacement:
    placement: Any = json.loads(applied)
    return parse_placement(placement)


def _is_claim_label(name: str) -> bool:
    """Whether a label or annotation is Karmada's own note of who claimed the workload."""
    return name.partition("/")[0] in _CLAIM_PREFIXES


PRIORITY_CLASS_GROUP, PRIORITY_CLASS_KIND = "scheduling.k8s.io", "PriorityClass"
_SYSTEM_PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The classes that every API server has."""


def read_priority_class_name(policy: PropagationPolicy) -> str:
    """The name of the PriorityClass that a policy asks for, or ""."""
    return str(get_field(policy.spec, "schedulePriority", "priorityClassName") or "")


def priority_class_key(name: str) -> Key:
    """The identity of a PriorityClass."""
    return Key(PRIORITY_CLASS_GROUP, PRIORITY_CLASS_KIND, "", name)


def read_schedule_priority(policy: PropagationPolicy, templates: Mapping[Key, Document]) -> Body | None:
    """What the binding shows; None where the policy asks for nothing, or for a class that nobody knows."""
    name = read_priority_class_name(policy)
    if not name:
        shown = policy.spec.get("schedulePriority")  # a Lazy policy's, taken from the binding
        return dict(shown) if isinstance(shown, dict) else None
    value = read_priority_value(name, templates)
    return None if value is None else {"priority": value} if value else {}


def read_priority_value(name: str, templates: Mapping[Key, Document]) -> int | None:
    """The number that a class stands for; None for one that is not there, or has none."""
    template = templates.get(priority_class_key(name))
    value = get_field(template.body, "value") if template is not None else _SYSTEM_PRIORITY_CLASSES.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
