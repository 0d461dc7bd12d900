"""Krake's entry in the registry of policy APIs, and the defaulting of its documents."""

from __future__ import annotations

from gitsched.apis.engine import DocumentValidator, PolicyAPI, PolicyEngine, Snapshot
from gitsched.apis.krake.names import APPLICATION, CLUSTER, GROUPS, MAGNUM_CLUSTER
from gitsched.apis.krake.topology import TOPOLOGY
from gitsched.model.document import Body

_CONSTRAINT_TARGETS = {"Application": "cluster", "Cluster": "cloud"}


def apply_defaults(body: Body) -> Body:
    """The body with the constraints that its command line always sends; the same object when they are there."""
    wanted = _CONSTRAINT_TARGETS.get(str(body.get("kind")))
    spec = body.get("spec")
    if wanted is None or body.get("api") != "kubernetes" or not isinstance(spec, dict) or spec.get("constraints") is not None:
        return body
    return {**body, "spec": {**spec, "constraints": {wanted: {}}}}


_SCHEDULED_KINDS = (APPLICATION, CLUSTER, MAGNUM_CLUSTER)


def _is_used(world: Snapshot) -> bool:
    return any(kind in world.documents for kind in _SCHEDULED_KINDS) or any(
        (key.group, key.kind) in _SCHEDULED_KINDS for key in world.quarantined
    )


def _create_engine(world: Snapshot) -> PolicyEngine:
    from gitsched.apis.krake.engine import KrakeEngine  # `validate` does not need it

    return KrakeEngine(world)


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    if group not in GROUPS:
        return None
    from gitsched.apis.krake.validation import VALIDATORS  # most repositories have no document of it

    return VALIDATORS.get((group, kind))


API = PolicyAPI("krake", GROUPS, _is_used, _create_engine, apply_defaults, _find_validator, topology=TOPOLOGY)
