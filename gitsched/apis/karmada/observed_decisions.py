"""Which bindings only observations or time can have changed: facts about clusters, and the timers of fail-back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.resource_binding import (
    PLACEMENT_CHANGED,
    REPLICAS_CHANGED,
    find_schedule_trigger,
    is_rebalance_pending,
)

if TYPE_CHECKING:
    from gitsched.apis.karmada.dependencies.attached_binding import Attachment
    from gitsched.apis.karmada.state import KarmadaState
    from gitsched.model.document import Document, Key
    from gitsched.model.source_edits import SourceEdits

_OWN_KINDS: Final = (
    (names.POLICY_GROUP, names.POLICY),
    (names.POLICY_GROUP, names.CLUSTER_POLICY),
    (names.POLICY_GROUP, names.OVERRIDE),
    (names.POLICY_GROUP, names.CLUSTER_OVERRIDE),
    (names.APPS_GROUP, names.REBALANCER),
    *names.RECORD_KINDS,
)
"""Kinds of documents whose effect on a binding its record shows: another placement, or a requested rebalance."""


def list_observed_decisions(
    state: KarmadaState, find_attachment: Callable[[Document], Attachment | None], template: Document, edits: SourceEdits
) -> frozenset[Key]:
    """Return the workloads whose bindings decide where one goes: its own binding, and those of its dependents. Return an empty set if an
    edit or a request may have changed one of them."""
    if edits.may_change_rules(names.GROUPS, _OWN_KINDS):
        return frozenset()
    decisions: set[Key] = set()
    pending, seen = [template], {template.key}
    while pending:
        one = pending.pop()
        attachment, record = find_attachment(one), state.find_record(one)
        policy, _ = state.find_policy(one, record)
        if edits.has(one) or record is None or (policy is None and attachment is None):
            return frozenset()
        if policy is not None:
            previous = state.read_previous(one, record)
            trigger = find_schedule_trigger(
                policy, state.read_requirements(one), previous, previous.clusters, state.leaving_clusters
            )
            if trigger in (PLACEMENT_CHANGED, REPLICAS_CHANGED) or is_rebalance_pending(previous):
                return frozenset()
            decisions.add(one.key)
        for dependent in attachment.dependents if attachment is not None else ():
            document = state.snapshot.templates.get(dependent.key)
            if document is None:
                return frozenset()
            if dependent.key not in seen:
                seen.add(dependent.key)
                pending.append(document)
    return frozenset(decisions)
