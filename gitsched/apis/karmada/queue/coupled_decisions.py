"""Whether decisions about workloads depend on each other, so that they are made in the order of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.karmada.names import POLICY_GROUP, QUOTA

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState
    from gitsched.model.document import Document


def list_quotas(state: KarmadaState) -> tuple[Document, ...]:
    """Return the FederatedResourceQuotas of a commit."""
    return state.snapshot.documents.get((POLICY_GROUP, QUOTA), ())


def protects_capacity(state: KarmadaState) -> bool:
    """Return whether what is placed counts for what is placed next, as the setting says. A feature gate has other rules for that."""
    snapshot = state.snapshot
    return state.settings.overcommit_protection and not (snapshot.single_cycle or snapshot.fixed)


def needs_queue(state: KarmadaState) -> bool:
    """Return whether the decision about one workload may depend on those about others of the same run."""
    gates = state.settings.gates
    if gates.overcommit_protection or (gates.quota and list_quotas(state)):
        return True
    policies = state.policies.policies.values() if gates.workload_affinity else ()
    return any((policy.spec.get("placement") or {}).get("workloadAffinity") for policy in policies)
