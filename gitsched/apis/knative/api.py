"""Knative Eventing's vreplica scheduler as the registry knows it."""

from __future__ import annotations

from gitsched.apis.knative import names
from gitsched.apis.knative.policies import check_policies
from gitsched.apis.knative.source import check_kafka
from gitsched.apis.world import Api, Session, World
from gitsched.model.document import Body


def _is_used(world: World) -> bool:
    """Whether somebody said how much a pod holds, or how to choose one."""
    if world.config.knative.capacity is not None:
        return True
    return any(key.kind == "ConfigMap" and key.name == names.SCHEDULER and not key.group for key in world.templates)


def _open(world: World) -> Session:
    from gitsched.apis.knative.session import KnativeSession  # `validate` does not need it

    return KnativeSession(world)


def _default(body: Body) -> Body:
    return body


API = Api(
    "knative",
    frozenset(),
    _is_used,
    _open,
    _default,
    {("", "ConfigMap"): check_policies, (names.GROUP, names.KAFKA): check_kafka},
)
"""Its documents are ordinary ones, which other APIs may place as well, so it has no group of its own."""
