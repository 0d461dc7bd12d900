"""Registry entry of Knative Eventing's vreplica scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from gitsched.apis.engine import DocumentValidator, PolicyAPI, PolicyEngine, Snapshot
from gitsched.apis.gitsched.config import KnativeConfig
from gitsched.apis.knative.names import DESCHEDULER, GROUP, KAFKA, SCHEDULER
from gitsched.apis.knative.topology import TOPOLOGY
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Issue


def _is_used(snapshot: Snapshot) -> bool:
    """Return whether the settings or a config-scheduler ConfigMap, valid or not, ask for vreplica scheduling."""
    if snapshot.config.knative != KnativeConfig():
        return True
    keys = chain(snapshot.templates, snapshot.quarantined)
    return any(key.kind == "ConfigMap" and key.name == SCHEDULER and not key.group for key in keys)


def _create_engine(snapshot: Snapshot) -> PolicyEngine:
    from gitsched.apis.knative.engine import KnativeEngine  # imported lazily: `gitsched validate` does not need it

    return KnativeEngine(snapshot)


def _apply_defaults(body: Body) -> Body:
    return body


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    if (group, kind) == ("", "ConfigMap"):
        return _validate_config_map
    if (group, kind) != (GROUP, KAFKA):
        return None
    from gitsched.apis.knative.vpods import validate_kafka_source  # imported lazily: most repositories have no event sources

    return validate_kafka_source


def _validate_config_map(body: Body) -> Iterator[Issue]:
    if get_field(body, "metadata", "name") not in (SCHEDULER, DESCHEDULER):
        return iter(())
    from gitsched.apis.knative.scheduler_policies import (
        validate_policies,  # imported lazily: most repositories have no scheduler policies
    )

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
"""Knative has no groups of its own: its documents are ordinary templates, which other APIs may schedule as well."""
