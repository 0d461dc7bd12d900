"""What findings say of a workload that is not placed, or only in part."""

from __future__ import annotations

from gitsched.apis.karmada.binding.resource_binding import ScheduleResult
from gitsched.apis.karmada.interpreter import ReplicaRequirements
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Document
from gitsched.model.finding import Finding, Severity, format_part, locate_document
from gitsched.model.scheduling import Assignment


def describe_quota(state: KarmadaState, template: Document, result: ScheduleResult) -> str:
    """Return which quota stops a workload, and by how much; "" if none does."""
    if state.queue is None or result.reason != "QuotaExceeded":
        return ""
    return f"; {state.queue.quota_refusals.get(template.key)}"


def make_binding_finding(template: Document, severity: Severity, code: str, message: str) -> Finding:
    """Return a finding about a workload."""
    return Finding(severity, code, message, locate_document(template), template.key.resource)


def describe_unplaced_replicas(requirements: ReplicaRequirements, divided: bool, clusters: tuple[Assignment, ...]) -> str:
    """Return how many replicas are not assigned to a cluster; of a workload that is not divided all or none."""
    replicas = requirements.replicas or 0
    missing = replicas - sum(target.replicas for target in clusters) if divided or not clusters else 0
    return f" ({format_part(missing, replicas, 'replica', 'is', 'are')} unplaced)" if missing > 0 else ""
