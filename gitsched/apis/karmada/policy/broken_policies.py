"""Propagation and override policies that have errors and were never valid. New workloads that they select wait, in place of going where a
more general policy places them, or without what is overridden; those that a policy selected before which is gone stay where they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from gitsched.apis.karmada.overrides.override_policy import OVERRIDE_KINDS
from gitsched.apis.karmada.policy.propagation_policy import (
    PropagationPolicy,
    ResourceSelector,
    SelectorIndex,
    parse_resource_selector,
)
from gitsched.model.document import Body, Document, Key, as_object, get_field, list_objects, read_labels
from gitsched.model.finding import Location, locate_document
from gitsched.named_tuples import NamedTuple


class BrokenPolicy(NamedTuple):
    """What can be read of a broken policy."""

    key: Key
    priority: int
    selectors: tuple[ResourceSelector, ...]
    location: Location | None


class BrokenPolicies:
    """Selects as `PolicyIndex` and `OverrideIndex` do. What cannot be read of a selector does not restrict it."""

    def __init__(self, documents: Iterable[Document]) -> None:
        policies = list(map(_read_policy, documents))
        pairs = [(policy, selector) for policy in policies for selector in policy.selectors]
        self._policies = [policy for policy, _ in pairs]
        self._index = SelectorIndex((policy.key.namespace, selector) for policy, selector in pairs)
        self._unselective = [policy for policy in policies if policy.key[:2] in OVERRIDE_KINDS and not policy.selectors]

    def find(self, template: Document, matched: PropagationPolicy | None) -> Key | None:
        """Return a policy that would select a workload, and take precedence over the valid one that does; None if there is none."""
        rank = (matched.is_namespaced, matched.priority) if matched is not None else ()
        selecting = self._list_selecting(template)
        return next((one.key for one in selecting if (bool(one.key.namespace), one.priority) >= rank), None)

    def find_override(self, documents: Iterable[Document]) -> BrokenPolicy | None:
        """Return an override policy that would select one of some objects; None if there is none."""
        return next(chain.from_iterable(map(self._list_selecting, documents)), None)

    def _list_selecting(self, template: Document) -> Iterator[BrokenPolicy]:
        """Yield the policies that would select an object."""
        labels, scopes = read_labels(template.body), dict.fromkeys(("", template.key.namespace))
        parts = [part for scope in scopes for part in self._index.match(scope, template, labels)]
        yield from (self._policies[position] for position in sorted(chain.from_iterable(parts)))
        yield from (policy for policy in self._unselective if policy.key.namespace in scopes)


def _read_policy(document: Document) -> BrokenPolicy:
    priority = get_field(document.body, "spec", "priority")
    selectors = tuple(
        parse_resource_selector(_keep_readable(selector))
        for selector in list_objects(get_field(document.body, "spec", "resourceSelectors"))
    )
    return BrokenPolicy(document.key, priority if type(priority) is int else 0, selectors, locate_document(document))


def _keep_readable(selector: Body) -> Body:
    """Return a selector without labels that are no mapping of strings."""
    labels = as_object(selector.get("labelSelector")).get("matchLabels")
    kept = {name: value for name, value in selector.items() if name != "labelSelector"}
    if isinstance(labels, dict) and all(isinstance(value, str) for value in labels.values()):
        kept["labelSelector"] = {"matchLabels": labels}
    return kept
