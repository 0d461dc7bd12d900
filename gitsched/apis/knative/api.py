"""Knative Eventing's vreplica scheduler as the registry knows it."""

from __future__ import annotations

from itertools import chain

from gitsched.apis.gitsched.config import Knative
from gitsched.apis.knative import names
from gitsched.apis.knative.policies import check_policies
from gitsched.apis.knative.sites import SITES
from gitsched.apis.knative.source import check_kafka
from gitsched.apis.world import Api, Session, World
from gitsched.model.document import Body


def _is_used(world: World) -> bool:
    """Whether somebody said anything about pods that hold vreplicas, or how to choose one, be it wrong."""
    if world.config.knative != Knative():
        return True
    known = chain(world.templates, world.broken)
    return any(key.kind == "ConfigMap" and key.name == names.SCHEDULER and not key.group for key in known)


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
    sites=SITES,
)
"""Its documents are ordinary ones, which other APIs may place as well, so it has no group of its own."""
