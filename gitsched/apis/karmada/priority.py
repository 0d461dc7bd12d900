"""schedulePriority: the number that a PriorityClass stands for (spec/karmada.md §2).

It orders upstream's queue and nothing else; here every decision is made in one run and none waits for another, so that it only appears
in the binding.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.karmada.policy import Policy
from gitsched.model.document import Body, Document, Key, member

GROUP, KIND = "scheduling.k8s.io", "PriorityClass"
_BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The classes that every API server has."""


def asked_class(policy: Policy) -> str:
    """The name of the PriorityClass that a policy asks for, or ""."""
    return str(member(policy.spec, "schedulePriority", "priorityClassName") or "")


def class_key(name: str) -> Key:
    """The identity of a PriorityClass."""
    return Key(GROUP, KIND, "", name)


def read_priority(policy: Policy, templates: Mapping[Key, Document]) -> Body | None:
    """What the binding shows; None where the policy asks for nothing, or for a class that nobody knows."""
    name = asked_class(policy)
    if not name:
        shown = policy.spec.get("schedulePriority")  # a Lazy policy's, taken from the binding
        return dict(shown) if isinstance(shown, dict) else None
    value = read_value(name, templates)
    return None if value is None else {"priority": value} if value else {}


def read_value(name: str, templates: Mapping[Key, Document]) -> int | None:
    """The number that a class stands for; None for one that is not there, or has none."""
    template = templates.get(class_key(name))
    value = member(template.body, "value") if template is not None else _BUILT_IN.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
