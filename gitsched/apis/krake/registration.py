"""Krake's entry in the registry of policy APIs, and the defaulting of its documents."""

from __future__ import annotations

from gitsched.apis.engine import DocumentValidator, PolicyAPI, PolicyEngine, Snapshot
from gitsched.apis.krake.names import APPLICATION, CLUSTER, GROUPS, MAGNUM_CLUSTER
from gitsched.apis.krake.topology import TOPOLOGY
from gitsched.model.document import Body

_CONSTRAINT_TARGETS = {"Application": "cluster", "Cluster": "cloud"}


def apply_defaults(body: Body) -> Body:
    """Add the empty constraints that Krake's command line always sends; return the same object if nothing is missing."""
    target = _CONSTRAINT_TARGETS.get(str(body.get("kind")))
    spec = body.get("spec")
    if target is None or body.get("api") != "kubernetes" or not isinstance(spec, dict) or spec.get("constraints") is not None:
        return body
    return {**body, "spec": {**spec, "constraints": {target: {}}}}


_SCHEDULED_KINDS = (APPLICATION, CLUSTER, MAGNUM_CLUSTER)


def _is_used(snapshot: Snapshot) -> bool:
    return any(kind in snapshot.documents for kind in _SCHEDULED_KINDS) or any(
        (key.group, key.kind) in _SCHEDULED_KINDS for key in snapshot.quarantined
    )


def _create_engine(snapshot: Snapshot) -> PolicyEngine:
    from gitsched.apis.krake.engine import KrakeEngine  # imported lazily: `gitsched validate` does not need it

    return KrakeEngine(snapshot)


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    if group not in GROUPS:
        return None
    from gitsched.apis.krake.validation import VALIDATORS  # imported lazily: most repositories have no Krake documents

    return VALIDATORS.get((group, kind))


API = PolicyAPI("krake", GROUPS, _is_used, _create_engine, apply_defaults, _find_validator, topology=TOPOLOGY)
