"""Krake's entry in the registry of policy APIs."""

from __future__ import annotations

from gitsched.apis.engine import PolicyEngine, Snapshot
from gitsched.apis.krake.names import APPLICATION, CLUSTER, GROUPS, MAGNUM_CLUSTER
from gitsched.apis.krake.settings import SETTINGS
from gitsched.apis.krake.topology import TOPOLOGY
from gitsched.apis.policy_api import DocumentValidator, PolicyAPI
from gitsched.model.document import Body

_CONSTRAINT_TARGETS = {"Application": "cluster", "Cluster": "cloud"}


def apply_defaults(body: Body) -> Body:
    """Return the body with the constraints that Krake's command line always sends; the same object when it has them."""
    wanted = _CONSTRAINT_TARGETS.get(str(body.get("kind")))
    spec = body.get("spec")
    if wanted is None or body.get("api") != "kubernetes" or not isinstance(spec, dict) or spec.get("constraints") is not None:
        return body
    return {**body, "spec": {**spec, "constraints": {wanted: {}}}}


def _create_engine(snapshot: Snapshot) -> PolicyEngine:
    from gitsched.apis.krake.engine import KrakeEngine  # `validate` does not need it

    return KrakeEngine(snapshot)


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    from gitsched.apis.krake.validation import VALIDATORS  # most repositories have no document of it

    return VALIDATORS.get((group, kind))


API = PolicyAPI(
    name="krake",
    groups=GROUPS,
    create_engine=_create_engine,
    active_kinds=frozenset({APPLICATION, CLUSTER, MAGNUM_CLUSTER}),
    settings=SETTINGS,
    apply_defaults=apply_defaults,
    find_validator=_find_validator,
    topology=TOPOLOGY,
)
