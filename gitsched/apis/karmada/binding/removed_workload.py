"""Read the workload and its clusters from a binding of the previous output that no workload has any more."""

from __future__ import annotations

from gitsched.apis.karmada.binding.resource_binding import read_claim, set_claim_namespace
from gitsched.apis.karmada.settings import SETTINGS
from gitsched.apis.policy_api import Preservation, RemovedWorkload
from gitsched.model.document import Body, Key, parse_api_group, read_annotations

_PRESERVATION = Preservation(
    "preserveResourcesOnDeletion",
    "karmada.preserveOnMove",
    lambda config: config.settings_of(SETTINGS).preserve_on_move,
)


def read_removed_workload(record: Body) -> RemovedWorkload | None:
    """Return the workload of a ResourceBinding; None if the record names no resource or no cluster."""
    spec = record.get("spec") or {}
    entries = (spec, *(spec.get("requiredBy") or ()))
    clusters, resource = [cluster for entry in entries for cluster in entry.get("clusters") or ()], spec.get("resource")
    if not clusters or not resource:
        return None
    key = Key(
        parse_api_group(str(resource.get("apiVersion"))),
        str(resource.get("kind")),
        str(resource.get("namespace") or ""),
        str(resource.get("name")),
    )
    own = {str(entry.get("name")): entry.get("replicas") for entry in spec.get("clusters") or ()}
    replicas = {**{str(entry.get("name")): None for entry in clusters}, **own}
    required_by = frozenset((str(entry.get("namespace") or ""), str(entry.get("name"))) for entry in spec.get("requiredBy") or ())
    preservation = _PRESERVATION if spec.get(_PRESERVATION.field) is True else None
    policy = read_claim(read_annotations(record))
    return RemovedWorkload(
        key,
        replicas,
        dependent=bool(required_by),
        required_by=required_by,
        preservation=preservation,
        policy=policy and set_claim_namespace(policy, key.namespace),
    )
