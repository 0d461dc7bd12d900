"""Knative Eventing's vreplica scheduler as the registry knows it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from gitsched.apis.gitsched.config import Knative
from gitsched.apis.knative import names
from gitsched.apis.knative.sites import SITES
from gitsched.apis.world import Api, Check, Session, World
from gitsched.model.document import Body, member
from gitsched.model.issue import Issue


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


def _rules(group: str, kind: str) -> Check | None:
    if (group, kind) == ("", "ConfigMap"):
        return _check_config_map
    if (group, kind) != (names.GROUP, names.KAFKA):
        return None
    from gitsched.apis.knative.source import check_kafka  # most repositories have no source

    return check_kafka


def _check_config_map(body: Body) -> Iterator[Issue]:
    if member(body, "metadata", "name") not in (names.SCHEDULER, names.DESCHEDULER):
        return iter(())
    from gitsched.apis.knative.policies import check_policies  # nor one of the two

    return check_policies(body)


API = Api(
    "knative",
    frozenset(),
    _is_used,
    _open,
    _default,
    _rules,
    sites=SITES,
)
"""Its documents are ordinary ones, which other APIs may place as well, so it has no group of its own."""
