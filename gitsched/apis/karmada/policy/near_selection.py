"""Say which policies nearly select a workload: all but one property of a selector match."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy, ResourceSelector, parse_resource_selector
from gitsched.model.changes import Cause
from gitsched.model.document import Document, Key, as_object, get_field, read_labels
from gitsched.model.explanation import NearSelection
from gitsched.model.finding import format_names, locate_document, locate_field
from gitsched.model.known_values import find_near
from gitsched.model.labels import format_requirement

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState
    from gitsched.model.finding import Finding

POLICY_SELECTS_NOTHING = "karmada-selects-nothing"
"""Code of the finding about selectors that match nothing."""
IF_REMOVED, AND_REMOVED = (f"{start} what it selected was removed, delete the policy" for start in (" If", "; if"))
"""The end of the message about a policy that selects nothing: what its selectors matched in earlier commits is not known."""
_WORKLOADS = ("cronjob", "daemonset", "deployment", "job", "statefulset")
"""Kinds of which an object is compared with the selectors of the others, if none of its own kind is near."""
KIND_SIMILARITY = 0.85
"""From which similarity on a kind is probably a misspelled one."""
_NAMESPACE = ("metadata", "namespace")
_MAX_RULES = 200
"""Selectors of one kind with which an object is compared."""
_MAX_LOOKUPS = 2_000
"""Names, namespaces and labels of objects that are compared with those in selectors."""


def describe_lost_selection(
    state: KarmadaState, policy: Key, workloads: Collection[Key], findings: Iterable[Finding]
) -> Cause | None:
    """Return why a policy probably no longer selects workloads by mistake; None for one that selects others, or that is gone, unless its
    namespace is wrong.

    `findings` are those about policies: a selector that matches nothing, and is similar to something, is one of them.
    """
    unmatched = [one for one in findings if one.code == POLICY_SELECTS_NOTHING and one.resource is not None]
    found = state.policies.policies.get(policy)
    if found is None:
        return _describe_wrong_namespace(state, policy, workloads, unmatched)
    misspelled = next((one for one in unmatched if one.resource == policy.resource), None)
    field = misspelled.field if misspelled is not None else None
    if misspelled is not None and misspelled.severity == "warning":
        return Cause(misspelled.message.removesuffix(IF_REMOVED), misspelled.location, field)
    if _selects_any(state, found):
        return None
    return Cause(f"{policy.title} selects nothing any more", locate_document(found.document), field)


def _describe_wrong_namespace(
    state: KarmadaState, policy: Key, workloads: Collection[Key], unmatched: Iterable[Finding]
) -> Cause | None:
    """Return that a policy which is gone is probably meant by one of the same name in another namespace: this one selects nothing there,
    and would select one of the workloads."""
    templates = [found for key in workloads if (found := state.snapshot.templates.get(key)) is not None]
    resources = (one.resource for one in unmatched if one.resource is not None)
    namespaces = dict.fromkeys(space for kind, space, name in resources if (kind, name) == (policy.kind, policy.name))
    for namespace in sorted(namespaces):
        other = state.policies.policies.get(policy._replace(namespace=namespace))
        if other is None or not namespace or not policy.namespace or _selects_any(state, other):
            continue
        selectors = [one._replace(namespace="") for one in map(parse_resource_selector, other.spec.get("resourceSelectors") or ())]
        if any(one.selects(template, read_labels(template.body)) for template in templates for one in selectors):
            text = f"{other.key.title} selects nothing; did you mean the namespace {policy.namespace}?"
            field = locate_field(other.document.origin, ("metadata", "namespace"))
            return Cause(text, locate_document(other.document), field)
    return None


def _selects_any(state: KarmadaState, policy: PropagationPolicy) -> bool:
    """Return whether a policy selects any object of the source."""
    return any(state.policies.selects(policy, template) for template in state.snapshot.templates.values())


def describe_near_selections(state: KarmadaState, templates: Iterable[Document]) -> Mapping[Key, NearSelection]:
    """Return for each object that a policy nearly selects which policy and why it does not."""
    return NearSelections(state.policies.policies.values(), state.snapshot.templates).describe_all(list(templates))


def _read_pod_labels(template: Document) -> Mapping[str, str]:
    """Return the labels that an object gives its pods."""
    spec = as_object(get_field(template.body, "spec"))
    pods = get_field(spec, "jobTemplate", "spec", "template") or get_field(spec, "template")
    return read_labels(as_object(pods))


def _has_namespace(template: Document) -> bool:
    """Return whether the document of an object names its namespace."""
    return bool(get_field(template.body, "metadata", "namespace"))


class NearSelections:
    """Compares objects that no policy selects with the selectors of all policies, of which each kind counts with at most 200. `existing`
    are the keys of all objects."""

    def __init__(self, policies: Iterable[PropagationPolicy], existing: Collection[Key] = ()) -> None:
        self._rules: dict[str, list[tuple[PropagationPolicy, ResourceSelector]]] = {}
        self._existing = existing
        self._misspelled: dict[str, list[str]] = {}
        self._lookups = 0
        for policy in policies:
            for selector in map(parse_resource_selector, policy.spec.get("resourceSelectors") or ()):
                rules = self._rules.setdefault(selector.kind.lower(), [])
                if len(rules) < _MAX_RULES:
                    rules.append((policy, selector))

    def describe_all(self, templates: Iterable[Document]) -> Mapping[Key, NearSelection]:
        """Return for each object that a policy nearly selects what the policy selects, and what the object has instead."""
        found = ((template.key, self._describe(template)) for template in templates)
        return {key: near for key, near in found if near is not None}

    def _describe(self, template: Document) -> NearSelection | None:
        kind = template.key.kind.lower()
        others = [other for other in _WORKLOADS if other != kind] if kind in _WORKLOADS else []
        kinds = ([kind, *self._find_misspelled(kind)], others)
        for compared in kinds:
            candidates = [
                (rank, policy.key, text, pointer, policy.document)
                for other in compared
                for policy, selector in self._rules.get(other, ())
                for rank, text, pointer in self._compare(policy, selector, template)
            ]
            if candidates:
                rank, policy_key, (selected, own), pointer, document = min(candidates, key=lambda one: one[:4])
                place = locate_document(document)
                where = f" ({place.text})" if place is not None else ""
                text = f"{policy_key.title} selects {selected}{where}"
                namespaces = {one[1].namespace for one in candidates if (one[0], one[3]) == (rank, _NAMESPACE)} - {""}
                if pointer == _NAMESPACE and len(namespaces) > 1 and not _has_namespace(template):  # it may belong to each of them
                    text = f"policies of namespace {format_names(sorted(namespaces))} select only what is there"
                return NearSelection(f"{text}; this one {own}", pointer)
        return None

    def _find_misspelled(self, kind: str) -> list[str]:
        """Return the kind of selectors that no object has, and that is probably a misspelled `kind`."""
        if kind not in self._misspelled:
            near = find_near(kind, self._rules.keys() - self._existing_kinds - {kind}, similarity=KIND_SIMILARITY)
            self._misspelled[kind] = [near] if near else []
        return self._misspelled[kind]

    @cached_property
    def _existing_kinds(self) -> frozenset[str]:
        return frozenset(key.kind.lower() for key in self._existing)

    @cached_property
    def _kinds_by_namespace(self) -> frozenset[tuple[str, str]]:
        return frozenset((key.kind, key.namespace) for key in self._existing)

    def _compare(
        self, policy: PropagationPolicy, selector: ResourceSelector, template: Document
    ) -> Iterator[tuple[int, tuple[str, str], tuple[str, ...]]]:
        """Yield the only difference between a selector and an object, as what the one selects and what the other is, with its rank and the
        field of the object. First are a kind, a label or a namespace that may be misspelt, then a version, a name, or a namespace without
        objects of the kind, other labels of a policy in the namespace of the object, another namespace, other labels, and other names."""
        key, labels = template.key, read_labels(template.body)
        kind = f"{key.kind} {selector.name}" if selector.name else key.kind
        namespace = selector.namespace or policy.key.namespace
        in_namespace = not key.namespace or namespace in ("", key.namespace)
        same_kind, is_other_kind = selector.kind == key.kind, selector.kind.lower() != key.kind.lower()
        same_version = is_other_kind or selector.api_version == template.api_version
        same_name = selector.name in ("", key.name)
        matches_labels = selector.labels is None or selector.labels.matches(labels)
        if selector.invalid or (in_namespace, same_kind, same_version, same_name, matches_labels).count(False) != 1:
            return
        if not same_kind:
            wanted = f"{selector.kind} {selector.name}".rstrip() if is_other_kind else f"the kind {selector.kind}"
            yield 0, (wanted, f"is a {key.kind}"), ("kind",)
        elif not in_namespace:
            rank = 0 if self._is_near(key.namespace, [namespace]) else 3
            if rank and self._existing and (key.kind, namespace) not in self._kinds_by_namespace:
                rank = 1
            own = f"is in {key.namespace}" if _has_namespace(template) else f"has no namespace, so that it is in {key.namespace}"
            yield rank, (f"{kind} in namespace {namespace}", own), _NAMESPACE
        elif not same_version:
            yield 1, (f"{kind} of {selector.api_version}", f"is of {template.api_version}"), ("apiVersion",)
        elif not matches_labels:
            rank = 2 if policy.key.namespace == key.namespace != "" else 4
            yield from self._compare_labels(kind, selector, labels, template, rank)
        else:
            rank = 1 if self._is_near(key.name, [selector.name]) else 5
            yield rank, (kind, f"is {key.name}"), ("metadata", "name")

    def _compare_labels(
        self, kind: str, selector: ResourceSelector, labels: Mapping[str, str], template: Document, rank: int
    ) -> Iterator[tuple[int, tuple[str, str], tuple[str, ...]]]:
        """Yield the first requirement on labels that an object does not meet, as `_compare` does; with this rank unless it may be
        misspelt."""
        requirements = selector.labels.requirements if selector.labels is not None else ()
        missed = next((entry for entry in requirements if not entry.matches(labels)), None)
        if missed is None:
            return
        own = f"{missed.key}={labels[missed.key]}" if missed.key in labels else f"no label {missed.key}"
        pod_labels = _read_pod_labels(template) if missed.key not in labels else {}
        if missed.key in pod_labels and missed.matches(pod_labels):
            own += f" in metadata.labels, only its pod template has {missed.key}={pod_labels[missed.key]}"
        field = ("metadata", "labels", missed.key) if missed.key in labels else ("metadata", "labels")
        value = labels.get(missed.key)
        is_near = self._is_near(missed.key, labels) if value is None else self._is_near(value, missed.values)
        yield 0 if is_near else rank, (f"{kind} with {format_requirement(missed)}", f"has {own}"), field

    def _is_near(self, text: str, known: Iterable[str]) -> bool:
        """Return whether a text may be one of the known ones that is misspelt; False after a number of lookups."""
        self._lookups += 1
        return self._lookups <= _MAX_LOOKUPS and bool(find_near(text, list(known)))
