"""Whether other objects may bring along what a policy selects, so that a decision about it depends on more than its own document.

What an object without a policy depends on does not count, nor do priorities and the limits of autoscalers, which choose no cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.karmada.continuation.policy_changes import make_selectable
from gitsched.kinds.companion_targets import read_follows

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
    if not all(distributor.relates_alike(*pair) for pair in changes.templates.values()):
        return True
    recorded = states[2]
    for key, entry in changes.template_index.items():
        template = make_selectable(key, entry)
        policies = [state.find_policy(template)[0] for state in states[:2]]
        if policies == [None, None]:
            continue
        policies.append(recorded.find_policy(template, recorded.find_record(template))[0])
        if distributor.may_be_brought(key) or len({_brings(policy) for policy in policies}) > 1:
            return True
    return False


def _brings(policy: PropagationPolicy | None) -> tuple[bool, bool | None]:
    """Return whether a policy has propagateDeps, and what it says about companions that follow."""
    return (policy.spec.get("propagateDeps") is True, read_follows(policy.document.body)) if policy is not None else (False, None)
