"""Knative Eventing's vreplica scheduler in the registry of policy APIs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from gitsched.apis.engine import DocumentValidator, PolicyAPI, PolicyEngine, Snapshot
from gitsched.apis.gitsched.config import KnativeConfig
from gitsched.apis.knative import names
from gitsched.apis.knative.topology import TOPOLOGY
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Issue


def _is_used(world: Snapshot) -> bool:
    """Whether somebody said anything about pods that hold vreplicas, or how to choose one, be it wrong."""
    if world.config.knative != KnativeConfig():
        return True
    known = chain(world.templates, world.quarantined)
    return any(key.kind == "ConfigMap" and key.name == names.SCHEDULER and not key.group for key in known)


def _create_engine(world: Snapshot) -> PolicyEngine:
    from gitsched.apis.knative.engine import KnativeEngine  # `validate` does not need it

    return KnativeEngine(world)


def _apply_defaults(body: Body) -> Body:
    return body


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    if (group, kind) == ("", "ConfigMap"):
        return _validate_config_map
    if (group, kind) != (names.GROUP, names.KAFKA):
        return None
    from gitsched.apis.knative.vpods import validate_kafka_source  # most repositories have no source

    return validate_kafka_source


def _validate_config_map(body: Body) -> Iterator[Issue]:
    if get_field(body, "metadata", "name") not in (names.SCHEDULER, names.DESCHEDULER):
        return iter(())
    from gitsched.apis.knative.scheduler_policies import validate_policies  # nor one of the two

    return validate_policies(body)


API = PolicyAPI(
    "knative",
    frozenset(),
    _is_used,
    _create_engine,
    _apply_defaults,
    _find_validator,
    topology=TOPOLOGY,
)
"""Its documents are ordinary ones, which other APIs may place as well, so it has no group of its own."""
