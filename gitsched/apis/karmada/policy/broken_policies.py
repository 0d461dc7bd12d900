"""Policies that have errors and were never valid. New workloads that they select wait, in place of going where a more general policy places
them; those that a policy selected before which is gone stay where they are."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from gitsched.apis.karmada.policy.propagation_policy import (
    PropagationPolicy,
    ResourceSelector,
    SelectorIndex,
    parse_resource_selector,
)
from gitsched.model.document import Body, Document, Key, as_object, get_field, list_objects, read_labels
from gitsched.named_tuples import NamedTuple


class _BrokenPolicy(NamedTuple):
    """What can be read of a broken policy."""

    key: Key
    priority: int
    selectors: tuple[ResourceSelector, ...]


class BrokenPolicies:
    """Selects as `PolicyIndex` does. What cannot be read of a selector does not restrict it."""

    def __init__(self, documents: Iterable[Document]) -> None:
        pairs = [(policy, selector) for policy in map(_read_policy, documents) for selector in policy.selectors]
        self._policies = [policy for policy, _ in pairs]
        self._index = SelectorIndex((policy.key.namespace, selector) for policy, selector in pairs)

    def find(self, template: Document, matched: PropagationPolicy | None) -> Key | None:
        """Return a policy that would select a workload, and take precedence over the valid one that does; None if there is none."""
        labels = read_labels(template.body)
        rank = (matched.is_namespaced, matched.priority) if matched is not None else ()
        parts = [
            part for scope in dict.fromkeys(("", template.key.namespace)) for part in self._index.match(scope, template, labels)
        ]
        selecting = (self._policies[position] for position in sorted(chain.from_iterable(parts)))
        return next((one.key for one in selecting if (bool(one.key.namespace), one.priority) >= rank), None)


def _read_policy(document: Document) -> _BrokenPolicy:
    priority = get_field(document.body, "spec", "priority")
    selectors = tuple(
        parse_resource_selector(_keep_readable(selector))
        for selector in list_objects(get_field(document.body, "spec", "resourceSelectors"))
    )
    return _BrokenPolicy(document.key, priority if type(priority) is int else 0, selectors)


def _keep_readable(selector: Body) -> Body:
    """Return a selector without labels that are no mapping of strings."""
    labels = as_object(selector.get("labelSelector")).get("matchLabels")
    kept = {name: value for name, value in selector.items() if name != "labelSelector"}
    if isinstance(labels, dict) and all(isinstance(value, str) for value in labels.values()):
        kept["labelSelector"] = {"matchLabels": labels}
    return kept
