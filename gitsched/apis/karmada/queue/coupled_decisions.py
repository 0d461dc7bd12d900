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
    """Return whether what is placed counts for what is placed next, as the setting or the gate says. A cycle of Karmada's scheduler has the
    gate's own rules for that."""
    snapshot, settings = state.snapshot, state.settings
    is_on = settings.overcommit_protection or settings.gates.overcommit_protection
    return is_on and not (snapshot.single_cycle or snapshot.fixed)


def needs_queue(state: KarmadaState) -> bool:
    """Return whether the decision about one workload may depend on those about others of the same run, besides capacity."""
    gates = state.settings.gates
    if (gates.overcommit_protection and state.snapshot.single_cycle) or (gates.quota and list_quotas(state)):
        return True
    policies = state.policies.policies.values() if gates.workload_affinity else ()
    return any((policy.spec.get("placement") or {}).get("workloadAffinity") for policy in policies)
