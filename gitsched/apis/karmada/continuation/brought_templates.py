"""Whether other objects may bring along what a policy selects, so that a decision about it depends on more than its own document.

What an object without a policy depends on does not count, nor do priorities and the limits of autoscalers, which choose no cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.karmada.continuation.policy_changes import is_claimed
from gitsched.kinds.companion_targets import read_follows
from gitsched.model.document import Key
from gitsched.model.template_index import make_selectable

if TYPE_CHECKING:
    from gitsched.apis.capabilities import SnapshotChanges
    from gitsched.apis.karmada.dependencies.dependencies_distributor import DependenciesDistributor
    from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
    from gitsched.apis.karmada.state import KarmadaState


def may_bring_selected(
    distributor: DependenciesDistributor | None,
    states: tuple[KarmadaState, KarmadaState, KarmadaState],
    changes: SnapshotChanges,
) -> bool:
    """Return whether that may be so in one of two snapshots without records, before and after changes: too often rather than too rarely.

    `states` are those of the two snapshots, and of the later one with records. `distributor` is that of the last.
    """
    if len({state.brings_dependencies for state in states}) > 1:
        return True
    if distributor is None:
        return False
    documents = (one for pair in changes.api_documents.values() for one in pair if one is not None)
    if any(read_follows(one.body) is not None for one in documents):
        return True
    formerly_brought: set[Key] = set()
    for before, after in changes.templates.values():
        if before is not None and not distributor.relates_alike(before, after):
            reached = distributor.list_reached(before, states[0].snapshot.templates)
            if reached is None:
                return True
            formerly_brought |= reached
    recorded = states[2]
    by_title = {policy.key.title: policy for policy in recorded.policies.policies.values()}
    for key, entry in changes.template_index.items():
        template = make_selectable(key, entry)
        policies = [state.find_policy(template)[0] for state in states[:2]]
        if policies == [None, None]:
            continue
        if key in formerly_brought:
            return True
        known = by_title.get(entry.placement.policy) if is_claimed(entry.placement) and entry.placement is not None else None
        if known is None or known.is_lazy:
            known = recorded.find_policy(template, recorded.find_record(template))[0]
        if distributor.may_be_brought(key) or (not _brings(known) and any(map(_brings, policies))):
            return True
        if len({read_follows(policy.document.body) for policy in (*policies, known) if policy is not None}) > 1:
            return True
    return False


def _brings(policy: PropagationPolicy | None) -> bool:
    """Return whether a policy has propagateDeps."""
    return policy is not None and policy.spec.get("propagateDeps") is True
